// The unit for x86-64 with AVX2, FMA, F16C and AVX-VNNI.

#define LLMD_ISA avx_vnni
#include "simd/avx_vnni.hpp"

#include "simd/avx2_pairs.hpp"
#include "simd/gathered.hpp"
// The vector type comes first: the ops are written against it.
#include "ops/table.hpp"

namespace llmd {

const Kernels& avx_vnni_kernels() {
    static constexpr Kernels kernels = avx_vnni::table("avx_vnni");
    return kernels;
}

}  // namespace llmd
