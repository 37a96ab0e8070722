// linear, plain formats: out[r][o] = sum_k x[r][k] * w[o][k] + bias[o]
//
//   x      [rows, cols]  f32
//   w      [outputs, cols]  f32, f16 or bf16, row-major where it is mapped, widened exactly
//   order  lane l of one register sums k = l, l + lanes, … in ascending order, then the lanes are added:
//          the same for every tile, and therefore the same bits for any number of rows
//   tile   4 weight rows by up to kPlainRowTile rows of x
//   check  relative error < 1e-5   (tests/plugins/backend_cpu/test_device.py)
//   speed  make bench; see bench/results

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kWeightRows = 4;

template <int kRows, int kOutputs, class Element>
void plain_tile(const float* x, const Element* w, int64_t cols, const float* bias, float* out,
                int64_t stride) {
    Vec sums[kRows * kOutputs];
    unroll<kRows * kOutputs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    const auto add_products = [&](auto&& at) LLMD_LAMBDA {
        Vec weight[kOutputs];
        unroll<kOutputs>([&](auto o) LLMD_LAMBDA { weight[o] = at(w + o * cols); });
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const Vec input = at(x + m * cols);
            unroll<kOutputs>([&](auto o) LLMD_LAMBDA {
                sums[m * kOutputs + o] = fma(input, weight[o], sums[m * kOutputs + o]);
            });
        });
    };
    int64_t k = 0;
    for (; k + Vec::kLanes <= cols; k += Vec::kLanes) {
        // The hardware prefetcher stops at page boundaries, which rows of 4 KB reach often: prefetch the
        // next rows.
        if constexpr (kRows == 1) {
            unroll<kOutputs>([&](auto o) LLMD_LAMBDA { __builtin_prefetch(w + (o + kOutputs) * cols + k); });
        }
        add_products([&](const auto* row) LLMD_LAMBDA { return load(row + k); });
    }
    if (k < cols) {
        add_products([&](const auto* row)
                         LLMD_LAMBDA { return load_n(row + k, static_cast<int>(cols - k)); });
    }
    for (int m = 0; m < kRows; ++m) {
        for (int o = 0; o < kOutputs; ++o) {
            out[m * stride + o] = sum(sums[m * kOutputs + o]) + (bias == nullptr ? 0.0F : bias[o]);
        }
    }
}

template <int kRows, int kOutputs, class Element>
LLMD_INLINE void plain_tile_of(int64_t rows, const float* x, const Element* w, int64_t cols,
                               const float* bias, float* out, int64_t stride) {
    if constexpr (kRows > 0) {
        if (rows >= kRows) return plain_tile<kRows, kOutputs>(x, w, cols, bias, out, stride);
        return plain_tile_of<kRows - 1, kOutputs>(rows, x, w, cols, bias, out, stride);
    }
}

// Rows of a weight, and where their outputs go: output o of row r to out[r * stride + o].
template <class Element>
struct PlainRows {
    const Element* weights;
    const float* bias;  // or null
    float* out;
    int64_t stride;
};

// Rows of x beginning with `row`, as many as a tile has, against kOutputs rows of a weight.
template <int kOutputs, class Element>
LLMD_INLINE void plain_outputs(const LinearArgs& args, const PlainRows<Element>& of, int64_t row,
                               int64_t first) {
    const float* bias = of.bias == nullptr ? nullptr : of.bias + first;
    plain_tile_of<kPlainRowTile, kOutputs>(args.rows - row, args.x + row * args.cols,
                                           of.weights + first * args.cols, args.cols, bias,
                                           of.out + row * of.stride + first, of.stride);
}

// All rows of x against rows [first, last) of a weight, which stay in cache while the rows of x are read.
template <class Element>
LLMD_INLINE void plain_block(const LinearArgs& args, const PlainRows<Element>& of, int64_t first,
                             int64_t last) {
    for (int64_t row = 0; row < args.rows; row += kPlainRowTile) {
        int64_t output = first;
        for (; output + kWeightRows <= last; output += kWeightRows) {
            plain_outputs<kWeightRows>(args, of, row, output);
        }
        for (; output < last; ++output) plain_outputs<1>(args, of, row, output);
    }
}

// Panels [first, last) of a weight.
template <class Element>
void plain_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last) {
    constexpr int64_t kNearBytes = int64_t{1} << 18;
    const int64_t panel_bytes = kPanelRows * target.weight.cols * static_cast<int64_t>(sizeof(Element));
    const int64_t near = panel_bytes < kNearBytes ? kNearBytes / panel_bytes : 1;
    const PlainRows<Element> rows{static_cast<const Element*>(target.weight.data), target.bias, target.out,
                                  target.weight.rows};
    for (; first < last; first += near) {
        const int64_t stop = first + near < last ? first + near : last;
        const int64_t end = stop * kPanelRows < target.weight.rows ? stop * kPanelRows : target.weight.rows;
        plain_block(args, rows, first * kPanelRows, end);
    }
}

}  // namespace llmd::LLMD_ISA
