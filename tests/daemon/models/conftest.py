"""A small model with its own architecture, so that these tests need no plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import HIDDEN, Architecture, Embed, Head, Linear, ModelPlan, Norm, Part, TensorRef
from llmd.api.plugins import Config
from llmd.models.mapped_file import MappedFile
from tests.corrupt import small_model


@pytest.fixture
def model_directory(tmp_path: Path) -> Path:
    return small_model.write_small_model(tmp_path / "small")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the offset and length of each part that is fetched, without reading it."""
    parts: list[tuple[int, int]] = []
    monkeypatch.setattr(MappedFile, "fetch", lambda _, *part: parts.append(part))
    return parts


def plan_of(config: Config, context_len: int | None) -> ModelPlan:
    """Return a plan with all tensors of a Llama, in ops that are never run."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    embedding = TensorRef("model.embed_tokens.weight", (vocab, hidden))
    layers = tuple(_layer(config, number) for number in range(config["num_hidden_layers"]))
    head = embedding if config["tie_word_embeddings"] else TensorRef("lm_head.weight", (vocab, hidden))
    norm = TensorRef("model.norm.weight", (hidden,))
    return ModelPlan(
        architecture="llama",
        hidden_size=hidden,
        vocab_size=vocab,
        context_len=context_len or config["max_position_embeddings"],
        max_context_len=config["max_position_embeddings"],
        groups=(),
        parts=(
            Part("embed", "embed", None, (Embed(HIDDEN, embedding),)),
            *layers,
            Part("head", "head", None, (Norm(HIDDEN, "n", norm, 1e-5), Head("n", head))),
        ),
    )


def _layer(config: Config, number: int) -> Part:
    prefix = f"model.layers.{number}."
    shapes = small_model.shapes()
    refs = [
        TensorRef(prefix + name.removeprefix("model.layers.0."), shape)
        for name, shape in shapes.items()
        if name.startswith("model.layers.0.")
    ]
    norms = tuple(Norm(HIDDEN, f"n{i}", ref, 1e-5) for i, ref in enumerate(refs) if len(ref.shape) == 1)
    linears = tuple(
        Linear(HIDDEN, (f"y{i}",), (ref,), (None,)) for i, ref in enumerate(refs) if len(ref.shape) == 2
    )
    return Part(f"layer{number}", "mixer", number, norms + linears)


@pytest.fixture
def architectures() -> dict[str, Architecture]:
    architecture = Architecture(("LlamaForCausalLM", "llama"), plan_of)
    return dict.fromkeys(architecture.names, architecture)


@pytest.fixture
def plan() -> ModelPlan:
    return plan_of(small_model.CONFIG, None)
