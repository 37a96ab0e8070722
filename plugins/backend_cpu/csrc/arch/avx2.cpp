// The unit for x86-64 with AVX2, FMA and F16C.

#define LLMD_ISA avx2
#include "simd/avx2_integers.hpp"
#include "simd/avx2_pairs.hpp"
#include "simd/gathered.hpp"
// The vector type comes first: the ops are written against it. Specialisations for this unit come before
// the ops.
#include "ops/integer_fine_avx2.hpp"
#include "ops/integer_groups_avx2.hpp"
#include "ops/integer_tile_avx2.hpp"
#include "ops/table.hpp"

namespace llmd {

const Kernels& avx2_kernels() {
    static constexpr Kernels kernels = avx2::table("avx2");
    return kernels;
}

}  // namespace llmd
