"""The calls about jobs: of ARM, and of the run history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloudtrain.emulator.azureml.admission import admitted, quota_refusal, unchanged
from cloudtrain.emulator.azureml.asked import Answer, Asked, Calls, page
from cloudtrain.emulator.azureml.assets import Codes, Environments
from cloudtrain.emulator.azureml.errors import ServiceError
from cloudtrain.emulator.azureml.jobs import Job, Jobs
from cloudtrain.emulator.azureml.life import Images, Life
from cloudtrain.emulator.azureml.nodefolders import chosen_outputs
from cloudtrain.emulator.azureml.workspace import Workspace
from cloudtrain.emulator.base import Site, TakenJob
from cloudtrain.providers.reading import section

_PAGE = 20
"""Jobs on a page of the list."""


class Service:
    """One workspace's jobs. May be called by many threads."""

    def __init__(
        self,
        site: Site,
        workspace: Workspace,
        codes: Codes,
        environments: Environments,
        on_job: Callable[[dict[str, Any], dict[str, Any]], object],
    ) -> None:
        """``on_job`` is told of each job that is taken or put again: its body, and the form that this is of."""
        self._site = site
        self._on_job = on_job
        self._workspace = workspace
        self._codes = codes
        self._environments = environments
        self._images = Images()
        self._jobs = Jobs()
        self._lives: list[Life] = []

    def jobs(self) -> list[TakenJob]:
        """Those that nobody has deleted."""
        return [TakenJob(job.name, job.over) for job in self._jobs.newest_first()][::-1]

    def close(self) -> None:
        """End all jobs, and wait until their processes are gone."""
        with self._jobs.lock:
            lives = list(self._lives)
        for life in lives:
            life.abandon()
        for life in lives:
            life.join()

    def calls(self) -> Calls:
        """By the name of the operation."""
        return {
            "Jobs_CreateOrUpdate": self._put,
            "Jobs_Get": lambda asked: Answer(200, self._known(asked.name).document(self._workspace)),
            "Jobs_List": self._list,
            "Jobs_Cancel": self._cancel,
            "Jobs_Delete": self._delete,
            "Runs_GetDetails": lambda asked: Answer(200, self._known(asked.name).details()),
            "Runs_GetServiceInstance": self._instances,
            "Runs_Modify": self._modify,
            "Runs_GetRunData": self._run_data,
        }

    def _put(self, asked: Asked) -> Answer:
        form = admitted(asked.name, asked.body, self._workspace, self._codes, self._environments)
        received = {key: value for key, value in asked.body["properties"].items() if value is not None}
        with self._jobs.lock:
            self._on_job(asked.body, form)
            known = self._jobs.get(asked.name)
            if known is None:
                return Answer(201, self._taken(asked.name, received, form).document(self._workspace))
            unchanged(known, received)
            known.change(received)
            return Answer(200, known.document(self._workspace))

    def _taken(self, name: str, received: Mapping[str, Any], form: Mapping[str, Any]) -> Job:
        faults = self._site.faults.job("azureml", name)
        if faults.refuse == "quota":
            raise quota_refusal(form)
        job = Job(name, received, form, faults)
        job.outputs = chosen_outputs(job)
        code = self._codes.by_id(received["codeId"]) if received.get("codeId") else None
        life = Life(job, self._site, self._workspace, code, self._images)
        self._jobs.add(job)
        self._lives.append(life)
        life.start()
        return job

    def _list(self, asked: Asked) -> Answer:
        """The newest first; ``tag`` is the name of one, as the API's description has it."""
        view, tag = asked.query.get("listViewType", ""), asked.query.get("tag", "")
        found = [
            job
            for job in self._jobs.newest_first()
            if (view == "All" or bool(job.received.get("isArchived")) == (view == "ArchivedOnly"))
            and asked.query.get("jobType", "Command") == "Command"
            and (not tag or tag in section(job.received, "tags"))
        ]
        first = asked.number("$skip") or 0
        after = first + _PAGE
        link = asked.again(self._workspace.url, **{"$skip": str(after)}) if len(found) > after else None
        return page([job.document(self._workspace) for job in found[first:after]], link)

    def _cancel(self, asked: Asked) -> Answer:
        """What the service answers for a job that is over is not known; here it is as if there were nothing to do."""
        self._known(asked.name).cancel()
        return Answer(200)

    def _delete(self, asked: Asked) -> Answer:
        if not self._known(asked.name).over:
            raise ServiceError(409, f"Job {asked.name} is not over; cancel it first")
        self._jobs.remove(asked.name)
        return Answer(204)

    def _modify(self, asked: Asked) -> Answer:
        job, experiment = self._known(asked.name), asked.names["experiment"]
        if (job.received.get("experimentName") or "Default") != experiment:
            raise ServiceError(404, f"Run {asked.name} was not found in experiment {experiment}")
        given = section(asked.body)
        job.change({**given, "isArchived": given.get("hidden")})
        return Answer(200, {"runId": asked.name, "status": job.state})

    def _instances(self, asked: Asked) -> Answer:
        self._known(asked.name)
        return Answer(200, {"instances": {}})

    def _run_data(self, asked: Asked) -> Answer:
        details = self._known(str(section(asked.body).get("runId", ""))).details()
        return Answer(200, {"runMetadata": {key: details[key] for key in ("runId", "status", "tags", "outputs")}})

    def _known(self, name: str) -> Job:
        job = self._jobs.get(name)
        if job is None:
            raise ServiceError(404, f"Job {name} was not found.", code="UserError", inner=("NotFound",))
        return job
