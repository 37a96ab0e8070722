"""Messages between the front and an engine process: token ids only, msgpack frames on a socket pair.

The front sends `Load` once, then `Vocabulary` before the first grammar, `Submit` (to a model that embeds `EmbedText`
instead), `Cancel`, `GetReport` and `Shutdown`; the engine answers with `Loading` (now and then), `Loaded` or `Failed`, then one
`Output` (`Embedded`) for each step, `Failed` for requests it cannot run, and `Report` for each `GetReport`. A frame is a 4-byte little-endian length and one msgpack map tagged by ``type``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from llmd.api.embedding import Embedding
from llmd.api.kv import KVDtype
from llmd.api.program import ActivationDtype
from llmd.api.samplers import DEFAULT_ORDER, Dry, DynamicTemperature, Mirostat, SamplerName, Xtc
from llmd.api.tensors import Format

CHUNK_LEN = 256
"""Prefill tokens in one step, where nothing else is asked for."""


class SamplingParams(msgspec.Struct, frozen=True):
    """How tokens are drawn.

    First logits are edited. ``repetition_penalty`` p divides a positive logit of a token of prompt or output by p and
    multiplies a negative one; ``frequency_penalty`` is subtracted for each time that the output has the token,
    ``presence_penalty`` once. With ``penalty_last_n`` all three look at so many last tokens instead, of prompt and output
    alike. ``dry`` penalises repetitions. ``logit_bias`` holds (id, summand), `NEVER_BIAS` or less forbidding the id;
    ``bad_words`` are runs of tokens that the output must not have; ``allowed_ids``, where any are given, are the only
    ones that may be drawn. The defaults change nothing.

    Then samplers narrow what is drawn from, each in its place of ``order``; one that is not there does nothing.
    ``temperature`` below 1e-5 is greedy: the best token, without any of them. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0,
    ``typical_p`` 1 and ``top_n_sigma`` 0 are off. ``mirostat`` comes after temperature and puts off all others.

    ``seed`` is 64-bit and always set: the front draws one where the request names none. ``choice`` is the choice index
    of the request (the third word of randomness). ``logprobs`` is how many alternatives are returned with each
    token's own logprob, None for no logprobs; all come from the unmodified distribution. Where ``logprob_ids`` names
    tokens, these are the alternatives, in this order, instead of the most likely ones. With ``post_sampling`` logprobs
    come from the distribution that the token was drawn from, after edits and samplers: alternatives that could not be
    drawn are left out, and ``logprob_ids`` is not looked at.
    """

    seed: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    choice: int = 0
    logprobs: int | None = None
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    typical_p: float = 1.0
    top_n_sigma: float = 0.0
    dynamic_temperature: DynamicTemperature | None = None
    xtc: Xtc | None = None
    mirostat: Mirostat | None = None
    order: tuple[SamplerName, ...] = DEFAULT_ORDER
    penalty_last_n: int | None = None
    dry: Dry | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    allowed_ids: tuple[int, ...] = ()
    logprob_ids: tuple[int, ...] = ()
    post_sampling: bool = False


class StopParams(msgspec.Struct, frozen=True):
    """When a sequence ends: at ``max_tokens`` new tokens, at any of ``stop_ids`` once ``min_tokens`` were made."""

    max_tokens: int
    stop_ids: tuple[int, ...] = ()
    min_tokens: int = 0


GrammarKind = Literal["json_schema", "json_object", "regex", "choice", "lark", "gbnf"]


class Grammar(msgspec.Struct, frozen=True):
    """What the whole text of an answer must match.

    ``text``: for ``json_schema`` the schema as JSON, for ``choice`` a JSON list of texts, for ``json_object`` nothing; else
    a regular expression, a Lark grammar (`llmd.grammar` documents the dialect) or one in llama.cpp's GBNF.
    """

    kind: GrammarKind
    text: str = ""


class BeamParams(msgspec.Struct, frozen=True):
    """A beam search in place of draws: the ``best`` answers that ``width`` beams find, best first.

    An answer's score is the sum of its tokens' log-probabilities, after edits and at temperature 1, divided by its number of
    tokens to the power of ``length_penalty``. ``early_stopping`` True ends the search when ``width`` answers have ended,
    False when no beam scores better as it stands than the worst of these; ``never`` asks that of the best it could become.
    """

    width: int
    best: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False


class StageSpec(msgspec.Struct, frozen=True):
    """Layers ``[first, last)`` on one device; the first stage also embeds, the last also has the head."""

    device: str
    first: int
    last: int


class Load(msgspec.Struct, frozen=True, tag=True):
    """Load a model and get ready to serve it.

    ``chunk_len`` is how many prefill tokens a step carries at most: the longer, the sooner a prompt is done, and the
    longer the others wait for it. ``stages`` empty: the whole model on ``device`` (``auto``: the best usable one). ``quant`` None keeps the
    checkpoint's formats. ``activations`` is how rows are held that weights in integer formats multiply. ``kv_memory`` is in bytes
    and bounds the KV pools, None for the default share; ``kv_spool`` bounds what of the prefix cache is kept on disk while the
    model is unloaded, 0 for nothing; ``weight_cache`` what devices keep there of the weights of all models. ``threads`` is
    `DeviceOptions.threads`.
    """

    directory: str
    device: str = "auto"
    stages: tuple[StageSpec, ...] = ()
    context_len: int | None = None
    slots: int = 8
    chunk_len: int = CHUNK_LEN
    quant: Format | None = None
    activations: ActivationDtype = "int8"
    kv_dtype: KVDtype = "f16"
    kv_memory: int | None = None
    kv_spool: int = 0
    threads: int | None = None
    weight_cache: int = 0


class Vocabulary(msgspec.Struct, frozen=True, tag=True):
    """What the model's tokens stand for: needed for grammars alone, and sent before the first of them.

    ``tokens`` has the bytes of each id from 0, empty where an id stands for nothing. ``special_ids`` are control tokens,
    whose text no other tokens can form. ``end_ids`` end an answer.
    """

    tokens: tuple[bytes, ...]
    special_ids: tuple[int, ...] = ()
    end_ids: tuple[int, ...] = ()


class PackedVocabulary(msgspec.Struct, frozen=True, tag=Vocabulary.__name__):
    """A `Vocabulary` as an engine receives it: it hands the tokens on, and need not make an object of each."""

    tokens: msgspec.Raw
    special_ids: tuple[int, ...] = ()
    end_ids: tuple[int, ...] = ()


class Submit(msgspec.Struct, frozen=True, tag=True):
    """Run a request. ``output`` holds tokens that an earlier engine already made for it: they are not sent again;
    ``state`` is what came with the last of them.

    With a ``grammar`` the answer matches it, and ends where it is complete: stop ids are drawn there alone.

    Requests of a lower ``priority`` number run first. Cached prefixes are shared among requests of one ``cache_salt``.

    ``prompt_logprobs`` is how many alternatives come with the logprob of each token of the prompt but the first, None for
    no such logprobs. They come with the first token, and such a request neither takes nor leaves cached prefixes; only
    with them may ``stop.max_tokens`` be 0: then the first token is drawn for nobody.

    With ``beams`` the answers are searched for, and come whole in a `BeamOutput`. Nothing is known of them before, so that
    such a request has neither ``output`` nor ``prompt_logprobs``.
    """

    request_id: int
    prompt: tuple[int, ...]
    sampling: SamplingParams
    stop: StopParams
    output: tuple[int, ...] = ()
    priority: int = 0
    cache_salt: str = ""
    grammar: Grammar | None = None
    state: bytes = b""
    prompt_logprobs: int | None = None
    beams: BeamParams | None = None


class EmbedText(msgspec.Struct, frozen=True, tag=True):
    """Embed a text, given as all of its tokens. Texts of one ``group`` come one after the other; groups take turns.

    ``second_at``: tokens from there on are of type 1, those of a second text (see `llmd.api.step.Step`).
    """

    request_id: int
    tokens: tuple[int, ...]
    group: int = 0
    second_at: int | None = None


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Forget a request; nothing more is sent for it. Unknown ids are ignored."""

    request_id: int


class GetReport(msgspec.Struct, frozen=True, tag=True):
    """GetReport for a `Report`; proves that the engine's loop turns."""


class Shutdown(msgspec.Struct, frozen=True, tag=True):
    """End the process; running requests are dropped. ``spool``: write the prefix cache to disk before, until the next
    message comes.
    """

    spool: bool = False


class Loading(msgspec.Struct, frozen=True, tag=True):
    """Progress of loading: ``phase`` names what is done, ``done`` and ``total`` are bytes."""

    phase: str
    done: int
    total: int


class StageReport(msgspec.Struct, frozen=True):
    """A stage as it was built; layers ``[first, last)``. ``step_bytes`` are those of the rows of one step."""

    device: str
    first: int
    last: int
    weight_bytes: int
    kv_bytes: int
    step_bytes: int

    @property
    def size_bytes(self) -> int:
        """What it takes of its device."""
        return self.weight_bytes + self.kv_bytes + self.step_bytes


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The engine accepts requests. ``notices`` tells people about conversions and limits that they should know.

    ``kv_tokens`` is how many tokens the smallest KV pool holds, None where the model keeps none. ``embedding`` is there where the model embeds, and does
    not generate.
    """

    architecture: str
    vocab_size: int
    context_len: int
    max_context_len: int
    num_parameters: int
    formats: tuple[Format, ...]
    stages: tuple[StageReport, ...]
    kv_tokens: int | None
    load_s: float
    notices: tuple[str, ...] = ()
    embedding: Embedding | None = None

    @property
    def window(self) -> int:
        """How many tokens prompt and answer may have together: what the KV pool leaves of the context."""
        return self.context_len if self.kv_tokens is None else min(self.context_len, self.kv_tokens)


class Logprobs(msgspec.Struct, frozen=True, array_like=True):
    """Natural-log probabilities of a drawn token and of the most likely ones, before temperature unless the request
    wants them after sampling.
    """

    chosen: float
    top_ids: tuple[int, ...]
    top: tuple[float, ...]


class TokenOutput(msgspec.Struct, frozen=True, array_like=True):
    """A token of one request. ``finish`` is ``stop`` (then ``token`` is the stop id) or ``length``.

    ``state``, at most 64 bytes, is what tokens alone do not tell of the sampler (mirostat); whoever resubmits the request
    hands it back. ``prompt`` has the logprobs of the prompt's tokens but the first, with the first token, where they
    are wanted.
    """

    request_id: int
    token: int
    finish: str | None = None
    logprobs: Logprobs | None = None
    state: bytes = b""
    prompt: tuple[Logprobs, ...] = ()


class Hypothesis(msgspec.Struct, frozen=True, array_like=True):
    """An answer that a beam search found. ``finish`` is ``stop`` (the last of ``tokens`` is the stop id) or ``length``.

    ``logprobs`` has an entry for each token, where the request wants them; ``score`` is that of `BeamParams`.
    """

    tokens: tuple[int, ...]
    finish: str
    score: float
    logprobs: tuple[Logprobs, ...] = ()


class BeamOutput(msgspec.Struct, frozen=True, array_like=True):
    """All that a request with beams gives, and its end. There may be fewer answers than asked for, at least one."""

    request_id: int
    hypotheses: tuple[Hypothesis, ...]


class Started(msgspec.Struct, frozen=True, array_like=True):
    """A request that began to run, for the first time or again, and how many of its tokens were cached.

    ``running_s`` are the seconds from the moment when its first prefill chunk was scheduled to the making of this
    message, which comes with the results of that step.
    """

    request_id: int
    cached_tokens: int
    running_s: float = 0.0


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A request (or loading, where ``request_id`` is None) failed; ``error`` names a class of `llmd.api.errors`."""

    request_id: int | None
    error: str
    message: str
    hint: str = ""


class Output(msgspec.Struct, frozen=True, tag=True):
    """Tokens of one step, the requests whose prefill began in it, those that cannot go on, and searches that have ended."""

    tokens: tuple[TokenOutput, ...]
    started: tuple[Started, ...] = ()
    failed: tuple[Failed, ...] = ()
    beams: tuple[BeamOutput, ...] = ()


class TextVector(msgspec.Struct, frozen=True, array_like=True):
    """What the rows of a text were pooled to: little-endian float32, neither normalised nor cut."""

    request_id: int
    vector: bytes


class Embedded(msgspec.Struct, frozen=True, tag=True):
    """Vectors of the texts that ended with one step, and the texts that began in it."""

    vectors: tuple[TextVector, ...]
    started: tuple[Started, ...] = ()


class Report(msgspec.Struct, frozen=True, tag=True):
    """Counters of an engine since it was loaded, and its state now. Times in seconds.

    ``prompt_tokens`` were computed, ``cached_tokens`` found in the prefix cache instead. Used blocks are those that
    running sequences refer to.
    """

    steps: int
    running: int
    waiting: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    preemptions: int
    prefill_s: float
    decode_s: float
    kv_blocks_used: int
    kv_blocks_total: int


ToEngine = Load | Vocabulary | Submit | EmbedText | Cancel | GetReport | Shutdown
FromFront = Load | PackedVocabulary | Submit | EmbedText | Cancel | GetReport | Shutdown
"""`ToEngine` at its other end."""
FromEngine = Loading | Loaded | Output | Embedded | Failed | Report
