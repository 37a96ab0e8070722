"""docs/operations.md names every metric and every event, and no other."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from llmd.api.reports import Report
from llmd.server.request_record import RequestRecord
from llmd.server.telemetry.daemon_state import ModelState
from llmd.server.telemetry.exposition import exposition
from llmd.server.telemetry.metrics import Metrics
from tests.docs.page import CODE, DOCS, rows_with

PAGE = (DOCS / "operations.md").read_text()


def exposed() -> dict[str, str]:
    """Return the type of every metric by name, without the suffix of counters."""
    metrics = Metrics()
    metrics.end(RequestRecord(model="tiny", sequences=1), 200)
    state = ModelState("tiny", "loaded", 0, None, Report(0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 1))
    text = exposition("1", metrics, [state]).decode()
    families = text_string_to_metric_families(text)
    return {family.name.removesuffix("_total"): family.type for family in families}


def test_every_metric_has_its_line_and_every_line_its_metric() -> None:
    rows = rows_with(PAGE, "vLLM's name")
    documented = {
        name: row["type"]
        for row in rows
        for name in CODE.findall(row["name"]) + CODE.findall(row["vLLM's name"])
    }
    assert documented == exposed()


def test_every_field_of_a_request_is_named() -> None:
    (row,) = [row for row in rows_with(PAGE, "fields") if row["event"] == "`request`"]
    assert set(RequestRecord().as_event()) <= set(CODE.findall(row["fields"]))
