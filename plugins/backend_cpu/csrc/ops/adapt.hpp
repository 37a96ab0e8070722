// adapt: out[r] += (x[r] a^T) b^T * scale, for the rows of a step that have the adapter
//
//   x       [rows, cols]  f32; a  [rank, cols], b  [outputs, rank]  f32, f16 or bf16, row-major where they
//   are
//           mapped, widened exactly
//   middle  x a^T of each row, f32
//   order   as in ops/linear_plain.hpp, whatever other rows are in the step: the same bits as alone
//   work    kWeightRows rows of a, then kAdaptOutputs rows of b, of one part at a time: an adapter's
//           matrices are read once for all rows of a part
//   check   relative error < 1e-5   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/linear_plain.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kAdaptOutputs = 64;

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

// Outputs [first, last) of the rows of a run, as many as a tile has.
template <class Element>
LLMD_INLINE void add_outputs(const AdapterPart& part, const Element* b, const float* middle, int64_t row,
                             int64_t rows, int64_t first, int64_t last) {
    float products[kPlainRowTile * kAdaptOutputs];
    const int64_t rank = part.b.cols;
    const int64_t count = last - first;
    plain_block({middle, rows, rank, nullptr, 0, {}},
                PlainRows<Element>{b + first * rank, nullptr, products, kAdaptOutputs}, 0, count);
    for (int64_t r = 0; r < rows; ++r) {
        float* out = part.out + (row + r) * part.b.rows + first;
        for (int64_t i = 0; i < count; i += Vec::kLanes) {
            const int n = count - i < Vec::kLanes ? static_cast<int>(count - i) : Vec::kLanes;
            const Vec added = load_n(products + r * kAdaptOutputs + i, n);
            store_n(out + i, fma(added, set1(part.scale), load_n(out + i, n)), n);
        }
    }
}

void adapt_outputs(const AdaptArgs& args, Worker& worker) {
    const auto outputs = [](const AdapterPart& part) LLMD_LAMBDA { return part.b.rows; };
    share_rows(args, worker, kAdaptOutputs, outputs,
               [&](const AdapterPart& part, int64_t first, int64_t last) LLMD_LAMBDA {
                   with_elements(part.b, [&](const auto* b) LLMD_LAMBDA {
                       for (int64_t i = 0; i < part.num_runs; ++i) {
                           const Run run = part.runs[i];
                           for (int64_t row = run.first; row < run.last; row += kPlainRowTile) {
                               const int64_t left = run.last - row;
                               const int64_t rows = left < kPlainRowTile ? left : kPlainRowTile;
                               const float* middle = part.middle_of(run) + (row - run.first) * part.a.rows;
                               add_outputs(part, b, middle, row, rows, first, last);
                           }
                       }
                   });
               });
}

}  // namespace llmd::LLMD_ISA
