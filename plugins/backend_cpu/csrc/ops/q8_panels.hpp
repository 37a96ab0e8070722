// Int8 weights as the kernels like them: one linear stream of panels.
//
//   panel p holds output rows 16 p .. 16 p + 15, zero rows beyond the matrix; for each group of inputs
//     16 x f16 scale                                                              32 bytes
//     records of 4 inputs: byte 4 r + j = q[16 p + r][4 i + j] + kWeightBias      64 bytes each
//   a group whose length is no multiple of 4 (the last one) ends with zero inputs
//
//   from   measured in two-socket and desktop CPUs alike: scales inline keep a thread on one stream, which
//   the
//          hardware prefetcher follows; 16 rows by 4 inputs is one register of VNNI, two of AVX2, four of
//          NEON

#pragma once

#include "q8_layout.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE void pack_record(const Int8Matrix& from, int64_t first_row, int64_t input, int64_t inputs,
                             uint8_t* to) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
        for (int64_t j = 0; j < 4; ++j) {
            const bool inside = first_row + r < from.rows && j < inputs;
            const int q = inside ? from.data[(first_row + r) * from.cols + input + j] : 0;
            to[4 * r + j] = static_cast<uint8_t>(q + kWeightBias);
        }
    }
}

void pack_q8(const Int8Matrix& from, uint8_t* panels, Worker& worker) {
    const Q8Layout layout{from.cols, from.group_size};
    const int64_t count = (from.rows + kPanelRows - 1) / kPanelRows;
    for (int64_t p; (p = worker.take(1)) < count;) {
        uint8_t* to = panels + p * layout.panel_bytes();
        for (int64_t g = 0; g < layout.groups(); ++g) {
            for (int64_t r = 0; r < kPanelRows; ++r, to += 2) {
                const int64_t row = p * kPanelRows + r;
                const uint16_t scale = row < from.rows ? from.scales[row * layout.groups() + g] : 0;
                std::memcpy(to, &scale, sizeof scale);
            }
            const int64_t end = g * from.group_size + layout.group_inputs(g);
            for (int64_t i = g * from.group_size; i < end; i += 4, to += 64) {
                pack_record(from, p * kPanelRows, i, end - i, to);
            }
        }
    }
}

}  // namespace llmd::LLMD_ISA
