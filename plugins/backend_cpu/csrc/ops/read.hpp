// read: reads memory as fast as this unit can, as a baseline for kernels
//
//   data   bytes at any alignment, a multiple of 1024     returns  the XOR of all 64-bit words

#pragma once

namespace llmd::LLMD_ISA {

uint64_t read(const uint8_t* data, int64_t bytes) {
    constexpr int kSums = 8;
    typedef uint64_t Words __attribute__((vector_size(4 * Vec::kLanes)));
    Words sums[kSums] = {};
    for (int64_t i = 0; i < bytes; i += kSums * static_cast<int64_t>(sizeof(Words))) {
        unroll<kSums>([&](auto s) LLMD_LAMBDA {
            Words words;
            std::memcpy(&words, data + i + s * static_cast<int64_t>(sizeof(Words)), sizeof words);
            sums[s] ^= words;
        });
    }
    uint64_t result = 0;
    for (const Words& words : sums) {
        for (size_t lane = 0; lane < sizeof(Words) / sizeof(uint64_t); ++lane) result ^= words[lane];
    }
    return result;
}

}  // namespace llmd::LLMD_ISA
