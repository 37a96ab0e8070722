// Integer weights as the kernels like them: one linear stream of panels.
//
//   panel p holds output rows 16 p .. 16 p + 15, zero rows beyond the matrix; for each activation group
//     16 x f16 (bf16) scale; where there are minimums, 16 x f16 minimum     the coarse ones of two levels
//     two levels: for each weight group 16 x int8 fine scale; likewise 16 x int8 fine minimum
//     in int8: no coarse minimum; fine scales of 4-bit codes 2 in a byte, the even row in the low half;
//              128 - fine minimum in the place of the fine minimum
//     outliers: 16 x 4 x uint8 inputs of the group, 16 x 4 x int8 residuals
//     chunks of 32 inputs, each of 64 bytes for each bit of a code: planes of 4 bits, then of 2, then of 1
//       8 bits: byte 4 r + j of record q is the code of row r, input 4 q + j, flipped with kByteCodeFlip
//       4 bits: byte 4 r + j of record i holds inputs 8 i + j (low half) and 8 i + 4 + j (high half)
//       2 bits: byte 4 r + j of record i holds inputs 16 i + 4 n + j, n = 0..3, from its low bits upwards
//       1 bit:  bit n of byte 4 r + j holds input 4 n + j
//     3 bits are planes of 2 and 1, the 1 on top; 5 of 4 and 1; 6 of 4 and 2
//   the last chunk of a row is filled up with codes of 0, which meet activations of 0; scales that have no
//   input are 0
//
//   from   measured: scales inline keep a thread on one stream, which the hardware prefetcher follows; 16
//   rows by
//          4 inputs is one register of VNNI, two of AVX2, four of NEON, and a row of a tile of AMX

#pragma once

namespace llmd::LLMD_ISA {

// The scale of a row and coarse group in the bits that panels hold: f16 as it is, f32 cut to bf16.
LLMD_INLINE uint16_t coarse_bits(const GroupScales& from, int64_t row, int64_t group) {
    const int64_t column = group < from.coarse_columns ? group : from.coarse_columns - 1;
    const int64_t at = row * from.coarse_columns + column;
    if (!from.wide) return static_cast<const uint16_t*>(from.coarse)[at];
    return static_cast<uint16_t>(static_cast<const uint32_t*>(from.coarse)[at] >> 16);
}

LLMD_INLINE uint8_t* pack_coarse(const GroupScales& from, int64_t first_row, int64_t rows, int64_t group,
                                 uint8_t* to) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
        const uint16_t bits = r < rows ? coarse_bits(from, first_row + r, group) : uint16_t{0};
        std::memcpy(to + 2 * r, &bits, sizeof bits);
    }
    return to + 2 * kPanelRows;
}

// The fine scales, or minimums, of a weight group in rows of a panel.
LLMD_INLINE void fine_of_rows(const GroupScales& from, int64_t first_row, int64_t rows, int64_t group,
                              uint8_t* to) {
    for (int64_t r = 0; r < kPanelRows; ++r) {
        const bool inside = r < rows && group < from.fine_columns;
        to[r] = inside ? static_cast<uint8_t>(from.fine[(first_row + r) * from.fine_columns + group]) : 0;
    }
}

LLMD_INLINE uint8_t* pack_fine_scales(const IntegerMatrix& from, int64_t first_row, int64_t rows,
                                      int64_t first_group, int64_t groups, uint8_t* to) {
    for (int64_t g = first_group; g < first_group + groups; ++g) {
        uint8_t fine[kPanelRows];
        fine_of_rows(from.scales, first_row, rows, g, fine);
        if (from.format.short_steps()) {
            for (int64_t r = 0; r < kPanelRows; r += 2) {
                *to++ = static_cast<uint8_t>((fine[r] & 15U) | fine[r + 1] << 4);
            }
        } else {
            std::memcpy(to, fine, sizeof fine);
            to += kPanelRows;
        }
    }
    return to;
}

LLMD_INLINE uint8_t* pack_fine_minimums(const IntegerMatrix& from, int64_t first_row, int64_t rows,
                                        int64_t first_group, int64_t groups, uint8_t* to) {
    for (int64_t g = first_group; g < first_group + groups; ++g, to += kPanelRows) {
        fine_of_rows(from.minimums, first_row, rows, g, to);
        if (!from.format.in_int8) continue;
        for (int64_t r = 0; r < kPanelRows; ++r) to[r] = static_cast<uint8_t>(128 - to[r]);
    }
    return to;
}

// The outliers of a group: inputs, then residuals.
LLMD_INLINE uint8_t* pack_outliers(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row,
                                   int64_t rows, int64_t group, uint8_t* to) {
    if (from.format.outliers == 0) return to;
    constexpr auto kBytes = static_cast<size_t>(kOutliers);
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = ((first_row + r) * layout.activation_groups() + group) * kOutliers;
        std::memcpy(to + r * kOutliers, from.outlier_columns + at, kBytes);
        std::memcpy(to + (kPanelRows + r) * kOutliers, from.outlier_residuals + at, kBytes);
    }
    return to + layout.outlier_bytes();
}

// Four codes of each row, one row in a word.
struct QuadWords {
    uint32_t rows[kPanelRows];
};

LLMD_INLINE QuadWords load_quads(const uint8_t* codes, int64_t stride, int64_t rows, int64_t inputs) {
    QuadWords words = {};
    const auto count = static_cast<size_t>(inputs < 0 ? 0 : inputs < 4 ? inputs : 4);
    for (int64_t r = 0; r < rows; ++r) std::memcpy(&words.rows[r], codes + r * stride, count);
    return words;
}

// Adds bits [first, first + kPlane) of four codes of each row to their place in a plane.
template <int kPlane>
LLMD_INLINE void put_bits(const QuadWords& quad, int first, int64_t number, uint8_t* plane) {
    constexpr int kQuads = 8 / kPlane;  // in a byte
    constexpr uint32_t kMask = 0x01010101U * ((1U << kPlane) - 1U);
    uint8_t* record = plane + 64 * (number / kQuads);
    const int shift = static_cast<int>(number % kQuads) * kPlane;
    for (int64_t r = 0; r < kPanelRows; ++r) {
        uint32_t word;
        std::memcpy(&word, record + 4 * r, sizeof word);
        word |= ((quad.rows[r] >> first) & kMask) << shift;
        std::memcpy(record + 4 * r, &word, sizeof word);
    }
}

LLMD_INLINE QuadWords flipped(QuadWords quad) {
    if constexpr (kByteCodeFlip != 0) {
        for (uint32_t& row : quad.rows) row ^= kByteCodeFlip * 0x01010101U;
    }
    return quad;
}

// The panels come zeroed.
LLMD_INLINE void pack_quad(const QuadWords& quad, int bits, int64_t number, uint8_t* chunk) {
    if (bits == 8) return put_bits<8>(flipped(quad), 0, number, chunk);
    int first = 0;
    if ((bits & 4) != 0) {
        put_bits<4>(quad, 0, number, chunk);
        first = 4;
        chunk += 256;
    }
    if ((bits & 2) != 0) {
        put_bits<2>(quad, first, number, chunk);
        first += 2;
        chunk += 128;
    }
    if ((bits & 1) != 0) put_bits<1>(quad, first, number, chunk);
}

LLMD_INLINE void pack_panel(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row,
                            uint8_t* to) {
    const int64_t left = from.rows - first_row;
    const int64_t rows = left < kPanelRows ? left : kPanelRows;
    const uint8_t* codes = from.codes + first_row * from.cols;
    int64_t group = 0;
    int64_t input = 0;
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        const bool minimums = from.format.has_minimum;
        to = pack_coarse(from.scales, first_row, rows, a, to);
        if (minimums && !from.format.in_int8) to = pack_coarse(from.minimums, first_row, rows, a, to);
        if (from.format.two_levels()) {
            to = pack_fine_scales(from, first_row, rows, group, layout.groups(a), to);
            if (minimums) to = pack_fine_minimums(from, first_row, rows, group, layout.groups(a), to);
        }
        to = pack_outliers(from, layout, first_row, rows, a, to);
        group += layout.groups(a);
        for (int64_t c = 0; c < layout.chunks(a); ++c, to += layout.chunk_bytes()) {
            for (int64_t q = 0; q < kChunkInputs / 4; ++q, input += 4) {
                const QuadWords quad = load_quads(codes + input, from.cols, rows, from.cols - input);
                pack_quad(quad, from.format.bits, q, to);
            }
        }
    }
}

// The panels come zeroed.
void pack(const IntegerMatrix& from, uint8_t* panels, Worker& worker) {
    const PanelLayout layout{from.cols, from.format};
    const int64_t count = pieces(from.rows, kPanelRows);
    for (int64_t p; (p = worker.take(1)) < count;) {
        pack_panel(from, layout, p * kPanelRows, panels + p * layout.panel_bytes());
    }
}

}  // namespace llmd::LLMD_ISA
