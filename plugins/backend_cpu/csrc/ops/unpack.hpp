// Unpacks rows of packed integers, or some columns of them, to floats: out[i] = (scale * integer + minimum) *
// factor
//
//   from   panels, ops/pack.hpp     out  [cols]  f32
//   exact  scale * integer is exact; the sum is rounded once, as in llmd.models.formats.dequantization,
//          and then the product with the factor   (tests/plugins/backend_cpu/test_device.py)
//   speed  2 to 3 ns per weight on one thread: a row of 3072, the work for a token, takes 8 us

#pragma once

#include "ops/integer_scales.hpp"

namespace llmd::LLMD_ISA {

// Four codes of a row in a plane, one per byte.
template <int kPlane>
LLMD_INLINE uint32_t get_bits(const uint8_t* plane, int64_t number, int64_t row) {
    constexpr int kQuads = 8 / kPlane;  // in a byte
    constexpr uint32_t kMask = 0x01010101U * ((1U << kPlane) - 1U);
    uint32_t word;
    std::memcpy(&word, plane + 64 * (number / kQuads) + 4 * row, sizeof word);
    return (word >> (number % kQuads * kPlane)) & kMask;
}

// Reads a row's codes of one quad from a slab, as pack_slab has written them.
LLMD_INLINE uint32_t unpack_quad(const uint8_t* slab, int bits, int64_t number, int64_t row) {
    if (bits == 8) return get_bits<8>(slab, number, row) ^ kByteCodeFlip * 0x01010101U;
    uint32_t quad = 0;
    int first = 0;
    if ((bits & 4) != 0) {
        quad = get_bits<4>(slab, number, row);
        first = 4;
        slab += 256;
    }
    if ((bits & 2) != 0) {
        quad |= get_bits<2>(slab, number, row) << first;
        first += 2;
        slab += 128;
    }
    if ((bits & 1) != 0) quad |= get_bits<1>(slab, number, row) << first;
    return quad;
}

LLMD_INLINE float coarse_of_row(const uint8_t* p, int64_t row, bool bf16) {
    float coarse[kPanelRows];
    for (int v = 0; v < kPanelVecs; ++v) store(coarse + v * Vec::kLanes, load_coarse(p, v, bf16));
    return coarse[row];
}

// A row of a panel, within an activation group whose header begins at `header`.
struct RowGroup {
    const PanelLayout& layout;
    const uint8_t* header;
    int64_t activation_group;
    int64_t row;

    LLMD_INLINE_MEMBER float coarse_scale() const {
        return coarse_of_row(header, row, layout.format.bf16_scales);
    }
    LLMD_INLINE_MEMBER float coarse_minimum() const {
        if (!layout.format.has_minimum) return 0.0F;
        if (layout.format.in_int8) return -coarse_scale();
        return coarse_of_row(header + 2 * kPanelRows, row, layout.format.bf16_scales);
    }
    LLMD_INLINE_MEMBER int32_t fine_scale(int64_t group) const {
        const uint8_t* fine = header + layout.coarse_bytes();
        if (!layout.format.two_levels()) return 1;
        if (!layout.format.nibble_scales()) return static_cast<int8_t>(fine[group * kPanelRows + row]);
        return fine[(group * kPanelRows + row) / 2] >> (row % 2 * 4) & 15;
    }
    LLMD_INLINE_MEMBER int32_t fine_minimum(int64_t group) const {
        if (!layout.format.two_levels() || !layout.format.has_minimum) return 1;
        const uint8_t* fine = header + layout.coarse_bytes() + layout.fine_scale_bytes(activation_group);
        const int32_t stored = fine[group * kPanelRows + row];
        return layout.format.in_int8 ? 128 - stored : stored;
    }
    LLMD_INLINE_MEMBER const uint8_t* outliers() const {
        return header + layout.coarse_bytes() + layout.fine_bytes(activation_group);
    }
    LLMD_INLINE_MEMBER const uint8_t* slab_of(int64_t input) const {
        return outliers() + layout.outlier_bytes() + input / kSlabInputs * layout.slab_bytes();
    }
    // What outliers add to the integer of an input.
    LLMD_INLINE_MEMBER int32_t beyond_code(int64_t input) const {
        int32_t residual = 0;
        for (int64_t i = row * kOutliers; i < row * kOutliers + layout.format.outliers; ++i) {
            if (outliers()[i] == input)
                residual += static_cast<int8_t>(outliers()[kPanelRows * kOutliers + i]);
        }
        return residual * (1 << kOutlierShift);
    }
};

LLMD_INLINE void unpack_group(const RowGroup& from, int64_t inputs, float factor, float* out) {
    const IntegerFormat& format = from.layout.format;
    const float coarse_scale = from.coarse_scale();
    const float coarse_minimum = from.coarse_minimum();
    for (int64_t first = 0, group = 0; first < inputs; first += format.group_size, ++group) {
        const float scale = coarse_scale * static_cast<float>(from.fine_scale(group));
        const float minimum = coarse_minimum * static_cast<float>(from.fine_minimum(group));
        const int64_t last = first + format.group_size < inputs ? first + format.group_size : inputs;
        for (int64_t i = first; i < last; i += 4) {
            const int64_t number = i % kSlabInputs / 4;
            uint32_t quad = unpack_quad(from.slab_of(i), format.bits, number, from.row);
            for (int64_t j = i; j < i + 4 && j < last; ++j, quad >>= 8) {
                const auto code = static_cast<int32_t>(quad & 255U);
                const int32_t of_code = format.has_book ? format.book[code] : code - format.zero;
                const int32_t integer = of_code + from.beyond_code(j);
                out[j] = (scale * static_cast<float>(integer) + minimum) * factor;
            }
        }
    }
}

// Columns [first, first + count) of a row. Groups that are not needed whole are unpacked aside.
LLMD_INLINE void unpack_columns(const Matrix& from, int64_t row, int64_t first, int64_t count, float factor,
                                float* out) {
    const PanelLayout layout{from.cols, from.integer};
    const int64_t size = from.integer.activation_group();
    const int64_t last = first + count;
    const uint8_t* p = static_cast<const uint8_t*>(from.data) + row / kPanelRows * layout.panel_bytes();
    for (int64_t a = 0; a * size < last; p += layout.group_bytes(a++)) {
        const int64_t begin = a * size;
        const int64_t end = begin + size < from.cols ? begin + size : from.cols;
        if (end <= first) continue;
        const RowGroup group{layout, p, a, row % kPanelRows};
        if (begin >= first && end <= last) {
            unpack_group(group, end - begin, factor, out + begin - first);
            continue;
        }
        float aside[kMostGroupInputs];
        unpack_group(group, end - begin, factor, aside);
        const int64_t from_column = begin < first ? first : begin;
        const int64_t to_column = end < last ? end : last;
        std::memcpy(out + from_column - first, aside + from_column - begin,
                    sizeof(float) * static_cast<size_t>(to_column - from_column));
    }
}

LLMD_INLINE void unpack_row(const Matrix& from, int64_t row, float factor, float* out) {
    unpack_columns(from, row, 0, from.cols, factor, out);
}

}  // namespace llmd::LLMD_ISA
