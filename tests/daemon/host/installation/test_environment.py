"""The environment says who may change it, and how a plugin survives an upgrade of llmd."""

from __future__ import annotations

import json
import site
import sys
from importlib import metadata
from pathlib import Path

import pytest

from llmd.api.errors import NotPermittedError, PluginError
from llmd.host.installation.environment import Environment, MadeBy, core_is_editable, is_for_user, maker
from llmd.host.names import CORE_DISTRIBUTION

RECEIPT = """[tool]
requirements = [
    { name = "llmd-daemon" },
    { name = "made-one", specifier = ">=2" },
    { name = "made-two", path = "/wheels/two.whl" },
]
"""


def made(prefix: Path, made_by: MadeBy, *, managed: bool = False) -> Environment:
    return Environment(prefix, prefix, made_by, managed_by_system=managed)


def injected(prefix: Path, distribution: str) -> None:
    """Write what pipx knows."""
    (prefix / "pipx_metadata.json").write_text(json.dumps({"injected_packages": {distribution: {}}}))


def test_this_environment_is_where_its_modules_are() -> None:
    environment = Environment.current()
    assert environment.prefix == Path(sys.prefix)
    assert (environment.site / "pytest").is_dir()
    core = metadata.distribution(CORE_DISTRIBUTION)
    assert core_is_editable(core) == (environment.made_by == "checkout")


def test_is_known_by_the_file_of_the_program_that_made_it(tmp_path: Path) -> None:
    assert maker(tmp_path, is_system=True, is_editable=False) == "system"
    assert maker(tmp_path, is_system=False, is_editable=False) == "venv"
    assert maker(tmp_path, is_system=False, is_editable=True) == "checkout"
    (tmp_path / "uv-receipt.toml").touch()
    assert maker(tmp_path, is_system=False, is_editable=False) == "uv tool"
    (tmp_path / "pipx_metadata.json").touch()
    assert maker(tmp_path, is_system=False, is_editable=False) == "pipx"


def test_a_python_of_the_operating_system_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(NotPermittedError, match="belongs to the operating system") as caught:
        made(tmp_path, "system", managed=True).check_changeable("plugins install x")
    assert "python3 -m venv ~/llmd" in caught.value.hint


def test_a_folder_that_programs_of_the_user_share_is_left_alone(tmp_path: Path) -> None:
    assert is_for_user(Path(site.getusersitepackages()))
    assert not is_for_user(tmp_path)
    with pytest.raises(PluginError, match="`pip install --user`") as caught:
        made(tmp_path, "user", managed=True).check_changeable("plugins install x")
    assert "python3 -m venv ~/llmd" in caught.value.hint


def test_who_may_not_write_is_given_the_command_of_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment(Path("/opt/llmd"), Path("/"), "venv")
    environment.check_changeable("plugins install x", lambda _: True)
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    with pytest.raises(NotPermittedError, match="which you may not change") as caught:
        environment.check_changeable("plugins install x", lambda _: False)
    assert caught.value.hint == "run `sudo -u root /opt/llmd/bin/llmd plugins install x`"


def test_the_owner_of_a_read_only_folder_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotPermittedError) as caught:
        made(tmp_path, "venv").check_changeable("plugins install x", lambda _: False)
    assert "is read-only" in caught.value.hint


def test_each_maker_has_its_way_to_keep_a_plugin(tmp_path: Path) -> None:
    assert made(tmp_path, "venv").upgrade_note("made-plugin") == ""
    injected(tmp_path, "made-one")
    pipx = made(tmp_path, "pipx").upgrade_note("/my wheels/made.whl")
    assert pipx.endswith(f"run: pipx inject --force {tmp_path.name} '/my wheels/made.whl'")
    assert made(tmp_path, "pipx").upgrade_note("Made_One") == "", "it is known already"
    assert "make setup" in made(tmp_path, "checkout").upgrade_note("made-plugin")
    (tmp_path / "uv-receipt.toml").write_text(RECEIPT)
    uv = made(tmp_path, "uv tool").upgrade_note("made-three")
    kept = "--with 'made-one>=2' --with /wheels/two.whl --with made-three"
    assert uv.endswith(f"run: uv tool install {tmp_path.name} {kept}")
    assert made(tmp_path, "uv tool").upgrade_note("made-two") == ""
    assert made(tmp_path, "uv tool").upgrade_note("/wheels/two.whl") == ""


def test_what_a_maker_still_knows_must_be_removed_there_too(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text(RECEIPT)
    assert (
        made(tmp_path, "uv tool")
        .removal_note("Made_Two")
        .endswith(f"run: uv tool install {tmp_path.name} --with 'made-one>=2'")
    )
    assert made(tmp_path, "uv tool").removal_note("made-three") == ""
    injected(tmp_path, "made-one")
    assert made(tmp_path, "pipx").removal_note("made-one").endswith(f"pipx uninject {tmp_path.name} made-one")
    assert made(tmp_path, "venv").removal_note("made-one") == ""
