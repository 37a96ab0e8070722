// linear, integers, few rows with many zeros: skips the weights that would be multiplied by zero.
//
//   weights   strips of 512 output rows, ops/pack.hpp: the codes of an input are contiguous
//   work      bands, ops/band_row.hpp
//   prefetch  what nonzero inputs need is prefetched 256 inputs ahead, because no hardware prefetcher
//             could guess it; a part of it with each band, because more requests at once would wait for
//             each other
//   check     the same bits as with panels (tests/plugins/backend_cpu/test_weights.py)
//   speed     bench/results/2026-11-23-zeros.md

#pragma once

#include "ops/band_row.hpp"

namespace llmd::LLMD_ISA {

// Skipping zeros is faster up to this many nonzero inputs, over all rows, per hundred inputs.
constexpr int64_t kMostActive = 25;

// Some bands of one strip, and the rows to multiply them by.
struct BandRun {
    const LinearArgs& args;
    const LinearTarget& target;
    StripLayout layout;
    int64_t strip;
    int64_t first;  // a band of the strip
    int64_t last;
    const InputTile* x;          // of each row
    const ActiveInputs* active;  // of each row

    const uint8_t* at() const {
        return static_cast<const uint8_t*>(target.weight.strips) + strip * layout.strip_bytes();
    }
    int64_t first_output(int64_t band) const {
        return (strip * kStripPanels + band * kBandPanels) * kPanelRows;
    }
};

// Prefetches a part of what a run needs of an activation group: the headers of a band, and the band's
// share of the codes of nonzero inputs.
LLMD_INLINE void prefetch_band(const BandRun& run, const StripGroup& group, int64_t band) {
    const uint8_t* headers = group.headers + band * kBandPanels * group.header_bytes;
    for (int64_t at = 0; at < kBandPanels * group.header_bytes; at += 64) __builtin_prefetch(headers + at);
    const int64_t bands = run.last - run.first;
    for (int64_t r = 0; r < run.args.rows; ++r) {
        const int32_t* ends = run.active[r].ends + group.first_fine_group;
        const int64_t first = 4 * ends[-1];
        const int64_t count = 4 * ends[group.num_fine_groups - 1] - first;
        const int64_t begin = first + count * (band - run.first) / bands;
        const int64_t end = first + count * (band - run.first + 1) / bands;
        for (int64_t i = begin; i < end; ++i) {
            const uint8_t* line = group.codes + run.active[r].places[i];
            for (int64_t b = 0; b < run.layout.panel.format.bits; ++b) __builtin_prefetch(line + 64 * b);
        }
    }
}

// Writes the outputs of a band: [4 panels][16] totals of a row.
LLMD_INLINE void finish_band(const BandRun& run, int64_t band, int64_t row, const float* totals) {
    const int64_t first = run.first_output(band);
    const TileOut out{run.target.out + first, run.target.bias == nullptr ? nullptr : run.target.bias + first,
                      run.target.weight.rows, run.target.weight.rows - first};
    for (int64_t p = 0; p < kBandPanels; ++p) finish_panel(out, row, p, totals + p * kPanelRows);
}

template <class C, class S>
void skipping_bands(const BandRun& run) {
    constexpr int64_t kBandOutputs = kBandPanels * kPanelRows;
    const IntegerFormat& format = run.layout.panel.format;
    const int64_t groups = run.layout.panel.activation_groups();
    const int64_t ahead = kMostGroupInputs / format.activation_group();
    // Minimums are stored as 128 minus the minimum.
    const int32_t offset = C::kScaleSegments > 0 ? 128 : C::offset(format);
    const Book book = book_of<C>(format);
    const uint8_t* strip = run.at();
    alignas(64) float totals[kSkippingRows * kStripBands * kBandOutputs] = {};
    for (int64_t a = -ahead; a < groups; ++a) {
        const bool more = a + ahead < groups;
        const StripGroup next(run.layout, strip, more ? a + ahead : 0, offset);
        const StripGroup group(run.layout, strip, a < 0 ? 0 : a, offset);
        for (int64_t l = run.first; l < run.last; ++l) {
            if (more) prefetch_band(run, next, l);
            if (a < 0) continue;
            for (int64_t r = 0; r < run.args.rows; ++r) {
                BandRow<C, S>(group, l, run.x[r], run.active[r], book)
                    .add_to(totals + (r * kStripBands + l) * kBandOutputs);
            }
        }
    }
    for (int64_t r = 0; r < run.args.rows; ++r) {
        for (int64_t l = run.first; l < run.last; ++l) {
            finish_band(run, l, r, totals + (r * kStripBands + l) * kBandOutputs);
        }
    }
}

LLMD_INLINE void multiply_bands(const BandRun& run) {
    const IntegerFormat& format = run.target.weight.integer;
    with_codes(format, [&](auto codes) LLMD_LAMBDA {
        using C = decltype(codes);
        with_scales<C>(format, [&](auto scales) LLMD_LAMBDA { skipping_bands<C, decltype(scales)>(run); });
    });
}

// Skips zeros if that is faster, and returns whether it did. All threads come to the same decision.
bool skip_zeros(const LinearArgs& args, Worker& worker) {
    const LinearTarget& target = args.targets[0];
    if (args.num_targets != 1 || target.weight.strips == nullptr || args.rows > kSkippingRows) return false;
    const IntegerFormat& format = target.weight.integer;
    const StripLayout layout{{target.weight.cols, format}};
    const InputLayout inputs{target.weight.cols, format.activation_group(), format.input_terms()};
    uint8_t* scratch = args.scratch + worker.id * args.scratch_bytes;
    InputTile x[kSkippingRows];
    ActiveInputs active[kSkippingRows];
    int64_t count = 0;
    for (int64_t r = 0; r < args.rows; ++r) {
        x[r] = input_tile(args.converted, inputs, r, args.rows);
        count += count_active(inputs, x[r]);
    }
    if (100 * count > kMostActive * target.weight.cols) return false;
    for (int64_t r = 0; r < args.rows; ++r) {
        active[r] = place_list(layout, scratch + r * layout.list_bytes());
        list_active(layout, x[r], active[r]);
    }
    const int64_t bands = target.weight.rows / (kBandPanels * kPanelRows);
    const int64_t part = bands / worker.count;
    const int64_t grain = part < 1 ? 1 : part < kStripBands ? part : kStripBands;
    for (Run run; worker.take_near(bands, grain, run);) {
        for (int64_t band = run.first; band < run.last;) {
            const int64_t before = band / kStripBands * kStripBands;
            const int64_t end = run.last < before + kStripBands ? run.last : before + kStripBands;
            multiply_bands(
                {args, target, layout, before / kStripBands, band - before, end - before, x, active});
            band = end;
        }
    }
    return true;
}

}  // namespace llmd::LLMD_ISA
