"""Map the tensor names of DeepSeek-V4, as its checkpoints have them, to those of GGUF files.

Source: ``conversion/deepseek.py`` and ``gguf-py/gguf/constants.py`` of github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

DEEPSEEK4 = "deepseek4"
"""The architecture of files."""

ENDS: Mapping[str, str] = {
    "embed.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "head.weight": "output.weight",
    **{f"hc_head_{part}": f"output_hc_{part}.weight" for part in ("fn", "base", "scale")},
}


def _compressor(module: str, stored: str) -> Iterator[tuple[str, str]]:
    yield f"{module}.ape", f"{stored}_ape.weight"
    yield f"{module}.norm.weight", f"{stored}_norm.weight"
    yield f"{module}.wkv.weight", f"{stored}_kv.weight"
    yield f"{module}.wgate.weight", f"{stored}_gate.weight"


MATRICES: Mapping[str, str] = {
    "attn.wq_a": "attn_q_a",
    "attn.q_norm": "attn_q_a_norm",
    "attn.wq_b": "attn_q_b",
    "attn.wkv": "attn_kv",
    "attn.kv_norm": "attn_kv_a_norm",
    "attn.wo_a": "attn_output_a",
    "attn.wo_b": "attn_output_b",
    "attn.indexer.wq_b": "indexer.attn_q_b",
    "attn.indexer.weights_proj": "indexer.proj",
    "attn_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "ffn.gate": "ffn_gate_inp",
    **{
        f"ffn.{module}.{name}": f"ffn_{side}_{end}"
        for module, end in (("experts.*", "exps"), ("shared_experts", "shexp"))
        for name, side in (("w1", "gate"), ("w2", "down"), ("w3", "up"))
    },
}
"""Modules of a layer whose tensors are called ``weight`` in both."""
LAYER: Mapping[str, str] = {
    **{f"{module}.weight": f"{stored}.weight" for module, stored in MATRICES.items()},
    **dict(_compressor("attn.compressor", "attn_compressor")),
    **dict(_compressor("attn.indexer.compressor", "indexer_compressor")),
    **{
        f"hc_{half}_{part}": f"hc_{half}_{part}.weight"
        for half in ("attn", "ffn")
        for part in ("fn", "base", "scale")
    },
    "attn.attn_sink": "attn_sinks.weight",
    "ffn.gate.bias": "exp_probs_b.bias",
    "ffn.gate.tid2eid": "ffn_gate_tid2eid.weight",
}

IN_LAYER = re.compile(r"layers\.(?P<layer>\d+)\.(?P<tensor>.+)")


def deepseek4_name(name: str) -> str:
    """Return the name of a plan's tensor in a file; unknown names stay."""
    found = IN_LAYER.fullmatch(name)
    if found is None:
        return ENDS.get(name, name)
    return f"blk.{found['layer']}.{LAYER.get(found['tensor'], found['tensor'])}"
