// Packs integer weights into panels, each a linear stream of bytes. README.md draws the layout.
//
//   panel p holds output rows 16 p .. 16 p + 15, and zero rows beyond the matrix. For each activation
//   group:
//     16 x f16 (bf16) scales; 16 x f16 minimums, if any; with two levels these are the coarse ones
//     two levels: 16 x int8 fine scales for each weight group; then likewise fine minimums, if any
//     in int8: no coarse minimums; the fine scales of 4-bit codes are nibbles, that of the even row in the
//              low half; 128 - fine minimum instead of the fine minimum
//     outliers: 16 x 4 x uint8 inputs of the group, 16 x 4 x int8 residuals
//     slabs of 32 inputs, each with 64 bytes per bit of a code: planes of 4 bits, then of 2, then of 1
//       8 bits: byte 4 r + j of record q is the code of row r, input 4 q + j, XORed with kByteCodeFlip
//       4 bits: byte 4 r + j of record i holds inputs 8 i + j (low half) and 8 i + 4 + j (high half)
//       2 bits: byte 4 r + j of record i holds inputs 16 i + 4 n + j, n = 0..3, from its low bits upwards
//       1 bit:  bit n of byte 4 r + j holds input 4 n + j
//     3 bits are planes of 2 and 1 bits, the 1 on top; 5 bits 4 and 1; 6 bits 4 and 2
//   The last slab of a row is padded with codes of 0, which are multiplied by activations of 0; scales
//   without inputs are 0. Packing a panel writes every byte of it. Packing a strip only sets bits: zero it
//   first.
//
//   A strip is the input-major copy of 32 panels, which form 8 bands of 4: first the headers of the
//     panels, all of an activation group together, then for each input 64 bytes per bit of a code, in the
//     same planes. Bands take the place of the 8 quads of a slab: byte 16 l + 4 p + s of a record is the
//     code of row 4 l + s, panel p of the band
//
//   from   measured: inline scales keep a thread on one stream, which the hardware prefetcher follows; 16
//          rows by 4 inputs are one register of AVX-512, two of AVX2, four of NEON, and a row of an AMX
//          tile

#pragma once

namespace llmd::LLMD_ISA {

// The bits of the scale of a row and coarse group as panels store them: f16 unchanged, f32 truncated to
// bf16.
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

// The fine scales, or minimums, of a weight group for the rows of a panel.
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
        if (from.format.nibble_scales()) {
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

// Packs the outliers of a group: inputs, then residuals.
LLMD_INLINE uint8_t* pack_outliers(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row,
                                   int64_t rows, int64_t group, uint8_t* to) {
    if (from.format.outliers == 0) return to;
    constexpr auto kBytes = static_cast<size_t>(kOutliers);
    std::memset(to, 0, static_cast<size_t>(layout.outlier_bytes()));
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = ((first_row + r) * layout.activation_groups() + group) * kOutliers;
        std::memcpy(to + r * kOutliers, from.outlier_columns + at, kBytes);
        std::memcpy(to + (kPanelRows + r) * kOutliers, from.outlier_residuals + at, kBytes);
    }
    return to + layout.outlier_bytes();
}

// Four codes of each row, one word per row.
struct QuadWords {
    uint32_t rows[kPanelRows];
};

// The codes of a slab; 0 beyond the rows and inputs of the matrix.
struct SlabWords {
    QuadWords quads[kSlabInputs / 4];
};

LLMD_INLINE void load_row(const uint8_t* codes, int64_t row, SlabWords& slab) {
    for (int64_t q = 0; q < kSlabInputs / 4; ++q) {
        std::memcpy(&slab.quads[q].rows[row], codes + 4 * q, sizeof(uint32_t));
    }
}

LLMD_INLINE SlabWords load_slab(const uint8_t* codes, int64_t stride, int64_t rows, int64_t inputs) {
    SlabWords slab;
    if (rows == kPanelRows && inputs >= kSlabInputs) {
        for (int64_t r = 0; r < kPanelRows; ++r) load_row(codes + r * stride, r, slab);
        return slab;
    }
    slab = {};
    const int64_t count = inputs < kSlabInputs ? inputs : kSlabInputs;
    for (int64_t r = 0; r < rows; ++r) {
        uint8_t row[kSlabInputs] = {};
        std::memcpy(row, codes + r * stride, static_cast<size_t>(count));
        load_row(row, r, slab);
    }
    return slab;
}

// Calls f(Index<bits>, first bit) for each plane of codes. The number of records before a plane is its
// first bit.
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

// Packs bits [first, first + kPlane) of all codes of a slab into the records of a plane.
template <int kPlane>
LLMD_INLINE void pack_plane(const SlabWords& slab, int first, uint8_t* plane) {
    constexpr int kQuads = 8 / kPlane;  // in a byte
    constexpr uint32_t kMask = 0x01010101U * ((1U << kPlane) - 1U);
    for (int i = 0; i < kPlane; ++i) {
        QuadWords record = {};
        for (int n = 0; n < kQuads; ++n) {
            const QuadWords quad = kPlane == 8 ? flipped(slab.quads[i]) : slab.quads[kQuads * i + n];
            for (int64_t r = 0; r < kPanelRows; ++r) {
                record.rows[r] |= ((quad.rows[r] >> first) & kMask) << (n * kPlane);
            }
        }
        std::memcpy(plane + 64 * i, &record, sizeof record);
    }
}

LLMD_INLINE void pack_slab(const SlabWords& slab, int bits, uint8_t* to) {
    each_plane(bits,
               [&](auto plane, int first) LLMD_LAMBDA { pack_plane<plane>(slab, first, to + 64 * first); });
}

// Adds four inputs of a panel to a strip that was zeroed. `input_bytes` is the distance between inputs.
LLMD_INLINE void pack_inputs(const QuadWords& quad, int bits, int64_t panel, int64_t input_bytes,
                             uint8_t* slab) {
    const QuadWords words = bits == 8 ? flipped(quad) : quad;
    const int64_t band = panel / kBandPanels;
    each_plane(bits, [&](auto plane, int first) LLMD_LAMBDA {
        constexpr int kPlane = plane;
        constexpr int kBands = 8 / kPlane;  // in a byte
        constexpr uint32_t kMask = (1U << kPlane) - 1U;
        const int shift = static_cast<int>(band % kBands) * kPlane;
        uint8_t* to = slab + 64 * (first + band / kBands) + 4 * (panel % kBandPanels);
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

// Packs what precedes the codes of an activation group.
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

// Calls f(slab, number) for the codes of an activation group in the rows of a panel.
template <class F>
LLMD_INLINE void each_slab(const IntegerMatrix& from, const PanelLayout& layout, int64_t first_row, int64_t a,
                           F&& f) {
    const int64_t rows = rows_of_panel(from, first_row);
    const int64_t first = a * from.format.activation_group();
    const uint8_t* codes = from.codes + first_row * from.cols + first;
    for (int64_t c = 0; c < layout.slabs(a); ++c) {
        const int64_t input = c * kSlabInputs;
        f(load_slab(codes + input, from.cols, rows, from.cols - first - input), c);
    }
}

void pack_panel(const IntegerMatrix& from, int64_t first_row, uint8_t* to) {
    const PanelLayout layout{from.cols, from.format};
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        to = pack_header(from, layout, first_row, a, to);
        each_slab(from, layout, first_row, a, [&](const SlabWords& slab, int64_t c) LLMD_LAMBDA {
            pack_slab(slab, from.format.bits, to + c * layout.slab_bytes());
        });
        to += layout.slabs(a) * layout.slab_bytes();
    }
}

void pack_strip_panel(const IntegerMatrix& from, int64_t first_row, int64_t panel, uint8_t* strip) {
    const StripLayout layout{{from.cols, from.format}};
    for (int64_t a = 0; a < layout.panel.activation_groups(); ++a) {
        pack_header(from, layout.panel, first_row, a,
                    strip + layout.headers(a) + panel * layout.panel.header_bytes(a));
        uint8_t* codes = strip + layout.codes(a);
        each_slab(from, layout.panel, first_row, a, [&](const SlabWords& slab, int64_t c) LLMD_LAMBDA {
            for (int64_t q = 0; q < kSlabInputs / 4; ++q) {
                const int64_t input = c * kSlabInputs + 4 * q;
                pack_inputs(slab.quads[q], from.format.bits, panel, layout.input_bytes(),
                            codes + input * layout.input_bytes());
            }
        });
    }
}

}  // namespace llmd::LLMD_ISA
