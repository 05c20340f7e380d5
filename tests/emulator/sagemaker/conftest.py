"""One emulator for all tests that want nothing special of it, but for the names of their jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.sagemaker.aws import Aws, opened

FAULTS = """
jobs:
  - {name: spot, fault: preempt, at: 1s, times: 2}
  - {name: torn, fault: preempt-without-notice, at: 3s}
  - {name: on-demand, fault: preempt, at: 0s}
  - {name: once, fault: lose-node, node: 1, at: 1s}
  - {name: again, fault: lose-node, node: 1, at: 1s}
  - {name: no-machines, fault: capacity}
  - {name: no-image, fault: image-missing}
  - {name: no-quota, fault: quota}
  - {name: odd, fault: unknown-state, state: Hibernating}
"""


@pytest.fixture(scope="package")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with opened(tmp_path_factory.mktemp("aws"), faults=FAULTS) as account:
        yield account
