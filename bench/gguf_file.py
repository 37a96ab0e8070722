"""Quantises a GGUF file to a llama.cpp type: ``python -m bench.gguf_file PLAIN PATH TYPE``.

llama.cpp's quantiser converts it to ``Q4_0``, ``Q4_K_M``, ``Q8_0``, … with its usual choice of a type for
each tensor. Runs in the peer's environment (bench/requirements.txt).
"""

from __future__ import annotations

import sys
from pathlib import Path

import llama_cpp


def main() -> None:
    plain, path, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    part = path.with_suffix(".part")
    status = llama_cpp.llama_model_quantize(str(plain).encode(), str(part).encode(), options)
    if status:
        sys.exit(f"llama.cpp could not quantise {plain} to {kind}: status {status}")
    part.rename(path)


if __name__ == "__main__":
    main()
