"""The peer's side: llama.cpp through llama-cpp-python, in a separate environment (bench/requirements.txt).

Run as ``python -m bench.llama_cpp_side GGUF THREADS KV_TYPE``; answers requests as described in
`bench.worker`. ``LLAMA_CPP_LIB_PATH`` selects the build (`bench.llama_cpp_build`).
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from bench.worker import answer

BATCH = 2048
"""Tokens per call; the library splits them into batches of 512."""


class Peer:
    """A loaded model of the peer; see `bench.worker.Model`."""

    def __init__(self, path: str, threads: int, kv_type: str) -> None:
        llama_cpp.llama_backend_init()
        silent = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
        self._silent = silent  # keep a reference: the library may call it at any time
        began = time.perf_counter()
        self._model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        if not self._model:
            sys.exit(f"llama.cpp cannot load {path}")
        self._vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._threads = threads
        self._kv_type: int = getattr(llama_cpp, f"GGML_TYPE_{kv_type}")
        self._context: Any = None
        self._made = (0, 0)
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self._last: list[int] = []
        self._length = 0
        self.load_s = time.perf_counter() - began

    def open(self, prompts: list[list[int]], room: int) -> float:
        self._length = len(prompts[0])
        assert all(len(prompt) == self._length for prompt in prompts)
        self._prepare(len(prompts), self._length + room)
        began = time.perf_counter()
        rows = [
            (token, place, number, place == self._length - 1)
            for number, prompt in enumerate(prompts)
            for place, token in enumerate(prompt)
        ]
        self._last = [
            token for at in range(0, len(rows), BATCH) for token in self._run(rows[at : at + BATCH])
        ]
        return time.perf_counter() - began

    def decode(self, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            self._last = self._run(
                [(token, self._length, number, True) for number, token in enumerate(self._last)]
            )
            self._length += 1
        return time.perf_counter() - began

    def close(self) -> None:
        self._last = []

    def logits(self, tokens: list[int], path: str) -> None:
        self._prepare(1, len(tokens))
        found = np.empty((len(tokens), self._vocab), np.float32)
        for place, token in enumerate(tokens):
            self._run([(token, place, 0, True)])
            found[place] = self._row(0)
        np.save(path, found)

    def _prepare(self, num_sequences: int, length: int) -> None:
        """Prepare an empty context for sequences of a length; reuse the last one if it fits."""
        if self._context is not None and self._made == (num_sequences, length):
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
            return
        if self._context is not None:
            llama_cpp.llama_free(self._context)
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = num_sequences * (
            -(-length // 256) * 256
        )  # the library rounds each sequence up to this
        options.n_batch, options.n_seq_max = BATCH, num_sequences
        options.n_threads = options.n_threads_batch = self._threads
        options.type_k = options.type_v = self._kv_type
        options.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        self._context = llama_cpp.llama_init_from_model(self._model, options)
        assert self._context is not None
        self._made = (num_sequences, length)

    def _run(self, rows: Sequence[tuple[int, int, int, bool]]) -> list[int]:
        """Compute rows of (token, position, sequence, draws); return the most likely token of each row that
        draws.
        """
        batch = self._batch
        batch.n_tokens = len(rows)
        for row, (token, position, sequence, draws) in enumerate(rows):
            batch.token[row], batch.pos[row], batch.logits[row] = token, position, draws
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
        status = llama_cpp.llama_decode(self._context, batch)
        assert status == 0, f"llama_decode returned {status}"
        return [int(self._row(row).argmax()) for row, (*_, draws) in enumerate(rows) if draws]

    def _row(self, row: int) -> NDArray[np.float32]:
        logits = llama_cpp.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(logits, (self._vocab,))


def main() -> None:
    peer = Peer(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    build = llama_cpp.llama_print_system_info().decode()
    answer(peer, {"load_s": peer.load_s, "version": llama_cpp.__version__, "build": build})


if __name__ == "__main__":
    main()
