"""Every setting of llmd. A field ``max_ctx`` is the flag ``--max-ctx``, the variable ``LLMD_MAX_CTX`` and the
line ``max_ctx = …`` under ``[engine]`` of ``config.toml``; names are unique over all sections. What holds for each model
may also stand under ``[models."NAME"]``, for that model alone.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
ByteSize = Annotated[int, Meta(ge=0, extra={"unit": "bytes"})]
"""Written as an integer or with a unit: ``8GiB``, ``500MB``."""
Duration = Annotated[float, Meta(le=1e9, extra={"unit": "duration"})]
"""Seconds, written as a number or as ``90s``, ``10m``, ``1h30m``."""


class ServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the daemon listens and whom it answers.

    ``addr`` empty means the user's socket and 127.0.0.1:8642. ``allow_host`` and ``allow_origin`` add to the
    names of this machine. ``drain_s`` is how long running requests may go on after SIGTERM, ``ping_s`` the silence
    after which a stream gets a comment, ``buffer_tokens`` how far a stream may run ahead of a slow reader.

    ``no_auth`` serves the network without API keys, ``require_key`` demands one on loopback too (behind a proxy that
    others reach). ``tls_cert`` and ``tls_key`` are the files of the certificate for ``https://…`` addresses.

    ``max_queue`` sequences may wait for a model beside those that run; ``max_queue_tokens`` bounds the prompt tokens of
    all of them, ``max_queue_per_key`` those of one API key. A request must end within ``request_timeout_s``.

    ``max_connections`` clients may be connected. A connection ends where the headers or the body of a request do not come
    in time, where its client takes nothing of what is sent to it for ``write_timeout_s``, and where nothing is asked for
    ``idle_timeout_s``, which is longer than what proxies keep.
    ``keep_alive`` is how long a model stays loaded after its last request, negative for ever. ``max_memory`` bounds
    weights, KV pools and steps of all models together; None is what the machine had available when the daemon started.
    ``spare_engine`` keeps an engine process started ahead, so that the next model begins to load at once.

    ``tool_parser`` and ``reasoning_parser`` read calls and reasoning in answers: ``auto`` takes those that the model's
    template asks for, ``none`` leaves them text. ``otlp_endpoint`` is the URL of a collector of OpenTelemetry that gets a
    trace of each request, such as ``http://127.0.0.1:4318/v1/traces``.
    """

    addr: tuple[str, ...] = ()
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    no_auth: bool = False
    require_key: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    max_body: ByteSize = 64 << 20
    drain_s: Seconds = 30.0
    ping_s: Annotated[float, Meta(gt=0)] = 15.0
    buffer_tokens: Count = 1024
    max_queue: Annotated[int, Meta(ge=0)] = 512
    max_queue_tokens: Count | None = None
    max_queue_per_key: Count | None = None
    max_connections: Count = 4096
    headers_timeout_s: Annotated[float, Meta(gt=0)] = 30.0
    body_timeout_s: Annotated[float, Meta(gt=0)] = 300.0
    write_timeout_s: Annotated[float, Meta(gt=0)] = 300.0
    idle_timeout_s: Annotated[float, Meta(gt=0)] = 3630.0
    request_timeout_s: Annotated[float, Meta(gt=0)] | None = None
    keep_alive: Duration = 300.0
    max_memory: ByteSize | None = None
    spare_engine: bool = True
    tool_parser: str = "auto"
    reasoning_parser: str = "auto"
    otlp_endpoint: str | None = None


class EngineConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How models are loaded and run.

    ``split`` such as ``0-3=cpu,4-7=reference`` chains devices by inclusive layer numbers. ``kv_memory`` bounds
    the KV pools, ``kv_spool`` what a model that is unloaded when idle keeps of its prefix cache on disk, 0 for nothing;
    ``weight_cache`` what the weights of all models may take there as devices lay them out.
    ``max_ctx`` None is the longest window that the model states. ``prefill_chunk`` is how many prompt tokens a step
    carries at most. ``activations`` is how rows are held that quantised weights multiply: rounded to int8, or as they are. ``threads`` is how many threads compute on this machine's processors, None for what the device finds best.
    """

    device: str = "auto"
    split: str | None = None
    threads: Count | None = None
    max_ctx: Count | None = None
    slots: Count = 8
    prefill_chunk: Count = 256
    quant: str | None = None
    activations: Literal["int8", "f32"] = "int8"
    kv_dtype: Literal["f32", "f16", "bf16", "int8", "int4"] = "f16"
    kv_memory: ByteSize | None = None
    kv_spool: ByteSize = 1 << 30
    weight_cache: ByteSize = 16 << 30


class RegistryConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where models are pulled from: the address of a hub, None for ``HF_ENDPOINT``, else the public one."""

    hub: str | None = None


class ClientConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How commands find the daemon: ``host`` None tries the user's socket, the system's, then TCP.

    ``api_key`` is sent with every request. ``ca_file`` holds the certificates that vouch for an ``https://…`` daemon,
    where the system does not know them.

    ``timeout_s`` is how long it may be silent, a day at most: sockets cannot wait for ever longer times.
    """

    host: str | None = None
    api_key: str | None = None
    ca_file: str | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=86400)] = 600.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections."""

    server: ServerConfig = ServerConfig()
    engine: EngineConfig = EngineConfig()
    client: ClientConfig = ClientConfig()
    registry: RegistryConfig = RegistryConfig()


PER_MODEL = (*EngineConfig.__struct_fields__, "keep_alive", "tool_parser", "reasoning_parser")
"""The settings that a model may have for itself."""
