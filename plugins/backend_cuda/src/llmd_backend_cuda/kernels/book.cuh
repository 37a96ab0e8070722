// Books: the 16 integers that codes of 4 bits stand for (llmd.api.IntegerFormat.book).
//
// Those of codes from 8 on have one sign, those of the others the opposite one, so that their absolute values
// are found by one instruction for four codes each, which gives 0 for the codes of the other half.
//
// Definition: BOOK 0 (none), 1 (iq4_nl, iq4_xs) or 2 (mxfp4).
#pragma once

#include "gpu.cuh"

#ifndef BOOK
#define BOOK 0
#endif

constexpr int ENTRY_ZERO = 128;  // subtracted from what entries_of returns

// The absolute values of codes 0 to 3, 4 to 7, 8 to 11 and 12 to 15, a byte each.
#if BOOK == 1
constexpr u32 ENTRIES[4] = {0x4153687f, 0x0a162331, 0x26190d01, 0x71594535};
#else
constexpr u32 ENTRIES[4] = {0x03020100, 0x0c080604, 0x03020100, 0x0c080604};
#endif
constexpr bool LOWER_IS_NEGATIVE = BOOK == 1;

// The entries of the four codes in the lower half of a word, plus ENTRY_ZERO, a byte each.
DEVICE u32 entries_of(u32 codes) {
    const u32 lower = pick_bytes_or_signs(ENTRIES[0], ENTRIES[1], codes);
    const u32 upper = pick_bytes_or_signs(ENTRIES[2], ENTRIES[3], codes ^ 0x8888);
    // Of each byte one is 0: nothing is carried to the next byte.
    return LOWER_IS_NEGATIVE ? 0x80808080u + upper - lower : 0x80808080u + lower - upper;
}
