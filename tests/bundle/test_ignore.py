"""What is left out, with git itself as the judge."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudtrain.bundle import explain, scan
from tests.bundle.trees import clear, git, git_says, plant, start_repository

TREE = dict.fromkeys(
    [
        "a.py", "b.bin", "foo", "x y", "trailing ", " leading", "#hash", "!bang", "star*", "q?", "br[a]", "1", "A.PY",
        "src/a.py", "src/b.bin", "src/foo/one", "src/foo/two.bin", "src/deep/foo/three", "data/x.bin", "data/y/x.bin",
        "data/keep.txt", "docs/foo/a/b/c", "docs/foo.d/x", "a/b/c/d", "a/c", "a/x/c", "a/x/y/c", "ünï/çödé.bin",
    ],
    "content",
)  # fmt: skip

PATTERNS = [
    "foo", "foo/", "/foo", "*.bin", "*.bin\n!b.bin", "src/*", "src/**", "/src", "src/foo", "foo/*", "**/foo",
    "a/**/c", "**", "*", "*\n!*.py", "*\n!*/\n!*.py", "/*\n!/src/", "/*\n!src\nsrc/*\n!src/foo",
    "data/\n!data/keep.txt", "data/*\n!data/keep.txt", "*/\n!src/", "*/", "/*/", "**/", "x y", "x\\ y", "trailing",
    "trailing ", "trailing\\ ", " leading", "\\#hash", "#hash", "!bang", "\\!bang", "star\\*", "q\\?", "br\\[a\\]",
    "br[[]a]", "[0-9]", "[!a-z]*", "[^a-z]*", "[[:digit:]]", "[[:upper:]].*", "[z-a]", "[", "a[", "foo\\", "\\", "/",
    "//", "!", "foo//", "//foo", "a//b", "**foo", "fo**", "a/***/c", "***", "docs/foo/**", "docs/**/c",
    "docs/foo/**/c", "docs/*/a", "*/foo", "**/foo/**", "foo/**/", "**/*.bin", "ü*", "*é.bin", "foo\r\n*.bin\r\n",
    "\ufefffoo", "\n\n  \nfoo\n", "foo   ", "foo\t", "a/b/\n!a/b/c", "a/*\n!a/b\n", "a/x/../c", "./foo", "?",
    "*.bin\n!/data/\n", "foo\n!foo\nfoo", "!foo\nfoo", "*.PY", "a.PY", "*.[bp][iy]*", "src/[!f]*", "a/[!z]/c",
    "a[!b]c", "a?c", "**/a/**/c", "**/[a-c]/*", "a/**", "/**", "/**/foo", "**/**/foo", "*foo*", "*\\.py", "\\a.py",
    "\\foo/", "[f]oo/", "[]", "[]]",
]  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start_repository(tmp_path_factory.mktemp("repository"))


def shipped(root: Path) -> list[str]:
    return [file.path for file in scan(root).files]


def why(root: Path, path: str | Path) -> str:
    return str(explain(root, path))


@pytest.mark.parametrize("rules", PATTERNS, ids=repr)
def test_one_gitignore_means_what_it_means_to_git(repository: Path, rules: str) -> None:
    clear(repository)
    plant(repository, TREE | {".gitignore": rules})
    assert shipped(repository) == git_says(repository)


@pytest.mark.parametrize(
    "files",
    [
        {".gitignore": "*.bin", "data/.gitignore": "!x.bin"},
        {".gitignore": "data/", "data/.gitignore": "!*"},
        {".gitignore": "!b.bin", "src/.gitignore": "/b.bin\nfoo/", "src/foo/.gitignore": "!one"},
        {"src/.gitignore": "/foo", "docs/.gitignore": "foo/**\n!foo/a/"},
        {".gitignore": "foo", "docs/.gitignore": "!foo", "docs/foo/.gitignore": "b"},
        {"a/.gitignore": "*\n!.gitignore"},
        {"data/.gitignore": "*", ".gitignore": "!data/y/"},
        {".gitignore": "/data/y\n", "data/.gitignore": "y/x.bin\n!y", "data/y/.gitignore": "!x.bin"},
    ],
)
def test_nested_files(repository: Path, files: dict[str, str]) -> None:
    clear(repository)
    plant(repository, TREE | files)
    assert shipped(repository) == git_says(repository)


NAMES = st.sampled_from(["a", "b", "c", "ab", "a.b", "foo", "x y", ".h", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
SEGMENTS = st.one_of(
    NAMES,
    st.sampled_from(["*", "**", "?", "*b", "a*", "?*", "***", "*.*", "\\a"]),
    st.sampled_from(["[ab]", "[!a]", "[^b]*", "a[.]b", "[[:alpha:]]"]),
)
LINES = st.builds(
    lambda bang, root, parts, end: bang + root + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENTS, min_size=1, max_size=4),
    st.sampled_from(["", "", "/", " ", "/**", "\\ "]),
)
RULES = st.lists(LINES, min_size=1, max_size=5).map("\n".join)
RULE_FILES = st.dictionaries(st.just("") | PATHS, RULES, min_size=1, max_size=3)  # by folder


def plant_what_fits(root: Path, paths: list[str], rule_files: dict[str, str]) -> None:
    """Of paths that need one name as file and as folder, the first come first served."""
    for path in paths:
        place = root / path
        if not place.exists() and all(not above.is_file() for above in place.parents):
            plant(root, {path: "content"})
    for folder, rules in rule_files.items():
        if (root / folder).is_dir():
            plant(root / folder, {".gitignore": rules})


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=12),
    rules=RULE_FILES,
)
def test_any_rules_mean_what_they_mean_to_git(repository: Path, paths: list[str], rules: dict[str, str]) -> None:
    clear(repository)
    plant_what_fits(repository, paths, rules)
    assert shipped(repository) == git_says(repository)


def test_rules_above_the_code_folder_count_up_to_the_repository(tmp_path: Path) -> None:
    plant(tmp_path, {".gitignore": "*"})  # above the repository: not its business
    root = start_repository(tmp_path / "repo")
    plant(root, {".gitignore": "*.bin\n/pkg/code/secret\n/secret\nlog/\n", "pkg/.gitignore": "code/*.tmp\n!log/"})
    files = ["a.py", "x.bin", "secret", "s/secret", "t.tmp", "log/l"]
    code = plant(root / "pkg" / "code", dict.fromkeys(files, ""))
    assert shipped(code) == git_says(code, "--exclude-standard") == ["a.py", "log/l", "s/secret"]
    assert why(code, "x.bin") == "left out by ../../.gitignore:1: *.bin"


def test_rules_above_do_not_count_without_a_repository(tmp_path: Path) -> None:
    plant(tmp_path, {".gitignore": "*.bin", "code/x.bin": ""})
    assert shipped(tmp_path / "code") == ["x.bin"]


def test_a_code_folder_that_its_repository_ignores_still_ships(tmp_path: Path) -> None:
    root = start_repository(tmp_path)
    plant(root, {".gitignore": "/build/\n", "build/train.py": ""})
    assert shipped(root / "build") == ["train.py"]


def test_what_only_this_machine_knows_does_not_count(tmp_path: Path) -> None:
    root = start_repository(tmp_path)
    plant(root, {".git/info/exclude": "*.py", "a.py": "", "kept.log": "", ".gitignore": "*.log"})
    git(root, "config", "core.excludesFile", str(plant(root / ".git", {"mine": "*.py"}) / "mine"))
    git(root, "add", "--force", "kept.log")
    assert git_says(root, "--exclude-standard") == [".gitignore"]
    assert shipped(root) == [".gitignore", "a.py"]  # the tracked log is still left out: rules decide, not the index


@pytest.mark.parametrize("rules", PATTERNS[:40], ids=repr)
def test_cloudtrainignore_alone_reads_like_gitignore(repository: Path, rules: str) -> None:
    clear(repository)
    plant(repository, TREE | {".cloudtrainignore": rules})
    assert shipped(repository) == git_says(repository, "--exclude-per-directory=.cloudtrainignore")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=st.lists(PATHS, min_size=1, max_size=12), below=RULES, above=RULES)
def test_cloudtrainignore_lies_on_top_of_gitignore(repository: Path, paths: list[str], below: str, above: str) -> None:
    clear(repository)
    plant_what_fits(repository, paths, {"": f"{below}\n{above}"})
    plant(repository, {".cloudtrainignore": ""})
    expected = git_says(repository)
    plant(repository, {".gitignore": below, ".cloudtrainignore": above})
    assert shipped(repository) == expected


def test_cloudtrainignore_takes_back_what_a_deeper_gitignore_leaves_out(tmp_path: Path) -> None:
    plant(tmp_path, {"w/.gitignore": "*.pt", "w/m.pt": "", "w/n.pt": "", ".cloudtrainignore": "!w/m.pt"})
    assert shipped(tmp_path) == [".cloudtrainignore", "w/.gitignore", "w/m.pt"]


def test_what_never_ships(tmp_path: Path) -> None:
    never = [".git/config", "sub/.git", ".cloudtrain/runs/1/state.json", "p/__pycache__/m.pyc"]
    venv = ["env/pyvenv.cfg", "env/lib/x.py"]
    plant(tmp_path, dict.fromkeys(never + venv, "") | {"sub/train.py": "", ".cloudtrainignore": "!*\n"})
    assert shipped(tmp_path) == [".cloudtrainignore", "sub/train.py"]
    assert why(tmp_path, "sub/.git") == "left out: .git never ships"
    assert why(tmp_path, ".cloudtrain/runs/1") == "left out with its folder .cloudtrain/: .cloudtrain never ships"
    assert why(tmp_path, "env/lib/x.py") == "left out with its folder env/: a virtual environment never ships"


def test_explain_names_file_line_and_pattern(tmp_path: Path) -> None:
    plant(tmp_path, {".gitignore": "# data\n\n*.bin\n!keep.bin", "d/.gitignore": "/sub/\n", "d/sub/x.py": ""})
    reason = explain(tmp_path, "x.bin")
    assert reason is not None
    assert str(reason) == "left out by .gitignore:3: *.bin"
    assert (reason.path, reason.file, reason.line, reason.pattern) == ("x.bin", ".gitignore", 3, "*.bin")
    assert why(tmp_path, tmp_path / "d" / "sub" / "x.py") == "left out with its folder d/sub/ by d/.gitignore:1: /sub/"
    assert why(tmp_path, "d/sub/") == "left out by d/.gitignore:1: /sub/"
    assert why(tmp_path, "not/there.bin") == "left out by .gitignore:3: *.bin"
    assert why(tmp_path, "../x.py") == "lies outside the code folder, which is all that ships"
    for ships in ("keep.bin", "./d/../train.py", "."):
        assert explain(tmp_path, ships) is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=8),
    rules=RULE_FILES,
)
def test_explain_agrees_with_what_ships(repository: Path, paths: list[str], rules: dict[str, str]) -> None:
    clear(repository)
    plant_what_fits(repository, paths, rules)
    every = git(repository, "ls-files", "--others", "-z").split(b"\0")
    files = [os.fsdecode(path) for path in every if path]
    assert [path for path in files if explain(repository, path) is None] == shipped(repository)


def test_a_gitignore_that_is_a_link_is_not_read_as_git_does_not(repository: Path) -> None:
    clear(repository)
    plant(repository, {"rules": "*.bin", "x.bin": ""})
    (repository / ".gitignore").symlink_to("rules")
    assert shipped(repository) == git_says(repository) == [".gitignore", "rules", "x.bin"]


def test_account_settings_are_no_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    before = scan(tmp_path).digest
    (tmp_path / "cloudtrain.toml").write_text('[vertex]\nproject = "p"\n')
    assert scan(tmp_path).digest == before
    assert str(explain(tmp_path, "cloudtrain.toml")) == "left out: cloudtrain.toml never ships"
