// top_k: the k largest of z with their indices, by (value descending, index ascending)
//
//   z      [count]  f32; NaN counts as -inf     ids  int32 [k]     values  f32 [k]     k <= count
//   how    an ascending scan compares a register at a time with the smallest value kept, and inserts what
//          is larger
//   check  equals a full sort   (tests/plugins/backend_cpu/test_device.py)

#pragma once

namespace llmd::LLMD_ISA {

// Inserts after all values that are at least as large: those have smaller indices.
LLMD_INLINE void insert(int32_t* ids, float* values, int64_t place, int32_t id, float value) {
    for (; place > 0 && values[place - 1] < value; --place) {
        values[place] = values[place - 1];
        ids[place] = ids[place - 1];
    }
    values[place] = value;
    ids[place] = id;
}

LLMD_INLINE void top_k(const float* z, int64_t count, int64_t k, int32_t* ids, float* values) {
    if (k == 0) return;
    int64_t i = 0;
    for (; i < k; ++i) {
        insert(ids, values, i, static_cast<int32_t>(i), z[i] == z[i] ? z[i] : -__builtin_inff());
    }
    while (i < count) {
        if (i + Vec::kLanes <= count && !any_greater(load(z + i), set1(values[k - 1]))) {
            i += Vec::kLanes;
            continue;
        }
        const int64_t end = i + Vec::kLanes < count ? i + Vec::kLanes : count;
        for (; i < end; ++i) {
            if (z[i] > values[k - 1]) insert(ids, values, k - 1, static_cast<int32_t>(i), z[i]);
        }
    }
}

}  // namespace llmd::LLMD_ISA
