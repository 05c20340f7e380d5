"""What nodes print, in CloudWatch Logs; and how it misbehaves where the fault file says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.emulator.sagemaker.aws import GROUP, Aws, nodes, opened, until

PRINTS = """
import sys
print("[0/0] first")
print()
sys.stdout.flush()
sys.stdout.buffer.write(b"not \\xff text\\n[0/1] \\xc3\\xa9\\x1b[31m red\\r\\n" + b"x" * 150_000 + b"\\nno end")
"""
MANY = "for number in range(80_000):\n    print(f'[0/0] line {number}')"
BOTH = """
import json, os, pathlib, time
config = json.loads(pathlib.Path(os.environ["CLOUDTRAIN_SM_ROOT"], "input/config/resourceconfig.json").read_text())
for number in range(3):
    print(config["current_host"], number)
    time.sleep(0.3)
"""


def test_lines_come_as_they_were_printed(tmp_path: Path) -> None:
    with opened(tmp_path) as aws:
        with pytest.raises(ClientError) as caught:
            aws.streams("prints")
        assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"  # no group before the first line
        aws.end(aws.submit("silent", "pass"))
        with pytest.raises(ClientError):
            aws.streams("silent")
        aws.end(aws.submit("prints", PRINTS))
        (stream,) = aws.streams("prints")
        lines = aws.lines(stream)
        assert lines[:3] == ["[0/0] first", "not \ufffd text", "[0/1] é\x1b[31m red\r"]
        assert "".join(lines[3:-1]) == "x" * 150_000
        assert lines[-1] == "no end"
        assert aws.streams("print") == []


def test_a_flood_of_lines_arrives_whole(aws: Aws) -> None:
    name = aws.submit("many", MANY)
    assert aws.end(name)["TrainingJobStatus"] == "Completed"
    assert aws.lines(aws.streams(name)[0]) == [f"[0/0] line {number}" for number in range(80_000)]


def test_lines_come_while_the_job_runs(aws: Aws) -> None:
    name = aws.submit("live", "import time\nprint('now', flush=True)\ntime.sleep(600)")
    until(lambda: aws.streams(name) and aws.lines(aws.streams(name)[0]) == ["now"], "the line is there")
    assert aws.describe(name)["SecondaryStatus"] == "Training"
    aws.sagemaker.stop_training_job(TrainingJobName=name)
    assert aws.end(name)["TrainingJobStatus"] == "Stopped"


def test_pages_may_be_empty_with_more_behind_them(tmp_path: Path) -> None:
    with opened(tmp_path, faults="logs: [{fault: empty-pages}]") as aws:
        aws.end(aws.submit("gaps", "for number in range(5):\n    print(number)"))
        (stream,) = aws.streams("gaps")
        pages: list[list[str]] = []
        asked: dict[str, Any] = {}
        while len(pages) < 20:
            page = aws.logs.get_log_events(
                logGroupName=GROUP, logStreamName=stream, startFromHead=True, limit=2, **asked
            )
            pages.append([event["message"] for event in page["events"]])
            if page["nextForwardToken"] == asked.get("nextToken"):
                break
            asked = {"nextToken": page["nextForwardToken"]}
        assert pages == [[], ["0", "1"], [], ["2", "3"], [], ["4"], []]


@pytest.mark.parametrize(("fault", "held_back"), [("late", [True, True]), ("out-of-order", [True, False])])
def test_lines_may_come_later_than_they_were_printed(tmp_path: Path, fault: str, held_back: list[bool]) -> None:
    """Those of all nodes, after the job's end as well; or the first node's behind the second one's."""
    with opened(tmp_path, faults=f"logs: [{{fault: {fault}}}]") as aws:
        name = aws.submit("later", BOTH, ResourceConfig=nodes(2))
        aws.end(name)
        streams = until(lambda: len(found := _there(aws, name)) == 2 and found, "both nodes' lines are there")
        until(lambda: all(len(aws.lines(stream)) == 3 for stream in streams), "all lines are there")
        for node, stream in enumerate(streams):
            events = aws.logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True)["events"]
            assert [event["message"] for event in events] == [f"algo-{node + 1} {number}" for number in range(3)]
            if held_back[node]:  # 90 seconds of the service's, of which a thousand pass in one
                assert min(event["ingestionTime"] - event["timestamp"] for event in events) >= 89


def _there(aws: Aws, name: str) -> list[str]:
    try:
        return aws.streams(name)
    except ClientError:
        return []
