"""Converts texts to tokens and an engine's output to vectors, for the daemon and for `llmd.Engine`."""

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
"""Vectors are divided by at least this norm, as in torch."""

Vectors = NDArray[np.float32]


class EmbeddingRequest(Struct, frozen=True):
    """A request for the vectors of texts."""

    texts: tuple[MixedText, ...]
    """Texts, or token ids that are used unchanged, or inputs that mix both."""
    dimensions: int | None = None
    """Return only this many of the first numbers of each vector, normalized to length 1."""
    normalizes: bool | None = None
    """None: as the model's authors specify."""
    truncates: bool = False
    """Cut a text that is too long."""
    window: int | None = None
    """The most tokens of a text, if fewer than the model allows."""
    prompt_name: str | None = None
    """The model's prompt that is put before every text; inputs with token ids get none."""
    param: str = "input"
    """The request field that contains the texts."""


class Reader(Struct, frozen=True):
    """The parts of a model that turn texts into tokens."""

    embedding: Embedding
    tokenizer: Tokenizer
    vocab_size: int
    window: int
    """The most tokens of a text."""
    longer_window: str = ""
    """As in `ContextLengthError`."""


def read_inputs(fields: RequestFields, name: str = "input") -> tuple[MixedText, ...]:
    """Read the inputs to embed from the field ``name``, in any form of `read_mixed_texts`.

    Raises:
        BadRequestError: there are no inputs, too many, or an empty one.
    """
    texts = read_mixed_texts(fields, name, MAX_INPUTS)
    if not all(texts):
        raise fields.invalid(name, "texts or token ids, none of them empty")
    return texts


def check_nested(embedding: Embedding, dimensions: int | None) -> None:
    """Refuse ``dimensions`` if the model was not trained for shorter vectors (Matryoshka).

    Raises:
        BadRequestError: the model's authors do not declare support, or list other lengths.
    """
    listed = embedding.nested_dimensions
    if dimensions is None or (embedding.nested and (not listed or dimensions in listed)):
        return
    lengths = f"it supports {', '.join(map(str, listed))}" if listed else "its vectors cannot be shortened"
    raise BadRequestError(
        f"the model was not trained for {dimensions} dimensions: {lengths}",
        code="invalid_value",
        param="dimensions",
        hint="leave it out"
        if listed
        else 'leave it out; a model trained for it has "is_matryoshka": true in config.json',
    )


def to_tokens(reader: Reader, request: EmbeddingRequest) -> list[Fitted]:
    """Return the tokens of every text. Blocks.

    Raises:
        ContextLengthError: a text is too long and must not be cut.
        RequestError: a text has no tokens or a token outside the vocabulary, or the model has no prompt of
            that name.
    """
    window = min(reader.window, request.window or reader.window)
    prompt = prompt_of(reader.embedding, request.prompt_name)
    prompted = (prompt + text if isinstance(text, str) else text for text in request.texts)
    return [_tokens(reader, request, text, window) for text in prompted]


def prompt_of(embedding: Embedding, name: str | None) -> str:
    """Return the prompt that is put before each text.

    Raises:
        BadRequestError: the model has no prompt of that name.
    """
    if name is None:
        return embedding.default_prompt
    if name not in embedding.prompts:
        known = ", ".join(embedding.prompts) or "none"
        raise BadRequestError(
            f"the model has no prompt {name!r}; known prompts: {known}",
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
            f"a text has the token id {max(ids)}, but the vocabulary ends at {reader.vocab_size - 1}",
            param=request.param,
            hint="use the tokenizer of this model",
        )
    if len(ids) > window and not request.truncates:
        own = f"raise num_ctx (at most {reader.window})" if window < reader.window else ""
        longer = own or reader.longer_window
        raise ContextLengthError(len(ids), window, param=request.param, longer_window=longer)
    ending = 0 if isinstance(text, tuple) else len(reader.tokenizer.vocabulary.suffix_ids)
    return fit_whole(ids, window, ending)


def _cased(reader: Reader, text: str) -> str:
    return text.lower() if reader.embedding.lower_cases else text


def to_vectors(found: Sequence[bytes], embedding: Embedding, request: EmbeddingRequest) -> Vectors:
    """Return the vectors in the form that the request wants. Blocks.

    Raises:
        BadRequestError: the vectors are shorter than ``dimensions``.
        LlmdError: the model computed NaN or infinity.
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
    """Return the error for a model that computes NaN or infinity."""
    return LlmdError(
        f"the model computed {what} that are not finite",
        hint="its weights may be damaged: pull it again; or serve it with --kv-dtype f32",
    )


def normalized(vectors: Vectors) -> Vectors:
    """Scale each row to length 1; zeros stay zeros."""
    norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    lengths: Vectors = (vectors / np.maximum(norms, LEAST_NORM)).astype(np.float32)
    return lengths
