"""Texts to tokens, and what an engine found for them to vectors, for daemons and for `llmd.Engine`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from llmd.api.embedding import Embedding
from llmd.api.errors import ContextLengthError, LlmdError, RequestError
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.truncation import Fitted, fit_whole
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.mixed_text import MixedText, encode_mixed, read_mixed_texts

MAX_INPUTS = 2048
MAX_DIMENSIONS = 1 << 20
LEAST_NORM = 1e-12
"""What a vector of zeros is divided by, as in torch."""

Vectors = NDArray[np.float32]


class EmbeddingRequest(Struct, frozen=True):
    """Texts, or their tokens just as they are to be read, or both in turn. ``param`` is the field that holds them.

    ``dimensions``: so many of the first numbers of each vector, made length 1 again. ``normalizes`` None: as the makers
    of the model say. ``truncates``: a text that is too long is cut. ``window`` is how many tokens a text may have here,
    where that is fewer than the model's own. ``prompt_name``: which of the model's prompts stands before every text; what
    holds tokens has none.
    """

    texts: tuple[MixedText, ...]
    dimensions: int | None = None
    normalizes: bool | None = None
    truncates: bool = False
    window: int | None = None
    prompt_name: str | None = None
    param: str = "input"


class Reader(Struct, frozen=True):
    """What a model reads texts with; ``window`` is the most tokens of one."""

    embedding: Embedding
    tokenizer: Tokenizer
    vocab_size: int
    window: int


def read_inputs(fields: RequestFields, name: str = "input") -> tuple[MixedText, ...]:
    """What is to be embedded, in any form of `read_mixed_texts`; ``name`` is the field that has it.

    Raises:
        BadRequestError: there is none, one of them is empty, or there are too many.
    """
    texts = read_mixed_texts(fields, name, MAX_INPUTS)
    if not all(texts):
        raise fields.invalid(name, "texts or token ids, none of them empty")
    return texts


def check_nested(embedding: Embedding, dimensions: int | None) -> None:
    """Refuse to cut vectors whose first numbers mean nothing by themselves.

    Raises:
        BadRequestError: the makers of the model do not say that they do, or name other lengths.
    """
    listed = embedding.nested_dimensions
    if dimensions is None or (embedding.nested and (not listed or dimensions in listed)):
        return
    lengths = (
        f"it can give {', '.join(map(str, listed))}" if listed else "its vectors mean something only whole"
    )
    raise BadRequestError(
        f"dimensions {dimensions}: the model was not made for that, {lengths}",
        code="invalid_value",
        param="dimensions",
        hint="leave it out"
        if listed
        else 'leave it out; a model that was made for it says "is_matryoshka": true in config.json',
    )


def to_tokens(reader: Reader, request: EmbeddingRequest) -> list[Fitted]:
    """The tokens of every text. Blocks.

    Raises:
        ContextLengthError: a text is too long, and may not be cut.
        RequestError: a text has no tokens, or one that the model does not know; or there is no prompt of that name.
    """
    window = min(reader.window, request.window or reader.window)
    prompt = prompt_of(reader.embedding, request.prompt_name)
    prompted = (prompt + text if isinstance(text, str) else text for text in request.texts)
    return [_tokens(reader, request, text, window) for text in prompted]


def prompt_of(embedding: Embedding, name: str | None) -> str:
    """What stands before a text.

    Raises:
        BadRequestError: the model has no prompt of that name.
    """
    if name is None:
        return embedding.default_prompt
    if name not in embedding.prompts:
        known = ", ".join(embedding.prompts) or "none"
        raise BadRequestError(
            f"the model has no prompt {name!r}, it has {known}",
            code="invalid_value",
            param="prompt_name",
            hint="leave it out, or write the prompt into the text",
        )
    return embedding.prompts[name]


def _tokens(reader: Reader, request: EmbeddingRequest, text: MixedText, window: int) -> Fitted:
    ids = encode_mixed(
        text,
        lambda whole: reader.tokenizer.encode_whole(_cased(reader, whole)),
        lambda part: reader.tokenizer.encode(_cased(reader, part), add_special=False),
    )
    if not ids:
        raise RequestError("a text has no tokens", param=request.param, hint="send at least one character")
    if max(ids) >= reader.vocab_size:
        raise RequestError(
            f"a text has the token id {max(ids)}, the vocabulary ends with {reader.vocab_size - 1}",
            param=request.param,
            hint="use the tokenizer of this model",
        )
    if len(ids) > window and not request.truncates:
        raise ContextLengthError(len(ids), window, param=request.param)
    ending = 0 if isinstance(text, tuple) else len(reader.tokenizer.vocabulary.suffix_ids)
    return fit_whole(ids, window, ending)


def _cased(reader: Reader, text: str) -> str:
    return text.lower() if reader.embedding.lower_cases else text


def to_vectors(found: Sequence[bytes], embedding: Embedding, request: EmbeddingRequest) -> Vectors:
    """The vectors as the request wants them. Blocks.

    Raises:
        BadRequestError: they are shorter than ``dimensions``.
        LlmdError: the model computed numbers that are none.
    """
    vectors = np.stack([np.frombuffer(one, "<f4") for one in found])
    length, wanted = vectors.shape[1], request.dimensions
    if wanted is not None and wanted > length:
        raise BadRequestError(
            f"dimensions must be between 1 and {length}, not {wanted}",
            code="invalid_value",
            param="dimensions",
        )
    if not np.isfinite(vectors).all():
        raise not_finite("numbers")
    normalizes = embedding.normalizes if request.normalizes is None else request.normalizes
    cut = vectors[:, :wanted]
    return normalized(cut) if normalizes or wanted is not None else cut


def not_finite(what: str) -> LlmdError:
    """The error of a model that computes what no client could use."""
    return LlmdError(
        f"the model computed {what} that are not finite",
        hint="its weights may be damaged: pull it again; or serve it with --kv-dtype f32",
    )


def normalized(vectors: Vectors) -> Vectors:
    """Each row with the length 1; zeros stay zeros."""
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    lengths: Vectors = (vectors / np.maximum(norms, LEAST_NORM)).astype(np.float32)
    return lengths
