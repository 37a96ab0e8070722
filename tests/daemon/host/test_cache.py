"""Results are cached with their fingerprint, and a broken cache is harmless."""

from __future__ import annotations

import logging

import pytest

from llmd.host.cache import Cache


def test_gives_back_what_was_put(cache: Cache) -> None:
    cache.put("kind", "key", "print", {"a": [1, 2]})
    assert cache.get("kind", "key", "print", dict[str, list[int]]) == {"a": [1, 2]}


def test_forgets_where_the_fingerprint_changed(cache: Cache) -> None:
    cache.put("kind", "key", "print", 1)
    assert cache.get("kind", "key", "other", int) is None


def test_keeps_the_last_value(cache: Cache) -> None:
    cache.put("kind", "key", "print", 1)
    cache.put("kind", "key", "print", 2)
    assert cache.get("kind", "key", "print", int) == 2
    assert [path.name for path in (cache.folder / "kind").iterdir()] == ["key.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"fingerprint": "print"}', b'{"fingerprint":"print","value":"text"}']
)
def test_a_file_of_another_shape_counts_as_absent(cache: Cache, content: bytes) -> None:
    cache.put("kind", "key", "print", 1)
    (cache.folder / "kind" / "key.json").write_bytes(content)
    assert cache.get("kind", "key", "print", int) is None


def test_a_key_cannot_leave_its_folder(cache: Cache) -> None:
    cache.put("kind", "../../outside", "print", 1)
    assert [path.parent for path in cache.folder.parent.rglob("*.json")] == [cache.folder / "kind"]


def test_a_folder_that_cannot_be_written_is_logged_once(
    cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.folder.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        for key in ("key", "other", "third"):
            cache.put("kind", key, "print", 1)
    (record,) = caplog.records
    assert record.getMessage() == "cache_not_written"
    assert vars(record)["reason"] == "Not a directory"
    assert cache.get("kind", "key", "print", int) is None


def test_a_value_that_could_not_be_put_in_place_leaves_nothing_behind(cache: Cache) -> None:
    (cache.folder / "kind" / "key.json" / "in the way").mkdir(parents=True)
    cache.put("kind", "key", "print", 1)
    assert [path.name for path in (cache.folder / "kind").iterdir()] == ["key.json"]


def test_values_of_a_kind_are_read_whatever_their_fingerprint(cache: Cache) -> None:
    cache.put("kind", "one", "print", {"name": "a"})
    cache.put("kind", "two", "other", {"name": "b"})
    (cache.folder / "kind" / "broken.json").write_bytes(b"{")
    assert sorted(value["name"] for value in cache.values("kind")) == ["a", "b"]
    assert list(cache.values("none")) == []
