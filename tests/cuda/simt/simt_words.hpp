// Functions of gpu.cuh for words, bytes, float16 and memory.
#pragma once

DEVICE u32 bits_of(float value) {
    u32 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
DEVICE float float_of(u32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
DEVICE int count_bits(u32 word) { return __builtin_popcount(word); }
DEVICE int leading_zeros(u32 word) { return word ? __builtin_clz(word) : 32; }
DEVICE u32 high_product(u32 a, u32 b) { return (u64)a * b >> 32; }

// Digits above 7 are an error: the documentation ignores the high bit, the instruction repeats the sign for
// it.
DEVICE u32 pick_bytes(u32 a, u32 b, u32 chosen, SITE) {
    if (chosen & 0xffff8888u) simt::fail(site, "pick_bytes chooses with 0x%x", chosen);
    const u64 bytes = (u64)b << 32 | a;
    u32 word = 0;
    for (int byte = 0; byte < 4; ++byte) {
        word |= (u32)(bytes >> (chosen >> byte * 4 & 7) * 8 & 0xff) << byte * 8;
    }
    return word;
}
DEVICE u32 pick_bytes_or_signs(u32 a, u32 b, u32 chosen) {
    const u64 bytes = (u64)b << 32 | a;
    u32 word = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const u32 picked = bytes >> (chosen >> byte * 4 & 7) * 8 & 0xff;
        const u32 sign = picked >> 7 ? 0xff : 0;
        word |= (chosen >> byte * 4 & 8 ? sign : picked) << byte * 8;
    }
    return word;
}
DEVICE i32 dot4(u32 a, u32 b, i32 sum) {
    u32 total = sum;  // wraps around
    for (int bits = 0; bits < 32; bits += 8) total += (u32)((i8)(a >> bits) * (i8)(b >> bits));
    return total;
}

DEVICE u16 to_half(float value) { return simt::round_to_half(fminf(fmaxf(value, -65504.0f), 65504.0f)); }
DEVICE half2 to_half2(float first, float second) { return to_half(first) | (u32)to_half(second) << 16; }
DEVICE float from_half(u16 half) { return simt::half_to_float(half); }
DEVICE float first_of(half2 both) { return from_half(both & 0xffff); }
DEVICE float second_of(half2 both) { return from_half(both >> 16); }
DEVICE half2 twice(u16 half) { return half * 0x10001u; }

// Sums and products of two float16 are exact in double, and rounded once.
DEVICE half2 add(half2 a, half2 b) {
    return simt::round_to_half((double)first_of(a) + first_of(b)) |
           (u32)simt::round_to_half((double)second_of(a) + second_of(b)) << 16;
}
DEVICE half2 subtract(half2 a, half2 b) {
    return simt::round_to_half((double)first_of(a) - first_of(b)) |
           (u32)simt::round_to_half((double)second_of(a) - second_of(b)) << 16;
}
DEVICE half2 multiply(half2 a, half2 b) {
    return simt::round_to_half((double)first_of(a) * first_of(b)) |
           (u32)simt::round_to_half((double)second_of(a) * second_of(b)) << 16;
}
DEVICE half2 multiply_add(half2 a, half2 b, half2 c) {
    return simt::fused_half(a, b, c) | (u32)simt::fused_half(a >> 16, b >> 16, c >> 16) << 16;
}

namespace shim {

using namespace ::simt;
template <class Words>
Words read_global(const void* from, const char* name, Site site) {
    if ((u64)from % sizeof(Words)) {
        fail(site, "%s from %p, which is not aligned to %d bytes", name, from, (int)sizeof(Words));
    }
    if (is_shared(from, sizeof(Words))) fail(site, "%s from shared memory", name);
    return *(const Words*)from;
}
}  // namespace shim

DEVICE Words4 read_once(const void* from, SITE) { return shim::read_global<Words4>(from, "read_once", site); }
DEVICE Words2 read_once_8(const void* from, SITE) {
    return shim::read_global<Words2>(from, "read_once_8", site);
}
DEVICE u32 read_once_4(const void* from, SITE) { return shim::read_global<u32>(from, "read_once_4", site); }

DEVICE void copy_16(void* to_shared, const void* from, SITE) { simt::start_copy(to_shared, from, site); }
DEVICE void commit_copies() { simt::commit_copies(); }
template <int pending>
DEVICE void wait_for_copies() {
    simt::finish_copies(pending);
}

DEVICE i32 atomic_add(i32* at, i32 value) {
    const i32 old = *at;
    *at = (u32)old + (u32)value;
    return old;
}
DEVICE u32 atomic_add(u32* at, u32 value) {
    const u32 old = *at;
    *at = old + value;
    return old;
}
DEVICE float atomic_add(float* at, float value) {
    const float old = *at;
    *at = old + value;
    return old;
}
