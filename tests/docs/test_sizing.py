"""The numbers of docs/sizing.md are those that llmd computes itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api import INTEGER_FORMATS
from llmd.api.kv import kv_head_bytes
from llmd.engine.composition import make_host
from llmd.host.plugin_host import PluginHost
from tests.docs.model_sizes import CONTEXT_LEN, MODELS, need_of, write_headers
from tests.docs.page import DOCS, rows_with

PAGE = (DOCS / "sizing.md").read_text()
QUANTS = (None, "q8", "q4", "q3", "q2")
DTYPES = ("f16", "int8", "int4")
TOKENS = 8 * CONTEXT_LEN
"""What the largest KV cache of eight slots holds."""
MANY = 1 << 50
KIB, GIB = 1 << 10, 1 << 30


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> PluginHost:
    return make_host(tmp_path_factory.mktemp("probes"))


def rows(column: str) -> dict[str, dict[str, str]]:
    """Return the rows of the table with this column by model."""
    return {row["model"]: dict(row) for row in rows_with(PAGE, column) if "model" in row}


def test_the_tables_have_every_model() -> None:
    assert list(rows("step")) == list(rows("16 GiB")) == list(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_takes_what_the_page_says(name: str, tmp_path: Path, host: PluginHost) -> None:
    folder = write_headers(MODELS[name], tmp_path / "model")
    needs = {quant: need_of(folder, host, quant=quant, kv_memory=MANY) for quant in QUANTS}
    caches = {dtype: need_of(folder, host, kv_dtype=dtype, kv_memory=MANY).kv_bytes for dtype in DTYPES}
    q4 = needs["q4"]
    computed = {quant or "bf16": f"{need.weight_bytes / GIB:.1f}" for quant, need in needs.items()}
    computed |= {"step": f"{q4.step_bytes / GIB:.2f}", "model": name}
    computed |= {f"KV {dtype}": f"{size / TOKENS / KIB:g}" for dtype, size in caches.items()}
    assert rows("step")[name] == computed
    assert rows("16 GiB")[name] == {"model": name} | {
        column: tokens_that_fit(int(column.split()[0]) * GIB - q4.weight_bytes - q4.step_bytes, caches["f16"])
        for column in rows("16 GiB")[name]
        if column != "model"
    }


def tokens_that_fit(left: int, kv_bytes: int) -> str:
    """Return how many tokens fit into half of the memory that is left, in whole thousands."""
    return f"{left // 2 * TOKENS // kv_bytes // 1000 * 1000:,}" if left > 0 else "–"


def test_bits_of_formats_are_those_of_the_code() -> None:
    shown = {row["format"].strip("`"): float(row["bits"]) for row in rows_with(PAGE, "bits")}
    plain = {"bf16": 16.0, "f16": 16.0}
    assert shown == {
        name: plain.get(name) or 8 * INTEGER_FORMATS[name].weight_bytes(4096) / 4096 for name in shown
    }


def test_bytes_of_a_head_follow_the_formulas_of_the_page() -> None:
    formulas = {row["KV cache"].strip("`"): row["bytes of a head"] for row in rows_with(PAGE, "KV cache")}
    assert formulas == {"f16": "2·d", "int8": "d + 2·⌈d/32⌉", "int4": "d/2 + 4·⌈d/32⌉"}
    for d in (64, 80, 128, 256):
        groups = -(-d // 32)
        assert kv_head_bytes(d, "f16") == 2 * d
        assert kv_head_bytes(d, "int8") == d + 2 * groups
        assert kv_head_bytes(d, "int4") == d // 2 + 4 * groups
