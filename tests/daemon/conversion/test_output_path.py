"""Models are written to a temporary folder first, and no existing data is lost."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, ConflictError, DiskSpaceError
from llmd.conversion.output_path import (
    check_place,
    check_space,
    free_bytes,
    is_gguf_target,
    put,
    temporary_output,
)


@pytest.mark.parametrize(
    ("name", "expected"), [("m.gguf", True), ("model", False), ("llama-3.2", False), ("gguf", False)]
)
def test_the_name_of_the_target_says_its_form(name: str, expected: bool) -> None:  # noqa: FBT001 - two cases
    assert is_gguf_target(Path(name)) is expected


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("m.safetensors", "does not write"),
        ("config.json", "does not write"),
        ("mmproj-x.gguf", "looks like a projector"),
        ("m-00001-of-00002.gguf", "one of several parts"),
    ],
)
def test_names_that_would_be_read_otherwise_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        is_gguf_target(Path(name))


def test_what_is_there_stays_unless_it_is_a_model_that_may_go(tmp_path: Path, model: Path) -> None:
    file, folder, other = tmp_path / "m.gguf", tmp_path / "mine", tmp_path / "old"
    file.write_bytes(b"x")
    folder.mkdir()
    check_place(model, folder, force=False)
    (folder / "letter.txt").write_bytes(b"x")
    other.mkdir()
    (other / "config.json").write_bytes(b"{}")
    for taken in (file, folder, other):
        with pytest.raises(ConflictError, match="already exists"):
            check_place(model, taken, force=False)
    check_place(model, file, force=True)
    check_place(model, other, force=True)
    with pytest.raises(ConflictError, match="replaces only models"):
        check_place(model, folder, force=True)
    with pytest.raises(ConflictError, match="replaces only models"):
        check_place(model, file.rename(tmp_path / "file"), force=True)


def test_a_model_is_never_replaced_by_itself(tmp_path: Path, model: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(model)
    for source, target in ((model, model), (model, tmp_path), (model, link), (file, file)):
        with pytest.raises(ConflictError, match="is the model itself, or contains it"):
            check_place(source, target, force=True)


def test_a_draft_has_the_name_of_the_target_and_goes_however_it_ends(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "m.gguf"
    with contextlib.suppress(KeyError), temporary_output(target) as output:
        assert output.name == "m.gguf"
        assert output.parent.parent == target.parent
        output.write_bytes(b"half")
        raise KeyError
    assert list(target.parent.iterdir()) == []


def test_nothing_is_left_when_the_signal_comes_as_the_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    mkdir = os.mkdir

    def interrupted(path: Path, mode: int = 0o777) -> None:
        mkdir(path, mode)
        made.append(Path(path))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_output(tmp_path / "m"):
        pytest.fail("the signal was lost")
    assert [folder.parent for folder in made] == [tmp_path]
    assert list(tmp_path.iterdir()) == []


def test_what_is_complete_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    for target, is_folder in (
        (tmp_path / "a.gguf", False),
        (tmp_path / "b", True),
        (tmp_path / "link", True),
    ):
        if target.name == "link":
            target.symlink_to(tmp_path / "b")
        for content in (b"old", b"new"):
            with temporary_output(target) as output:
                if is_folder:
                    output.mkdir()
                (output / "file" if is_folder else output).write_bytes(content)
                put(output, target)
            assert (target / "file" if is_folder else target).read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gguf", "b", "link"]
    assert not (tmp_path / "link").is_symlink()


def test_what_does_not_fit_is_told_with_the_arithmetic(tmp_path: Path) -> None:
    check_space(tmp_path / "d" / "m", 100, lambda _: 100)
    with pytest.raises(DiskSpaceError, match=f"takes 101 B, and {tmp_path} has 100 B free: 1 B are missing"):
        check_space(tmp_path / "d" / "m", 101, lambda _: 100)
    assert free_bytes(tmp_path) > 0
