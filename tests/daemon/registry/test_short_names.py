from __future__ import annotations

from datetime import date

from llmd.registry.names import parse_hub_name
from llmd.registry.short_names import repository_of, short_name, short_names, spellings


def test_every_entry_is_a_repository_with_a_date() -> None:
    assert len(short_names()) > 40
    for entry in short_names().values():
        assert str(parse_hub_name(entry.repo)) == entry.repo
        assert entry.repo.count("/") == 1
        assert entry.name == entry.name.lower()
        assert entry.added <= date.today()  # noqa: DTZ011 - a day, in whatever zone
        assert entry.about


def test_a_family_without_a_size_is_one_of_its_sizes_or_its_only_model() -> None:
    for name, entry in short_names().items():
        if ":" in name:
            continue
        sizes = [one.repo for other, one in short_names().items() if other.startswith(f"{name}:")]
        assert not sizes or entry.repo in sizes, name


def test_case_and_latest_do_not_matter() -> None:
    assert repository_of("Qwen3:0.6B") == "Qwen/Qwen3-0.6B"
    assert repository_of("qwen3:latest") == repository_of("qwen3") == "Qwen/Qwen3-4B"


def test_other_names_stand_for_themselves() -> None:
    for name in ("org/qwen3", "qwen3@main", "qwen3:9000b", "", "guide"):
        assert short_name(name) is None
        assert repository_of(name) == name


def test_the_list_is_read_only_for_names_that_are_nothing_else() -> None:
    short_names.cache_clear()
    found = spellings("qwen3:latest")
    assert (next(found), next(found)) == ("qwen3:latest", "qwen3")
    assert short_names.cache_info().currsize == 0
    assert list(found) == ["Qwen/Qwen3-4B"]
