"""Computes logits with llama.cpp: ``python -m tests.golden.oracle.llama_cpp_logits GGUF TOKENS PATH``.

``TOKENS`` are ids with commas between them. The logits after each, float32 ``[tokens, vocab]``, are written
to a NumPy file. The KV cache is in float32 and attention is computed without blocks, so that nothing is
rounded to float16. Runs in the environment of bench/requirements.txt.
"""

from __future__ import annotations

import ctypes
import sys

import llama_cpp
import numpy as np


def main() -> None:
    """Evaluate the tokens as one batch."""
    path, tokens, target = sys.argv[1], [int(token) for token in sys.argv[2].split(",")], sys.argv[3]
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp cannot load {path}")
    vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    options = llama_cpp.llama_context_default_params()
    options.n_ctx = options.n_batch = options.n_ubatch = len(tokens)
    options.type_k = options.type_v = llama_cpp.GGML_TYPE_F32
    options.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama_cpp.llama_init_from_model(model, options)
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for row, token in enumerate(tokens):
        batch.token[row], batch.pos[row], batch.logits[row] = token, row, True
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
    status = llama_cpp.llama_decode(context, batch)
    if status:
        sys.exit(f"llama_decode returned {status}")
    rows = (llama_cpp.llama_get_logits_ith(context, row) for row in range(len(tokens)))
    np.save(
        target,
        np.stack(
            [np.array(ctypes.cast(row, ctypes.POINTER(ctypes.c_float * vocab)).contents) for row in rows]
        ),
    )


if __name__ == "__main__":
    main()
