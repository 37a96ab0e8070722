"""The peer's side: llama.cpp through llama-cpp-python, in an environment of its own (bench/requirements.txt).

Called as ``python -m bench.llama_cpp_side SHAPE GGUF THREADS``; answers requests as `bench.worker` describes.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path

import llama_cpp
import numpy as np

from bench.gguf_file import write_gguf
from bench.shapes import SHAPES
from bench.worker import Measured, answer_requests


class Peer:
    """A loaded model of the peer."""

    def __init__(self, path: Path, threads: int) -> None:
        llama_cpp.llama_backend_init()
        silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
        self._silent = silent  # the library calls it for as long as it lives
        began = time.perf_counter()
        options = llama_cpp.llama_model_default_params()
        # Its AMX kernels end the process on virtual machines that offer AMX (seen with 0.3.36); the other extra
        # buffers repack 4-bit types, which are not measured here, so nothing else is lost.
        options.use_extra_bufts = False
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx, context.n_batch, context.n_ubatch = 2048, 512, 512
        context.n_threads = context.n_threads_batch = threads
        context.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        self._context = llama_cpp.llama_init_from_model(self._model, context)
        self._batch = llama_cpp.llama_batch_init(2048, 0, 1)
        self._position = 0
        self.load_s = time.perf_counter() - began

    def measure(self, prompt: list[int], num_decode: int) -> Measured:
        """Prefill the prompt, then decode greedily."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), 1)
        self._position = 0
        began = time.perf_counter()
        token = self._decode(prompt)
        prefilled = time.perf_counter()
        for _ in range(num_decode):
            token = self._decode([token])
        return Measured(prefilled - began, time.perf_counter() - prefilled)

    def _decode(self, tokens: list[int]) -> int:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for row, token in enumerate(tokens):
            batch.token[row], batch.pos[row] = token, self._position + row
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
            batch.logits[row] = row == len(tokens) - 1
        self._position += len(tokens)
        status = llama_cpp.llama_decode(self._context, batch)
        assert status == 0, f"llama_decode returned {status}"
        vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        logits = llama_cpp.llama_get_logits_ith(self._context, -1)
        return int(np.ctypeslib.as_array(logits, (vocab,)).argmax())


def main() -> None:
    shape, path, threads = SHAPES[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
    write_gguf(shape, path)
    peer = Peer(path, threads)
    answer_requests(peer.measure, peer.load_s)


if __name__ == "__main__":
    main()
