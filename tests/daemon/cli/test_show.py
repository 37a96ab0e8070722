"""`llmd show` describes a model without loading it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from llmd.api.errors import NotFoundError, TemplateError
from tests.golden.checkpoint import write_checkpoint
from tests.golden.draft_heads import write_with_draft_head
from tests.golden.gguf_layout import write_gguf
from tests.golden.meta_layout import write_meta
from tests.golden.models.catalog import tiny_model
from tests.golden.models.fp8 import FP8_CASES, WITH_FP4_EXPERTS
from tests.serving.model import TEMPLATE, write_embedding_model, write_model

Llmd = Callable[..., Any]


@pytest.fixture(autouse=True)
def shared_probes(llmd: Llmd, probes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are probed once for all tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(probes))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "data" / "llmd" / "models" / "tiny")


def test_shows_architecture_sizes_context_and_files(llmd: Llmd, model: Path) -> None:
    lines = dict(line.split(maxsplit=1) for line in llmd("show", "tiny").out.splitlines())
    assert lines["architecture"] == "LlamaForCausalLM"
    assert lines["context"] == "512 tokens"
    assert "tokenizer.json" in lines["files"]
    assert lines["state"] == "ok"
    assert lines["capabilities"] == "completion, tools"
    document = json.loads(llmd("show", "tiny", "--json").out)
    assert document["schema"] == 1
    assert document["model"]["size_bytes"] == 4 * document["model"]["num_parameters"]


def test_shows_experts_and_what_is_not_loaded(llmd: Llmd, tmp_path: Path) -> None:
    path = str(write_with_draft_head(tiny_model("glm4-moe"), tmp_path / "m"))
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in llmd("show", path).out.splitlines())
    assert lines["experts"] == "8 in 2 of 3 layers; a token uses 3, and one that all tokens use"
    assert lines["not loaded"].startswith("a draft head: 14 tensors")
    structure = json.loads(llmd("show", path, "--json").out)["structure"]
    assert (structure["layers"], structure["experts"][0]["active"]) == (3, 3)
    assert structure["not_loaded"][0]["size_bytes"] == 14 * 64


def test_a_directory_needs_not_to_lie_in_the_store(llmd: Llmd, model: Path, tmp_path: Path) -> None:
    moved = model.rename(tmp_path / "elsewhere")
    assert json.loads(llmd("show", str(moved), "--json").out)["model"]["name"] == "elsewhere"


def test_shows_a_gguf_file_with_its_format_and_bits(llmd: Llmd, tmp_path: Path) -> None:
    path = write_gguf(
        tiny_model("llama2-mha"), tmp_path / "m.gguf", gguf.GGMLQuantizationType.Q8_0, num_parts=2
    )
    lines = dict(line.split(maxsplit=1) for line in llmd("show", str(path)).out.splitlines())
    assert lines["name"] == "m"
    assert lines["weights"].endswith("q8_0 (gguf), 8.57 bits each")
    assert lines["files"].split(", ")[:2] == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]


def test_names_fp8(llmd: Llmd, tmp_path: Path) -> None:
    path = write_checkpoint(FP8_CASES[0], tmp_path / "m")
    lines = dict(line.split(maxsplit=1) for line in llmd("show", str(path)).out.splitlines())
    assert lines["weights"].endswith("fp8 (safetensors), 8.76 bits each")
    assert lines["state"] == "ok"


def test_names_mxfp4_if_most_bytes_are_in_it(llmd: Llmd, tmp_path: Path) -> None:
    path = write_checkpoint(WITH_FP4_EXPERTS, tmp_path / "m")
    lines = dict(line.split(maxsplit=1) for line in llmd("show", str(path)).out.splitlines())
    assert lines["weights"].endswith("mxfp4 (safetensors), 7.76 bits each")
    assert lines["state"] == "ok"


def test_shows_a_model_in_metas_layout(llmd: Llmd, tmp_path: Path) -> None:
    directory = write_meta(tiny_model("llama2-mha"), tmp_path / "meta", pieces=1)
    known = json.loads(llmd("show", str(directory), "--json").out)["model"]
    assert (known["architecture"], known["format"], known["reason"]) == ("LlamaForCausalLM", "f32", "")
    (directory / "consolidated.00.safetensors").rename(directory / "consolidated.00.pth")
    assert "pickled weights could run code" in llmd("show", str(directory)).out


def test_shows_that_a_model_embeds(llmd: Llmd, tmp_path: Path) -> None:
    directory = str(write_embedding_model(tmp_path / "embedder"))
    assert json.loads(llmd("show", directory, "--json").out)["capabilities"] == ["embedding"]


def test_shows_the_template_alone(llmd: Llmd, model: Path) -> None:
    assert llmd("show", "tiny", "--template").out == TEMPLATE + "\n"
    assert json.loads(llmd("show", "tiny", "--template", "--json").out)["template"] == TEMPLATE


def test_a_model_without_a_template_is_an_error_with_a_fix(llmd: Llmd, model: Path) -> None:
    (model / "tokenizer_config.json").unlink()
    done = llmd("show", "tiny", "--template")
    assert (done.code, done.out) == (TemplateError.exit_code, "")
    assert "no chat template" in done.err


def test_shows_the_vocabulary_and_its_special_tokens(llmd: Llmd, model: Path) -> None:
    facts = json.loads(llmd("show", "tiny", "--tokens", "--json").out)["tokens"]
    assert facts == {
        "vocab_size": 259,
        "bos_id": 256,
        "stop_ids": [258],
        "special": {"<s>": 256, "<|im_start|>": 257, "<|im_end|>": 258},
    }
    assert "<|im_end|>     258" in llmd("show", "tiny", "--tokens").out


def test_template_and_tokens_exclude_each_other(llmd: Llmd, model: Path) -> None:
    assert llmd("show", "tiny", "--tokens", "--template").code == 2


def test_an_unknown_model_ends_with_three_and_the_nearest_names(llmd: Llmd, model: Path) -> None:
    done = llmd("show", "tinny")
    assert (done.code, done.out) == (NotFoundError.exit_code, "")
    assert "the nearest names are tiny" in done.err
