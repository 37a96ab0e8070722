// linear, bf16 weights, in AMX tiles: out[r][o] = sum_k x[r][k] * w[o][k] + bias[o]
//
//   x      three bf16 numbers each, in the layout of ops/split.hpp
//   w      [outputs, cols], row-major where it is mapped: 32 inputs of 16 outputs are the left tile
//   order  32 inputs at a time, and of these the products of a, then b, then c, in one sum, for any number
//          of rows: always the same bits
//   tile   few rows: one panel by all rows
//          more rows: two panels by two tiles of rows. All panels are multiplied by as many inputs of all
//          rows as fit in the L2 cache before the next inputs follow; sums wait in memory meanwhile
//   check  relative error < 1e-6   (tests/plugins/backend_cpu/test_device.py)
//   why    docs/decisions/0040-weights-of-bf16-in-tiles.md

#pragma once

#include "ops/integer_scales.hpp"
#include "ops/split.hpp"
#include "ops/tiles_amx.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kBf16Panels = 2;
constexpr int64_t kSumNumbers = kTileRows * kPanelRows;

class Bf16Panel {
  public:
    LLMD_INLINE_MEMBER Bf16Panel(const Matrix& weight, int64_t panel)
        : cols_(weight.cols),
          whole_lines_(weight.cols / kBf16Inputs),
          at_(static_cast<const BF16*>(weight.data) + panel * kPanelRows * cols_),
          height_(weight.rows - panel * kPanelRows) {
        if (height_ > kPanelRows) height_ = kPanelRows;
        const int64_t first = whole_lines_ * kBf16Inputs;
        if (first == cols_) return;
        std::memset(last_line_, 0, sizeof(last_line_));
        for (int64_t r = 0; r < height_; ++r) {
            std::memcpy(last_line_ + r * kBf16Inputs, at_ + r * cols_ + first,
                        sizeof(BF16) * static_cast<size_t>(cols_ - first));
        }
    }

    int64_t height() const { return height_; }

    template <int kRegister>
    LLMD_INLINE_MEMBER void load_line(int64_t line) const {
        const bool whole = line < whole_lines_;
        const BF16* from = whole ? at_ + line * kBf16Inputs : last_line_;
        const int64_t stride = whole ? cols_ * static_cast<int64_t>(sizeof(BF16)) : kTileRowBytes;
        asm volatile("tileloadd (%0, %1, 1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kRegister) : "memory");
    }
    // Prefetches as much of the next panel as a line takes: some cache lines of every other row.
    LLMD_INLINE_MEMBER void prefetch_next(int64_t line) const {
        constexpr int64_t kRows = 2;
        const BF16* next = at_ + kPanelRows * cols_ + line * kRows * kBf16Inputs;
        for (int64_t r = 0; r < kPanelRows; r += kRows) {
            unroll<kRows>([&](auto i)
                              LLMD_LAMBDA { __builtin_prefetch(next + r * cols_ + i * kBf16Inputs); });
        }
    }

  private:
    int64_t cols_;
    int64_t whole_lines_;
    const BF16* at_;
    int64_t height_;
    // The inputs after the last whole line, padded with zeros.
    alignas(64) BF16 last_line_[kPanelRows * kBf16Inputs];
};

// Configures tiles for two panels of a weight and tiles of rows, only if their heights change: sums in
// registers 0 to 3, activations in 4 and 5, weights in 6 and 7.
class Bf16Shapes {
  public:
    explicit Bf16Shapes(int64_t width) : row_bytes_(width * static_cast<int64_t>(sizeof(float))) {}
    LLMD_INLINE_MEMBER void set(int64_t first, int64_t second) {
        if (first == heights_[0] && second == heights_[1]) return;
        heights_[0] = first;
        heights_[1] = second;
        TileShapes shapes;
        for (int p = 0; p < kBf16Panels; ++p) {
            shapes.set(p, heights_[p], row_bytes_);
            shapes.set(2 + p, heights_[p], row_bytes_);
            shapes.set(4 + p, kBf16Pairs, row_bytes_);
            shapes.set(6 + p, heights_[p], kTileRowBytes);
        }
        set_tiles(shapes);
    }

  private:
    int64_t row_bytes_;
    int64_t heights_[kBf16Panels] = {};
};

// The activations of all rows, split into terms.
struct SplitRows {
    TermLayout layout;
    const uint16_t* numbers;
    int64_t row_bytes;  // of a tile

    explicit SplitRows(const LinearArgs& args)
        : layout{args.rows, args.cols},
          numbers(args.converted.bf16_terms),
          row_bytes(layout.width() * static_cast<int64_t>(sizeof(float))) {}
    const uint16_t* line(int64_t tile, int64_t line) const {
        return numbers + tile * layout.tile() + line * kBf16Terms * layout.term();
    }
};

// Writes sums [16 outputs][16 rows] of a panel and a tile of rows.
LLMD_INLINE void finish_sums(const LinearArgs& args, const LinearTarget& target, int64_t panel, int64_t tile,
                             const float* sums) {
    const int64_t first = panel * kPanelRows;
    const int64_t left = target.weight.rows - first;
    const auto outputs = static_cast<int>(left < kPanelRows ? left : kPanelRows);
    const int64_t row = tile * kTileRows;
    const int64_t rows = args.rows - row < kTileRows ? args.rows - row : kTileRows;
    const Vec bias = target.bias == nullptr ? set1(0.0F) : load_n(target.bias + first, outputs);
    __m512i square[kTileRows];
    for (int64_t i = 0; i < kTileRows; ++i) square[i] = _mm512_loadu_si512(sums + i * kPanelRows);
    transpose(square);
    float* to = target.out + row * target.weight.rows + first;
    for (int64_t r = 0; r < rows; ++r) {
        store_n(to + r * target.weight.rows, Vec{_mm512_castsi512_ps(square[r])} + bias, outputs);
    }
}

// Up to 16 rows against panels [first, last).
LLMD_INLINE void bf16_few_rows(const LinearArgs& args, const LinearTarget& target, int64_t first,
                               int64_t last) {
    alignas(64) float sums[kSumNumbers] = {};
    const SplitRows x(args);
    Bf16Shapes shapes(x.layout.width());
    for (int64_t p = first; p < last; ++p) {
        const Bf16Panel panel(target.weight, p);
        shapes.set(panel.height(), panel.height());
        asm volatile("tilezero %%tmm0" : : : "memory");
        for (int64_t line = 0; line < x.layout.lines(); ++line) {
            panel.load_line<6>(line);
            panel.prefetch_next(line);
            const uint16_t* terms = x.line(0, line);
            unroll<kBf16Terms>([&](auto t) LLMD_LAMBDA {
                // Operands need names: clang rejects operands that name captured variables.
                const uint16_t* term = terms + t * x.layout.term();
                const int64_t stride = x.row_bytes;
                asm volatile("tileloadd (%0, %1, 1), %%tmm4\n\ttdpbf16ps %%tmm4, %%tmm6, %%tmm0"
                             :
                             : "r"(term), "r"(stride)
                             : "memory");
            });
        }
        asm volatile("tilestored %%tmm0, (%0, %1, 1)" : : "r"(sums), "r"(kTileRowBytes) : "memory");
        finish_sums(args, target, p, 0, sums);
    }
}

// Adds the products of a term, for one or two tiles of rows, with the panels in registers 6 and 7.
template <int kTiles>
LLMD_INLINE void multiply_term(const uint16_t* first, const uint16_t* second) {
    asm volatile(
        "tileloadd (%0, %1, 1), %%tmm4\n\t"
        "tdpbf16ps %%tmm4, %%tmm6, %%tmm0\n\t"
        "tdpbf16ps %%tmm4, %%tmm7, %%tmm1"
        :
        : "r"(first), "r"(kTileRowBytes)
        : "memory");
    if constexpr (kTiles == 2) {
        asm volatile(
            "tileloadd (%0, %1, 1), %%tmm5\n\t"
            "tdpbf16ps %%tmm5, %%tmm6, %%tmm2\n\t"
            "tdpbf16ps %%tmm5, %%tmm7, %%tmm3"
            :
            : "r"(second), "r"(kTileRowBytes)
            : "memory");
    }
}
LLMD_INLINE void resume_sums(const float* sums) {
    asm volatile(
        "tileloadd (%0, %1, 1), %%tmm0\n\ttileloadd 1024(%0, %1, 1), %%tmm1\n\t"
        "tileloadd 2048(%0, %1, 1), %%tmm2\n\ttileloadd 3072(%0, %1, 1), %%tmm3"
        :
        : "r"(sums), "r"(kTileRowBytes)
        : "memory");
}

// Lines [first, last) of two panels times one or two tiles of rows, beginning with `tile`. Sums:
// [tiles][panels][16][16].
template <int kTiles>
LLMD_INLINE void bf16_tiles(const Bf16Panel (&panels)[kBf16Panels], const SplitRows& x, int64_t tile,
                            int64_t first, int64_t last, float* sums) {
    if (first == 0) {
        start_sums<2>();
    } else {
        resume_sums(sums);
    }
    for (int64_t line = first; line < last; ++line) {
        panels[0].load_line<6>(line);
        panels[1].load_line<7>(line);
        const uint16_t* of_tile = x.line(tile, line);
        const uint16_t* of_next = x.line(tile + kTiles - 1, line);
        unroll<kBf16Terms>([&](auto t) LLMD_LAMBDA {
            multiply_term<kTiles>(of_tile + t * x.layout.term(), of_next + t * x.layout.term());
        });
    }
    store_sums<2>(sums);
}

// Tiles of rows [tile, end) against panels [first, last), which are one AMX block.
LLMD_INLINE void bf16_rows(const LinearArgs& args, const LinearTarget& target, int64_t tile, int64_t end,
                           int64_t first, int64_t last) {
    constexpr int64_t kLines = 24;
    constexpr int64_t kTilePair = 2 * kBf16Panels * kSumNumbers;
    const int64_t of_panels = pieces(end - tile, 2) * kTilePair;
    const SplitRows x(args);
    Bf16Shapes shapes(kTileRows);
    for (int64_t line = 0; line < x.layout.lines(); line += kLines) {
        const int64_t stop = line + kLines < x.layout.lines() ? line + kLines : x.layout.lines();
        float* sums = amx_totals();
        for (int64_t p = first; p < last; p += kBf16Panels, sums += of_panels) {
            // If there is no second panel, the first is multiplied twice.
            const Bf16Panel panels[kBf16Panels] = {{target.weight, p},
                                                   {target.weight, p + 1 < last ? p + 1 : p}};
            shapes.set(panels[0].height(), panels[1].height());
            for (int64_t t = 0; tile + t < end; t += 2) {
                float* of_tiles = sums + t / 2 * kTilePair;
                if (tile + t + 1 < end) {
                    bf16_tiles<2>(panels, x, tile + t, line, stop, of_tiles);
                } else {
                    bf16_tiles<1>(panels, x, tile + t, line, stop, of_tiles);
                }
            }
        }
    }
    for (int64_t t = 0; tile + t < end; ++t) {
        for (int64_t p = 0; first + p < last; ++p) {
            const float* of_panel = amx_totals() + p / kBf16Panels * of_panels;
            const float* of_tile = of_panel + (t * kBf16Panels + p % kBf16Panels) * kSumNumbers;
            finish_sums(args, target, first + p, tile + t, of_tile);
        }
    }
}

// Panels [first, last) of a weight.
LLMD_INLINE void bf16_panels(const LinearArgs& args, const LinearTarget& target, int64_t first,
                             int64_t last) {
    static_assert(kAmxRowBlock % kTileRows == 0);
    if (args.rows <= kTileRows) {
        bf16_few_rows(args, target, first, last);
    } else {
        each_amx_block(args.rows, first, last, [&](Run panels, Run rows) LLMD_LAMBDA {
            bf16_rows(args, target, rows.first / kTileRows, pieces(rows.last, kTileRows), panels.first,
                      panels.last);
        });
    }
    release_tiles();
}

}  // namespace llmd::LLMD_ISA
