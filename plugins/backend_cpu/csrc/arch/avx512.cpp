// The unit for x86-64 with AVX-512 F, BW, VL, DQ and VNNI.

#define LLMD_ISA avx512
#include "simd/avx512.hpp"

#include "simd/avx512_pairs.hpp"
// The vector type comes first: the ops are written against it.
#include "ops/table.hpp"

namespace llmd {

const Kernels& avx512_kernels() {
    static constexpr Kernels kernels = avx512::table("avx512");
    return kernels;
}

}  // namespace llmd
