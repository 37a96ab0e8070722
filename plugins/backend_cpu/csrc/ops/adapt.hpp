// adapt: out[r] += (x[r] a^T) b^T * scale, for the rows of a step that have the adapter
//
//   x       [rows, cols]  f32
//   a       [rank, cols]  f32, f16 or bf16, row-major where it is mapped, widened exactly
//   b       the same, but turned: [rank, outputs], so that registers hold neighbouring outputs
//   middle  x a^T of each row, f32
//   order   x a^T as in ops/linear_plain.hpp; then each output adds up its products in ascending order of
//           the rank: the same bits whatever other rows are in the step
//   work    kWeightRows rows of a, then kAdaptOutputs outputs, of one part at a time: an adapter's
//           matrices are read once for all rows of a part
//   check   relative error < 1e-5   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/linear_plain.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kAdaptOutputs = 64;
constexpr int kAdaptRows = 4;

// Calls f(elements of the matrix), as the type that they are stored in.
template <class F>
LLMD_INLINE void with_elements(const Matrix& matrix, const F& f) {
    if (matrix.format == Format::kF32) return f(static_cast<const float*>(matrix.data));
    if (matrix.format == Format::kF16) return f(static_cast<const F16*>(matrix.data));
    return f(static_cast<const BF16*>(matrix.data));
}

// Calls f(part, first, last) for all pieces of `size` rows of one of the matrices of the parts.
template <class RowsOf, class F>
LLMD_INLINE void share_rows(const AdaptArgs& args, Worker& worker, int64_t size, const RowsOf& rows_of,
                            const F& f) {
    int64_t count = 0;
    for (int64_t i = 0; i < args.count; ++i) count += pieces(rows_of(args.parts[i]), size);
    int64_t before = 0;
    int64_t place = 0;
    for (int64_t piece; (piece = worker.take(1)) < count;) {
        while (piece - before >= pieces(rows_of(args.parts[place]), size)) {
            before += pieces(rows_of(args.parts[place]), size);
            ++place;
        }
        const int64_t rows = rows_of(args.parts[place]);
        const int64_t first = (piece - before) * size;
        f(args.parts[place], first, first + size < rows ? first + size : rows);
    }
}

void adapt_middle(const AdaptArgs& args, Worker& worker) {
    const auto rank = [](const AdapterPart& part) LLMD_LAMBDA { return part.a.rows; };
    share_rows(
        args, worker, kWeightRows, rank,
        [&](const AdapterPart& part, int64_t first, int64_t last) LLMD_LAMBDA {
            with_elements(part.a, [&]<class Element>(const Element* a) LLMD_LAMBDA {
                for (int64_t i = 0; i < part.num_runs; ++i) {
                    const Run run = part.runs[i];
                    const LinearArgs rows{
                        args.x + run.first * args.cols, run.last - run.first, args.cols, nullptr, 0, {}};
                    const PlainRows<Element> to{a, nullptr, part.middle_of(run), part.a.rows};
                    plain_block(rows, to, first, last);
                }
            });
        });
}

// Adds to kVecs registers of outputs of kRows rows. With kIsLast, the only register has `count` outputs.
template <int kRows, int kVecs, bool kIsLast, class Element>
LLMD_INLINE void add_tile(const AdapterPart& part, const Element* b, const float* middle, float* out,
                          int count) {
    static_assert(kVecs == 1 || !kIsLast);
    const int64_t rank = part.b.rows;
    const int64_t outputs = part.b.cols;
    const auto at = [&](const auto* from) LLMD_LAMBDA {
        if constexpr (kIsLast) return load_n(from, count);
        return load(from);
    };
    Vec sums[kRows * kVecs];
    unroll<kRows * kVecs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t k = 0; k < rank; ++k) {
        Vec weights[kVecs];
        unroll<kVecs>([&](auto v) LLMD_LAMBDA { weights[v] = at(b + k * outputs + v * Vec::kLanes); });
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const Vec input = set1(middle[m * rank + k]);
            unroll<kVecs>([&](auto v) LLMD_LAMBDA {
                sums[m * kVecs + v] = fma(input, weights[v], sums[m * kVecs + v]);
            });
        });
    }
    const Vec scale = set1(part.scale);
    unroll<kRows>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            float* to = out + m * outputs + v * Vec::kLanes;
            const Vec value = fma(sums[m * kVecs + v], scale, at(to));
            if constexpr (kIsLast) return store_n(to, value, count);
            store(to, value);
        });
    });
}

// Adds to outputs [first, last) of kRows rows; `b` and `out` begin at output 0.
template <int kRows, class Element>
void add_outputs(const AdapterPart& part, const Element* b, const float* middle, float* out, int64_t first,
                 int64_t last) {
    constexpr int64_t kLanes = Vec::kLanes;
    for (; first + 2 * kLanes <= last; first += 2 * kLanes) {
        add_tile<kRows, 2, false>(part, b + first, middle, out + first, 0);
    }
    for (; first < last; first += kLanes) {
        const int count = last - first < kLanes ? static_cast<int>(last - first) : Vec::kLanes;
        add_tile<kRows, 1, true>(part, b + first, middle, out + first, count);
    }
}

template <int kRows, class Element>
LLMD_INLINE void add_rows(int64_t rows, const AdapterPart& part, const Element* b, const float* middle,
                          float* out, int64_t first, int64_t last) {
    if constexpr (kRows > 0) {
        if (rows >= kRows) return add_outputs<kRows>(part, b, middle, out, first, last);
        return add_rows<kRows - 1>(rows, part, b, middle, out, first, last);
    }
}

void adapt_outputs(const AdaptArgs& args, Worker& worker) {
    const auto outputs = [](const AdapterPart& part) LLMD_LAMBDA { return part.b.cols; };
    share_rows(args, worker, kAdaptOutputs, outputs,
               [&](const AdapterPart& part, int64_t first, int64_t last) LLMD_LAMBDA {
                   with_elements(part.b, [&]<class Element>(const Element* b) LLMD_LAMBDA {
                       for (int64_t i = 0; i < part.num_runs; ++i) {
                           const Run run = part.runs[i];
                           const float* middle = part.middle_of(run);
                           float* out = part.out + run.first * part.b.cols;
                           for (int64_t r = 0; r < run.last - run.first; r += kAdaptRows) {
                               add_rows<kAdaptRows>(run.last - run.first - r, part, b,
                                                    middle + r * part.b.rows, out + r * part.b.cols, first,
                                                    last);
                           }
                       }
                   });
               });
}

}  // namespace llmd::LLMD_ISA
