from __future__ import annotations

import io
from pathlib import Path

from llmd.registry.spools import SpoolHeader, Spools


def test_a_header_is_read_back_up_to_its_end() -> None:
    header = SpoolHeader("/models/ä", "abc")
    file = io.BytesIO(header.encoded() + b"rest")
    assert SpoolHeader.read(file) == header
    assert file.read() == b"rest"


def test_what_is_no_header_is_none() -> None:
    encoded = SpoolHeader("/m", "abc").encoded()
    for broken in (
        b"",
        b"LLMDKV99" + encoded[8:],
        encoded[:-1],
        encoded[:8] + b"\xff" * 40,
        encoded[:-3] + b'\xff"}',
    ):
        assert SpoolHeader.read(io.BytesIO(broken)) is None


def test_names_that_lead_to_one_model_share_its_file(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    spools = Spools(tmp_path)
    assert spools.path(tmp_path / "link") == spools.path(tmp_path / "model")
    assert spools.path(tmp_path / "other") != spools.path(tmp_path / "model")


def test_files_of_models_that_are_gone_are_swept(tmp_path: Path) -> None:
    spools = Spools(tmp_path / "cache")
    spools.sweep()
    for name in ("here", "gone"):
        directory = tmp_path / name
        directory.mkdir()
        path = spools.path(directory)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SpoolHeader(str(directory), "f").encoded())
    (path.parent / "odd.kv").write_bytes(b"something else")
    (tmp_path / "gone").rmdir()
    spools.sweep()
    assert list(path.parent.iterdir()) == [spools.path(tmp_path / "here")]
