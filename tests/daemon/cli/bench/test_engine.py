from __future__ import annotations

import json

from click.testing import CliRunner

from llmd.cli.bench.engine import command


def test_a_row_for_each_load() -> None:
    arguments = ["--streams", "1", "--streams", "3", "--step-ms", "0.5", "--steps", "4", "--json"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    loads = json.loads(result.output)["loads"]
    assert [load["streams"] for load in loads] == [1, 3]
    assert all(load["step_s"] == 0.0005 and load["loop_s"] > 0 for load in loads)


def test_people_read_shares_and_milliseconds() -> None:
    result = CliRunner().invoke(command, ["--streams", "2", "--steps", "3", "--temperature", "0.8"])
    title, row = result.output.splitlines()
    assert title.split() == ["STREAMS", "STEP", "IDLE", "LOOP", "TOKENS/S"]
    assert row.split()[:3] == ["2", "10", "ms"]


def test_no_streams_are_refused() -> None:
    result = CliRunner().invoke(command, ["--streams", "0"])
    assert result.exit_code == 2
    assert "0 is not in the range" in result.output
