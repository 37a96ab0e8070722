// How far ahead kernels get weights from memory, where that depends on the processor. Compiled without
// instruction-set flags, because its value is found on every machine.

#pragma once

#include <cstdint>

namespace llmd {

// Bytes that the AVX-512 kernels for one row prefetch ahead, as measured (decision 101 in docs/decisions).
extern const int64_t kAvx512RowAhead;

}  // namespace llmd
