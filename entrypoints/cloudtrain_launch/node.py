"""One node of a job, from its first process to its exit code.

The launcher's loop. In a cloud the node is prepared first (``prepare.py``), while it is in touch with the others
already: a node that takes minutes to install something keeps nobody from hearing that another one has failed. When all
nodes are here and ready, torch elastic starts the workers, and the loop only watches: a rank that fails, a node that is
lost, a signal, a start that takes too long. What happens is decided once (``_fail``, ``_preempt``), told to the other
nodes, and ends in ``_stop``: SIGTERM for the workers, SIGKILL after a grace. Last, whatever the end, the node's results
are delivered (``deliver.py``), and no node leaves before all are done: platforms take the first exit for the job's.

If this process is killed at any point the kernel kills the agent, the wardens and the scripts, and the other nodes see
their connection break; nothing on disk needs repair, since only the end report is written here.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Mapping
from typing import Any, Callable

from cloudtrain_launch import environ, exits, layout, processes, report
from cloudtrain_launch.agent_process import AgentProcess
from cloudtrain_launch.channel import Message
from cloudtrain_launch.cluster import Cluster, make_folders
from cloudtrain_launch.contracts import places
from cloudtrain_launch.delivery import Delivery
from cloudtrain_launch.errors import LaunchError
from cloudtrain_launch.failure import Failure, describe_status, root_cause
from cloudtrain_launch.gathering import Gathering
from cloudtrain_launch.helper import Chore
from cloudtrain_launch.members import Head, Member, Members
from cloudtrain_launch.signals import Signals
from cloudtrain_launch.sink import Sink
from cloudtrain_launch.spec import LaunchSpec
from cloudtrain_launch.start_watch import StartWatch
from cloudtrain_launch.worker import WorkerConfig
from cloudtrain_launch.workers import Rank, Workers

FAILURE_GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL once the job has failed: there is nothing left to save in agreement."""
_LAST_WORDS_SECONDS = 2.0
_DELIVERY_SECONDS = 600.0
"""For the results of a job that has failed."""
_AFTER_GRACE_SECONDS = 5.0
"""For the results after a preemption, beyond the workers' grace: platforms wait somewhat longer than that."""
_TICK_SECONDS = 0.2


class Node:
    """Runs the job's part on this node. ``run`` returns the exit code and leaves no process behind."""

    def __init__(self, spec: LaunchSpec, cluster: Cluster, sink: Sink, env: Mapping[str, str], folder: str) -> None:
        """Prepare the node and start the agent, last, so that a LaunchError leaves no process behind."""
        self.spec = spec
        self.cluster = cluster
        self.sink = sink
        self._env = env
        self._failures: list[Failure] = []
        self._preempted = False
        self._kill_at: float | None = None
        self._stopped_at: float | None = None
        self._killing = False
        self._own_work_ended = False
        """Nothing is left that can be stopped. What hangs in a driver or on a lost disk cannot be killed, either."""
        self._leave_at: float | None = None
        self._others_done: set[int] = set()
        self._told_done = False
        self._agent: AgentProcess | None = None
        self._preparation: Chore | None = None
        self._delivery = Delivery(self._start_delivery)
        self._started = time.time()
        self._selector = selectors.DefaultSelector()
        processes.adopt_orphans()
        self._signals = Signals(self._selector)
        if not cluster.is_cloud:  # there it is a part of the preparation, whose failure is told to all nodes
            make_folders(cluster)
        self._worker_env = environ.worker_environment(env, spec, cluster)
        self._config_path = os.path.join(folder, "worker.json")
        config = self._worker_config(folder)
        first = cluster.node * spec.processes_per_node
        self._ranks = [Rank(first + local, local) for local in range(spec.processes_per_node)]
        self._watch = StartWatch(self._ranks, config, spec.start_timeout)
        self._members: Members = (Member if cluster.node else Head)(cluster, spec, self._selector, self._hear_node)
        self._gathering = Gathering(cluster, self._members, spec.start_timeout, self._say)
        self._logs = env.get("CLOUDTRAIN_LOG_DIR") or folder
        self._workers = Workers(config, self._ranks, self._logs, self._selector, sink, self._hear_rank)
        if cluster.is_cloud:
            self._prepare(config.code)
        else:
            self._be_ready()

    def run(self) -> int:
        """From here to the exit code."""
        try:
            self._members.tick()  # before the loop's first wait: the others are to be found at once
            while not self._is_over():
                self._step()
        except LaunchError as error:
            self._failures.append(self._failure("launcher", str(error)))
        return self._end()

    # -- beginning ---------------------------------------------------------------------------------------------------

    def _worker_config(self, folder: str) -> WorkerConfig:
        entrypoints = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        python_path = (entrypoints, self._worker_env.get("PYTHONPATH", ""))
        self._worker_env["PYTHONPATH"] = os.pathsep.join(filter(None, python_path))
        config = WorkerConfig(
            kind=self.spec.kind,
            target=self.spec.target,
            args=[environ.substitute(text, self.cluster) for text in self.spec.args],
            code=self._code_folder(folder),
            entrypoints=entrypoints,
            folder=folder,
        )
        config.save(self._config_path)
        return config

    def _code_folder(self, folder: str) -> str:
        if self.cluster.is_cloud and self._env.get("CLOUDTRAIN_CODE"):
            return layout.code(folder)
        return os.path.join(os.path.dirname(self._env["CLOUDTRAIN_SPEC"]), self.spec.code)

    def _prepare(self, code: str) -> None:
        """Only here, and in ``_start_delivery``, is imported what local mode does without."""
        from cloudtrain_launch import banner, prepare

        self.sink.event("state", state="preparing")
        for line in banner.lines(self.cluster, self._env, self._worker_env):
            self._say(line)
        self._preparation = self._chore(
            "the preparation", lambda: prepare.run(self._env, self.spec, self.cluster, code)
        )

    def _chore(self, name: str, work: Callable[[], dict[str, Any]]) -> Chore:
        return Chore(name, work, self._node_log, self._say, self._selector)

    def _say(self, text: str) -> None:
        self.sink.line(None, text)

    @property
    def _node_log(self) -> str:
        return os.path.join(self._logs, f"node-{self.cluster.node}.log")

    def _be_ready(self) -> None:
        """Start the agent, which loads torch while the nodes wait for each other."""
        self._agent = AgentProcess(self._config_path, self._worker_env, self._node_log, self._say, self._selector)
        self._gathering.ready.add(self.cluster.node)
        self._members.tell("ready")
        self.sink.event("state", state="waiting")

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        events = self._selector.select(min(_TICK_SECONDS, self._members.seconds_to_next_try()))
        self._take_signals()  # first: who ends a whole group ends the ranks as well, and means the job by it
        for key, _ in events:
            # A callback may have closed what a later one of this round was about.
            if key.fileobj in self._selector.get_map():
                key.data()
        self._note_ended(processes.reap())
        self._members.tick()
        self._check_start()
        self._check_end()
        self._kill_when_due()
        self.sink.flush()
        self._workers.read_output(not self.sink.pressed)

    def _take_signals(self) -> None:
        name = self._signals.taken()
        # Only the first one counts: platforms and impatient users repeat it, and a second must not cut a save short.
        if name and not self._preempted and not self._failures:
            self._say(f"{name}: all ranks are told to stop, at most {self.spec.grace:g} s")
            self._members.tell("preempt")
            self._preempt()

    def _note_ended(self, ended: Mapping[int, int]) -> None:
        for process, judge in (
            (self._agent, self._judge_agent),
            (self._preparation, self._judge_preparation),
            (self._delivery.chore, self._judge_delivery),
        ):
            if process and process.pid in ended:
                process.status = ended[process.pid]
                self._step_once_more_for_last_words()
                judge(process.status)

    def _judge_agent(self, status: int) -> None:
        if self._agent is None or self._stopping or self._workers_succeeded:
            return
        error = self._agent.last_word.get("error") if self._agent.last_word else describe_status(status)
        if error:
            kind = "launcher" if self._workers.started else "not-started"
            self._fail(self._failure(kind, f"node {self.cluster.node}: torch elastic's agent: {error}",
                                     traceback="\n".join(self._agent.words)))  # fmt: skip

    def _judge_preparation(self, _: int) -> None:
        outcome = self._preparation.outcome if self._preparation and not self._stopping else None
        if outcome and "error" in outcome:
            self._fail(self._failure("launcher", f"node {self.cluster.node}: {outcome['error']}"))
        elif outcome:
            self._worker_env.update(outcome["env"])
            self._be_ready()

    def _judge_delivery(self, _: int) -> None:
        error = self._delivery.chore.outcome.get("error") if self._delivery.chore else None
        if error and self._stopping:  # the end has its cause already
            self._say(error)
        elif error:
            self._fail(self._failure("delivery", f"node {self.cluster.node}: {error}"))

    def _step_once_more_for_last_words(self) -> None:
        """What the agent and the wardens wrote just before their end is heard before their end is judged."""
        for key, _ in self._selector.select(0):
            if key.fileobj in self._selector.get_map():
                key.data()

    def _check_start(self) -> None:
        if self._stopping:
            return
        if not self._went and self.cluster.node == 0:
            if self._gathering.is_complete:
                self._all_go()
            else:
                self._gathering.say_who_is_awaited()
        if self._watch.gathering_is_late(self._gathering.reserve):
            self._fail(self._failure("not-started", self._gathering.who_is_missing()))
        late = self._watch.late()
        if late:
            rank, message, stack = late
            self._fail(self._failure("start-timeout", f"node {self.cluster.node}: {message}", rank, traceback=stack))

    def _all_go(self) -> None:
        """Node 0: everyone is here and ready."""
        where = self._gathering.meeting_place()
        self._members.tell("go", **where)
        self._go(**where)

    def _check_end(self) -> None:
        if self._stopping:
            if self._leave_at is None and (self._delivery.chore or self._own_work_ended) and self._has_delivered():
                self._told_done = True
                self._members.tell("done")
                # The others' failures are heard for a moment, so that all nodes name the same cause, and their results
                # are awaited.
                until = self._delivery.until if self._delivery.chore else 0.0
                self._leave_at = max(time.monotonic(), until) + _LAST_WORDS_SECONDS
        elif self._workers_succeeded and not self._told_done and self._has_delivered():
            self._told_done = True
            self._members.tell("done")

    def _has_delivered(self) -> bool:
        """Start delivering the results, once; True when that is over, or there is nothing to deliver."""
        if self.cluster.deliveries and self._went:
            self._delivery.begin()
        return self._delivery.is_over

    def _start_delivery(self) -> Chore:
        from cloudtrain_launch import deliver

        return self._chore("the delivery of the results", lambda: deliver.run(self._env, self.cluster))

    def _is_over(self) -> bool:
        others = set(range(self.cluster.nodes)) - {self.cluster.node}
        everyone_done = self._others_done >= others
        if self._leave_at is not None:
            return everyone_done or time.monotonic() > self._leave_at
        # Elastic's agents would now meet once more, for up to five minutes; there is nothing left to agree on.
        return self._told_done and everyone_done

    @property
    def _stopping(self) -> bool:
        return self._preempted or bool(self._failures)

    @property
    def _workers_succeeded(self) -> bool:
        return all(rank.status == 0 for rank in self._ranks)

    @property
    def _went(self) -> bool:
        return self._agent is not None and self._agent.went

    # -- what happens ------------------------------------------------------------------------------------------------

    def _hear_node(self, message: Message) -> None:
        """Another node's launcher says something."""
        kind, node = message.get("kind"), message.get("node", 0)
        if kind == "ready":
            self._gathering.ready.add(node)
        elif kind == "go" and not self._stopping:
            self._go(message["host"], message["port"], message["hosts"])
        elif kind == "failure":
            with contextlib.suppress(ValueError, AttributeError, KeyError):
                self._fail(Failure.from_message(message["failure"]), told=True)
        elif kind == "preempt":
            self._say(f"node {node} was told to stop, and so are all ranks")
            self._preempt()
        elif kind == "joining":
            self._watch.someone_joins()
        elif kind == "done":
            self._others_done.add(node)
        elif kind == "refused":
            self._fail(self._failure("not-started", f"node 0 refused this node: {message.get('reason')}"))
        elif kind == "lost" and node not in self._others_done:
            self._others_done.add(node)
            # Ranks may have complained of the loss already: it is the cause of that, and is told all the same.
            if not self._preempted:
                name = self.cluster.hosts[node]
                text = f"node {node} ({name}) is lost: its launcher's connection broke"
                self._fail(Failure("node-lost", node, text, time.time()))

    def _hear_rank(self, kind: str, rank: Rank, message: Message) -> None:
        """One of this node's ranks says something."""
        if kind == "started" and self._stopping:
            processes.send(message["pid"], signal.SIGTERM)
        elif kind == "script" and all(r.script for r in self._ranks):
            self.sink.event("state", state="running")
        elif kind == "joining":
            self._watch.someone_joins()
            self._members.tell("joining")
        elif kind == "error":
            self._rank_failed(rank, message)
        elif kind == "exit":
            self.sink.event("rank", rank=rank.rank, status=rank.status)
            if rank.status and not rank.error and not self._is_our_doing(rank.status):
                kind = "signal" if rank.status < 0 else "exit"
                text = f"rank {rank.rank} on node {self.cluster.node} {describe_status(rank.status)}"
                self._fail(self._failure(kind, text, rank))

    def _rank_failed(self, rank: Rank, message: Message) -> None:
        """A script has raised something, or left by ``sys.exit``."""
        who = f"rank {rank.rank} on node {self.cluster.node}"
        if message["traceback"]:
            failure = self._failure("exception", f"{who}: {message['message']}", rank, message["traceback"])
        else:
            failure = self._failure("exit", f"{who} {message['message']}", rank)
        if self._preempted:  # a save that failed, say: the end stays a preemption, but it is told
            self._failures.append(failure)
            return
        # What a rank does once it was told to stop is an answer, not a cause.
        if self._stopped_at is None or failure.time < self._stopped_at or failure.is_echo:
            self._fail(failure, but=rank)

    def _is_our_doing(self, status: int) -> bool:
        """A status that follows from our own signals. A peer's complaint can be heard before the end it is about."""
        if self._stopped_at is None:
            return False
        ours = {-signal.SIGTERM, exits.PREEMPTED, -signal.SIGKILL if self._killing else 0}
        return self._preempted or status in ours

    def _go(self, host: str, port: int, hosts: list[str]) -> None:
        if self._agent is None:
            return
        self.sink.event("state", state="starting")
        self._watch.went()
        self._agent.go(
            nodes=self.cluster.nodes,
            node=self.cluster.node,
            processes=self.spec.processes_per_node,
            run_id=self.spec.run_id,
            host=host,
            port=port,
            timeout=int(self.spec.start_timeout) + 1,
            env=environ.met_environment(self._worker_env, self.cluster, self._members.addresses()[0], hosts),
        )

    def _failure(self, kind: str, message: str, rank: Rank | None = None, traceback: str | None = None) -> Failure:
        when, status = time.time(), rank.status if rank else None
        if rank and rank.error:
            when, status = rank.error["time"], rank.error["code"]
        number = rank.rank if rank else None
        return Failure(kind, self.cluster.node, message, when, number, status, traceback)

    def _fail(self, failure: Failure, told: bool = False, but: Rank | None = None) -> None:
        """Note a failure, tell the other nodes unless they told us, and stop."""
        self._failures.append(failure)
        if not told:
            self._members.tell("failure", failure=failure.to_message())
        self._stop(FAILURE_GRACE_SECONDS, but)

    def _preempt(self) -> None:
        if not self._preempted and not self._failures:
            self._preempted = True
            self._stop(self.spec.grace)

    def _stop(self, grace: float, but: Rank | None = None) -> None:
        if self._kill_at is None:
            self._stopped_at = time.time()
            self.sink.event("state", state="stopping")
            if self._went:
                self._members.close_door()
            self._workers.signal(signal.SIGTERM, but)
        when = time.monotonic() + grace
        to_deliver = _AFTER_GRACE_SECONDS if self._preempted else _DELIVERY_SECONDS
        self._delivery.until = min(self._delivery.until, when + to_deliver)
        self._kill_at = when if self._kill_at is None else min(self._kill_at, when)

    def _kill_when_due(self) -> None:
        """After SIGTERM: the agent goes as soon as no rank runs; whatever is left goes when the grace is over."""
        if self._kill_at is None:
            return
        if self._delivery.is_late:
            self._say("no time is left to deliver the results; what was not delivered is lost")
            self._note_ended(processes.kill_descendants(os.getpid()))
            self._delivery.give_up()
        if self._delivery.chore or self._own_work_ended:
            return
        nothing_runs = not self._workers.started or self._workers.all_ended
        if self._agent and nothing_runs:
            self._agent.kill()
        if time.monotonic() > self._kill_at or (nothing_runs and (not self._agent or self._agent.status is not None)):
            self._killing = True
            self._workers.kill()
            if time.monotonic() > self._kill_at + 1.0 or nothing_runs:
                self._note_ended(processes.kill_descendants(os.getpid()))
                self._own_work_ended = True

    # -- end ---------------------------------------------------------------------------------------------------------

    def _end(self) -> int:
        processes.kill_descendants(os.getpid())
        self._step_once_more_for_last_words()
        self._members.leave()
        self._workers.finish()
        for process in (self._agent, self._preparation, self._delivery.chore):
            if process:
                process.finish()
        outcome, code = self._outcome()
        end = report.build(self.cluster.node, outcome, code, self._started, self._ranks, self._failures)
        report.deliver(end, self._env.get("CLOUDTRAIN_NODE_DIR"), self.sink)
        if end["root"] and outcome == "failed":
            report.write_failure(places.failure_file(self._env), end["root"]["message"], end["root"]["traceback"])
        self._signals.close()
        return code

    def _outcome(self) -> tuple[str, int]:
        if self._preempted:
            return "preempted", exits.PREEMPTED
        root = root_cause(self._failures)
        return ("failed", root.exit_code) if root else ("succeeded", exits.OK)


def main(env: Mapping[str, str], spec: LaunchSpec, cluster: Cluster, sink: Sink) -> int:
    """Run this node to its end. A node that cannot even begin reports that as its failure."""
    folder = None
    try:
        folder = _temporary_folder(env)
        return Node(spec, layout.placed(cluster, spec, folder), sink, env, folder).run()
    except (LaunchError, OSError) as error:
        code = error.exit_code if isinstance(error, LaunchError) else exits.LAUNCHER
        failure = Failure("launcher", cluster.node, f"node {cluster.node}: {error}", time.time())
        processes.kill_descendants(os.getpid())
        end = report.build(cluster.node, "failed", code, failure.time, [], [failure])
        report.deliver(end, env.get("CLOUDTRAIN_NODE_DIR"), sink)
        report.write_failure(places.failure_file(env), failure.message)
        return code
    finally:
        sink.close()
        if folder:
            layout.remove(folder)


def _temporary_folder(env: Mapping[str, str]) -> str:
    """For pipes and a socket. The path of a Unix socket has room for about a hundred bytes, and TMPDIR may be long."""
    given = env.get("CLOUDTRAIN_NODE_TMP")
    if given:
        os.makedirs(given, mode=0o700, exist_ok=True)
        return given
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="cloudtrain-", dir=place if len(os.fsencode(place)) < 60 else "/tmp")
