"""Spans as OpenTelemetry stores and exports them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from llmd.api.errors import ConfigError
from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.traces import DISTRIBUTIONS, Traces, open_traces
from tests.serving.http import send
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


def spans(record: RequestRecord) -> dict[str, ReadableSpan]:
    """Return the spans of a request by name."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    traces = Traces(provider)
    traces.tell(record)
    traces.close()
    return {span.name: span for span in kept.get_finished_spans()}


def answered(**fields: object) -> RequestRecord:
    """Return a request that arrived ten seconds ago, waited for one,
    prefilled for two and decoded for four.
    """
    came = time.monotonic() - 10
    record = RequestRecord(
        "req_1", started=came, route="/v1/completions", model="tiny", sequences=1, status=200
    )
    record.queue_s, record.begun, record.first_token, record.last_token = 1.0, came + 2, came + 4, came + 8
    record.prompt_tokens, record.cached_tokens, record.completion_tokens, record.finish = 20, 16, 5, "stop"
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def test_a_request_has_spans_of_what_it_did() -> None:
    found = spans(answered())
    assert set(found) == {"POST /v1/completions", "queue", "prefill", "decode"}
    request = found["POST /v1/completions"]
    lengths = {name: seconds(span) for name, span in found.items()}
    assert lengths == pytest.approx(
        {"queue": 1, "prefill": 2, "decode": 4, "POST /v1/completions": 10}, abs=0.5
    )
    assert request.kind is SpanKind.SERVER
    assert request.attributes is not None
    assert request.attributes["gen_ai.request.model"] == "tiny"
    assert request.attributes["gen_ai.usage.input_tokens"] == 20
    assert request.attributes["gen_ai.usage.output_tokens"] == 5
    assert request.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert request.status.status_code is StatusCode.UNSET
    for name in ("queue", "prefill", "decode"):
        parent = found[name].parent
        assert parent is not None
        assert parent.span_id == request.context.span_id


def test_a_request_is_part_of_the_trace_that_its_client_names() -> None:
    request = spans(answered(traceparent=TRACEPARENT))["POST /v1/completions"]
    assert request.parent is not None
    assert (request.context.trace_id, request.parent.span_id) == (int(TRACE_ID, 16), int(PARENT_ID, 16))
    alone = spans(answered(traceparent="nonsense"))["POST /v1/completions"]
    assert alone.parent is None


def test_a_request_that_did_not_run_has_no_phases_and_its_error() -> None:
    found = spans(answered(begun=0.0, first_token=0.0, status=503, error="queue_full", finish=""))
    assert set(found) == {"POST /v1/completions"}
    request = found["POST /v1/completions"]
    assert request.status.status_code is StatusCode.ERROR
    assert request.attributes is not None
    assert request.attributes["error.type"] == "queue_full"


@contextmanager
def collector(received: list[bytes]) -> Iterator[str]:
    """Run a collector that stores what it receives; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="collector")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        finally:
            server.shutdown()
            thread.join()


def test_a_collector_has_every_trace_when_the_daemon_has_ended(tmp_path: Path, probes: Path) -> None:
    received: list[bytes] = []
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    body = {"model": MODEL, "prompt": "Hello", "max_tokens": 3, "ignore_eos": True}
    with collector(received) as url, running_daemon(directories, otlp_endpoint=url) as daemon:
        assert send(daemon, "POST", "/v1/completions", body, {"traceparent": TRACEPARENT}).status == 200
        assert send(daemon, "GET", "/v1/models").status == 200
        daemon.shut_down()
        daemon.thread.join()
    sent = [ExportTraceServiceRequest.FromString(content) for content in received]
    found = {
        span.name: span for one in sent for r in one.resource_spans for s in r.scope_spans for span in s.spans
    }
    assert set(found) == {"POST /v1/completions", "queue", "prefill", "decode"}
    assert {span.trace_id.hex() for span in found.values()} == {TRACE_ID}


def test_what_is_no_url_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match="is not a URL") as refused:
        open_traces("localhost:4318", "0")
    assert "http://127.0.0.1:4318/v1/traces" in refused.value.hint


def test_without_opentelemetry_the_setting_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match="not installed") as refused:
        open_traces("http://127.0.0.1:4318/v1/traces", "0")
    extra = [
        line
        for line in metadata.requires("llmd-daemon") or ()
        if "extra == 'tracing'" in line.replace('"', "'")
    ]
    assert {line.partition(">")[0] for line in extra} == set(DISTRIBUTIONS)
    assert all(name in refused.value.hint for name in DISTRIBUTIONS)


def test_nothing_of_it_is_imported_without_the_setting() -> None:
    code = "import llmd.server.daemon, sys; sys.exit(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
