"""One start of a job: its containers run until one of them, the service or somebody ends them."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cloudtrain.emulator.base import NodePlan
from cloudtrain.emulator.vertex import wording
from cloudtrain.emulator.vertex.containers import launcher_of, plan
from cloudtrain.emulator.vertex.jobs import RUNNING, Job
from cloudtrain.emulator.vertex.restarts import Fate
from cloudtrain.emulator.vertex.tails import Tails
from cloudtrain.emulator.vertex.wording import Ending
from cloudtrain.providers.reading import text
from cloudtrain.providers.vertex.reading import seconds

if TYPE_CHECKING:
    from cloudtrain.emulator.nodes import Nodes
    from cloudtrain.emulator.vertex.life import Surroundings

_GRACE = 30.0
"""From SIGTERM to SIGKILL: nothing is documented for Vertex AI, and this is what Kubernetes gives."""
_LEAST_GRACE = 5.0
"""Real seconds: what a container does then takes as long here as there."""
_LOOK_SECONDS = 0.05
_SETTLE_SECONDS = 0.3
"""After the first failure, so that the one that others follow from is among those that are seen."""


class Start:
    """See ``run``."""

    def __init__(self, job: Job, number: int, folder: Path, around: Surroundings) -> None:
        """``number``: from 0. ``folder`` is made."""
        self._job, self._number, self._around = job, number, around
        buckets = around.storage.buckets()
        self._plans = [plan(replica, folder, buckets, around.services) for replica in job.replicas]
        tasks = [replica.task for replica in job.replicas]
        self._tails = Tails([each.log for each in self._plans], tasks, around.log, job.place.project, job.id)
        self._failed: list[int] = []

    def run(self) -> Fate | Ending:
        """Until the end of all containers."""
        self._around.storage.sync(all_of_it=True)
        for node, each in enumerate(self._plans):
            if not each.launch.is_file():
                return self._not_found(node, each)
        nodes = self._around.site.start_nodes(self._plans)
        try:
            if self._job.enter(RUNNING):
                self._tell_running()
            return self._watch(nodes)
        finally:
            nodes.close()
            self._tails.read(to_the_end=True)
            self._around.storage.sync(all_of_it=True)

    def outputs(self) -> dict[str, str]:
        """The end of what each replica printed."""
        return self._tails.last()

    def _not_found(self, node: int, each: NodePlan) -> Fate:
        """What Python says of a script that is not there."""
        path = launcher_of(self._job.replicas[node].spec)
        each.log.write_text(f"python3: can't open file '{path}': [Errno 2] No such file or directory\n")
        self._tails.read(to_the_end=True)
        return Fate("exited", node, 2)

    def _tell_running(self) -> None:
        payload = {"jsonPayload": {"message": wording.RUNNING}}
        self._around.log.append(self._job.place.project, self._job.id, wording.SERVICE, payload, late=False)

    def _watch(self, nodes: Nodes) -> Fate | Ending:
        began = time.monotonic()
        faults = self._job.faults
        preempt = faults.preempt[self._number] if self._number < len(faults.preempt) else None
        losses = sorted(faults.lose, key=lambda loss: loss.at) if self._number == 0 else []
        timeout = seconds(self._job.native, "jobSpec", "scheduling", "timeout")
        while True:
            ended = self._look(nodes)
            ran = time.monotonic() - began
            if self._job.cancelled.is_set():
                return self._stopped(nodes, wording.cancelled())
            if ended.get(0) == 0:
                return self._stopped(nodes, wording.succeeded())
            if self._failed:
                return self._fallen(nodes)
            if preempt and ran >= preempt.at:
                preempt.happens()
                return self._stopped(nodes, Fate("preempted", 0), notice=preempt.notice)
            if losses and ran >= losses[0].at and losses[0].node < len(self._plans):
                losses[0].happens()
                nodes.signal(signal.SIGKILL, losses[0].node)
                self._let_end(nodes, self._around.site.clock.scaled(_GRACE))  # the others see it by themselves
                return self._stopped(nodes, Fate("lost", losses[0].node))
            if timeout is not None and time.monotonic() >= (self._job.ran_since or began) + timeout:
                limit = text(self._job.native, "jobSpec", "scheduling", "timeout")
                return self._stopped(nodes, wording.timed_out(limit))
            self._job.cancelled.wait(_LOOK_SECONDS)

    def _look(self, nodes: Nodes) -> dict[int, int]:
        """Pass on what is new. Exit statuses by node, and who failed, in the order of being seen."""
        ended = nodes.poll()
        self._tails.read()
        self._around.storage.sync()
        failed = sorted(node for node, status in ended.items() if status and node not in self._failed)
        self._failed += failed
        return ended

    def _fallen(self, nodes: Nodes) -> Fate | Ending:
        """Some replica failed. Others that do so now may tell better why: a code of a script's own, not of a loss."""
        time.sleep(_SETTLE_SECONDS)
        ended = self._look(nodes)
        fates = [Fate("exited", node, _as_container(ended[node])) for node in self._failed]
        return self._stopped(nodes, min(fates, key=lambda fate: fate.status != 1))

    def _stopped(self, nodes: Nodes, result: Fate | Ending, *, notice: bool = True) -> Fate | Ending:
        """End what still runs. If the primary replica gets done meanwhile, the job is."""
        if notice and not self._around.closing.is_set():
            nodes.signal(signal.SIGTERM)
            self._let_end(nodes, max(_LEAST_GRACE, self._around.site.clock.scaled(_GRACE)))
        nodes.kill()
        done = self._look(nodes).get(0) == 0
        return wording.succeeded() if done else result

    def _let_end(self, nodes: Nodes, limit: float) -> None:
        until = time.monotonic() + limit
        while not nodes.wait(_LOOK_SECONDS) and time.monotonic() < until and not self._around.closing.is_set():
            self._look(nodes)


def _as_container(status: int) -> int:
    """A container that a signal ended exits with 128 and its number."""
    return 128 - status if status < 0 else status
