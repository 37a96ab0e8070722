from __future__ import annotations

import pytest

from llmd_tui.screens.models.description import (
    convert_commands,
    fit_warning,
    loaded,
    not_removable,
    removal,
    sections,
)
from llmd_tui.screens.models.listing import ListedModel
from tests.tui.screens.models.model_answers import DEVICES, GIB, SHOWN


def test_details_have_what_the_listing_and_show_say() -> None:
    model = ListedModel(
        "x", num_parameters=1500, size_bytes=GIB, format="q4", file_format="gguf", context_len=9
    )
    found = dict(sections(model, SHOWN))
    assert found["Parameters"] == "1.5K (1,500)"
    assert found["Weights"] == "1.0 GiB in q4 (gguf)"
    assert found["Architecture"] == "llama"
    assert found["Capabilities"] == "completion, tools"
    assert found["Configuration"] == "general.architecture  llama\nllama.block_count  16"
    assert found["Chat template"].startswith("{% for")
    assert found["Licence"] == "Apache License"


def test_details_without_an_answer_have_what_the_listing_says() -> None:
    assert dict(sections(ListedModel("x", reason="no config"), {}))["Cannot be used"] == "no config"


@pytest.mark.parametrize(
    ("size", "device", "fits"),
    [
        (15 * GIB, {"ok": True, "memory_bytes": 16 * GIB}, True),
        (17 * GIB, {"ok": True, "memory_bytes": 16 * GIB}, False),
        (17 * GIB, {"ok": False, "memory_bytes": 16 * GIB}, True),
        (17 * GIB, {"ok": True, "memory_bytes": None}, True),
        (0, {"ok": True, "memory_bytes": 1}, True),
    ],
    ids=["fits", "too large", "unusable device", "unknown memory", "unknown size"],
)
def test_only_a_model_larger_than_any_device_is_warned_of(
    *, size: int, device: dict[str, object], fits: bool
) -> None:
    warning = fit_warning(ListedModel("x", size_bytes=size), [{"name": "cpu", **device}])
    assert (warning == "") is fits


def test_the_warning_has_both_sizes() -> None:
    warning = fit_warning(ListedModel("x", size_bytes=140 * GIB), DEVICES["devices"])
    assert "140.0 GiB" in warning
    assert "cpu has 16.0 GiB" in warning


def test_a_load_is_told_with_what_the_daemon_says_of_it() -> None:
    result = {
        "step": "loaded",
        "devices": ["cpu", "cuda:0"],
        "load_s": 1.5,
        "notices": ["bf16 is computed\nin f32"],
    }
    assert loaded("x", result) == "Loaded x on cpu, cuda:0 in 1.5 s.\nbf16 is computed in f32"
    assert loaded("x", {}) == "Loaded x."


def test_questions_and_refusals_say_what_goes() -> None:
    pulled = ListedModel("x", source="org/x", size_bytes=2 * GIB)
    assert "frees 2.0 GiB" in removal(pulled)
    assert "derived from guide, which stays" in removal(ListedModel("x", base="guide"))
    assert "built in" in not_removable(ListedModel("x", builtin=True))
    assert "delete /mine yourself" in not_removable(ListedModel("x", directory="/mine"))


def test_commands_of_a_conversion_name_the_model_and_a_file() -> None:
    assert convert_commands("org/x:v1")[:2] == [
        "llmd convert org/x:v1 x.gguf",
        "llmd convert org/x:v1 x-q8_0.gguf --quant q8_0",
    ]
