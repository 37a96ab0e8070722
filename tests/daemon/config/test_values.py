from __future__ import annotations

import pytest
from msgspec import Struct, inspect

from llmd.config.schema import ClientConfig, EngineConfig, LimitsConfig, ListenConfig, ModelsConfig
from llmd.config.values import decode, expected_form, expected_instead


def kind_of(section: type[Struct], name: str) -> inspect.Type:
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return next(field.type for field in info.fields if field.name == name)


def decoded(section: type[Struct], name: str, raw: object) -> object:
    return getattr(decode(section, name, kind_of(section, name), raw), name)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("1.5KiB", 1536), ("500MB", 500_000_000), ("2T", 2 << 40), ("17", 17), (17, 17)],
)
def test_reads_byte_sizes_with_their_units(text: object, size: int) -> None:
    assert decoded(EngineConfig, "kv_memory", text) == size


@pytest.mark.parametrize("text", ["8XB", "-1", "GiB", "1e9", "", True])
def test_refuses_what_is_no_byte_size(text: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decoded(EngineConfig, "kv_memory", text)


@pytest.mark.parametrize(("raw", "seconds"), [("10m", 600), (90, 90), ("-1", -1)])
def test_reads_durations_with_their_units(raw: object, seconds: float) -> None:
    assert decoded(ModelsConfig, "keep_alive", raw) == seconds


@pytest.mark.parametrize("raw", ["soon", "1e12", 1e12])
def test_refuses_what_is_no_duration(raw: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decoded(ModelsConfig, "keep_alive", raw)


def test_reads_lists_from_comma_separated_text() -> None:
    assert decoded(ListenConfig, "addr", "a:1, unix:/x,") == ("a:1", "unix:/x")
    assert decoded(ListenConfig, "addr", ["a:1"]) == ("a:1",)


def test_reads_numbers_and_booleans_from_text() -> None:
    assert decoded(EngineConfig, "slots", "3") == 3
    assert decoded(ListenConfig, "no_auth", "true") is True


def test_reads_one_of_many_names() -> None:
    assert decoded(EngineConfig, "quant", "q4_g64") == "q4_g64"
    with pytest.raises(ValueError, match="q4_0"):
        decoded(EngineConfig, "quant", "q4_0")


@pytest.mark.parametrize(
    ("raw", "near"),
    [("q4_0", "q4, q4_g64, q4_g32, q4_g128"), ("fp16", "q8, q8_g32, q8_g128, q8_row"), (4, "q4")],
)
def test_says_which_of_many_names_are_nearest(raw: object, near: str) -> None:
    form = expected_instead(kind_of(EngineConfig, "quant"), raw)
    assert f" names; the nearest are {near}" in form
    assert expected_instead(kind_of(EngineConfig, "slots"), raw) == "an integer of at least 1"


@pytest.mark.parametrize(
    ("section", "name", "form"),
    [
        (EngineConfig, "slots", "an integer of at least 1"),
        (EngineConfig, "max_ctx", "an integer of at least 1"),
        (EngineConfig, "kv_dtype", "one of bf16, f16, f32, int4, int8"),
        (EngineConfig, "activations", "one of bf16, f16, f32, int8"),
        (EngineConfig, "kv_memory", "a number of bytes, such as 8GiB"),
        (EngineConfig, "device", "text"),
        (EngineConfig, "split", "stages such as 0-3=cpu,4-7=reference"),
        (LimitsConfig, "drain_s", "a number of at least 0"),
        (LimitsConfig, "ping_s", "a number above 0"),
        (ModelsConfig, "keep_alive", "seconds or a duration such as 1h30m"),
        (ClientConfig, "timeout_s", "a number above 0 and at most 86400"),
        (ListenConfig, "no_auth", "true or false"),
        (ListenConfig, "addr", "a list or comma-separated values"),
    ],
)
def test_says_in_words_what_is_expected(section: type[Struct], name: str, form: str) -> None:
    assert expected_form(kind_of(section, name)) == form
