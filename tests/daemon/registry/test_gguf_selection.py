from __future__ import annotations

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.registry.gguf_selection import choose_gguf

REPOSITORY = [
    "README.md",
    "config.json",
    "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
    "Llama-3.2-1B-Instruct-Q4_K_S.gguf",
    "Llama-3.2-1B-Instruct-IQ4_XS.gguf",
    "Llama-3.2-1B-Instruct-UD-Q4_K_XL.gguf",
    "llama-3.2-1b-instruct-q8_0.gguf",
    "BF16/Llama-3.2-1B-Instruct-BF16-00001-of-00002.gguf",
    "BF16/Llama-3.2-1B-Instruct-BF16-00002-of-00002.gguf",
    "mmproj-F16.gguf",
    "Llama-3.2-1B-Instruct-imatrix.gguf",
]


@pytest.mark.parametrize(
    ("quant", "expected"),
    [
        (None, ["Llama-3.2-1B-Instruct-Q4_K_M.gguf"]),
        ("Q4_K_S", ["Llama-3.2-1B-Instruct-Q4_K_S.gguf"]),
        ("Q8_0", ["llama-3.2-1b-instruct-q8_0.gguf"]),
        ("Q4_K_XL", ["Llama-3.2-1B-Instruct-UD-Q4_K_XL.gguf"]),
        ("BF16", [path for path in REPOSITORY if path.startswith("BF16")]),
    ],
)
def test_the_file_of_a_quantisation_is_told_by_its_name(quant: str | None, expected: list[str]) -> None:
    assert choose_gguf(REPOSITORY, quant) == expected


def test_the_only_file_needs_no_name() -> None:
    assert choose_gguf(["model.gguf", "README.md"], None) == ["model.gguf"]


def test_a_repository_without_gguf_files_has_none() -> None:
    assert choose_gguf(["model.safetensors", "mmproj-F16.gguf"], None) == []
    with pytest.raises(UnsupportedModelError, match="no GGUF file, so Q8_0 cannot be chosen"):
        choose_gguf(["model.safetensors"], "Q8_0")


def test_those_that_there_are_are_named() -> None:
    with pytest.raises(UnsupportedModelError, match="no GGUF file of Q5_0; it has") as caught:
        choose_gguf(REPOSITORY, "Q5_0")
    for label in ("Q4_K_M", "Q4_K_S", "IQ4_XS", "UD-Q4_K_XL", "Q8_0", "BF16"):
        assert label in caught.value.message
    assert "ORG/NAME:BF16" in caught.value.hint
    with pytest.raises(UnsupportedModelError, match="no GGUF file of Q4_K_M; it has Q2_K, PLAIN"):
        choose_gguf(["a-Q2_K.gguf", "plain.gguf"], None)


def test_two_files_of_one_quantisation_are_not_chosen_from() -> None:
    with pytest.raises(UnsupportedModelError, match=r"has 2 files of Q4_K_M: a-Q4_K_M.gguf, b-Q4_K_M.gguf"):
        choose_gguf(["a-Q4_K_M.gguf", "b-Q4_K_M.gguf"], None)


def test_a_missing_part_is_named() -> None:
    with pytest.raises(UnsupportedModelError, match=r"lacks the part m-Q8_0-00002-of-00002.gguf"):
        choose_gguf(["m-Q8_0-00001-of-00002.gguf"], "Q8_0")
