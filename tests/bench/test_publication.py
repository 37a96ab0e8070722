"""A complete page is saved; an incomplete one is printed, says so, and the program exits with an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import publication
from bench.publication import publish
from bench.quiet import DisturbedError


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(publication, "RESULTS", tmp_path)
    return tmp_path


def test_a_page_is_printed_and_kept_under_its_day(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish("cpu-tiny", "# A page\n", None)
    (file,) = results.iterdir()
    assert file.name.endswith("-cpu-tiny.md")
    assert file.read_text() == "# A page\n"
    assert "# A page" in capsys.readouterr().out


def test_a_page_that_is_not_whole_is_no_result(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="No page was written") as ended:
        publish("cpu-tiny", "# A page\n", DisturbedError("decode: busy"))
    assert ended.value.code not in {0, None}
    assert list(results.iterdir()) == []
    assert "**Not whole, and not a result:** decode: busy." in capsys.readouterr().out
