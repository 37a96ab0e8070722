"""`Engine`: loads a model into this process and generates or embeds with it."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from llmd.api import ActivationDtype, Format, KVDtype
from llmd.api.errors import RequestError
from llmd.api.messages import Load, Loaded
from llmd.api.reports import Report
from llmd.chat.derived_text import derived_text
from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.tokenizers.tokenizer import check_vocab_size
from llmd.embedded.generated import (
    Callback,
    Finish,
    Generated,
    GeneratedToken,
    GenerationOptions,
    Prompt,
)
from llmd.embedded.generation import encode, generate, token_ids
from llmd.embedded.opening import find_model, load_stored, user_directories
from llmd.embedded.options import check_names, plain
from llmd.embedded.text_queue import TextQueue
from llmd.embedded.token_queue import TokenQueue
from llmd.engine.core import EngineCore
from llmd.engine.loading import LoadedModel
from llmd.requests.embedding import (
    MAX_DIMENSIONS,
    EmbeddingRequest,
    Reader,
    check_nested,
    read_inputs,
    to_tokens,
    to_vectors,
)
from llmd.requests.fields import RequestFields
from llmd.requests.model_kind import check_generates, embedding_of


class Engine:
    """One model on one device, in this process.
    Create it with `load`; as a context manager it frees everything.

    Threads may share an engine: concurrent requests run in one batch. On the reference backend, logits are
    bit-identical in every batch only if NumPy's BLAS uses one thread (``OPENBLAS_NUM_THREADS=1``), as in the
    daemon's engines.
    """

    def __init__(
        self,
        name: str,
        text: ModelText,
        model: LoadedModel,
        resources: ExitStack,
        adapters: Sequence[str] = (),
    ) -> None:
        self._name = name
        self._adapters = adapters
        self._text = text
        self._loaded = model.loaded
        runner = model.runner
        self._queue = TokenQueue(runner) if isinstance(runner, EngineCore) else TextQueue(runner)
        self._resources = resources

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: str = "auto",
        *,
        max_ctx: int | None = None,
        kv_memory: int | None = None,
        quant: Format | None = None,
        activations: ActivationDtype | None = None,
        kv_dtype: KVDtype = "f16",
        threads: int | None = None,
        adapters: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> Self:
        """Load a model.

        Args:
            path: ``guide``, the name of a stored or derived model, a model directory, or a GGUF file.
            device: a name that ``llmd devices`` shows; ``auto`` selects the best usable one.
            max_ctx: context window in tokens; None: the longest that the model supports.
            kv_memory: bytes of the KV cache; None: half of the memory that is free after loading.
            quant: one of `OWN_FORMATS` (``q8``, ``q4``, …) to quantise the weights to while loading;
                None keeps the checkpoint's formats.
            activations: the format of the rows that weights multiply: ``f32``, ``f16``, ``bf16``, or, for
                quantised weights only, ``int8``; None: the device's choice.
            kv_dtype: the format of the KV cache: ``f16``, ``bf16``, ``f32``, ``int8`` (half the memory of
                ``f16``) or ``int4`` (a third of it, with some loss of quality).
            threads: number of compute threads on a CPU; None: the number that a measurement finds fastest.
            adapters: LoRA adapters of the model by the names that answers choose, each a directory as PEFT
                writes it, or a GGUF file.

        Raises:
            NotFoundError: there is no such model or device.
            ModelError: the model cannot be used; the message names file, tensor and fix.
            MemoryBudgetError: the weights or the KV cache do not fit.
        """
        directories = user_directories()
        stored, derived = find_model(os.fspath(path), directories)
        message = Load(
            directory=str(stored.directory),
            device=device,
            context_len=max_ctx,
            quant=quant,
            activations=activations,
            kv_dtype=kv_dtype,
            kv_memory=kv_memory,
            threads=threads,
            adapters={name: os.fspath(place) for name, place in (adapters or {}).items()},
        )
        with ExitStack() as stack:
            text = load_model_text(stored.directory, stack.enter_context(TemplateRenderer()))
            text = derived_text(text, derived) if derived else text
            model = load_stored(message, directories)
            stack.callback(model.close)
            check_vocab_size(text.tokenizer, model.loaded.vocab_size)
            return cls(stored.name, text, model, stack.pop_all(), tuple(message.adapters))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free weights, KV blocks and helper processes. A closed engine can be closed again, but not used."""
        self._queue.close()
        self._resources.close()

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self._name

    @property
    def device_name(self) -> str:
        """The device, or several in the order of the layers that they hold."""
        return ", ".join(stage.device for stage in self._loaded.stages)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the weights, the KV pool and the activations of a step."""
        return self._loaded.size_bytes

    @property
    def loaded(self) -> Loaded:
        """What was loaded: architecture, sizes, formats, context window, notices."""
        return self._loaded

    def generate(
        self, prompt: Prompt, callback: Callback | None = None, **options: Unpack[GenerationOptions]
    ) -> Generated:
        """Answer a question or a conversation, or continue a list of token ids.

        ``callback(text, id, logprob)`` is called for each token and ends the answer by returning False; an
        exception that it raises also ends the answer and propagates. To continue raw text, call
        ``generate(engine.tokenize(text))``.

        Raises:
            RequestError: an option or message cannot be used; `ContextLengthError` if the prompt is too long.
            TemplateError: the model has no chat template.
            MemoryBudgetError: the KV pool is too small for the prompt and ``max_tokens``.
        """
        ids = self._encode(prompt, options)
        tokens: list[GeneratedToken] = []
        times: list[float] = []
        with closing(self._generate(ids, options)) as stream:
            for token in stream:
                times.append(time.perf_counter())
                tokens.append(token)
                if callback is not None and callback(token.text, token.id, token.logprob) is False:
                    break
        return _whole(len(ids), tokens, times)

    def stream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Generator[GeneratedToken]:
        """Like `generate`, but yield each token. Closing the generator ends the answer.

        Errors in the prompt are raised by this call, all others by the first ``next``.
        """
        return self._generate(self._encode(prompt, options), options)

    def embed(
        self,
        texts: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]],
        *,
        dimensions: int | None = None,
        prompt_name: str | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors of texts, or of lists of token ids:
        float32 ``[texts, dimensions]``, owned by the caller.

        The vector of a text is bit-identical whether the text is embedded alone or with others.
        ``dimensions`` and ``prompt_name`` mean the same as in a request (docs/embeddings.md).

        Raises:
            RequestError: the model does not embed, or a text or option cannot be used; `ContextLengthError`
                if a text is too long.
            MemoryBudgetError: the KV pool is too small for a text.
        """
        embedding = embedding_of(self._name, self._loaded)
        assert isinstance(self._queue, TextQueue), "a model that embeds has a core for it"
        given = {"input": texts, "dimensions": dimensions, "prompt_name": prompt_name}
        fields = RequestFields({name: plain(value) for name, value in given.items()})
        request = EmbeddingRequest(
            read_inputs(fields),
            dimensions=fields.integer("dimensions", 1, MAX_DIMENSIONS),
            prompt_name=fields.text("prompt_name"),
        )
        check_nested(embedding, request.dimensions)
        loaded = self._loaded
        reader = Reader(
            embedding, self._text.tokenizer, loaded.vocab_size, loaded.window, loaded.longer_window
        )
        found = self._queue.embed([text.tokens for text in to_tokens(reader, request)])
        return to_vectors(found, embedding, request)

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a plain text, with BOS if the model uses it."""
        return list(self._text.encode_text(text))

    def detokenize(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; invalid UTF-8 becomes U+FFFD."""
        return self._text.tokenizer.decode(ids)

    def forward(self, ids: Sequence[int], *, adapter: str | None = None) -> NDArray[np.float32]:
        """Return the logits float32 ``[len(ids), vocab]`` after each token. The caller owns the array.

        Raises:
            RequestError: no ids, too many, or one outside the vocabulary; or there is no such ``adapter``.
            MemoryBudgetError: running requests occupy the KV blocks that are needed.
        """
        self._check_adapter(adapter)
        return self._tokens.forward(np.asarray(token_ids(ids), np.int64), adapter or "")

    def stats(self) -> Report:
        """Return the counters since loading or `reset_stats`, and the number of running requests.
        Times in seconds.
        """
        return self._queue.report()

    def reset_stats(self) -> None:
        """Reset all counters to zero."""
        self._queue.reset_counters()

    def _encode(self, prompt: Prompt, options: GenerationOptions) -> tuple[int, ...]:
        check_names(options)
        self._check_adapter(options.get("adapter"))
        # The renderer of a closed engine would start its process again, and nothing would end it.
        self._tokens.check_open()
        return encode(self._text, prompt, options.get("system"))

    def _check_adapter(self, name: str | None) -> None:
        if name and name not in self._adapters:
            raise RequestError(
                f"there is no adapter {name}; those that were loaded are {', '.join(self._adapters) or 'none'}",
                param="adapter",
                hint="load the model with it: adapters={NAME: DIRECTORY}",
            )

    def _generate(self, ids: tuple[int, ...], options: GenerationOptions) -> Generator[GeneratedToken]:
        return generate(self._tokens, self._text, self._loaded, ids, options)

    @property
    def _tokens(self) -> TokenQueue:
        check_generates(self._name, self._loaded)
        assert isinstance(self._queue, TokenQueue), "a model that generates has a core for it"
        return self._queue


def _whole(prompt_len: int, tokens: Sequence[GeneratedToken], times: Sequence[float]) -> Generated:
    """Join tokens to an answer; without a token that finishes it, the answer was cancelled."""
    finish: Finish = (tokens[-1].finish if tokens else None) or "cancelled"
    elapsed_s = times[-1] - times[0] if times else 0.0
    return Generated(
        text="".join(token.text for token in tokens),
        token_ids=tuple(token.id for token in tokens),
        finish=finish,
        prompt_tokens=prompt_len,
        output_tokens=len(tokens),
        tokens_per_s=(len(tokens) - 1) / elapsed_s if elapsed_s else None,
    )
