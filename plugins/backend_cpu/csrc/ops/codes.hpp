// Unpacks codes into records of 64 bytes, 4 inputs of 16 output rows, as integer products take them.
//
//   record  codes, values of a code book, or codes times fine scales minus fine minimums; plus an offset
//   layout  of packed codes: ops/pack.hpp

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kSlabQuads = static_cast<int>(kSlabInputs) / 4;

// Whether products of codes of 5 bits cost less than those of signed bytes. The values of a short book are
// then stored as such codes, with 16 added.
constexpr bool kShortBooks = operand_of(5, false) != operand_of(8, true);
constexpr int32_t kBiasOfShort = 16;

LLMD_INLINE bool is_short(const int8_t (&book)[16]) {
    for (const int8_t value : book) {
        if (value < -kBiasOfShort || value >= kBiasOfShort) return false;
    }
    return true;
}

// kScaleSegments: the segments that share a fine scale, if codes are multiplied by it; else 0.
template <int kBits_, bool kBook_ = false, int kScaleSegments_ = 0, bool kHasOutliers_ = false,
          bool kShortBook_ = false>
struct Codes {
    static constexpr int kBits = kBits_;
    static constexpr bool kBook = kBook_;
    static constexpr bool kShortBook = kShortBook_;
    static constexpr int kScaleSegments = kScaleSegments_;
    static constexpr bool kHasOutliers = kHasOutliers_;
    static constexpr int kTerms = kHasOutliers ? 2 : 1;  // see IntegerFormat::input_terms
    static constexpr bool kNibbleScales = kBits == 4;    // see IntegerFormat::nibble_scales
    static constexpr Operand kOperand =
        kShortBook ? operand_of(5, false) : operand_of(kScaleSegments > 0 ? 8 : kBits, kBook);

    // How much larger a byte of a record is than the integer that the weight's scale multiplies.
    LLMD_INLINE_MEMBER static int32_t offset(const IntegerFormat& format) {
        if constexpr (kShortBook) return kBiasOfShort;
        if constexpr (kBook || kScaleSegments > 0) return kBiasOfSigned;
        return kBits == 8 ? format.zero - 128 + kBiasOfSigned : format.zero;
    }
};

// Calls f(Codes<…>) for the codes of a format.
template <class F>
LLMD_INLINE void with_codes(const IntegerFormat& format, F&& f) {
    if constexpr (kShortBooks) {
        if (format.has_book && is_short(format.book)) return f(Codes<4, true, 0, false, true>{});
    }
    if (format.has_book) return f(Codes<4, true>{});
    if (format.in_int8 && format.bits == 2) return f(Codes<2, false, 1>{});
    if (format.in_int8 && format.bits == 3) return f(Codes<3, false, 2>{});
    if (format.in_int8) return f(Codes<4, false, 2>{});
    if (format.outliers > 0) return f(Codes<8, false, 0, true>{});
    switch (format.bits) {
        case 2:
            return f(Codes<2>{});
        case 3:
            return f(Codes<3>{});
        case 4:
            return f(Codes<4>{});
        case 5:
            return f(Codes<5>{});
        case 6:
            return f(Codes<6>{});
        default:
            return f(Codes<8>{});
    }
}

// The values of the codes C, with their bias.
template <class C>
LLMD_INLINE Book book_of(const IntegerFormat& format) {
    if constexpr (C::kShortBook) {
        int8_t codes[16];
        for (int i = 0; i < 16; ++i) codes[i] = static_cast<int8_t>(format.book[i] + kBiasOfShort);
        return load_book(codes);
    } else {
        return load_book(format.book);
    }
}

// What codes are looked up in or multiplied by: the code book, and the fine scales of the current slab.
template <class C>
struct Decoding {
    Book book;
    RowScales scales[2];

    LLMD_INLINE_MEMBER explicit Decoding(const IntegerFormat& format) : book(book_of<C>(format)) {}

    // Loads the scales of slab number `slab` of an activation group.
    LLMD_INLINE_MEMBER void load_scales_of(int64_t slab, const uint8_t* fine_scales,
                                           const uint8_t* fine_minimums) {
        if constexpr (C::kScaleSegments > 0) {
            constexpr int kGroups = 2 / C::kScaleSegments;
            constexpr int kScaleBytes = static_cast<int>(kPanelRows) / (C::kNibbleScales ? 2 : 1);
            unroll<kGroups>([&](auto i) LLMD_LAMBDA {
                const int64_t group = slab * kGroups + i;
                scales[i] = load_row_scales<C::kNibbleScales>(fine_scales + group * kScaleBytes,
                                                              fine_minimums + group * kPanelRows);
            });
        }
    }
};

template <int kBits>
struct Slab {
    Bytes planes[kBits];
};

// Loads a slab, and prefetches what is `ahead` bytes further on.
template <int kBits>
LLMD_INLINE Slab<kBits> load_slab(const uint8_t* p, int64_t ahead) {
    Slab<kBits> slab;
    unroll<kBits>([&](auto i) LLMD_LAMBDA {
        slab.planes[i] = load_bytes(p + 64 * i);
        if constexpr (kPrefetches) __builtin_prefetch(p + 64 * i + ahead);
    });
    return slab;
}

// Prefetches what is `ahead` bytes further on than a header.
LLMD_INLINE void prefetch_past(const uint8_t* header, int64_t bytes, int64_t ahead) {
    if constexpr (kPrefetches) {
        for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(header + i + ahead);
    }
}

// Record kQuad of a slab.
template <class C, int kQuad>
LLMD_INLINE Bytes codes_of(const Slab<C::kBits>& slab) {
    constexpr int kBits = C::kBits;
    if constexpr (kBits == 8) {
        return from_byte_codes(slab.planes[kQuad]);
    } else if constexpr (kBits == 2 || kBits == 3) {
        const Bytes low = field<2 * (kQuad % 4), 3>(slab.planes[kQuad / 4]);
        if constexpr (kBits == 2) return low;
        return with_field<kQuad - 2, 4>(low, slab.planes[kBits - 1]);
    } else {
        const Bytes low = field<4 * (kQuad % 2), 15>(slab.planes[kQuad / 2]);
        if constexpr (kBits == 5) return with_field<kQuad - 4, 16>(low, slab.planes[4]);
        if constexpr (kBits == 6) return with_field<2 * (kQuad % 4) - 4, 48>(low, slab.planes[4 + kQuad / 4]);
        return low;
    }
}
template <class C, int kQuad>
LLMD_INLINE Bytes record_of(const Slab<C::kBits>& slab, [[maybe_unused]] const Decoding<C>& decoding) {
    const Bytes codes = codes_of<C, kQuad>(slab);
    if constexpr (C::kBook) {
        return look_up(decoding.book, codes);
    } else if constexpr (C::kScaleSegments > 0) {
        return apply(decoding.scales[kQuad / 4 / C::kScaleSegments], codes);
    } else {
        return codes;
    }
}

}  // namespace llmd::LLMD_ISA
