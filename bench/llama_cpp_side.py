"""The peer's side: llama.cpp through llama-cpp-python, in an environment of its own (bench/requirements.txt).

Called as ``python -m bench.llama_cpp_side SHAPE GGUF THREADS``; answers requests as `bench.worker` describes.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path

import gguf
import llama_cpp
import numpy as np

from bench.checkpoint import draw_bf16
from bench.shapes import SHAPES, Shape
from bench.worker import Measured, answer_requests

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """The peer's name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_NAMES[rest.removesuffix('.weight')]}.weight"


def write_gguf(shape: Shape, path: Path) -> None:
    """Write the same random model with Q8_0 matrices, and a vocabulary of numbers."""
    writer = gguf.GGUFWriter(path.with_suffix(".part"), "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(shape.vocab)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<{i}>" for i in range(shape.vocab)])
    writer.add_token_scores([0.0] * shape.vocab)
    writer.add_token_types([gguf.TokenType.NORMAL] * shape.vocab)
    q8_0 = gguf.GGMLQuantizationType.Q8_0
    for index, (name, dims) in enumerate(shape.tensors().items()):
        values = (draw_bf16(index, dims).astype(np.uint32) << 16).view(np.float32)
        if len(dims) == 1:
            writer.add_tensor(gguf_name(name), values)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, q8_0), raw_dtype=q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".part").rename(path)


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
    if not path.exists():
        write_gguf(shape, path)
    peer = Peer(path, threads)
    answer_requests(peer.measure, peer.load_s)


if __name__ == "__main__":
    main()
