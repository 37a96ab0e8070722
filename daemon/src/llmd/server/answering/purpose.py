"""Whether a model was made for what a request asks."""

from __future__ import annotations

from llmd.api.embedding import Embedding
from llmd.api.messages import Loaded
from llmd.server.errors import BadRequestError

UNSUPPORTED = "unsupported_model"


def check_generates(name: str, loaded: Loaded) -> None:
    """Refuse a model that embeds where one is asked to generate.

    Raises:
        BadRequestError: the model embeds.
    """
    if loaded.embedding is not None:
        raise BadRequestError(
            f"{name} embeds texts, it cannot generate",
            code=UNSUPPORTED,
            param="model",
            hint="send texts to /v1/embeddings, or name a model that generates",
        )


def embedding_of(name: str, loaded: Loaded) -> Embedding:
    """What the makers of a model say about its embeddings.

    Raises:
        BadRequestError: the model generates.
    """
    if loaded.embedding is None:
        raise BadRequestError(
            f"{name} generates text, it cannot embed",
            code=UNSUPPORTED,
            param="model",
            hint="name a model that embeds: one with modules.json, or whose architecture has no head",
        )
    return loaded.embedding
