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
//   by input, besides: a strip of 32 panels, 8 lanes of 4; first what precedes the codes of each panel, all
//     of an activation group together, then for each input 64 bytes for each bit of a code, in the same
//     planes. Lanes take the place of the 8 quads of a chunk: byte 16 l + 4 p + s of a record is the code of
//     row 4 l + s, panel p of the lane
//
//   from   measured: scales inline keep a thread on one stream, which the hardware prefetcher follows; 16
//          rows by 4 inputs is one register of VNNI, two of AVX2, four of NEON, and a row of a tile of AMX

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

// Calls f(Index<bits>, first bit) for each plane of codes; records of those before are as many as their bits.
template <class F>
LLMD_INLINE void each_plane(int bits, F&& f) {
    if (bits == 8) return f(Index<8>{}, 0);
    if ((bits & 4) != 0) f(Index<4>{}, 0);
    if ((bits & 2) != 0) f(Index<2>{}, bits & 4);
    if ((bits & 1) != 0) f(Index<1>{}, bits & 6);
}

LLMD_INLINE QuadWords flipped(QuadWords quad) {
    if constexpr (kByteCodeFlip != 0) {
        for (uint32_t& row : quad.rows) row ^= kByteCodeFlip * 0x01010101U;
    }
    return quad;
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

// The panels come zeroed.
LLMD_INLINE void pack_quad(const QuadWords& quad, int bits, int64_t number, uint8_t* chunk) {
    each_plane(bits, [&](auto plane, int first) LLMD_LAMBDA {
        put_bits<plane>(bits == 8 ? flipped(quad) : quad, first, number, chunk + 64 * first);
    });
}

// The same for a panel of a strip, in chunks of four inputs that are so many bytes apart: a byte for each
// row.
LLMD_INLINE void pack_inputs(const QuadWords& quad, int bits, int64_t panel, int64_t input_bytes,
                             uint8_t* chunk) {
    const QuadWords words = bits == 8 ? flipped(quad) : quad;
    const int64_t lane = panel / kLanePanels;
    each_plane(bits, [&](auto plane, int first) LLMD_LAMBDA {
        constexpr int kPlane = plane;
        constexpr int kLanes = 8 / kPlane;  // in a byte
        constexpr uint32_t kMask = (1U << kPlane) - 1U;
        const int shift = static_cast<int>(lane % kLanes) * kPlane;
        uint8_t* to = chunk + 64 * (first + lane / kLanes) + 4 * (panel % kLanePanels);
        for (int64_t j = 0; j < 4; ++j, to += input_bytes) {
            const int from = static_cast<int>(8 * j) + first;
            for (int64_t r = 0; r < kPanelRows; ++r) {
                uint8_t& byte = to[r / 4 * 16 + r % 4];
                byte = static_cast<uint8_t>(byte | ((words.rows[r] >> from) & kMask) << shift);
            }
        }
    });
}

LLMD_INLINE int64_t rows_of_panel(const IntegerMatrix& from, int64_t first_row) {
    const int64_t left = from.rows - first_row;
    return left < kPanelRows ? left : kPanelRows;
}

// What precedes the codes of an activation group.
LLMD_INLINE uint8_t* pack_header(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row,
                                 int64_t a, uint8_t* to) {
    const int64_t rows = rows_of_panel(from, first_row);
    const int64_t group = a * layout.groups(0);
    const bool minimums = from.format.has_minimum;
    to = pack_coarse(from.scales, first_row, rows, a, to);
    if (minimums && !from.format.in_int8) to = pack_coarse(from.minimums, first_row, rows, a, to);
    if (from.format.two_levels()) {
        to = pack_fine_scales(from, first_row, rows, group, layout.groups(a), to);
        if (minimums) to = pack_fine_minimums(from, first_row, rows, group, layout.groups(a), to);
    }
    return pack_outliers(from, layout, first_row, rows, a, to);
}

// Calls f(quad, number) for the codes of an activation group in some rows, four inputs at a time.
template <class F>
LLMD_INLINE void each_quad(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row, int64_t a,
                           F&& f) {
    const int64_t rows = rows_of_panel(from, first_row);
    const int64_t first = a * from.format.activation_group();
    const uint8_t* codes = from.codes + first_row * from.cols + first;
    for (int64_t q = 0; q < layout.chunks(a) * (kChunkInputs / 4); ++q) {
        f(load_quads(codes + 4 * q, from.cols, rows, from.cols - first - 4 * q), q);
    }
}

LLMD_INLINE void pack_panel(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row,
                            uint8_t* to) {
    constexpr int64_t kQuads = kChunkInputs / 4;
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        to = pack_header(from, layout, first_row, a, to);
        each_quad(from, layout, first_row, a, [&](const QuadWords& quad, int64_t q) LLMD_LAMBDA {
            pack_quad(quad, from.format.bits, q % kQuads, to + q / kQuads * layout.chunk_bytes());
        });
        to += layout.chunks(a) * layout.chunk_bytes();
    }
}

// The panels come zeroed.
void pack(const IntegerMatrix& from, uint8_t* to, Worker& worker) {
    const PanelLayout layout{from.cols, from.format};
    const int64_t count = pieces(from.rows, kPanelRows);
    for (int64_t p; (p = worker.take(1)) < count;) {
        pack_panel(from, layout, p * kPanelRows, to + p * layout.panel_bytes());
    }
}

// An activation group of a strip, which begins at `to`.
LLMD_INLINE void pack_strip_group(const IntegerMatrix& from, const StripLayout& layout, int64_t strip,
                                  int64_t a, uint8_t* to) {
    uint8_t* codes = to + layout.codes(a);
    to += layout.headers(a);
    for (int64_t p = 0; p < kStripPanels; ++p) {
        const int64_t first_row = (strip * kStripPanels + p) * kPanelRows;
        to = pack_header(from, layout.panel, first_row, a, to);
        each_quad(from, layout.panel, first_row, a, [&](const QuadWords& quad, int64_t q) LLMD_LAMBDA {
            pack_inputs(quad, from.format.bits, p, layout.input_bytes(),
                        codes + 4 * q * layout.input_bytes());
        });
    }
}

// The strips come zeroed.
void pack_strips(const IntegerMatrix& from, uint8_t* to, Worker& worker) {
    const StripLayout layout{{from.cols, from.format}};
    const int64_t groups = layout.panel.activation_groups();
    const int64_t count = pieces(from.rows, kStripPanels * kPanelRows) * groups;
    for (int64_t i; (i = worker.take(1)) < count;) {
        const int64_t strip = i / groups;
        const int64_t a = i % groups;
        pack_strip_group(from, layout, strip, a, to + strip * layout.strip_bytes());
    }
}

}  // namespace llmd::LLMD_ISA
