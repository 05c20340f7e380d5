"""Jobs that end before anything of theirs runs, each for a reason of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.azureml.emulated import PATH, Emulated
from tests.emulator.azureml.test_refusals import changed, registered

SMALL = {"resources/instanceCount": 1}


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("imageless-1", SMALL, "FailedPullingImage: Unable to pull docker image"),
        ("waits-1", SMALL, "no capacity"),
        ("large-1", {"resources/instanceCount": 5, "computeId": f"{PATH}/computes/cpu-cluster"}, "no capacity"),
        ("other-1", {"command": "python3 train.py"}, "the emulator runs commands that start launch.py"),
        ("other-2", {"codeId": None}, "the emulator runs commands that start launch.py"),
        ("other-3", {"command": "python3 launch.py ${{outputs.none}}"}, "names none of the outputs"),
        (
            "other-4",
            {
                "resources/instanceCount": 2,
                "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 2},
            },
            "one process on each node, not 2",
        ),
        (
            "other-5",
            {"inputs/data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/x"}},
            "cannot mount: nothing lies at x",
        ),
        (
            "other-6",
            {"inputs/data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/elsewhere/paths/x"}},
            "Could not find datastore elsewhere",
        ),
        (
            "other-7",
            {"inputs/data": {"jobInputType": "uri_folder", "uri": "https://example.com/x"}},
            "the emulator sees nothing else",
        ),
    ],
)
def test_failures(azure: Emulated, name: str, changes: dict[str, Any], told: str) -> None:
    body = registered(azure)
    for path, value in changes.items():
        changed(body, path, value)
    assert azure.call("PUT", f"/jobs/{name}", {"properties": body}).status_code == 201
    assert azure.until_over(name)[-1] == "Failed"
    details = azure.details(name)
    assert told in details["error"]["error"]["message"]
    assert details["startTimeUtc"] is None
    assert list(details["logFiles"]) == ["system_logs/lifecycler/lifecycler.log"]
    assert "job is Failed" in azure.log(name, "system_logs/lifecycler/lifecycler.log")


def test_no_quota(azure: Emulated) -> None:
    answer = azure.call("PUT", "/jobs/poor-1", {"properties": registered(azure)})
    error = answer.json()["error"]
    assert (answer.status_code, error["innerError"]["code"]) == (400, "JobNodeCountExceedsCoreQuota")
    assert "quota" in error["message"]
    assert azure.call("GET", "/jobs/poor-1").status_code == 404


def test_cancelled_before_it_runs(azure: Emulated) -> None:
    assert azure.call("PUT", "/jobs/waits-2", {"properties": registered(azure)}).status_code == 201
    azure.until("waits-2", lambda details: details["status"] == "Queued")
    assert azure.call("POST", "/jobs/waits-2/cancel").status_code == 200
    assert azure.until_over("waits-2")[-1] == "Canceled"
    assert azure.call("POST", "/jobs/waits-2/cancel").status_code == 200
    assert azure.job("waits-2")["properties"]["status"] == "Canceled"
    assert azure.call("DELETE", "/jobs/waits-2").status_code == 204
    assert azure.call("GET", "/jobs/waits-2").status_code == 404
    assert azure.call("POST", "/jobs/waits-2/cancel").status_code == 404


def test_the_list(azure: Emulated) -> None:
    body = registered(azure)
    names = [f"waits-list-{number:02}" for number in range(45)]
    for name in names:
        assert azure.call("PUT", f"/jobs/{name}", {"properties": {**body, "tags": {"of-list": "x"}}}).status_code == 201
        azure.call("POST", f"/jobs/{name}/cancel")
    query = {"listViewType": "ActiveOnly", "jobType": "Command", "tag": "of-list"}
    pages = [azure.call("GET", "/jobs", params=query).json()]
    while pages[-1]["nextLink"]:
        pages.append(azure.follow(pages[-1]["nextLink"]))
    assert [job["name"] for page in pages for job in page["value"]] == names[::-1]
    assert len(pages) == 3

    azure.call("PATCH", f"/experiments/trials/runs/{names[0]}", {"hidden": True})
    archived = azure.call("GET", "/jobs", params={**query, "listViewType": "ArchivedOnly"}).json()["value"]
    assert [job["name"] for job in archived] == [names[0]]
    assert azure.call("GET", "/jobs", params={"tag": "no-such"}).json()["value"] == []
