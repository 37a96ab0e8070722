// The units for x86-64 with AVX-512 F, BW, VL, DQ and VNNI, and for the same with AMX, which also
// multiplies tiles.

#define LLMD_ISA avx512
#include "simd/avx512.hpp"

#include "simd/avx512_pairs.hpp"
// The vector type comes first: the ops are written against it.
#include "ops/table.hpp"
// Needs the ops above.
#include "ops/linear_amx.hpp"

namespace llmd {

const Kernels& avx512_kernels() {
    static constexpr Kernels kernels = avx512::table("avx512");
    return kernels;
}

const Kernels& amx_kernels() {
    static constexpr Kernels kernels = [] {
        Kernels with_tiles = avx512::table("amx");
        with_tiles.splits_for_bf16 = true;
        with_tiles.convert = avx512::convert_amx;
        with_tiles.linear = avx512::linear_amx;
        with_tiles.convert_batch = avx512::convert_batch_amx;
        with_tiles.linear_batch = avx512::linear_batch_amx;
        return with_tiles;
    }();
    return kernels;
}

}  // namespace llmd
