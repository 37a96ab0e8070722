"""The golden bound notices every single mistake in an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from llmd.api import Activate, Add, EncoderAttention, Op
from llmd.api.messages import Load
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.loading import OpenDevice, load_model
from tests.golden.engines import Architectures
from tests.golden.expected import nmse, read_pooled
from tests.golden.models.embedding import ENCODERS, texts, write_pooling
from tests.golden.models.tiny import TinyModel
from tests.golden.mutations import Mutation, drop_biases
from tests.golden.test_embeddings import vectors

BOUND = 1e-9


def drop_added(value: str) -> Callable[[Op], Iterator[Op]]:
    """Leave a value out of a sum."""

    def change(op: Op) -> Iterator[Op]:
        yield msgspec.structs.replace(op, scale=0.0) if isinstance(op, Add) and op.b == value else op

    return change


def swap_queries_and_keys(op: Op) -> Iterator[Op]:
    yield msgspec.structs.replace(op, q=op.k, k=op.q) if isinstance(op, EncoderAttention) else op


def drop_activation(op: Op) -> Iterator[Op]:
    yield Add(op.x, op.x, op.out, scale=0.0) if isinstance(op, Activate) else op


MUTATIONS = [
    mutation
    for case in ENCODERS
    for mutation in (
        Mutation(case.name, "eps 10 % off", {"layer_norm_eps": 1.1e-2}),
        Mutation(case.name, "another activation", {"hidden_act": "silu"}),
        Mutation(case.name, "half as many heads", {"num_attention_heads": 2}),
        Mutation(case.name, "no token type", change=drop_added("type")),
        Mutation(case.name, "no positions", change=drop_added("position")),
        Mutation(case.name, "no residual stream", change=drop_added("hidden")),
        Mutation(case.name, "queries for keys", change=swap_queries_and_keys),
        Mutation(case.name, "no activation", change=drop_activation),
        Mutation(case.name, "no biases", change=drop_biases),
    )
] + [
    Mutation("bert-embedding", "the tanh form of gelu", {"hidden_act": "gelu_new"}),
    Mutation("xlm-roberta-embedding", "exact gelu", {"hidden_act": "gelu"}),
    Mutation("xlm-roberta-embedding", "positions from the padding token's", {"pad_token_id": 0}),
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_one_mistake_breaks_the_bound(
    mutation: Mutation,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = next(case for case in ENCODERS if case.name == mutation.case)
    directory = checkpoint(case)
    write_pooling(directory, ["mean"])
    load = Load(str(directory), device="reference", context_len=case.context_len)
    model = load_model(load, mutation.architectures(architectures), open_device, lambda _: None)
    assert isinstance(model.runner, EmbeddingCore)
    try:
        found = vectors(model.runner, texts(case), 8)
    finally:
        model.close()
    assert nmse(found, read_pooled(case.name)[0]["mean"]) > BOUND
