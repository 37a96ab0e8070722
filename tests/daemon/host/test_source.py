"""Metadata says where a distribution is from, and fixes name that place."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from llmd.host.description import replacement, summarize
from llmd.host.source import Source, record_source, source_of
from tests.plugin_sites import Site


@pytest.fixture
def info(site: Site) -> Path:
    """The metadata folder of a distribution without a recorded source, whose plugin fails."""
    site.write("moved", "raise RuntimeError('broken')")
    info = site.folder / "made_moved-1.0.dist-info"
    (info / "RECORD").write_text("made_moved.py,,\n")
    return info


def test_a_folder_with_spaces_a_wheel_and_a_url_are_recorded_and_listed(info: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my plugin"
    folder.mkdir()
    for place in (str(folder), "/wheels/made.whl", "git+https://code.example/made"):
        record_source(info, place)
        assert source_of("made-moved") == Source(place)
    files = metadata.distribution("made-moved").files
    assert files is not None
    assert f"{info.name}/direct_url.json" in map(str, files)


def test_what_is_from_an_index_or_not_installed_has_no_source(info: Path) -> None:
    assert source_of("made-moved") is source_of("made-nothing") is None
    (info / "direct_url.json").write_text("no JSON")
    assert source_of("made-moved") is None


@pytest.mark.parametrize(
    ("record", "fix"),
    [
        ("", "run `llmd plugins install --upgrade made-moved`"),
        ('{"url": "file:///src/made", "dir_info": {"editable": true}}', "repair its sources in /src/made"),
        ('{"url": "file:///src/made", "dir_info": {}}', "repair it and run `llmd plugins install /src/made`"),
    ],
)
def test_the_fix_of_a_plugin_that_fails_names_its_source(
    site: Site, info: Path, record: str, fix: str
) -> None:
    if record:
        (info / "direct_url.json").write_text(record)
    (plugin,) = site.plugins()
    failure = summarize(plugin).failure
    assert failure is not None
    assert failure.fix == replacement(plugin) == f"{fix}, or run `llmd plugins uninstall made-moved`"
