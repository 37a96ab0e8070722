from __future__ import annotations

from llmd.server.dialects.openai.responses.store import ResponseStore, Stored


def test_responses_are_found_by_id_until_they_are_deleted() -> None:
    store = ResponseStore()
    store.put("", {"id": "a"}, ["x"])
    assert store.get("", "a") == Stored({"id": "a"}, ["x"])
    assert store.delete("", "a")
    assert store.get("", "a") is None
    assert not store.delete("", "a")


def test_another_key_sees_nothing() -> None:
    store = ResponseStore()
    store.put("mine", {"id": "a"}, [])
    assert store.get("", "a") is None
    assert not store.delete("other", "a")
    assert store.get("mine", "a") is not None


def test_the_oldest_go_first() -> None:
    store = ResponseStore(max_responses=2)
    for name in "abc":
        store.put("", {"id": name}, [])
    assert [name for name in "abc" if store.get("", name)] == ["b", "c"]


def test_memory_is_bounded_and_given_back() -> None:
    store = ResponseStore(max_bytes=1000)
    for name in "abc":
        store.put("", {"id": name}, ["x" * 400])
    assert [name for name in "abc" if store.get("", name)] == ["b", "c"]
    store.put("", {"id": "d"}, ["x" * 2000])
    assert [name for name in "abcd" if store.get("", name)] == ["b", "c"]
    store.put("", {"id": "e"}, ["x" * 400])
    assert [name for name in "bce" if store.get("", name)] == ["c", "e"]


def test_a_response_larger_than_the_store_evicts_no_other() -> None:
    store = ResponseStore(max_bytes=200)
    store.put("", {"id": "small"}, [])
    store.put("", {"id": "large", "text": "x" * 300}, [])
    assert store.get("", "large") is None
    assert store.get("", "small") is not None
