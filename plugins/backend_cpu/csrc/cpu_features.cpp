#include "cpu_features.hpp"

#include <stdexcept>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace llmd {

// A build may omit units (those of tests do); the functions of omitted units are null.
#if defined(__x86_64__)
__attribute__((weak)) const Kernels& amx_kernels();
__attribute__((weak)) const Kernels& avx512_kernels();
__attribute__((weak)) const Kernels& avx_vnni_kernels();
__attribute__((weak)) const Kernels& avx2_kernels();
#elif defined(__aarch64__)
__attribute__((weak)) const Kernels& neon_i8mm_kernels();
__attribute__((weak)) const Kernels& neon_kernels();
#endif
__attribute__((weak)) const Kernels& generic_kernels();

namespace {

struct Unit {
    const char* name;
    bool available;
    const Kernels& (*kernels)();
};

#if defined(__x86_64__)
// Linux keeps the state of AMX tiles only for processes that request it. Source: the kernel's
// Documentation/arch/x86/xstate.rst.
bool tiles_granted() {
    constexpr long kRequestPermission = 0x1023;
    constexpr long kTileData = 18;
    constexpr unsigned kBf16 = 1U << 22;
    constexpr unsigned kTiles = 1U << 24;
    constexpr unsigned kInt8 = 1U << 25;
    unsigned a, b, c, d;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned kAll = kBf16 | kTiles | kInt8;
    return (d & kAll) == kAll && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

std::vector<Unit> units() {
    std::vector<Unit> found;
#if defined(__x86_64__)
    // These checks also make sure that the operating system saves the wide registers.
    __builtin_cpu_init();
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx_vnni = avx2 && __builtin_cpu_supports("avxvnni");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vnni");
    static const bool amx = avx512 && tiles_granted();
    found.push_back({"amx", amx, amx_kernels});
    found.push_back({"avx512", avx512, avx512_kernels});
    found.push_back({"avx_vnni", avx_vnni, avx_vnni_kernels});
    found.push_back({"avx2", avx2, avx2_kernels});
#elif defined(__aarch64__)
    // The headers of older systems lack this name. Source: the kernel's
    // Documentation/arch/arm64/elf_hwcaps.rst.
    constexpr unsigned long kI8mm = 1UL << 13;
    const bool neon = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    found.push_back({"neon_i8mm", neon && (getauxval(AT_HWCAP2) & kI8mm) != 0, neon_i8mm_kernels});
    found.push_back({"neon", neon, neon_kernels});
#endif
    found.push_back({"generic", true, generic_kernels});
    std::erase_if(found, [](const Unit& unit) { return unit.kernels == nullptr; });
    return found;
}

}  // namespace

std::vector<std::string> available_isas() {
    std::vector<std::string> names;
    for (const Unit& unit : units()) {
        if (unit.available) names.emplace_back(unit.name);
    }
    return names;
}

const Kernels& kernels_of(const std::string& isa) {
    for (const Unit& unit : units()) {
        if (unit.available && unit.name == isa) return unit.kernels();
    }
    throw std::invalid_argument("this machine cannot run the instruction set " + isa);
}

}  // namespace llmd
