"""What the user chose about plugins is kept in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.host.choices import Choices, ChoicesFile


@pytest.fixture
def file(tmp_path: Path) -> ChoicesFile:
    return ChoicesFile(tmp_path / "config" / "plugins.json")


def test_without_a_file_nothing_was_chosen(file: ChoicesFile) -> None:
    assert file.load() == Choices()
    assert file.installed_in(Path("/env")) == {}


def test_disabling_and_enabling_are_changes_once(file: ChoicesFile) -> None:
    assert file.set_enabled("a", enabled=False)
    assert not file.set_enabled("a", enabled=False)
    assert file.set_enabled("b", enabled=False)
    assert file.load().disabled == ("a", "b")
    assert file.set_enabled("a", enabled=True)
    assert not file.set_enabled("a", enabled=True)
    assert file.load().disabled == ("b",)


def test_remembers_what_was_installed_by_environment(file: ChoicesFile) -> None:
    file.set_enabled("a", enabled=False)
    file.add_installed(Path("/one"), "made", "made==1")
    file.add_installed(Path("/one"), "other", "/path")
    file.add_installed(Path("/two"), "made", "made")
    assert file.installed_in(Path("/one")) == {"made": "made==1", "other": "/path"}
    file.remove_installed(Path("/one"), "made")
    file.remove_installed(Path("/one"), "no-such-thing")
    assert file.installed_in(Path("/one")) == {"other": "/path"}
    file.remove_installed(Path("/two"), "made")
    assert file.load() == Choices(("a",), {"/one": {"other": "/path"}})


def test_a_damaged_file_is_an_error_with_its_path(file: ChoicesFile) -> None:
    file.set_enabled("a", enabled=False)
    file.path.write_text('{"disabled": 1}')
    with pytest.raises(ConfigError, match=r"plugins\.json cannot be read"):
        file.load()
