"""Every setting of llmd.

A field ``max_ctx`` is the flag ``--max-ctx``, the variable ``LLMD_MAX_CTX`` and the line ``max_ctx = …`` in
the table ``[engine]`` of ``config.toml``. Names are unique over all tables. Settings of `PER_MODEL` may also
be in a table ``[models."NAME"]``, for that model only.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from llmd.api.integer_formats import OWN_FORMATS

Seconds = Annotated[float, Meta(ge=0)]
PositiveSeconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
ByteSize = Annotated[int, Meta(ge=0, extra={"unit": "bytes", "form": "a number of bytes, such as 8GiB"})]
"""Written as an integer or with a unit: ``8GiB``, ``500MB``."""
Duration = Annotated[
    float, Meta(le=1e9, extra={"unit": "duration", "form": "seconds or a duration such as 1h30m"})
]
"""Seconds, written as a number or as ``90s``, ``10m``, ``1h30m``."""
AS_STORED = "none"
QuantFormat = Annotated[str, Meta(extra={"choices": (*OWN_FORMATS, AS_STORED)})]
"""One of many names. Backends need not have it: they take the next of their own, so no plugin adds a name."""

_PART = r"(?:embed|head|\d+(?:\.(?:mixer|ffn))?)"
STAGE = rf"({_PART})(?:-({_PART}))?=([^,;=\s]+)"
"""The parts of the model that a device computes, such as ``0-3=cpu``: first part, last part, device."""
STREAMED = "/stream"
"""Follows the device of parts whose weights stay in main memory."""
Split = Annotated[
    str,
    Meta(
        pattern=rf"^\s*{STAGE}\s*(,\s*{STAGE}\s*)*$", extra={"form": "stages such as 0-3=cpu,4-7=reference"}
    ),
]

BUDGET = r"([^,;=\s]+)=(\d+(?:\.\d+)?\s*(?:[KMGT](?:i?B)?|B)?)"
"""Most bytes that models may take of a device's memory, such as ``cuda:0=20GiB``: device, bytes."""
MemoryBudgets = Annotated[
    str,
    Meta(
        pattern=rf"^\s*{BUDGET}\s*(,\s*{BUDGET}\s*)*$",
        extra={"form": "sizes such as cuda:0=20GiB,cuda:1=8GiB"},
    ),
]


class ListenConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the daemon listens, and who may use it."""

    addr: tuple[str, ...] = ()
    """Addresses to listen on; empty: the user's socket and 127.0.0.1:8642."""
    user_socket: bool = True
    """Listen on the user's socket too, unless ``addr`` names another Unix socket or another daemon has it."""
    allow_host: tuple[str, ...] = ()
    """Names that the ``Host`` header may have, besides those of this machine."""
    allow_origin: tuple[str, ...] = ()
    """Origins of web pages that may use the daemon, besides pages of this machine."""
    no_auth: bool = False
    """Serve the network without API keys."""
    require_key: bool = False
    """Require an API key on loopback too, for a daemon behind a proxy."""
    tls_cert: str | None = None
    """File of the certificate for ``https://…`` addresses."""
    tls_key: str | None = None
    """File of the certificate's private key."""


class LimitsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How large requests may be, and how long connections, requests and the shutdown may take."""

    max_body: ByteSize = 64 << 20
    """Size of a request body."""
    max_connections: Count = 4096
    """Clients that may be connected at a time."""
    headers_timeout_s: PositiveSeconds = 30.0
    """Time for the headers of a request to arrive."""
    body_timeout_s: PositiveSeconds = 300.0
    """Time for the body of a request to arrive."""
    write_timeout_s: PositiveSeconds = 300.0
    """Time for a client to read something of what is sent to it."""
    idle_timeout_s: PositiveSeconds = 3630.0
    """Time for the next request of a connection, longer than proxies keep one open."""
    request_timeout_s: PositiveSeconds | None = None
    """Time for a request to be answered completely; not set: no limit."""
    ping_s: PositiveSeconds = 15.0
    """Silence after which a stream gets a comment, so that nobody takes it for dead."""
    drain_s: Seconds = 30.0
    """Time that running requests get after SIGTERM."""
    engine_timeout_s: Seconds = 60.0
    """Time after which an engine without progress is restarted, or more if its steps take long; 0: never."""
    exit_idle_s: PositiveSeconds | None = None
    """Time without requests and without loaded models after which a daemon ends that was started by its
    sockets; not set: it does not end."""


class QueueConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may wait for a model."""

    max_queue: Annotated[int, Meta(ge=0)] = 512
    """Sequences that may wait for one model, besides those that run."""
    max_queue_tokens: Count | None = None
    """Prompt tokens of all sequences of one model; not set: no limit."""
    max_queue_per_key: Count | None = None
    """Sequences of one API key that may run or wait for one model; not set: no limit."""
    buffer_tokens: Count = 1024
    """Tokens that an answer may be ahead of a slow reader before it is paused."""


class ModelsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The names of models, how long they stay loaded, and how their answers are read."""

    load: tuple[str, ...] = ()
    """Models that are loaded at the start and stay loaded; those that ``llmd serve`` names replace them."""
    alias: tuple[str, ...] = ()
    """Other names of models, as ``NAME=MODEL``, or as ``NAME`` if only one model is served."""
    lora: tuple[str, ...] = ()
    """LoRA adapters of a model, as ``NAME=DIR`` or ``NAME=FILE.gguf``: requests choose one by its name. Those
    set for all models are for the only one that is served."""
    keep_alive: Duration = 300.0
    """How long a model stays loaded after its last request; negative: forever. A model that is loaded at the
    start stays loaded, unless the flag ``--keep-alive`` or its own table says how long."""
    max_memory: ByteSize | None = None
    """Main memory for weights, KV pools and step buffers of all models together; not set: what is free at the
    start. The memory of other devices is limited by its size."""
    memory_budget: MemoryBudgets | None = None
    """Most bytes of the memory of devices, of all models together, such as ``cuda:0=20GiB,cuda:1=8GiB``. Main
    memory is limited by ``max_memory``."""
    spare_engine: bool = True
    """Keep an engine process started, so that the next model begins to load at once."""
    tool_parser: str = "auto"
    """What reads tool calls: ``auto`` chooses by the model's template, ``none`` leaves them as text."""
    reasoning_parser: str = "auto"
    """What reads reasoning in answers, with the same values."""


class ServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[server]``; the settings of its parts are all in this one table."""

    listen: ListenConfig = ListenConfig()
    limits: LimitsConfig = LimitsConfig()
    queue: QueueConfig = QueueConfig()
    models: ModelsConfig = ModelsConfig()
    log_level: Literal["error", "warning", "info", "debug"] = "error"
    """The least severe events that the daemon logs; ``-v`` and ``-vv`` may add others."""
    otlp_endpoint: str | None = None
    """URL of an OpenTelemetry collector that gets a trace of each request, such as ``http://127.0.0.1:4318/v1/traces``."""


class EngineConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How models are loaded and run."""

    device: str = "auto"
    """The device that runs models, by its name or the UUID of its card; several with commas: those that may;
    ``auto``: all may. Of these, a model runs where it answers fastest."""
    gpu_layers: Annotated[int, Meta(ge=0)] | None = None
    """Layers that run on graphics cards, counted from the last one; the others run in main memory. Not set:
    as many as are fastest."""
    cpu_experts: Annotated[int, Meta(ge=0)] | None = None
    """Layers whose feed-forward parts stay in main memory, counted from the first that has experts; graphics
    cards get everything else of the layers. Not set: as many as are fastest."""
    split: Split | None = None
    """Devices by inclusive layer numbers, such as ``0-3=cpu,4-7=reference``; also by the names ``embed`` and
    ``head``, and by parts of a layer, ``3.mixer`` and ``3.ffn``. With ``/stream`` after the device, weights
    stay in main memory and are copied in each step."""
    threads: Count | None = None
    """Threads that compute on this machine's processors; not set: the device chooses."""
    max_ctx: Count | None = None
    """Longest prompt and answer in tokens; not set: the model's maximum."""
    slots: Count = 8
    """Sequences that run at a time."""
    prefill_chunk: Count = 256
    """Most prompt tokens in one step."""
    quant: QuantFormat | None = None
    """Format that weights are quantised to, or ``none``: as they are stored. Set for all models in a file or
    variable, it does not apply to models whose weights are stored quantised."""
    activations: Literal["int8", "f32", "f16", "bf16"] | None = None
    """Format of the rows that weights are multiplied with; not set: the device's choice. ``int8`` applies to
    quantised weights only."""
    kv_dtype: Literal["f32", "f16", "bf16", "int8", "int4"] = "f16"
    """Format of the KV cache."""
    kv_memory: ByteSize | None = None
    """Size of the KV pools on all devices together; not set: half of what each has free after loading."""
    kv_spool: ByteSize = 1 << 30
    """How much of its prefix cache a model keeps on disk when it is unloaded while idle; 0: nothing."""
    weight_cache: ByteSize = 16 << 30
    """Disk space for the weights of all models in the layout of their devices."""


class RegistryConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where models are pulled from."""

    hub: str | None = None
    """Address of a hub; not set: ``HF_ENDPOINT``, else the public hub."""


class ClientConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How commands find the daemon."""

    host: str | None = None
    """Address of the daemon; not set: the user's socket, the system's, then ``addr`` (127.0.0.1:8642)."""
    api_key: str | None = None
    """Sent with every request."""
    ca_file: str | None = None
    """Certificates that sign that of an ``https://…`` daemon, if the system does not know them."""
    timeout_s: Annotated[float, Meta(gt=0, le=86400)] = 600.0
    """How long the daemon may be silent; at most a day, because sockets cannot wait any longer."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All tables of ``config.toml``."""

    server: ServerConfig = ServerConfig()
    engine: EngineConfig = EngineConfig()
    client: ClientConfig = ClientConfig()
    registry: RegistryConfig = RegistryConfig()


PER_MODEL = (*EngineConfig.__struct_fields__, "lora", "keep_alive", "tool_parser", "reasoning_parser")
"""The settings that may be different for one model."""
