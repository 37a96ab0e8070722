// What the checks of -fsanitize call in kernels, so that no library of the compiler is needed.
#pragma once

#include <cstdint>

#include "engine.hpp"

namespace {
struct Place {
    const char* file;
    unsigned line, column;
    operator simt::Site() const { return {file, (int)line}; }
};
struct Mismatch {
    Place place;
    const void* type;
    unsigned char log_alignment;
};
}  // namespace

extern "C" void __ubsan_handle_type_mismatch_v1(Mismatch* data, void* pointer) {
    simt::fail(data->place, "access to %p, which is not aligned to %d bytes", pointer,
               1 << data->log_alignment);
}
extern "C" void __ubsan_handle_out_of_bounds(Place* place, std::uintptr_t index) {
    simt::fail(*place, "index %lld is outside the array", (long long)index);
}
extern "C" void __ubsan_handle_shift_out_of_bounds(Place* place, std::uintptr_t, std::uintptr_t count) {
    simt::fail(*place, "shift by %lld bits", (long long)count);
}
extern "C" void __ubsan_handle_add_overflow(Place* place, std::uintptr_t, std::uintptr_t) {
    simt::fail(*place, "a signed sum overflows");
}
extern "C" void __ubsan_handle_sub_overflow(Place* place, std::uintptr_t, std::uintptr_t) {
    simt::fail(*place, "a signed difference overflows");
}
extern "C" void __ubsan_handle_mul_overflow(Place* place, std::uintptr_t, std::uintptr_t) {
    simt::fail(*place, "a signed product overflows");
}
extern "C" void __ubsan_handle_negate_overflow(Place* place, std::uintptr_t) {
    simt::fail(*place, "a signed negation overflows");
}
extern "C" void __ubsan_handle_divrem_overflow(Place* place, std::uintptr_t, std::uintptr_t) {
    simt::fail(*place, "a division by zero, or one that overflows");
}
