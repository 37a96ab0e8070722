from __future__ import annotations

from pathlib import Path

import pytest

from llmd_tui.clipboard import copied_natively, kept_in_file, native_program


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that write what they get to the file ``copied``."""
    for name in ("wl-copy", "xclip"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\n/bin/cat > "{tmp_path}/copied"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "wl-copy"),
        ({"DISPLAY": ":0"}, "xclip"),
        ({}, None),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "10.0.0.1"}, None),
    ],
    ids=["wayland", "x", "console", "over SSH"],
)
def test_the_program_of_this_display_is_chosen(
    programs: Path, environ: dict[str, str], name: str | None
) -> None:
    program = native_program(environ)
    assert (program[0] if program else None) == name


def test_a_program_gets_the_text(programs: Path) -> None:
    assert copied_natively("wörter", ("xclip", "-selection", "clipboard"))
    assert (programs / "copied").read_text() == "wörter"


def test_a_program_that_fails_is_noticed(programs: Path) -> None:
    (programs / "xclip").write_text("#!/bin/sh\nexit 1\n")
    assert not copied_natively("text", ("xclip",))
    assert not copied_natively("text", ("absent",))


def test_a_shorter_text_replaces_a_longer_one(tmp_path: Path) -> None:
    kept_in_file("a longer text", tmp_path / "state")
    path = kept_in_file("short", tmp_path / "state")
    assert path.read_text() == "short"
