"""Checks that a model can do what a request asks for: generate or embed."""

from __future__ import annotations

from llmd.api.embedding import Embedding
from llmd.api.messages import Loaded
from llmd.requests.fields import BadRequestError

UNSUPPORTED = "unsupported_model"


def check_generates(name: str, loaded: Loaded) -> None:
    """Refuse a model that embeds or scores instead of generating.

    Raises:
        BadRequestError: the model does not generate.
    """
    if loaded.embedding is None:
        return
    if loaded.embedding.score is not None:
        raise _refusal(f"{name} scores pairs of texts and cannot generate", "name a model that generates")
    raise _refusal(
        f"{name} embeds texts and cannot generate",
        "embed texts with it (/v1/embeddings, Engine.embed), or name a model that generates",
    )


def embedding_of(name: str, loaded: Loaded) -> Embedding:
    """Return what a model's files specify about its embeddings.

    Raises:
        BadRequestError: the model generates, or scores.
    """
    embedding = loaded.embedding
    if embedding is not None and embedding.score is None:
        return embedding
    does = "generates text" if embedding is None else "scores pairs of texts"
    raise _refusal(
        f"{name} {does} and cannot embed",
        "name an embedding model: one with modules.json, or with an architecture that has no head",
    )


def _refusal(message: str, hint: str) -> BadRequestError:
    return BadRequestError(message, code=UNSUPPORTED, param="model", hint=hint)
