// Treats float32 subnormals as zero during the lifetime of an object, then restores the thread's mode. A
// single subnormal operand can cost a hundred cycles.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llmd {

class DenormalsAreZero {
  public:
#if defined(__x86_64__)
    DenormalsAreZero() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushResults | kZeroOperands); }
    ~DenormalsAreZero() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
    DenormalsAreZero() {
        asm volatile("mrs %0, fpcr" : "=r"(saved_));
        asm volatile("msr fpcr, %0" : : "r"(saved_ | kFlush));
    }
    ~DenormalsAreZero() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#endif
    DenormalsAreZero(const DenormalsAreZero&) = delete;
    DenormalsAreZero& operator=(const DenormalsAreZero&) = delete;

  private:
#if defined(__x86_64__)
    static constexpr uint32_t kFlushResults = 1U << 15;
    static constexpr uint32_t kZeroOperands = 1U << 6;
    uint32_t saved_;
#elif defined(__aarch64__)
    static constexpr uint64_t kFlush = 1U << 24;
    uint64_t saved_;
#endif
};

}  // namespace llmd
