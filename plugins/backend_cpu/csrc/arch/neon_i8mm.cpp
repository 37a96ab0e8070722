// The unit for aarch64 with the dot products of armv8.2-a and the matrix products of i8mm.

#define LLMD_ISA neon_i8mm
#include "simd/neon_i8mm.hpp"

#include "simd/neon_pairs.hpp"
// The vector type comes first: the ops are written against it. Specialisations for this unit come before
// the ops.
#include "ops/integer_row_neon.hpp"
#include "ops/integer_tile_i8mm.hpp"
#include "ops/integer_tile_neon.hpp"
#include "ops/table.hpp"

namespace llmd {

const Kernels& neon_i8mm_kernels() {
    static constexpr Kernels kernels = neon_i8mm::table("neon_i8mm");
    return kernels;
}

}  // namespace llmd
