// The unit for aarch64 with the dot products of armv8.2-a.

#define LLMD_ISA neon
#include "simd/neon.hpp"

#include "simd/neon_pairs.hpp"
// The vector type comes first: the ops are written against it. Specialisations for this unit come before
// the ops.
#include "ops/integer_row_neon.hpp"
#include "ops/integer_tile_neon.hpp"
#include "ops/table.hpp"

namespace llmd {

const Kernels& neon_kernels() {
    static constexpr Kernels kernels = neon::table("neon");
    return kernels;
}

}  // namespace llmd
