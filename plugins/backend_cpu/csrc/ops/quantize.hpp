// Quantises activations: for each row and group, with a = max |x|
//
//   int8   q = rint(x * (127 / a)) within +-127, scale = a / 127
//   int9   q = rint(x * (254 / a)) within +-254, scale = a / 254, as two int8: rint(q / 2) and the rest
//
//   x  [rows, cols]  f32      groups are those of the weights
//   out, for each tile of up to kInputRows rows; M is the number of its rows, which are contiguous in
//   each piece:
//     values   int8   [terms][lines of 64 inputs][M][64]  zeros beyond cols; already in the form of AMX
//              tiles
//     scales   f32    [groups][M]
//     running  int32  [segments of 16 inputs + 1][M]  sum of q over all inputs before the segment; the
//                     difference of two is the sum over a weight group
//   work   one row at a time
//   check  q equals the formula, halves to even; groups below 1e-30 count as zero
//          (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

// Quantised rows of one tile, beginning with some row.
struct InputTile {
    int8_t* values;
    float* scales;
    int32_t* running;
    int64_t rows;  // rows of the tile: the stride of all arrays
    int64_t terms;
    int64_t term_bytes;  // distance between the values of two terms

    LLMD_INLINE_MEMBER InputTile of_term(int64_t term) const {
        InputTile tile = *this;
        tile.values += term * term_bytes;
        return tile;
    }
    LLMD_INLINE_MEMBER int8_t* segment(int64_t u, int64_t term = 0) const {
        // Unsigned, so that division is a shift.
        constexpr uint64_t kSegments = kLineInputs / kSegmentInputs;
        const auto line = static_cast<int64_t>(static_cast<uint64_t>(u) / kSegments);
        const auto inside = static_cast<int64_t>(static_cast<uint64_t>(u) % kSegments);
        return values + term * term_bytes + line * rows * kLineInputs + inside * kSegmentInputs;
    }
};

LLMD_INLINE InputTile input_tile(const ConvertedRows& out, const InputLayout& layout, int64_t row,
                                 int64_t rows) {
    const int64_t first = row / kInputRows * kInputRows;
    const int64_t inside = row - first;
    const int64_t in_tile = rows - first < kInputRows ? rows - first : kInputRows;
    return {out.values + first * layout.values() + inside * kLineInputs,
            out.scales + first * layout.groups() + inside,
            out.running + first * layout.running() + inside,
            in_tile,
            layout.terms,
            layout.lines() * in_tile * kLineInputs};
}

LLMD_INLINE float largest_magnitude(const float* x, int64_t count) {
    Vec top = set1(0.0F);
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) top = max(top, abs(load(x + i)));
    if (i < count) top = max(top, abs(load_n(x + i, static_cast<int>(count - i))));
    return largest(top);
}

LLMD_INLINE Vec scale_and_clamp(Vec x, Vec inverse, Vec most) {
    return max(min(x * inverse, most), set1(0.0F) - most);
}

// Scales and clamps contiguous inputs: calls f(place, numbers within +-`most`, how many of the register
// count).
template <class F>
LLMD_INLINE void each_scaled(const float* x, int64_t count, Vec inverse, Vec most, F&& f) {
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) {
        f(i, scale_and_clamp(load(x + i), inverse, most), Vec::kLanes);
    }
    if (i < count) {
        const int n = static_cast<int>(count - i);
        f(i, scale_and_clamp(load_n(x + i, n), inverse, most), n);
    }
}
LLMD_INLINE void store_some_int8(int8_t* p, Vec a, int n) {
    if (n == Vec::kLanes) return store_int8(p, a);
    int8_t bytes[Vec::kLanes];
    store_int8(bytes, a);
    std::memcpy(p, bytes, static_cast<size_t>(n));
}
// Stores integers within +-127, or within +-254 as two terms.
LLMD_INLINE void quantize_piece(const float* x, int64_t count, Vec inverse, const InputTile& to,
                                int8_t* out) {
    if (to.terms == 1) {
        each_scaled(x, count, inverse, set1(127.0F),
                    [&](int64_t i, Vec scaled, int n) LLMD_LAMBDA { store_some_int8(out + i, scaled, n); });
        return;
    }
    each_scaled(x, count, inverse, set1(254.0F), [&](int64_t i, Vec scaled, int n) LLMD_LAMBDA {
        const Vec whole = round(scaled);
        const Vec half = round(whole * set1(0.5F));
        store_some_int8(out + i, half, n);
        store_some_int8(out + to.term_bytes + i, whole - half, n);
    });
}

LLMD_INLINE void add_up(const InputTile& to, int64_t lines) {
    int32_t total = 0;
    int32_t* running = to.running;
    *running = 0;
    for (int64_t line = 0; line < lines; ++line) {
        constexpr int64_t kSegments = kLineInputs / kSegmentInputs;
        int32_t sums[kSegments];
        int32_t more[kSegments] = {};
        segment_sums(to.segment(line * kSegments), sums);
        if (to.terms > 1) segment_sums(to.segment(line * kSegments, 1), more);
        for (int64_t i = 0; i < kSegments; ++i) *(running += to.rows) = total += sums[i] + more[i];
    }
}

LLMD_INLINE void quantize_row(const float* x, const InputLayout& layout, const InputTile& to) {
    const int64_t line_stride = to.rows * kLineInputs;
    const float most = 127.0F * static_cast<float>(layout.terms);
    for (int64_t t = 0; t < layout.terms; ++t) {
        if (layout.cols % kLineInputs == 0) break;
        int8_t* last = to.values + t * to.term_bytes + (layout.lines() - 1) * line_stride;
        std::memset(last, 0, static_cast<size_t>(kLineInputs));
    }
    for (int64_t g = 0; g < layout.groups(); ++g) {
        const int64_t end =
            (g + 1) * layout.group_size < layout.cols ? (g + 1) * layout.group_size : layout.cols;
        int64_t i = g * layout.group_size;
        const float top = largest_magnitude(x + i, end - i);
        const bool some = top > 1e-30F;
        to.scales[g * to.rows] = some ? top / most : 0.0F;
        const Vec inverse = set1(some ? most / top : 0.0F);
        while (i < end) {
            const int64_t line_end = (i / kLineInputs + 1) * kLineInputs;
            const int64_t stop = line_end < end ? line_end : end;
            int8_t* out = to.values + i / kLineInputs * line_stride + i % kLineInputs;
            quantize_piece(x + i, stop - i, inverse, to, out);
            i = stop;
        }
    }
    add_up(to, layout.lines());
}

void quantize(const ConvertArgs& args, Worker& worker) {
    const InputLayout layout{args.cols, args.form.group_size, args.form.int8_terms};
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        quantize_row(args.row(r), layout, input_tile(args.out, layout, r, args.rows));
    });
}

// A thread converts whole parts.
void quantize_batch(const ConvertBatchArgs& batch, Worker& worker) {
    for (int64_t i; (i = worker.take(1)) < batch.count;) {
        const ConvertArgs& args = batch.parts[i];
        const InputLayout layout{args.cols, args.form.group_size, args.form.int8_terms};
        for (int64_t r = 0; r < args.rows; ++r) {
            quantize_row(args.row(r), layout, input_tile(args.out, layout, r, args.rows));
        }
    }
}

}  // namespace llmd::LLMD_ISA
