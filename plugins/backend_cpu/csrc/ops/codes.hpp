// From packed codes to records of 64 bytes: 4 inputs of 16 output rows, as products of integers want them.
//
//   a record holds codes, or values of a code book, plus what `kRecordOffset` says
//   layout of the codes  ops/pack.hpp

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kChunkQuads = static_cast<int>(kChunkInputs) / 4;

template <int kBits_, bool kBook_>
struct Codes {
    static constexpr int kBits = kBits_;
    static constexpr bool kBook = kBook_;
    static constexpr Operand kOperand = operand_of(kBits, kBook);

    // What a record's byte has more than the integer that the weight's scale multiplies.
    LLMD_INLINE_MEMBER static int32_t offset(const IntegerFormat& format) {
        if constexpr (kBook) return kBiasOfSigned;
        return kBits == 8 ? format.zero - 128 + kBiasOfSigned : format.zero;
    }
};

// Calls f(Codes<…>) for the codes of a format.
template <class F>
LLMD_INLINE void with_codes(const IntegerFormat& format, F&& f) {
    if (format.has_book) return f(Codes<4, true>{});
    switch (format.bits) {
        case 2:
            return f(Codes<2, false>{});
        case 3:
            return f(Codes<3, false>{});
        case 4:
            return f(Codes<4, false>{});
        case 5:
            return f(Codes<5, false>{});
        case 6:
            return f(Codes<6, false>{});
        default:
            return f(Codes<8, false>{});
    }
}

template <int kBits>
struct Chunk {
    Bytes planes[kBits];
};

// Loads a chunk, and asks for what lies kAhead bytes further on.
template <int kBits, int kAhead>
LLMD_INLINE Chunk<kBits> load_chunk(const uint8_t* p) {
    Chunk<kBits> chunk;
    unroll<kBits>([&](auto i) LLMD_LAMBDA {
        chunk.planes[i] = load_bytes(p + 64 * i);
        if constexpr (kAhead > 0) __builtin_prefetch(p + 64 * i + kAhead);
    });
    return chunk;
}

// Record kQuad of a chunk.
template <class C, int kQuad>
LLMD_INLINE Bytes record_of(const Chunk<C::kBits>& chunk, [[maybe_unused]] const Book& book) {
    constexpr int kBits = C::kBits;
    if constexpr (kBits == 8) {
        return from_byte_codes(chunk.planes[kQuad]);
    } else if constexpr (kBits == 2 || kBits == 3) {
        const Bytes low = field<2 * (kQuad % 4), 3>(chunk.planes[kQuad / 4]);
        if constexpr (kBits == 2) return low;
        return with_field<kQuad - 2, 4>(low, chunk.planes[kBits - 1]);
    } else {
        const Bytes low = field<4 * (kQuad % 2), 15>(chunk.planes[kQuad / 2]);
        if constexpr (C::kBook) return look_up(book, low);
        if constexpr (kBits == 5) return with_field<kQuad - 4, 16>(low, chunk.planes[4]);
        if constexpr (kBits == 6)
            return with_field<2 * (kQuad % 4) - 4, 48>(low, chunk.planes[4 + kQuad / 4]);
        return low;
    }
}

}  // namespace llmd::LLMD_ISA
