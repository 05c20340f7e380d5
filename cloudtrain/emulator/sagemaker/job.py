"""One training job's life, in a thread of its own: from Starting, over as many starts as it takes, to its end."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudtrain.emulator.sagemaker import artefacts, record
from cloudtrain.emulator.sagemaker.channels import DownloadError
from cloudtrain.emulator.sagemaker.checkpoints import Checkpoints
from cloudtrain.emulator.sagemaker.containers import Containers, NoProgram
from cloudtrain.emulator.sagemaker.errors import CAPACITY, INTERNAL, NO_IMAGE, algorithm
from cloudtrain.emulator.sagemaker.logstreams import LogStreams
from cloudtrain.emulator.sagemaker.watch import Ended, Watch, Why
from cloudtrain.errors import CloudtrainError
from cloudtrain.providers.reading import at, text, whole

if TYPE_CHECKING:
    from cloudtrain.emulator.base import Site
    from cloudtrain.emulator.faults import JobFaults
    from cloudtrain.emulator.sagemaker.clients import Clients
    from cloudtrain.emulator.sagemaker.record import Record, State

# What the service takes for its own work, in seconds there; the emulator's clock shortens it.
_STARTING = 30.0
_LAUNCHING = 60.0
_DOWNLOADING = 10.0
_IMAGE = 15.0
_UPLOADING = 10.0
_INTERRUPTED = 60.0
_LATE_LINES = 90.0
_GRACE = 120.0
"""From SIGTERM to SIGKILL."""
_SHORTEST_GRACE = 10.0
"""In real seconds: what a job does in its grace is real work, which no clock shortens."""


class World(NamedTuple):
    """What all jobs of an emulator share."""

    site: Site
    clients: Clients
    reach: Mapping[str, str]
    """Variables by which containers find AWS."""


class _End(Exception):
    """The job is over."""

    def __init__(self, state: State, failure: str = "", model: str = "") -> None:
        self.state = state
        self.failure = failure
        self.model = model


class Job(threading.Thread):
    """``start`` it; ``stop`` is a user's wish, ``close`` the emulator's."""

    def __init__(self, world: World, made: Record, faults: JobFaults, folder: Path) -> None:
        super().__init__(name=f"sagemaker {made.name}")
        self.record = made
        self._world = world
        self._native = made.native
        self._faults = faults
        self._folder = folder
        self._to_end = threading.Event()
        """It is to be stopped, or the emulator closes."""
        self._closing = threading.Event()
        self._spot = at(self._native, "EnableManagedSpotTraining") is True
        self._retries = whole(self._native, "RetryStrategy", "MaximumRetryAttempts") or 0
        self._ran = 0.0
        self._epoch = 0
        self._streams: list[LogStreams] = []
        """Of all starts."""

    def stop(self) -> None:
        """StopTrainingJob."""
        if self.record.enter(record.STOPPING):
            self._to_end.set()

    def close(self) -> None:
        """End it at once; ``join`` then waits for that."""
        self._closing.set()
        self._to_end.set()

    def run(self) -> None:
        """The thread."""
        try:
            self._live()
        except _End as end:
            self.record.enter(end.state, failure=end.failure, model=end.model)
            for streams in self._streams:
                streams.finish(self._closing)
        except Exception as error:  # noqa: BLE001 - a fault of ours: told to whoever waits for the job, and here
            if not self._closing.is_set():
                traceback.print_exc(file=sys.stderr)
            self.record.enter(record.FAILED, failure=f"InternalServerError: a fault of the emulator: {error!r}")
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _live(self) -> None:
        self._pause(_STARTING)
        for start in itertools.count():
            self._enter(record.LAUNCHING)
            self._pause(_LAUNCHING)
            if self._faults.refuse == "capacity":
                raise _End(record.FAILED, CAPACITY)
            containers = self._containers(start)
            try:
                self._after(self._train(containers, start), containers)
            finally:
                containers.remove()
            self._enter(record.STARTING)

    def _containers(self, start: int) -> Containers:
        folder = self._folder / str(start)
        return Containers(self._native, self.record.region, folder, self._world.reach)

    # -- one start ---------------------------------------------------------------------------------------------------

    def _train(self, containers: Containers, start: int) -> Ended:
        self._enter(record.DOWNLOADING)
        checkpoints = self._prepare(containers)
        self._pause(_DOWNLOADING)
        self._enter(record.FETCHING_IMAGE)
        self._pause(_IMAGE)
        if self._faults.image_missing:
            raise _End(record.FAILED, NO_IMAGE)
        streams = self._new_streams(containers)
        nodes = self._start_nodes(containers)
        began = time.monotonic()
        try:
            self.record.enter(record.TRAINING)

            def work() -> None:
                for each in self._streams:  # of an earlier start, too: lines may be late
                    each.pump()
                checkpoints.sync()

            ended = Watch(
                nodes,
                len(containers.roots),
                asked=lambda: self._asked(began),
                work=work,
                grace=max(self._world.site.clock.scaled(_GRACE), _SHORTEST_GRACE),
                faults=self._faults,
                start=start,
            ).run()
        finally:
            nodes.close()
        self._ran += time.monotonic() - began
        if ended.why == "closed":
            raise _End(record.STOPPED)
        streams.drain()
        if ended.why not in ("gone", "lost"):
            checkpoints.sync(now=True)
        return ended

    def _prepare(self, containers: Containers) -> Checkpoints:
        """Fill the nodes' folders."""
        from botocore.exceptions import BotoCoreError, ClientError

        s3 = self._world.clients.s3
        checkpoints = Checkpoints(s3, text(self._native, "CheckpointConfig", "S3Uri"), containers.checkpoints)
        try:
            containers.fill(s3)
            checkpoints.restore()
        except DownloadError as error:
            raise _End(record.FAILED, f"ClientError: Data download failed:{error}") from error
        except (BotoCoreError, ClientError, OSError) as error:
            raise _End(record.FAILED, f"ClientError: Data download failed:Failed to download data. {error}") from error
        return checkpoints

    def _new_streams(self, containers: Containers) -> LogStreams:
        """A start within the second of the last one has the next second: its streams are new."""
        self._epoch = max(int(time.time()), self._epoch + 1)
        faults, late = self._world.site.faults.logs("sagemaker"), self._world.site.clock.scaled(_LATE_LINES)
        streams = LogStreams(
            self._world.clients.logs(self.record.region),
            [f"{self.record.name}/{host}-{self._epoch}" for host in containers.hosts],
            containers.logs,
            # Out of order: the second node's lines come before the first one's, and so on.
            [late if "late" in faults or ("out-of-order" in faults and node % 2 == 0) else 0.0
             for node in range(len(containers.logs))],
        )  # fmt: skip
        self._streams.append(streams)
        return streams

    def _start_nodes(self, containers: Containers) -> Any:
        try:
            return self._world.site.start_nodes(containers.plans())
        except NoProgram as error:
            raise _End(record.FAILED, f"ClientError: {error}") from error
        except (CloudtrainError, OSError) as error:
            text = f"InternalServerError: the emulator cannot start the containers: {error}"
            raise _End(record.FAILED, text) from error

    def _asked(self, began: float) -> Why | None:
        """Whether the containers are to end, and why. The limits are in real seconds."""
        if self._closing.is_set():
            return "closed"
        if self._to_end.is_set():
            return "stop"
        runtime = whole(self._native, "StoppingCondition", "MaxRuntimeInSeconds")
        if runtime and self._ran + time.monotonic() - began > runtime:
            self.record.enter(record.STOPPING)
            return "runtime"
        if self._waited_too_long():
            self.record.enter(record.STOPPING)
            return "wait"
        return None

    def _waited_too_long(self) -> bool:
        wait = whole(self._native, "StoppingCondition", "MaxWaitTimeInSeconds")
        return bool(wait) and time.time() - self.record.created > (wait or 0)

    # -- what comes after it -----------------------------------------------------------------------------------------

    def _after(self, ended: Ended, containers: Containers) -> None:
        """Returns where the service starts the job again; raises _End with its end."""
        with self._failing_uploads():
            if ended.why in ("stop", "runtime", "wait"):
                ends: Mapping[str, State] = {"runtime": record.OVER_RUNTIME, "wait": record.OVER_WAIT}
                raise _End(ends.get(ended.why, record.STOPPED), model=self._upload(containers))
            if ended.why == "exited" and ended.failed is None:
                self.record.enter(record.UPLOADING)
                self._world.site.clock.wait(_UPLOADING, self._closing)
                model = self._upload(containers)
                stopped = self.record.state.status == "Stopping"
                raise _End(record.STOPPED if stopped else record.COMPLETED, model=model)
        if ended.why == "exited" and ended.failed:
            node, code = ended.failed
            raise _End(record.FAILED, algorithm(containers.failure(node), code))
        self._go_on(ended)

    def _go_on(self, ended: Ended) -> None:
        """Machines have gone. Those of spot come again as long as the job may wait; of others it is a fault of the
        platform, which RetryStrategy counts."""
        if ended.why in ("preempted", "gone") and self._spot:
            self._enter(record.INTERRUPTED)
            self._pause(_INTERRUPTED)
            return
        if not self._retries:
            raise _End(record.FAILED, INTERNAL)
        self._retries -= 1
        self._enter(record.RESTARTING)
        self._pause(_INTERRUPTED)

    def _upload(self, containers: Containers) -> str:
        return artefacts.upload(self._native, self._world.clients.s3, containers.roots, self._folder)

    @contextlib.contextmanager
    def _failing_uploads(self) -> Iterator[None]:
        try:
            yield
        except artefacts.UploadError as error:
            raise _End(record.FAILED, f"ClientError: Artifact upload failed:{error}") from error

    # -- states ------------------------------------------------------------------------------------------------------

    def _enter(self, state: State) -> None:
        """Raises _End where somebody has stopped the job."""
        if not self.record.enter(state):
            raise _End(record.STOPPED)

    def _pause(self, service_seconds: float) -> None:
        if self._world.site.clock.wait(service_seconds, self._to_end):
            raise _End(record.STOPPED)
        if self._waited_too_long():
            raise _End(record.OVER_WAIT)
