"""Loops are found in objdump listings."""

from __future__ import annotations

from bench.neon_instructions import innermost

LISTING = """
unit.o:     file format elf64-littleaarch64


Disassembly of section .text:

0000000000000000 <llmd::neon::setup(int)>:
   0:\tsdot\tv0.4s, v1.16b, v2.16b
   4:\tret

0000000000000010 <llmd::neon::tile<llmd::neon::Scales<true, false>, 4>(int)>:
  10:\tmov\tx0, #0x0
  14:\tnop
  18:\tldp\tq1, q2, [x1]
  1c:\tsdot\tv0.4s, v1.16b, v2.4b[0]
  20:\tsmmla\tv3.4s, v1.16b, v2.16b
  24:\tcmp\tx0, x2
  28:\tb.ne\t18 <llmd::neon::tile<llmd::neon::Scales<true, false>, 4>(int)+0x8>  // b.any
  2c:\tadd\tx3, x3, #0x1
  30:\tcbnz\tx3, 14 <llmd::neon::tile<llmd::neon::Scales<true, false>, 4>(int)+0x4>
  34:\tldr\tq4, [x4], #16
  38:\tb.gt\t34 <llmd::neon::tile<llmd::neon::Scales<true, false>, 4>(int)+0x24>
  3c:\tret
"""


def test_the_innermost_loop_that_multiplies_counts() -> None:
    assert list(innermost(LISTING, "tile<Scales<true, false>, 4>")) == [(5, 16 + 32)]


def test_a_function_without_loops_has_none() -> None:
    assert list(innermost(LISTING, "setup(int)")) == []
