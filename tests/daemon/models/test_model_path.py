from __future__ import annotations

from pathlib import Path

import pytest

from llmd.models.model_path import (
    expanded,
    files_of,
    is_model_path,
    names_path,
    path_error,
    path_name,
    resolved,
)

PARTS = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")


def test_a_directory_and_a_gguf_file_may_be_models(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    (tmp_path / "m.bin").touch()
    found = [
        name for name in ("", "m.gguf", "m.bin", "absent.gguf", "x" * 300) if is_model_path(tmp_path / name)
    ]
    assert found == ["", "m.gguf"]


def test_a_model_is_called_by_its_path(tmp_path: Path) -> None:
    assert path_name(tmp_path) == tmp_path.name
    assert path_name(tmp_path / PARTS[0]) == "m"


def test_the_files_of_a_model_are_those_beside_it_or_its_parts(tmp_path: Path) -> None:
    for name in (*PARTS, "other.gguf"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "lost").symlink_to("x" * 300)
    assert [path.name for path in files_of(tmp_path)] == [*PARTS, "other.gguf"]
    for name in PARTS:
        assert [path.name for path in files_of(tmp_path / name)] == list(PARTS)


def test_what_begins_like_a_path_can_be_nothing_else() -> None:
    assert all(map(names_path, ("/m", "./m", "../m", "~/m", ".", "..")))
    assert not any(map(names_path, ("m", "org/m", "m.gguf", ".m")))


def test_a_home_of_nobody_stays_as_it_was_typed() -> None:
    assert expanded("~nobody-here/m") == Path("~nobody-here/m")
    assert expanded("~/m") == Path.home() / "m"


def test_links_are_followed_unless_only_the_link_has_the_name_of_a_model(tmp_path: Path) -> None:
    for name in ("sha256-a", "m.gguf"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    links = {"blob.gguf": "sha256-a", "other.gguf": "m.gguf", "directory": "folder"}
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    found = {link: resolved(tmp_path / link).name for link in links}
    assert found == {"blob.gguf": "blob.gguf", "other.gguf": "m.gguf", "directory": "folder"}


def test_why_there_is_no_model_at_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("notes.txt", "mmproj-f16.gguf"):
        (tmp_path / name).touch()
    (tmp_path / "sha256-a").write_bytes(b"GGUF\3\0\0\0")
    reasons = {
        name: str(path_error(name))
        for name in (
            "./absent",
            "absent.gguf",
            "notes.txt",
            "sha256-a",
            "mmproj-f16.gguf",
            "./notes.txt/m",
            "./a\0b",
        )
    }
    assert [reason.partition(" (")[0] for reason in reasons.values()] == [
        "no such file or directory: ./absent",
        "no such file or directory: absent.gguf",
        "notes.txt is not a model: a model is a directory, or a file that ends in .gguf",
        "sha256-a is a GGUF file whose name does not end in .gguf",
        "mmproj-f16.gguf is the projector of a model",
        "./notes.txt/m cannot be read: Not a directory",
        "./a\0b cannot be read: it has a null byte",
    ]
    assert f"`ln -s {tmp_path}/sha256-a NAME.gguf`" in reasons["sha256-a"]
    assert path_error("absent") is None
    assert path_error("org/absent") is None


def test_a_path_that_does_not_exist_has_the_nearest_models_of_its_folder(tmp_path: Path) -> None:
    for name in ("emil-q4.gguf", "emil-q4.txt", "other.gguf"):
        (tmp_path / name).touch()
    error = str(path_error(str(tmp_path / "emil-q8.gguf")))
    assert f"in {tmp_path} there is emil-q4.gguf; check the path" in error
    assert "there is" not in str(path_error(str(tmp_path / "absent" / "emil-q8.gguf")))
    assert "no such file" in str(path_error("model-00001-of-00002.safetensors"))
