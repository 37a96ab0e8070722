"""`llmd config set` changes one setting and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.registry.derived import DerivedModel
from llmd.registry.store import Store

Llmd = Callable[..., Any]


def test_the_first_setting_makes_the_file_and_the_next_ones_keep_its_comments(llmd: Llmd, file: Path) -> None:
    done = llmd("config", "set", "max-ctx", "8192")
    assert (done.code, done.out) == (0, f"engine.max_ctx = 8192 in {file}\n")
    file.write_text("# mine\n" + file.read_text().replace("8192", "8192  # enough"))
    assert llmd("config", "set", "keep_alive", "-1", "--model", "org/a").code == 0
    assert llmd("config", "set", "max_ctx", "4096").code == 0
    assert (
        file.read_text()
        == '# mine\n[engine]\nmax_ctx = 4096  # enough\n\n[models."org/a"]\nkeep_alive = -1\n'
    )
    assert llmd("config", "get", "max_ctx").out == "4096\n"


def test_a_list_has_several_values(llmd: Llmd, file: Path) -> None:
    llmd("config", "set", "addr", "127.0.0.1:9000", "unix:/tmp/x")
    assert file.read_text() == '[server]\naddr = ["127.0.0.1:9000", "unix:/tmp/x"]\n'


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("slot", "3"), "unknown setting 'slot'", "the nearest name is slots"),
        (
            ("slots", "many"),
            "engine.slots from the command line is 'many', expected an integer",
            "nothing was",
        ),
        (("slots", "1", "2"), "engine.slots has one value", ""),
        (("slots", "1", "--sytem"), "there is no option --sytem", ""),
        (("max_body", "3", "--model", "a"), ":5: max_body cannot differ between models", "[server]"),
    ],
)
def test_what_cannot_be_set_leaves_the_file(
    llmd: Llmd, file: Path, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    llmd("config", "set", "slots", "2")
    before = file.read_bytes()
    done = llmd("config", "set", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert hint in done.err
    assert file.read_bytes() == before


def test_a_file_with_another_error_is_not_changed(llmd: Llmd, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("[engine]\nslot = 3\n")
    done = llmd("config", "set", "slots", "2")
    assert (done.code, file.read_text()) == (2, "[engine]\nslot = 3\n")
    assert f"{file}:2" in done.err
    file.write_text("[engine]\nslots = 0\n")
    assert llmd("config", "set", "slots", "2").code == 0


def test_a_stronger_source_is_named(llmd: Llmd, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_SLOTS", "5")
    done = llmd("config", "set", "slots", "2")
    assert (done.code, "LLMD_SLOTS sets engine.slots too" in done.err) == (0, True)
    assert file.exists()


def test_another_file_may_be_named(llmd: Llmd, tmp_path: Path, file: Path) -> None:
    assert llmd("config", "set", "slots", "2", "--config", str(tmp_path / "x.toml")).code == 0
    assert (tmp_path / "x.toml").read_text() == "[engine]\nslots = 2\n"
    assert not file.exists()


def test_the_path_of_a_file_is_written_whole(
    llmd: Llmd, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert llmd("config", "set", "tls_cert", "llmd.pem").code == 0
    assert file.read_text() == f'[server]\ntls_cert = "{tmp_path}/llmd.pem"\n'


def test_a_derived_model_may_have_its_own_keep_alive_but_no_settings_of_its_engine(
    llmd: Llmd, file: Path, tmp_path: Path
) -> None:
    models = tmp_path / "data" / "llmd" / "models"
    Store(models, {}).derived.save("mario", DerivedModel(base="guide", created=0.0))
    assert llmd("config", "set", "keep_alive", "1h", "--model", "mario").code == 0
    written = file.read_text()
    refused = llmd("config", "set", "max_ctx", "512", "--model", "mario")
    assert (refused.code, file.read_text()) == (2, written)
    assert "mario is derived from guide and shares its engine" in refused.err
    assert "set it for guide" in refused.err
    file.write_text(written + "slots = 2\n")
    checked = llmd("config", "check")
    assert (checked.code, f"models.mario.slots from {file}:3 has no effect" in checked.out) == (8, True)
