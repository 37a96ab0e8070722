// Integer formats of weights, and the sizes of packed weights and of quantised activations. ops/pack.hpp
// and ops/quantize.hpp describe the bytes; README.md draws them.

#pragma once

#include <cstdint>

// Units for different instruction sets share these functions. They must always be inlined, or the linker
// would keep the copy of one unit for all.
#define LLMD_SHARED [[gnu::always_inline]] inline

namespace llmd {

constexpr int64_t kPanelRows = 16;         // output rows of a panel
constexpr int64_t kSlabInputs = 32;        // inputs of a slab, whose codes are packed together
constexpr int64_t kSegmentInputs = 16;     // inputs of a segment, the shortest group
constexpr int64_t kLineInputs = 64;        // inputs of a line: activations of a row that are contiguous
constexpr int64_t kInputRows = 16;         // rows of an input tile, whose lines are contiguous
constexpr int64_t kMostGroupInputs = 256;  // most inputs that may share an activation scale
constexpr int64_t kBandPanels = 4;         // panels of a band
constexpr int64_t kStripBands = 8;
constexpr int64_t kStripPanels = kStripBands * kBandPanels;
constexpr int64_t kSkippingRows = 4;  // inputs that are zero are skipped with at most so many rows
constexpr int64_t kOutliers = 4;      // outliers of a row in a group, if the format has outliers
constexpr int kOutlierShift = 3;      // their residuals count multiples of 8

// weight = scale * (book[code] or code - zero) + minimum, as in llmd.api.IntegerFormat.
struct IntegerFormat {
    int32_t bits = 0;         // of a code: 2, 3, 4, 5, 6 or 8
    int32_t zero = 0;         // subtracted from codes
    int64_t group_size = 0;   // inputs that share a scale
    int64_t coarse_size = 0;  // inputs that share a coarse scale if scales have two levels, else 0
    bool has_minimum = false;
    bool bf16_scales = false;  // coarse scales are bf16, not f16
    bool has_book = false;
    int8_t book[16] = {};  // the values of the codes, if the format has a code book
    // weight = coarse scale * (fine scale * code - fine minimum), and the bracket fits in int8.
    bool in_int8 = false;
    // Weights of a group that have a residual in addition to their code: 0 or kOutliers. Activations are
    // then rounded to int9.
    int32_t outliers = 0;

    bool operator==(const IntegerFormat&) const = default;

    // Inputs that share an activation scale.
    LLMD_SHARED constexpr int64_t activation_group() const {
        return coarse_size > 0 ? coarse_size : group_size;
    }
    LLMD_SHARED constexpr bool two_levels() const { return coarse_size > 0; }
    // Inputs whose products are summed as integers before a scale is applied.
    LLMD_SHARED constexpr int64_t sum_group() const { return in_int8 ? coarse_size : group_size; }
    // int8 numbers per activation: an int9 activation is the sum of two.
    LLMD_SHARED constexpr int64_t input_terms() const { return outliers > 0 ? 2 : 1; }
    // Whether fine scales take 4 bits. They do with 4-bit codes, because no such format has a fine scale
    // above 15.
    LLMD_SHARED constexpr bool nibble_scales() const { return in_int8 && bits == 4; }
};

// Whether kernels exist for such scales with codes of `bits` bits, or with a code book.
LLMD_SHARED constexpr bool scales_suit(int bits, bool book, bool two_levels, bool minimum) {
    if (bits == 8) return !two_levels && !minimum;
    if (bits == 6) return two_levels && !minimum;
    if (book) return !minimum;
    return !two_levels || minimum == (bits != 3);
}

// Inputs that share a fine scale, if scales have two levels and kernels exist.
LLMD_SHARED constexpr int64_t fine_group(int bits) {
    return bits == 4 || bits == 5 ? kSlabInputs : kSegmentInputs;
}

LLMD_SHARED constexpr int64_t pieces(int64_t count, int64_t size) { return (count + size - 1) / size; }

// The bytes of 8-bit codes are XORed with this in panels. The products of aarch64 take signed weights:
// storing signed bytes saves an instruction per load.
#ifdef __aarch64__
constexpr uint8_t kByteCodeFlip = 128;
#else
constexpr uint8_t kByteCodeFlip = 0;
#endif

// Names the layout in files. Change the number whenever the bytes of panels change their meaning.
constexpr const char* kPanelLayoutName = kByteCodeFlip == 0 ? "llmd panels 2" : "llmd panels 2 signed";
// The name if some matrices also have strips.
constexpr const char* kStripLayoutName =
    kByteCodeFlip == 0 ? "llmd panels 2, strips 1" : "llmd panels 2 signed, strips 1";

// Packed weights: for each activation group a header with scales, then slabs of codes.
struct PanelLayout {
    int64_t cols;
    IntegerFormat format;

    LLMD_SHARED constexpr int64_t activation_groups() const {
        return pieces(cols, format.activation_group());
    }
    LLMD_SHARED constexpr int64_t slabs(int64_t a) const {
        const int64_t left = cols - a * format.activation_group();
        return pieces(left < format.activation_group() ? left : format.activation_group(), kSlabInputs);
    }
    // Weight groups in an activation group, including the padding of its last slab.
    LLMD_SHARED constexpr int64_t groups(int64_t a) const {
        return pieces(slabs(a) * kSlabInputs, format.group_size);
    }
    LLMD_SHARED constexpr int64_t coarse_bytes() const {
        return 2 * kPanelRows * (format.has_minimum && !format.in_int8 ? 2 : 1);
    }
    LLMD_SHARED constexpr int64_t fine_scale_bytes(int64_t a) const {
        if (!format.two_levels()) return 0;
        return groups(a) * (format.nibble_scales() ? kPanelRows / 2 : kPanelRows);
    }
    LLMD_SHARED constexpr int64_t fine_bytes(int64_t a) const {
        return fine_scale_bytes(a) + (format.two_levels() && format.has_minimum ? groups(a) * kPanelRows : 0);
    }
    LLMD_SHARED constexpr int64_t outlier_bytes() const { return 2 * kPanelRows * format.outliers; }
    LLMD_SHARED constexpr int64_t slab_bytes() const { return 64 * format.bits; }
    LLMD_SHARED constexpr int64_t header_bytes(int64_t a) const {
        return coarse_bytes() + fine_bytes(a) + outlier_bytes();
    }
    LLMD_SHARED constexpr int64_t group_bytes(int64_t a) const {
        return header_bytes(a) + slabs(a) * slab_bytes();
    }
    LLMD_SHARED constexpr int64_t panel_bytes() const {
        const int64_t last = activation_groups() - 1;
        return last < 0 ? 0 : last * group_bytes(0) + group_bytes(last);
    }
};

// The input-major copy of packed weights, for matrices whose inputs are often zero. A strip has as many
// bytes as its panels: first all headers, those of an activation group together, then the codes, those of
// an input together.
struct StripLayout {
    PanelLayout panel;

    LLMD_SHARED constexpr int64_t input_bytes() const {
        return kStripPanels * kPanelRows * panel.format.bits / 8;
    }
    // Offsets of the headers, and of the codes, of an activation group.
    LLMD_SHARED constexpr int64_t headers(int64_t a) const {
        return a * kStripPanels * panel.header_bytes(0);
    }
    LLMD_SHARED constexpr int64_t codes(int64_t a) const {
        const int64_t last = panel.activation_groups() - 1;
        return headers(last) + kStripPanels * panel.header_bytes(last) +
               a * panel.format.activation_group() * input_bytes();
    }
    LLMD_SHARED constexpr int64_t strip_bytes() const { return kStripPanels * panel.panel_bytes(); }
    // Entries in a list of a row's nonzero inputs, including room after its end.
    LLMD_SHARED static constexpr int64_t most_active(int64_t cols) { return pieces(cols, 64) * 64 + 64; }
    // Bytes of such a list.
    LLMD_SHARED constexpr int64_t list_bytes() const {
        const int64_t most = most_active(panel.cols);
        return 4 * most + 3 * most / 4 + 64 + panel.format.input_terms() * most;
    }
};

// Quantised activations of a row.
struct InputLayout {
    int64_t cols;
    int64_t group_size;
    int64_t terms;

    LLMD_SHARED constexpr int64_t groups() const { return pieces(cols, group_size); }
    LLMD_SHARED constexpr int64_t lines() const { return pieces(cols, kLineInputs); }
    LLMD_SHARED constexpr int64_t values() const { return terms * lines() * kLineInputs; }
    LLMD_SHARED constexpr int64_t running() const { return lines() * (kLineInputs / kSegmentInputs) + 1; }
};

}  // namespace llmd
