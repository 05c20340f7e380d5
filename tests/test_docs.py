"""Pages that are made from the code: the table of features is what the providers declare."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from cloudtrain.cli import cli

DOCS = Path(__file__).parent.parent / "docs"


def test_the_features_page_is_what_the_providers_declare() -> None:
    made = CliRunner().invoke(cli, ["catalog", "features", "--markdown"])
    assert made.exit_code == 0
    table = [line for line in (DOCS / "features.md").read_text("utf-8").splitlines() if line.startswith("|")]
    assert table == made.stdout.splitlines(), (
        "put what `cloudtrain catalog features --markdown` prints into docs/features.md"
    )
