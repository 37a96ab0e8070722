// linear, integers, several rows: a block of each panel is decoded once, into the nearest cache, and
// multiplied by all rows.
//
//   block  decoded records, 64 bytes of 16 outputs by 4 inputs each: one record is a row of an AMX tile
//   tile   kPanelTile panels by up to kRowTile rows; integer sums in registers, totals in memory

#pragma once

#include "ops/codes.hpp"
#include "ops/integer_scales.hpp"
#include "ops/outliers.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kBlockInputs = 512;
constexpr int64_t kBlockGroups = kBlockInputs / kSegmentInputs;

// A block of one panel: up to kBlockInputs decoded inputs. There are 16 scales and 16 minimums for each
// weight group, and for each coarse group if scales have two levels.
struct alignas(64) PanelBlock {
    uint8_t records[kBlockInputs * kPanelRows];
    float scales[kBlockGroups * kPanelRows];
    float minimums[kBlockGroups * kPanelRows];
    float coarse[kBlockGroups * kPanelRows];
    float coarse_minimums[kBlockGroups * kPanelRows];
    const uint8_t* outliers[kBlockInputs / kMostGroupInputs];  // of each group, in the packed panel
};

struct BlockShape {
    int64_t first_activation;  // first activation group
    int64_t first_segment;
    int64_t segments;
    int64_t group_segments;  // of products that are summed as integers
    int64_t activation_segments;
    int32_t offset;  // of records, see ops/codes.hpp
};

LLMD_INLINE void widen_coarse(const uint8_t* from, bool bf16, float* to) {
    for (int v = 0; v < kPanelVecs; ++v) store(to + v * Vec::kLanes, load_coarse(from, v, bf16));
}
LLMD_INLINE void widen_fine(const uint8_t* from, int64_t groups, float* to) {
    for (int64_t i = 0; i < groups * kPanelRows; i += Vec::kLanes) {
        store(to + i, load(reinterpret_cast<const int8_t*>(from) + i));
    }
}

// How a tile is multiplied by a block: one record by 4 inputs of a row. A unit whose products take more
// inputs specialises this.
template <Operand kOperand>
struct TileProducts {
    // Stores two consecutive records.
    LLMD_INLINE_MEMBER static void store(uint8_t* to, Bytes first, Bytes second) {
        store_bytes(to, first);
        store_bytes(to + 64, second);
    }
    // Integer sums over segments [segment, end) of a block.
    template <int kRows>
    LLMD_INLINE_MEMBER static void add_segments(const PanelBlock* panels, const InputTile& x,
                                                int64_t first_segment, int64_t segment, int64_t end,
                                                Accumulator<kOperand> (&sums)[kRows * kPanelTile]) {
        constexpr int kSegmentQuads = static_cast<int>(kSegmentInputs) / 4;
        for (; segment < end; ++segment) {
            const int8_t* inputs = x.segment(first_segment + segment);
            unroll<kSegmentQuads>([&](auto q) LLMD_LAMBDA {
                Bytes records[kPanelTile];
                unroll<kPanelTile>([&](auto p) LLMD_LAMBDA {
                    records[p] = load_bytes(panels[p].records + 64 * (kSegmentQuads * segment + q));
                });
                unroll<kRows>([&](auto m) LLMD_LAMBDA {
                    const Quad quad = load_quad(inputs + m * kLineInputs, q);
                    unroll<kPanelTile>([&](auto p)
                                           LLMD_LAMBDA { sums[m * kPanelTile + p].add(records[p], quad); });
                });
            });
            unroll<kRows * kPanelTile>([&](auto i) LLMD_LAMBDA { sums[i].close(); });
        }
    }
};

// Decodes a slab whose scales are loaded. Records have the offset of the codes unless kPlain.
template <class C, bool kPlain>
LLMD_INLINE void decode_slab(const uint8_t* at, const Decoding<C>& decoding, const IntegerFormat& format,
                             uint8_t* record) {
    const Slab<C::kBits> slab = load_slab<C::kBits>(at, kTileAhead);
    const auto decoded = [&](auto q) LLMD_LAMBDA {
        const Bytes bytes = record_of<C, q>(slab, decoding);
        if constexpr (kPlain) return subtract(bytes, C::offset(format));
        return bytes;
    };
    unroll<kSlabQuads / 2>([&](auto i) LLMD_LAMBDA {
        const Bytes first = decoded(Index<2 * i>{});
        const Bytes second = decoded(Index<2 * i + 1>{});
        TileProducts<C::kOperand>::store(record + 128 * i, first, second);
    });
}

// Decodes activation groups [first, last) of a panel, beginning at `at`. Returns what follows them.
template <class C, bool kPlain = false>
const uint8_t* decode_block(const uint8_t* at, const PanelLayout& layout, int64_t first, int64_t last,
                            PanelBlock& to) {
    const IntegerFormat& format = layout.format;
    Decoding<C> decoding(format);
    uint8_t* record = to.records;
    int64_t group = 0;
    for (int64_t a = first; a < last; ++a) {
        const bool two = format.two_levels() && !format.in_int8;
        const int64_t groups = layout.groups(a);
        // Read only once: for the compiler, writes to records may alias the layout.
        const int64_t slabs = layout.slabs(a);
        const int64_t place = kPanelRows * (two ? a - first : group);
        widen_coarse(at, format.bf16_scales, (two ? to.coarse : to.scales) + place);
        if (format.has_minimum && !format.in_int8) {
            float* minimums = two ? to.coarse_minimums : to.minimums;
            widen_coarse(at + 2 * kPanelRows, format.bf16_scales, minimums + place);
        }
        at += layout.coarse_bytes();
        const uint8_t* fine_scales = at;
        const uint8_t* fine_minimums = at + layout.fine_scale_bytes(a);
        at += layout.fine_bytes(a);
        if (two) {
            widen_fine(fine_scales, groups, to.scales + group * kPanelRows);
            if (format.has_minimum) widen_fine(fine_minimums, groups, to.minimums + group * kPanelRows);
        }
        if constexpr (C::kHasOutliers) to.outliers[group] = at;
        at += layout.outlier_bytes();
        group += format.in_int8 ? 1 : groups;
        for (int64_t c = 0; c < slabs; ++c, at += 64 * C::kBits) {
            decoding.load_scales_of(c, fine_scales, fine_minimums);
            decode_slab<C, kPlain>(at, decoding, format, record);
            record += 64 * kSlabQuads;
        }
    }
    return at;
}

// Factors from the sum of the activations of each weight group: [groups][kRows].
template <int kRows>
struct GroupTerms {
    int32_t first[kBlockGroups * kRows];  // start of the sums: minus the offset of records
    float minimum[kBlockGroups * kRows];  // factor of the minimums, with one level including x_scale
};

// Calls f(group, segment, end of the group) for the weight groups of an activation group.
template <class F>
LLMD_INLINE void each_group(const BlockShape& shape, int64_t segment, int64_t end, F&& f) {
    for (int64_t group = 0; segment < end; ++group) {
        const int64_t stop = segment + shape.group_segments < end ? segment + shape.group_segments : end;
        f(group, segment, stop);
        segment = stop;
    }
}

// Calls f(activation group, segment, end) for those of a block, counted from its first.
template <class F>
LLMD_INLINE void each_activation(const BlockShape& shape, F&& f) {
    int64_t segment = 0;
    for (int64_t a = 0; segment < shape.segments; ++a) {
        const int64_t left = shape.segments - segment;
        const int64_t end = segment + (left < shape.activation_segments ? left : shape.activation_segments);
        f(a, segment, end);
        segment = end;
    }
}

template <class S, int kRows>
LLMD_INLINE void group_terms(const BlockShape& shape, const InputTile& x, GroupTerms<kRows>& terms) {
    int32_t* first = terms.first;
    float* minimum = terms.minimum;
    each_activation(shape, [&](int64_t a, int64_t segment, int64_t end) LLMD_LAMBDA {
        const float* scales = x.scales + (shape.first_activation + a) * x.rows;
        each_group(shape, segment, end, [&](int64_t, int64_t from, int64_t to) LLMD_LAMBDA {
            const int32_t* before = x.running + (shape.first_segment + from) * x.rows;
            const int32_t* after = x.running + (shape.first_segment + to) * x.rows;
            for (int m = 0; m < kRows; ++m) {
                const int32_t of_inputs = after[m] - before[m];
                if constexpr (!kPlainRecords) first[m] = -shape.offset * of_inputs;
                if constexpr (S::kMinimum) {
                    const float wide = static_cast<float>(of_inputs);
                    minimum[m] = S::kTwoLevels ? wide : scales[m] * wide;
                }
            }
            first += kRows;
            minimum += kRows;
        });
    });
}

// Calls f(row, register of the row, panel, register of the panel) with constants.
template <int kRows, class F>
LLMD_INLINE void each_output(F&& f) {
    constexpr int kVecs = kPanelTile * kPanelVecs;
    unroll<kRows * kVecs>([&](auto i) LLMD_LAMBDA {
        f(Index<i / kVecs>{}, Index<i % kVecs>{}, Index<i % kVecs / kPanelVecs>{}, Index<i % kPanelVecs>{});
    });
}

// Adds the outliers of a group, one panel after the other, so that the places of only one are in
// registers.
template <int kRows>
LLMD_INLINE void add_outliers(const PanelBlock* panels, int64_t group, const InputTile& x, int64_t segment,
                              Sums (&sums)[kRows * kPanelTile]) {
    unroll<kPanelTile>([&](auto p) LLMD_LAMBDA {
        const Outliers outliers(panels[p].outliers[group]);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            Sums& sum = sums[m * kPanelTile + p];
            sum = add(sum, outliers.sums(x, segment, m));
        });
    });
}

template <int kRows>
struct Totals {
    Vec v[kRows * kPanelTile * kPanelVecs];
};

template <int kRows>
LLMD_INLINE void clear(Totals<kRows>& totals) {
    unroll<kRows * kPanelTile * kPanelVecs>([&](auto i) LLMD_LAMBDA { totals.v[i] = set1(0.0F); });
}

// Adds inner * (coarse * x_scale) to totals in memory; `coarse` points to the activation group in the
// first panel.
template <int kRows>
LLMD_INLINE void add_inner(const float* coarse, const float* x_scales, const Totals<kRows>& inner,
                           float* totals) {
    constexpr int64_t kStride = sizeof(PanelBlock) / sizeof(float);
    each_output<kRows>([&](auto m, auto v, auto p, auto part) LLMD_LAMBDA {
        constexpr int kAt = m * kPanelTile * kPanelVecs + v;
        const Vec scale = load(coarse + p * kStride + part * Vec::kLanes) * set1(x_scales[m]);
        float* to = totals + kAt * Vec::kLanes;
        store(to, fma(inner.v[kAt], scale, load(to)));
    });
}

// Sums the fine minimums of weight groups [first, end) times the sums of their activations.
template <int kRows>
LLMD_INLINE void sum_minimums(const PanelBlock* panels, int64_t first, int64_t end, const float* terms,
                              Totals<kRows>& sums) {
    clear(sums);
    for (int64_t g = first; g < end; ++g) {
        each_output<kRows>([&](auto m, auto v, auto p, auto part) LLMD_LAMBDA {
            Vec& sum = sums.v[m * kPanelTile * kPanelVecs + v];
            const Vec minimum = load(panels[p].minimums + g * kPanelRows + part * Vec::kLanes);
            sum = fma(minimum, set1(terms[g * kRows + m]), sum);
        });
    }
}

// Adds a weight group: with two levels sum * fine; with one sum * (scale * x_scale), and the minimum.
template <class S, int kRows>
LLMD_INLINE void add_group(const PanelBlock* panels, int64_t group, const float* x_scales, const float* terms,
                           const Sums (&sums)[kRows * kPanelTile], Totals<kRows>& totals) {
    each_output<kRows>([&](auto m, auto v, auto p, auto part) LLMD_LAMBDA {
        Vec& total = totals.v[m * kPanelTile * kPanelVecs + v];
        Vec scale = load(panels[p].scales + group * kPanelRows + part * Vec::kLanes);
        if constexpr (!S::kTwoLevels) scale = scale * set1(x_scales[m]);
        total = fma(to_float<part>(sums[m * kPanelTile + p]), scale, total);
        if constexpr (S::kMinimum && !S::kTwoLevels) {
            const Vec minimum = load(panels[p].minimums + group * kPanelRows + part * Vec::kLanes);
            total = fma(minimum, set1(terms[group * kRows + m]), total);
        }
    });
}

// kRows rows of x against a block of kPanelTile panels. Totals are [kRows][kPanelTile][16].
template <class S, Operand kOperand, bool kHasOutliers, int kRows>
void integer_tile(const PanelBlock* panels, const BlockShape& shape, const InputTile& x, float* totals) {
    constexpr int kSums = kRows * kPanelTile;
    GroupTerms<kRows> terms;
    if constexpr (!kPlainRecords || S::kMinimum) group_terms<S>(shape, x, terms);
    Totals<kRows> sum;  // with one level the totals, with two the inner sums
    if constexpr (!S::kTwoLevels) {
        unroll<kSums * kPanelVecs>([&](auto i) LLMD_LAMBDA { sum.v[i] = load(totals + i * Vec::kLanes); });
    }
    int64_t group = 0;
    each_activation(shape, [&](int64_t a, int64_t from, int64_t to) LLMD_LAMBDA {
        const float* x_scales = x.scales + (shape.first_activation + a) * x.rows;
        const int64_t first_group = group;
        if constexpr (S::kTwoLevels) clear(sum);
        each_group(shape, from, to, [&](int64_t, int64_t segment, int64_t end) LLMD_LAMBDA {
            Accumulator<kOperand> products[kSums];
            unroll<kSums>([&](auto i) LLMD_LAMBDA {
                products[i].start(kPlainRecords ? 0 : terms.first[group * kRows + i / kPanelTile]);
            });
            for (int64_t term = 0; term < (kHasOutliers ? 2 : 1); ++term) {
                TileProducts<kOperand>::template add_segments<kRows>(
                    panels, x.of_term(term), shape.first_segment, segment, end, products);
            }
            Sums sums[kSums];
            unroll<kSums>([&](auto i) LLMD_LAMBDA { sums[i] = products[i].sums(); });
            if constexpr (kHasOutliers)
                add_outliers<kRows>(panels, group, x, shape.first_segment + segment, sums);
            add_group<S, kRows>(panels, group, x_scales, terms.minimum, sums, sum);
            ++group;
        });
        if constexpr (S::kTwoLevels) {
            add_inner(panels[0].coarse + a * kPanelRows, x_scales, sum, totals);
            if constexpr (S::kMinimum) {
                sum_minimums(panels, first_group, group, terms.minimum, sum);
                add_inner(panels[0].coarse_minimums + a * kPanelRows, x_scales, sum, totals);
            }
        }
    });
    if constexpr (!S::kTwoLevels) {
        unroll<kSums * kPanelVecs>([&](auto i) LLMD_LAMBDA { store(totals + i * Vec::kLanes, sum.v[i]); });
    }
}

using TileKernel = void (*)(const PanelBlock*, const BlockShape&, const InputTile&, float*);

// The kernel for a tile. A unit may specialise it.
template <class S, Operand kOperand, bool kHasOutliers, int kRows>
struct TileOfRows {
    static constexpr TileKernel kernel = integer_tile<S, kOperand, kHasOutliers, kRows>;
};

// The kernel for a number of rows.
template <class S, Operand kOperand, bool kHasOutliers, int kRows = kRowTile>
LLMD_INLINE TileKernel tile_kernel(int64_t rows) {
    if constexpr (kRows > 1) {
        if (rows < kRows) return tile_kernel<S, kOperand, kHasOutliers, kRows - 1>(rows);
    }
    return TileOfRows<S, kOperand, kHasOutliers, kRows>::kernel;
}

}  // namespace llmd::LLMD_ISA
