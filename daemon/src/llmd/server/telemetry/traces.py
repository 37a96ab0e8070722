"""Exports requests as OpenTelemetry traces.

A trace is made when its request has ended, from the times in its record: a span for the request, with
child spans for queueing, prefill and decode. If the client sent a ``traceparent`` (W3C Trace Context),
they join its trace. Names follow OpenTelemetry's semantic conventions for HTTP and generative AI.
OpenTelemetry is imported only if a collector is configured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from llmd.api.errors import ConfigError
from llmd.server.request_record import RequestRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.util.types import Attributes

SERVICE = "llmd"
SECOND = 10**9
EXPORT_LIMIT_S = 2.0
"""How long to wait for a collector that does not answer, also when the daemon ends."""
DISTRIBUTIONS = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
"""The distributions that llmd-daemon's extra `tracing` requires."""


class Traces:
    """Makes the spans of requests. Use on the event loop only, except `close`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(SERVICE)

    def tell(self, record: RequestRecord) -> None:
        """Export the spans of a request that has just ended."""
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        shift = time.time_ns() - time.monotonic_ns()
        context = TraceContextTextMapPropagator().extract({"traceparent": record.traceparent})
        span = self._tracer.start_span(
            f"POST {record.route}",
            context=context,
            kind=SpanKind.SERVER,
            attributes=_attributes(record),
            start_time=_wall(record.started, shift),
        )
        if record.error or record.status >= 500:
            span.set_status(Status(StatusCode.ERROR, record.error))
        inside = set_span_in_context(span)
        for name, start, end in _phases(record):
            child = self._tracer.start_span(name, context=inside, start_time=_wall(start, shift))
            child.end(_wall(end, shift))
        span.end(time.time_ns())

    def close(self) -> None:
        """Send the remaining spans. Blocks."""
        self._provider.shutdown()


def open_traces(endpoint: str, version: str) -> Traces:
    """Return traces that a background thread sends to a collector in batches.

    Raises:
        ConfigError: the endpoint is not a URL, or OpenTelemetry is not installed.
    """
    if urlsplit(endpoint).scheme not in {"http", "https"}:
        raise ConfigError(
            f"otlp_endpoint {endpoint!r} is not a URL", hint="write it as http://127.0.0.1:4318/v1/traces"
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError(
            f"otlp_endpoint is set, but OpenTelemetry is not installed ({error.name} is missing)",
            hint=f"install {' and '.join(DISTRIBUTIONS)} into the environment of llmd, or remove otlp_endpoint",
        ) from error
    resource = Resource.create({"service.name": SERVICE, "service.version": version})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=EXPORT_LIMIT_S)))
    return Traces(provider)


def _attributes(record: RequestRecord) -> Attributes:
    return {
        "http.request.method": "POST",
        "http.route": record.route,
        "http.response.status_code": record.status,
        "gen_ai.request.model": record.model,
        "gen_ai.usage.input_tokens": record.prompt_tokens,
        "gen_ai.usage.output_tokens": record.completion_tokens,
        "llmd.cached_tokens": record.cached_tokens,
        "llmd.sequences": record.sequences,
        "llmd.request_id": record.request_id,
        **({"gen_ai.response.finish_reasons": (record.finish,)} if record.finish else {}),
        **({"error.type": record.error} if record.error else {}),
    }


def _phases(record: RequestRecord) -> Iterator[tuple[str, float, float]]:
    """Yield each phase that the request has reached, with its start and end."""
    if not record.begun:
        return
    yield "queue", record.begun - record.queue_s, record.begun
    if not record.first_token:
        return
    yield "prefill", record.begun, record.first_token
    yield "decode", record.first_token, record.last_token


def _wall(moment: float, shift: int) -> int:
    """Convert seconds of the event loop's clock to nanoseconds since the epoch."""
    return int(moment * SECOND) + shift
