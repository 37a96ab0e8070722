"""Messages between the front and an engine process: token ids only, msgpack frames on a socket pair.

The front sends `Load` once, `Vocabulary` before the first grammar, then `Submit` (`EmbedText` to an embedding
model), `Cancel`, `GetReport`, `GetBlocks` and `Shutdown`. The engine sends `Loading` while it loads, then
`Loaded` or `Failed`, then one `Output` (`Embedded`) per step, `Failed` for requests it cannot run, a `Report`
for each `GetReport`, and `Blocks` for each `GetBlocks`. If a device fails, it sends `Loading` and
`Replanned`, or `Failed` and ends. A frame is a 4-byte little-endian length and one msgpack map tagged by
``type``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import structs

from llmd.api.device import HOST_MEMORY, DeviceOptions
from llmd.api.embedding import Embedding
from llmd.api.expert_ops import used_share
from llmd.api.kv import KVDtype
from llmd.api.program import ActivationDtype
from llmd.api.reports import Blocks, GetBlocks, GetReport, Report
from llmd.api.results import Embedded, Failed, Output
from llmd.api.samplers import SamplingParams
from llmd.api.tensors import Format

CHUNK_LEN = 256
"""Default of the most prefill tokens in one step."""


class StopParams(msgspec.Struct, frozen=True):
    """When a sequence ends."""

    max_tokens: int
    """Most new tokens."""
    stop_ids: tuple[int, ...] = ()
    """Each ends the sequence once it has more than ``min_tokens`` new tokens."""
    min_tokens: int = 0


GrammarKind = Literal["json_schema", "json_object", "regex", "choice", "lark", "gbnf"]


class Grammar(msgspec.Struct, frozen=True):
    """What the whole text of an answer must match."""

    kind: GrammarKind
    text: str = ""
    """A JSON schema, a JSON list of texts (``choice``), nothing (``json_object``), a regular expression, a
    Lark grammar (``llmd.grammar`` documents the dialect) or a GBNF grammar of llama.cpp."""


class BeamParams(msgspec.Struct, frozen=True):
    """Beam search instead of sampling.

    An answer's score is the sum of its tokens' log-probabilities, after edits and at temperature 1, divided
    by its number of tokens to the power of ``length_penalty``.
    """

    width: int
    """Number of beams."""
    best: int = 1
    """Number of answers returned, best first."""
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    """When the search ends, given ``width`` finished answers. True: at once. False: when no beam's current
    score beats the worst of them. ``never``: when no score that a beam could still reach beats it."""


class StageSpec(msgspec.Struct, frozen=True):
    """Consecutive parts of the model on one device.

    Names are ``embed``, ``head`` (all that follows the layers), a layer such as ``3``, and its parts
    ``3.mixer`` and ``3.ffn``. If the first stage begins with layer 0, it also embeds; if the last stage ends
    with the last layer, it also has the head.
    """

    device: str
    first: str
    """The first part."""
    last: str
    """The last part; it may be the first."""
    streamed: bool = False
    """Whether the weights of its layers stay in main memory, and are copied to the device in each step."""


class Load(msgspec.Struct, frozen=True, tag=True):
    """Load a model and get ready to serve it."""

    directory: str
    """Model directory."""
    device: str = "auto"
    """Where the model runs if ``stages`` is empty: a device, several with commas to choose from, or ``auto``,
    all usable ones."""
    stages: tuple[StageSpec, ...] = ()
    """Devices and their parts, in order; empty: as ``device`` says."""
    gpu_layers: int | None = None
    """Layers that run on devices with a memory of their own, counted from the last one; the others run in
    main memory. None: the choice is free."""
    cpu_experts: int | None = None
    """Layers whose feed-forward parts are in main memory, counted from the first that has experts; everything
    else of layers is on devices with a memory of their own. None: the choice is free."""
    context_len: int | None = None
    """Tokens of the context window; None: the longest that the model states."""
    slots: int = 8
    """Most sequences that run at once."""
    chunk_len: int = CHUNK_LEN
    """Most prefill tokens in a step. Larger: prompts finish sooner, and other requests wait longer for
    them."""
    quant: Format | None = None
    """Format to quantise weights to; None: keep the formats of the checkpoint."""
    quant_is_default: bool = False
    """Whether ``quant`` is for all models: then it is ignored if weights are stored quantised. Otherwise that
    is an error."""
    activations: ActivationDtype | None = None
    """`Program.activations`; None: each device's own choice. A float type is `Program.precision` too."""
    kv_dtype: KVDtype = "f16"
    """Type of the KV cache."""
    kv_memory: int | None = None
    """Most bytes for the KV pools of all devices together; None: half of what is left of each memory that has
    no limit."""
    expert_share: float = 1.0
    """Share of the matrices of experts that is in memory, on devices that can read the others when a step
    uses them (`llmd.api.features.EXPERT_CACHE`). Devices with a memory of their own do so if they have the
    whole model."""
    kv_spool: int = 0
    """Most bytes of the prefix cache to keep on disk while the model is unloaded; 0: none."""
    threads: int | None = None
    """`DeviceOptions.threads` of every device whose own options leave it open."""
    weight_cache: int = 0
    """Most bytes of packed weights that devices keep on disk, for all models together."""
    device_options: Mapping[str, DeviceOptions] = {}
    """Options by name of the device; the other devices have default options."""
    adapters: Mapping[str, str] = {}
    """Directories of LoRA adapters, by the name that requests choose them by (`Submit.adapter`)."""

    @property
    def division(self) -> str:
        """The setting that divides layers between main memory and cards, as a flag; empty: none does."""
        if self.cpu_experts is not None:
            return f"--cpu-experts {self.cpu_experts}"
        return "" if self.gpu_layers is None else f"--gpu-layers {self.gpu_layers}"

    def undivided(self) -> Load:
        """Return this load without the setting that divides layers."""
        return structs.replace(self, gpu_layers=None, cpu_experts=None)

    def options_of(self, device: str) -> DeviceOptions:
        """Return the options of a device."""
        options = self.device_options.get(device, DeviceOptions())
        return options if options.threads is not None else structs.replace(options, threads=self.threads)

    def within(self, memory_bytes: Mapping[str, int]) -> Load:
        """Return this load with limits of `DeviceOptions.memory_bytes` by device; lower ones stay."""
        limited = dict(self.device_options)
        for device, limit in memory_bytes.items():
            options = limited.get(device, DeviceOptions())
            least = limit if options.memory_bytes is None else min(limit, options.memory_bytes)
            limited[device] = structs.replace(options, memory_bytes=least)
        return structs.replace(self, device_options=limited)


class Vocabulary(msgspec.Struct, frozen=True, tag=True):
    """The bytes of the model's tokens. Only grammars need it; it is sent before the first of them."""

    tokens: tuple[bytes, ...]
    """Bytes of each id from 0; empty for an unused id."""
    special_ids: tuple[int, ...] = ()
    """Control tokens: no other tokens can form their text."""
    end_ids: tuple[int, ...] = ()
    """Tokens that end an answer."""


class PackedVocabulary(msgspec.Struct, frozen=True, tag=Vocabulary.__name__):
    """A `Vocabulary` as an engine receives it: tokens stay packed, since the engine only forwards them."""

    tokens: msgspec.Raw
    special_ids: tuple[int, ...] = ()
    end_ids: tuple[int, ...] = ()


class Submit(msgspec.Struct, frozen=True, tag=True):
    """Run a request."""

    request_id: int
    prompt: tuple[int, ...]
    sampling: SamplingParams
    stop: StopParams
    output: tuple[int, ...] = ()
    """Tokens that an earlier engine already made for the request; they are not sent again."""
    priority: int = 0
    """Lower numbers run first."""
    cache_salt: str = ""
    """Only requests with an equal salt, and the same adapter, share cached prefixes."""
    adapter: str = ""
    """Name of the adapter that the sequences use (`Load.adapters`); empty: none."""
    grammar: Grammar | None = None
    """The answer must match it; stop ids are only drawn once the match is complete."""
    state: bytes = b""
    """`TokenOutput.state` of the last token of ``output``."""
    prompt_logprobs: int | None = None
    """Number of alternatives for each prompt token but the first; None: no prompt logprobs. They are sent
    with the first token, and bypass the prefix cache. Only then may ``stop.max_tokens`` be 0: that token is
    then unused."""
    beams: BeamParams | None = None
    """Search for the answers and send them whole, in a `BeamOutput`; no ``output``, no
    ``prompt_logprobs``."""


class EmbedText(msgspec.Struct, frozen=True, tag=True):
    """Embed one text."""

    request_id: int
    tokens: tuple[int, ...]
    group: int = 0
    """Texts of one group run in order; groups take turns."""
    second_at: int | None = None
    """Index of the first token of a second text, of token type 1 (`llmd.api.step.Step.token_types`)."""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Drop a request; nothing more is sent for it. Unknown ids are ignored."""

    request_id: int


class Shutdown(msgspec.Struct, frozen=True, tag=True):
    """End the process; running requests are dropped."""

    spool: bool = False
    """Write the prefix cache to disk first; the next message interrupts this."""


class Loading(msgspec.Struct, frozen=True, tag=True):
    """Progress of a load: ``done`` of ``total`` bytes of the named ``phase``."""

    phase: str
    done: int
    total: int


class ExpertReads(msgspec.Struct, frozen=True):
    """The experts of the layers of a stage that have equally many, of which a row uses equally many."""

    num_bytes: int
    """Bytes of all of them."""
    num_experts: int
    """Experts of a layer."""
    top_k: int
    """Experts that a row uses."""

    def bytes_read(self, rows: float) -> float:
        """Return the bytes that a step of ``rows`` rows is expected to read (`used_share`)."""
        return self.num_bytes * used_share(self.num_experts, self.top_k, rows)


class StageReport(msgspec.Struct, frozen=True):
    """A stage as it was built."""

    device: str
    parts: str
    """What it has of the model, for people, such as ``layers 0-3``."""
    weight_bytes: int
    kv_bytes: int
    step_bytes: int
    """Buffers of steps in flight."""
    memory_id: str = HOST_MEMORY
    """Memory that holds these bytes, as `DeviceInfo.memory_id`."""
    first: int = 0
    last: int = 0
    """Layers ``[first, last)`` that it has parts of; the same number if it has none."""
    read_bytes: int = 0
    """Bytes of the weights that every step reads: all but experts, and tables of which it reads single
    rows."""
    experts: tuple[ExpertReads, ...] = ()
    """What steps read of experts."""
    part_names: tuple[str, ...] = ()
    """Its parts in order, as `StageSpec` names them; a layer that is not complete by its parts."""
    streamed_bytes: int = 0
    """Weights in main memory that are copied to the device in each step."""
    absent_bytes: int = 0
    """Experts for which there is no room: steps that use them read them from the model's files, or from main
    memory."""
    main_memory_expert_bytes: int = 0
    """Experts in main memory, of which the device has only some in its own."""

    @property
    def size_bytes(self) -> int:
        """Bytes in use on the device."""
        return self.weight_bytes + self.kv_bytes + self.step_bytes

    def bytes_read(self, rows: float) -> float:
        """Return the bytes of weights that a step of ``rows`` rows is expected to read."""
        return self.read_bytes + sum(one.bytes_read(rows) for one in self.experts)


class MemoryReport(msgspec.Struct, frozen=True):
    """What a load took of the memory of a card, by its driver."""

    devices: tuple[str, ...]
    """Devices of the model that compute in this memory."""
    planned_bytes: int
    """Weights, KV pools and step buffers of the stages."""
    taken_bytes: int
    """What is free less than before the load. Other programs may have changed it meanwhile."""


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The engine accepts requests."""

    architecture: str
    vocab_size: int
    context_len: int
    max_context_len: int
    """The longest context that the checkpoint states."""
    num_parameters: int
    formats: tuple[Format, ...]
    """Weight formats in use."""
    stages: tuple[StageReport, ...]
    kv_tokens: int | None
    """Capacity of the smallest KV pool in tokens; None: the model keeps no KV cache."""
    load_s: float
    """Seconds that the load took."""
    notices: tuple[str, ...] = ()
    """Conversions and limits that users should know of."""
    embedding: Embedding | None = None
    """Set if the model embeds instead of generating."""
    memories: tuple[MemoryReport, ...] = ()
    """The memories of cards; none after a replan."""

    @property
    def window(self) -> int:
        """Most tokens of prompt and answer together: the context length, or the KV capacity if less."""
        return self.context_len if self.kv_tokens is None else min(self.context_len, self.kv_tokens)

    @property
    def longer_window(self) -> str:
        """What gives the model a longer window, for hints; empty: the checkpoint has no longer one."""
        if self.kv_tokens is not None and self.kv_tokens < self.context_len:
            return "serve the model with more --kv-memory"
        if self.context_len < self.max_context_len:
            return f"serve the model with a larger --max-ctx (at most {self.max_context_len})"
        return ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Each device that has a stage, in the order of the stages."""
        return tuple(dict.fromkeys(stage.device for stage in self.stages))

    @property
    def size_bytes(self) -> int:
        """Bytes in use on all devices."""
        return sum(stage.size_bytes for stage in self.stages)


class Replanned(msgspec.Struct, frozen=True, tag=True):
    """The engine has placed its model again after a device failed.

    Requests go on with the same tokens, except those that a `Failed` follows for; the prefix cache is empty.
    """

    epoch: int
    """Number of times that this engine has placed its model again."""
    stages: tuple[StageReport, ...]
    """As in `Loaded`, like all that follow."""
    kv_tokens: int | None
    formats: tuple[Format, ...]
    notices: tuple[str, ...] = ()


ToEngine = Load | Vocabulary | Submit | EmbedText | Cancel | GetReport | GetBlocks | Shutdown
"""What the front sends to an engine."""
FromFront = Load | PackedVocabulary | Submit | EmbedText | Cancel | GetReport | GetBlocks | Shutdown
"""`ToEngine` as the engine decodes it."""
FromEngine = Loading | Loaded | Replanned | Output | Embedded | Failed | Report | Blocks
