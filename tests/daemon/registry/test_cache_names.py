from __future__ import annotations

from pathlib import Path

from llmd.registry.cache_names import cache_name


def test_every_path_that_leads_to_a_model_gives_one_name(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    name = cache_name(tmp_path / "model")
    assert cache_name(tmp_path / "link") == cache_name(tmp_path / "other" / ".." / "model") == name
    assert cache_name(tmp_path / "other") != name
    assert name.isalnum()
