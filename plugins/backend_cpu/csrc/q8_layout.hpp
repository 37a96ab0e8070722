// Sizes of packed int8 weights; the bytes themselves are described in ops/q8_panels.hpp.

#pragma once

#include <cstdint>

namespace llmd {

struct Q8Layout {
    int64_t cols;
    int64_t group_size;

    constexpr int64_t groups() const { return (cols + group_size - 1) / group_size; }
    constexpr int64_t group_inputs(int64_t g) const {
        const int64_t left = cols - g * group_size;
        return left < group_size ? left : group_size;
    }
    // Records of 4 inputs in a group, and in all groups.
    constexpr int64_t group_records(int64_t g) const { return (group_inputs(g) + 3) / 4; }
    constexpr int64_t records() const { return (cols + 3) / 4; }
    constexpr int64_t panel_bytes() const { return 32 * groups() + 64 * records(); }
};

}  // namespace llmd
