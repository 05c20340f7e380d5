# Two commands set everything up on a machine that has Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= demo

.PHONY: demo test lint bench wheel clean

# The main job on real data: 1,437 handwritten digits, 2 simulated nodes x 2 processes, one job file.
demo: $(VENV)/demo-ready
	test -d $(DEMO) || $(BIN)/cloudtrain init --template digits $(DEMO)
	cd $(DEMO) && ../$(BIN)/python prepare.py
	cd $(DEMO) && ../$(BIN)/cloudtrain validate job.yaml
	cd $(DEMO) && ../$(BIN)/cloudtrain run job.yaml --nodes 2 --processes 2

test: $(VENV)/ready $(VENV)/azurite/ready
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST)  # tests/conftest.py says what goes side by side

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

wheel: $(VENV)/ready
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) $(DEMO) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The constraints hold torch at one version. Which build of it pip takes (CPU or CUDA, several GB) depends on pip's own
# configuration: point PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS at a CPU build.
$(VENV)/ready: INSTALL = .[dev]
$(VENV)/demo-ready: INSTALL = .[demo]  # the vendors' packages are big, and a run needs none of them
$(VENV)/ready $(VENV)/demo-ready: pyproject.toml constraints-dev.txt
	@$$(test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON)) -c 'import sys; \
	  (3, 10) <= sys.version_info < (3, 14) or sys.exit("cloudtrain needs Python 3.10 to 3.13, and %s is %d.%d: " \
	  "give another one, such as  make PYTHON=python3.12  (after  make clean  if it is that of $(VENV))" \
	  % (sys.executable, *sys.version_info[:2]))'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints-dev.txt --editable '$(strip $(INSTALL))'
	$(BIN)/python -m compileall -q cloudtrain entrypoints  # an editable install compiles nothing by itself
	touch $@

# Blob storage of the Azure ML emulator, from npm; Node itself is one of the packages above.
$(VENV)/azurite/ready: $(VENV)/ready
	test -x $(VENV)/azurite/node_modules/.bin/azurite-blob || \
	  PATH="$(abspath $(BIN)):$$PATH" npm install --prefix $(VENV)/azurite --no-audit --no-fund --loglevel=error azurite@3.35.0
	touch $@
