// Gathers bytes of a row's lines one by one, for instruction sets without a shuffle across 64 bytes.

#pragma once

#include "integer_layout.hpp"
#include "simd/elements.hpp"

namespace llmd::LLMD_ISA {

struct Columns {
    const uint8_t* places;

    LLMD_INLINE_MEMBER explicit Columns(const uint8_t* p) : places(p) {}
};
LLMD_INLINE Bytes gather(Columns columns, const int8_t* lines, int64_t stride) {
    uint8_t bytes[64];
    for (int i = 0; i < 64; ++i) {
        const int64_t place = columns.places[i];
        bytes[i] = static_cast<uint8_t>(lines[place / kLineInputs * stride + place % kLineInputs]);
    }
    return load_bytes(bytes);
}

}  // namespace llmd::LLMD_ISA
