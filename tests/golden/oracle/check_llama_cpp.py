"""Compares llmd's logits with llama.cpp's on the same GGUF files, of every family that both read.

    python -m tests.golden.oracle.check_llama_cpp [NAME ...]

The files are laid out as llama.cpp's converter does it (tests/golden/gguf_layout.py);
tests/golden/test_conversion.py compares the files of `llmd convert` with them. All weights and the KV cache
are in float32. Exit status 1 where logits differ by more than `BOUND`. Nothing is written. Needs the build
of `make oracle-llama-cpp`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peer import run_peer
from llmd.engine.composition import device_opener, make_host
from tests.golden.engines import engine
from tests.golden.expected import nmse
from tests.golden.gguf_layout import architecture_of, write_gguf
from tests.golden.models.catalog import CASES
from tests.golden.models.hybrids import FULL, LINEAR
from tests.golden.models.latents import LITE_ROPE
from tests.golden.models.llama import YARN_ROPE
from tests.golden.models.tiny import TinyModel
from tests.golden.test_gguf import WITHOUT_GGUF

BOUND = 1e-6
"""NMSE. llama.cpp takes GELU from a table in float16."""
BOUND_OF_LATENTS = 1e-4
"""It computes parts of latent attention in float16."""

BETAS = {"beta_fast": 32.0, "beta_slow": 1.0}
REGULAR = {
    "rms_norm_eps": 1e-6,
    "num_hidden_layers": 4,
    "layer_types": [LINEAR, LINEAR, LINEAR, FULL],
    "linear_value_head_dim": 16,
}
RWKV7_HEADS = {"hidden_size": 128, "head_dim": 64, "norm_eps": 1e-5}
SLIDING = ["sliding_attention", "full_attention"]
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "llama-yarn-rope": {"rope_scaling": YARN_ROPE | BETAS},
    "qwen3-odd-head": {"attention_bias": False},
    "gemma2": {"query_pre_attn_scalar": 32},
    "gemma2-mqa": {"query_pre_attn_scalar": 18},
    "gemma3": {"query_pre_attn_scalar": 32, "sliding_window_pattern": 6},
    "gemma3-linear-rope": {"query_pre_attn_scalar": 20, "sliding_window_pattern": 6},
    "gemma4-odd": {"attention_bias": False, "final_logit_softcapping": 30.0},
    "gemma4-per-layer": {"num_hidden_layers": 6, "layer_types": SLIDING * 3},
    "olmoe": {"num_key_value_heads": 4},
    "gpt-oss": {"num_hidden_layers": 4, "layer_types": SLIDING * 2, "rope_scaling": None},
    "qwen3-next": REGULAR,
    "qwen3-next-all-experts": REGULAR | {"linear_value_head_dim": 7},
    "qwen3-5": REGULAR,
    "qwen3-5-tied": {"rms_norm_eps": 1e-6, "num_hidden_layers": 4, "layer_types": [LINEAR, FULL] * 2},
    "qwen3-5-moe": REGULAR,
    "deepseek-v2-lite": {"num_hidden_layers": 27, "rope_scaling": LITE_ROPE | BETAS},
    "deepseek-v2-groups": {"attention_bias": False, "n_group": 1, "topk_group": 1},
    "deepseek-v3": {"rope_scaling": LITE_ROPE | BETAS},
    "rwkv7": RWKV7_HEADS,
    "rwkv7-odd": RWKV7_HEADS | {"norm_bias": True, "tie_word_embeddings": False},
    "kimi-linear": {"rms_norm_eps": 1e-6},
    "kimi-linear-odd": {"rms_norm_eps": 1e-6},
    "granite-hybrid-moe": {"mamba_proj_bias": False, "mamba_conv_bias": True},
    "deepseek-v4-published": {"hc_mult": 4, "index_head_dim": 64},
    "deepseek-v4-some-experts": {"index_head_dim": 64},
}
"""What llama.cpp takes for granted of a family: numbers of YaRN, factors of scores, no biases, patterns of
layers, the epsilon of norms in the gated delta rule, which is 1e-6 in published models, heads of RWKV-7 with
64 elements, and DeepSeek-V4's four streams and index heads of a multiple of 64 elements."""

UNREAD: Mapping[str, str] = {
    "phi3-window": "llama.cpp computes Phi-3 without its window",
    "phi3-longrope-short": "its contexts have 256 tokens or more, too many for the divisors of short ones",
    "phi4-mini-short": "the same",
}
"""Cases that llama.cpp computes otherwise, and why. `WITHOUT_GGUF` has those that GGUF cannot express."""


def main() -> None:
    """Check the cases that are named, or all."""
    names = sys.argv[1:]
    failed = []
    with tempfile.TemporaryDirectory(prefix="llmd-agreement-") as folder:
        for case in CASES:
            if case.name in {*UNREAD, *WITHOUT_GGUF} or (names and case.name not in names):
                continue
            error = disagreement(as_llama_cpp_knows_it(case), Path(folder))
            print(f"{case.name:32}{error:.1e}", flush=True)
            if error > (BOUND_OF_LATENTS if "kv_lora_rank" in case.config else BOUND):
                failed.append(case.name)
    if failed:
        sys.exit(f"llmd and llama.cpp differ: {', '.join(failed)}")


def as_llama_cpp_knows_it(case: TinyModel) -> TinyModel:
    """Return a case in float32 with the fields in `CHANGED`."""
    config = {**case.config, **CHANGED.get(case.name, {})}
    config.pop("quantization_config", None)
    return replace(case, config=config, dtype="f32")


def disagreement(case: TinyModel, folder: Path) -> float:
    """Return the NMSE of llmd's logits from llama.cpp's after each token of the prompt."""
    architecture = architecture_of(case.config)
    vocabulary = {"tokenizer.ggml.model": "no_vocab", f"{architecture}.vocab_size": case.config["vocab_size"]}
    file = write_gguf(case, folder / f"{case.name}.gguf", changes=vocabulary)
    return nmse(ours(case, file, folder), theirs(case, file, folder))


def ours(case: TinyModel, file: Path, folder: Path) -> NDArray[np.float32]:
    """Return the logits of llmd's reference, float32 ``[len(prompt), vocab]``."""
    host = make_host(folder / "cache")
    with engine(case, file, host.architectures(), device_opener(host), device="reference") as core:
        return core.forward(np.array(case.prompt, np.int32))


def theirs(case: TinyModel, file: Path, folder: Path) -> NDArray[np.float32]:
    """Return llama.cpp's logits, in the same form."""
    path = folder / "logits.npy"
    run_peer("tests.golden.oracle.llama_cpp_logits", str(file), ",".join(map(str, case.prompt)), str(path))
    found: NDArray[np.float32] = np.load(path)
    return found


if __name__ == "__main__":
    main()
