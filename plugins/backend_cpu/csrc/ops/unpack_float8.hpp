// unpack, FP8: out[i] = w[row][first + i] * scale * factor, in float32
//
//   w      [rows, cols]  e4m3fn, with a scale for each group of a row
//   check  exact except for one rounding of each product   (tests/plugins/backend_cpu/test_device.py)

#pragma once

namespace llmd::LLMD_ISA {

// The float16 numbers with the same fields.
LLMD_INLINE void widen_fields(const E4M3* from, int64_t count, F16* to) {
    for (int64_t i = 0; i < count; ++i) {
        const auto extended = static_cast<uint32_t>(static_cast<int8_t>(from[i].bits));
        to[i].bits = static_cast<uint16_t>(extended << kE4M3Shift & kE4M3Mask);
    }
}

// Columns [first, first + count) of a row.
LLMD_INLINE void unpack_float8(const Matrix& from, int64_t row, int64_t first, int64_t count, float factor,
                               float* out) {
    const E4M3* w = static_cast<const E4M3*>(from.data) + row * from.cols;
    const float* scales = from.scales + row * from.float8_groups();
    const Vec times = set1(factor);
    const int64_t last = first + count;
    for (int64_t k = first; k < last;) {
        const int64_t g = k / from.group_size;
        const int64_t next = (g + 1) * from.group_size;
        const int64_t end = next < last ? next : last;
        const Vec scale = set1(scales[g] * kE4M3Factor);
        float* to = out - first;
        for (; k + Vec::kLanes <= end; k += Vec::kLanes) store(to + k, load(w + k) * scale * times);
        const int left = static_cast<int>(end - k);
        if (left > 0) store_n(to + k, load_n(w + k, left) * scale * times, left);
        k = end;
    }
}

}  // namespace llmd::LLMD_ISA
