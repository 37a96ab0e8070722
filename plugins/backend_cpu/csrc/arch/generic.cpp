// The unit for any machine, with no flags beyond the baseline of the architecture.

#define LLMD_ISA generic
#include "simd/generic.hpp"

#include "simd/gathered.hpp"
#include "simd/generic_pairs.hpp"
// The vector type comes first: the ops are written against it.
#include "ops/table.hpp"

namespace llmd {

const Kernels& generic_kernels() {
    static constexpr Kernels kernels = generic::table("generic");
    return kernels;
}

}  // namespace llmd
