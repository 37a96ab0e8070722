// A list of the nonzero inputs ("active" inputs) of a row, made once per op.
//
//   list    offsets of the inputs' codes in a strip, and the inputs, in fours; each group of inputs that
//           share a fine scale (with one level: a scale) is padded with zeros to a multiple of four
//   sums    the sum of the activations of each group, which minimums and offsets of codes are multiplied
//           by

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE int64_t fine_groups(const PanelLayout& layout, int64_t a) {
    return layout.format.two_levels() ? layout.groups(a) : 1;
}
// Inputs that share a fine scale; with one level of scales, a scale.
LLMD_INLINE int64_t fine_group_size(const IntegerFormat& format) {
    return format.two_levels() ? format.group_size : format.activation_group();
}

struct ActiveInputs {
    int32_t* ends;        // end of each fine group in the list, in fours; 0 before the first
    int32_t* sums;        // of each fine group
    int32_t* group_sums;  // of each activation group
    int32_t* places;      // byte offsets within the codes of their activation group
    int8_t* values;       // [terms][fours][4]
    int64_t term_bytes;

    LLMD_INLINE_MEMBER const int8_t* inputs(int64_t four, int term) const {
        return values + term * term_bytes + 4 * four;
    }
};

// The number of nonzero inputs of a row.
LLMD_INLINE int64_t count_active(const InputLayout& layout, const InputTile& x) {
    int64_t count = 0;
    for (int64_t segment = 0; segment < layout.lines() * (kLineInputs / kSegmentInputs);
         segment += kLineInputs / kSegmentInputs) {
        const int8_t* values = x.segment(segment);
        const int8_t* more = x.segment(segment, layout.terms - 1);
        int32_t active = 0;
        for (int64_t i = 0; i < kLineInputs; ++i) active += (values[i] | more[i]) != 0 ? 1 : 0;
        count += active;
    }
    return count;
}

LLMD_INLINE void list_active(const StripLayout& layout, const InputTile& x, const ActiveInputs& to) {
    const PanelLayout& panel = layout.panel;
    const int64_t size = fine_group_size(panel.format);
    const bool wide = x.terms > 1;
    int64_t n = 0;
    int64_t group = 0;
    int64_t first = 0;  // first input of the activation group
    for (int64_t a = 0; a < panel.activation_groups(); ++a, first += panel.format.activation_group()) {
        const int64_t end = panel.slabs(a) * kSlabInputs;
        for (int64_t g = 0; g < fine_groups(panel, a); ++g) {
            const int64_t stop = (g + 1) * size < end ? (g + 1) * size : end;
            for (int64_t i = g * size; i < stop; i += kSegmentInputs) {
                const int64_t segment = (first + i) / kSegmentInputs;
                const int8_t* values = x.segment(segment);
                const int8_t* more = x.segment(segment, wide ? 1 : 0);
                for (int64_t j = 0; j < kSegmentInputs; ++j) {
                    to.places[n] = static_cast<int32_t>((i + j) * layout.input_bytes());
                    to.values[n] = values[j];
                    if (wide) to.values[to.term_bytes + n] = more[j];
                    n += values[j] != 0 || more[j] != 0 ? 1 : 0;
                }
            }
            for (; n % 4 != 0; ++n) {
                to.places[n] = to.places[n - 1];
                to.values[n] = 0;
                if (wide) to.values[to.term_bytes + n] = 0;
            }
            const int32_t* running = x.running + (first + g * size) / kSegmentInputs * x.rows;
            to.sums[group] = running[(stop - g * size) / kSegmentInputs * x.rows] - running[0];
            to.ends[group++] = static_cast<int32_t>(n / 4);
        }
        const int32_t* running = x.running + first / kSegmentInputs * x.rows;
        to.group_sums[a] = running[end / kSegmentInputs * x.rows] - running[0];
    }
}

// Places a list in the scratch of a thread.
LLMD_INLINE ActiveInputs place_list(const StripLayout& layout, uint8_t* scratch) {
    const int64_t most = StripLayout::most_active(layout.panel.cols);
    ActiveInputs list;
    list.places = reinterpret_cast<int32_t*>(scratch);
    list.sums = list.places + most;
    list.group_sums = list.sums + most / kSegmentInputs;
    list.ends = list.group_sums + most / kSegmentInputs + 1;
    list.ends[-1] = 0;
    list.values = reinterpret_cast<int8_t*>(list.ends + most / kSegmentInputs);
    list.term_bytes = most;
    return list;
}

}  // namespace llmd::LLMD_ISA
