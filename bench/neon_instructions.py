"""Counts instructions per multiply-accumulate of NEON kernels: ``python -m bench.neon_instructions FOLDER``.

Prints a page that compares our units with llama.cpp's kernels. llama.cpp's sources are downloaded to FOLDER
with the pip of `.venv-bench`, and everything is built there. Needs ``aarch64-linux-gnu-g++`` and
``qemu-aarch64``, which traces each instruction but does not know its time.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.llama_cpp_source import ROOT, fetch, pinned_version

CSRC = ROOT / "plugins" / "backend_cpu" / "csrc"
COMPILER = "aarch64-linux-gnu-g++"
MARCH = {"neon": "armv8.2-a+dotprod", "neon_i8mm": "armv8.2-a+dotprod+i8mm"}
PRODUCTS = {
    "sdot": 16,
    "udot": 16,
    "usdot": 16,
    "smmla": 32,
    "ummla": 32,
    "usmmla": 32,
}  # 4 or 8 inputs for each of 4 results
INPUTS, OUTPUTS, MANY = 2048, 32, 64


class Pair(NamedTuple):
    """The symbol prefix of a unit's kernel for a format, and llama.cpp's kernel."""

    unit: str
    rows: int
    fmt: str
    ours: str
    theirs: str


ONE_LEVEL, TWO_LEVELS, MINIMUMS = "Scales<false, false>", "Scales<true, false>", "Scales<true, true>"
PAIRS = (
    Pair("neon", 1, "q4_0", f"neon_row<Codes<4, false, 0, false>, {ONE_LEVEL} >", "ggml_gemv_q4_0_4x4_q8_0"),
    Pair("neon", 1, "q4", "neon_scaled_rows<1>", "ggml_gemv_q4_0_4x4_q8_0"),
    Pair("neon", 1, "q8_0", f"neon_row<Codes<8, false, 0, false>, {ONE_LEVEL} >", "ggml_gemv_q8_0_4x4_q8_0"),
    Pair("neon", 1, "q4_k", f"neon_row<Codes<4, false, 0, false>, {MINIMUMS} >", "ggml_gemv_q4_K_8x4_q8_K"),
    Pair("neon", 1, "q6_k", f"neon_row<Codes<6, false, 0, false>, {TWO_LEVELS} >", "ggml_gemv_q6_K_8x4_q8_K"),
    *(
        Pair(unit, MANY, fmt, ours, f"ggml_gemm_{theirs}")
        for unit, width in (("neon", 4), ("neon_i8mm", 8))
        for fmt, ours, theirs in (
            ("q4_0", "neon_tile<false, false, 4>", f"q4_0_4x{width}_q8_0"),
            ("q4", "neon_tile<false, false, 4>", f"q4_0_4x{width}_q8_0"),
            ("q8_0", "neon_tile<false, false, 4>", f"q8_0_4x{width}_q8_0"),
            ("q4_k", f"integer_tile<{MINIMUMS}, (Operand)0, false, 4>", f"q4_K_8x{width}_q8_K"),
            ("q6_k", f"integer_tile<{TWO_LEVELS}, (Operand)0, false, 4>", f"q6_K_8x{width}_q8_K"),
        )
    ),
)


def main() -> None:
    """Build both sides for each unit and print a line for each pair."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    version = pinned_version((ROOT / "bench" / "requirements.txt").read_text())
    sources = next(folder.glob("*/vendor/llama.cpp"), None) or fetch(version, folder)
    for unit in MARCH:
        build(unit, sources, folder)
    print(f"llama.cpp of llama-cpp-python {version}, {run(COMPILER, '--version').splitlines()[0]}, -O3\n")
    print("| unit | rows | format | inner loop | llama.cpp's | executed | llama.cpp's | llama.cpp's kernel |")
    print("|---|---|---|---|---|---|---|---|")
    for unit, rows, fmt, ours, theirs in PAIRS:
        mine, other = folder / f"{unit}-ours", folder / f"{unit}-theirs"
        static = f"{inner_loop(mine, ours):.3f} | {inner_loop(other, theirs):.3f}"
        print(f"| {unit} | {rows} | {fmt} | {static} | {executed(mine, fmt, rows):.3f} |", end=" ")
        print(f"{executed(other, theirs, rows):.3f} | `{theirs}` |", flush=True)


def build(unit: str, llama_cpp: Path, folder: Path) -> None:
    """Build the programs ``UNIT-ours`` and ``UNIT-theirs``."""
    flags = ["-O3", "-ffp-contract=off", "-std=c++20", f"-march={MARCH[unit]}", "-static", "-w"]
    core = [CSRC / "arch" / f"{unit}.cpp", CSRC / "buffer.cpp", CSRC / "thread_pool.cpp"]
    own = [f"-I{CSRC}", f"-DLLMD_UNIT={unit}_kernels", "-pthread", "-o", f"{folder}/{unit}-ours"]
    run(COMPILER, *flags, ROOT / "bench" / "neon_ours.cpp", *core, *own)
    ggml = llama_cpp / "ggml"
    includes = [f"-I{ggml / place}" for place in ("include", "src", "src/ggml-cpu")]
    # The unresolved symbols are never called by these kernels.
    rest = [*includes, "-DNDEBUG", "-Wl,--unresolved-symbols=ignore-all", "-o", f"{folder}/{unit}-theirs"]
    kernels = ggml / "src" / "ggml-cpu" / "arch" / "arm" / "repack.cpp"
    run(COMPILER, *flags, ROOT / "bench" / "neon_llama_cpp.cpp", kernels, *rest)


def inner_loop(program: Path, symbol: str) -> float:
    """Return the fewest instructions per multiply-accumulate of the innermost loops that multiply."""
    listing = run("aarch64-linux-gnu-objdump", "-d", "-C", "--no-show-raw-insn", program)
    return min(count / macs for count, macs in innermost(listing, symbol))


def innermost(listing: str, symbol: str) -> Iterator[tuple[int, int]]:
    """Yield the instructions and multiply-accumulates of each innermost loop that multiplies."""
    (function,) = (
        part
        for part in listing.split("\n\n")
        if symbol in re.sub(r"llmd::(neon\w*::)?", "", part.split("\n")[0])
    )
    code = [
        (int(at, 16), op, rest)
        for at, op, rest in re.findall(r"^ *(\w+):\t([\w.]+)[ \t]*(.*)$", function, re.MULTILINE)
    ]
    places = {at: place for place, (at, _, _) in enumerate(code)}
    loops = []
    for place, (_, op, rest) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", rest) if op[0] in "bct" and not op.startswith("bl") else None
        first = places.get(int(target[1], 16), place + 1) if target else place + 1
        macs = sum(PRODUCTS.get(name, 0) for _, name, _ in code[first : place + 1])
        if macs:
            loops.append((first, place, macs))
    for first, last, macs in loops:
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b, _ in loops):
            yield last - first + 1, macs


def executed(program: Path, what: str, rows: int) -> float:
    """Return the instructions per multiply-accumulate of the whole op: the count of two runs minus that of
    one.
    """
    one, two = (traced(program, what, str(rows), times) for times in "12")
    return (two - one) / (INPUTS * OUTPUTS * rows)


def traced(program: Path, *arguments: str) -> int:
    """Return the number of instructions that a program executes."""
    options = ["-cpu", "max", "-singlestep", "-d", "exec,nochain", "-D", "/dev/stderr"]
    with subprocess.Popen(
        ["qemu-aarch64", *options, program, *arguments], stderr=subprocess.PIPE
    ) as emulated:
        assert emulated.stderr is not None
        count = sum(line.startswith(b"Trace ") for line in emulated.stderr)
    if emulated.returncode:
        sys.exit(f"{program} {' '.join(arguments)} ended with {emulated.returncode}")
    return count


def run(*command: str | Path) -> str:
    """Return the output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
