// The layouts follow docs/formats.md and `llmd.models.formats.gguf_blocks`, which is the reference.

#include "gguf_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace llmd {

namespace {

constexpr CodePlane kNoPlane{0, 1, 0};

constexpr BlockLayout kLayouts[] = {
    {"q4_0", 32, 18, 4, 32, {{4, 16, 2}, kNoPlane}, 0},
    {"q4_1", 32, 20, 4, 32, {{4, 16, 4}, kNoPlane}, 0, 2},
    {"q5_0", 32, 22, 5, 32, {{4, 16, 6}, {1, 1, 2}}, 0},
    {"q5_1", 32, 24, 5, 32, {{4, 16, 8}, {1, 1, 4}}, 0, 2},
    {"q8_0", 32, 34, 8, 32, {{8, 32, 2}, kNoPlane}, 0, -1, -1, FineScales::kNone, -1, -1, 0x80},
    {"q2_k", 256, 84, 2, 16, {{2, 32, 16}, kNoPlane}, 80, 82, -1, FineScales::kFourBits, 0},
    {"q3_k", 256, 110, 3, 16, {{2, 32, 32}, {1, 32, 0}}, 108, -1, -1, FineScales::kSixBitsSigned, 96},
    {"q4_k", 256, 144, 4, 32, {{4, 32, 16}, kNoPlane}, 0, 2, -1, FineScales::kSixBits, 4},
    {"q5_k", 256, 176, 5, 32, {{4, 32, 48}, {1, 32, 16}}, 0, 2, -1, FineScales::kSixBits, 4},
    {"q6_k", 256, 210, 6, 16, {{4, 64, 0}, {2, 32, 128}}, 208, -1, -1, FineScales::kBytes, 192},
    {"iq4_nl", 32, 18, 4, 32, {{4, 16, 2}, kNoPlane}, 0},
    {"iq4_xs", 256, 136, 4, 32, {{4, 16, 8}, kNoPlane}, 0, -1, -1, FineScales::kSplitSigned, 4, 2},
    {"mxfp4", 32, 17, 4, 32, {{4, 16, 1}, kNoPlane}, -1, -1, 0},
};

// Unpacks a plane of a block of `kLen` codes into `codes`: bit 0 of the plane becomes bit `kPlace`.
template <int kBits, int kPiece, int kLen, int kPlace>
void put_plane(const uint8_t* packed, uint8_t* codes) {
    constexpr int kPerByte = 8 / kBits;
    constexpr auto kMask = static_cast<uint8_t>((1 << kBits) - 1);
    for (int first = 0; first < kLen; first += kPiece * kPerByte, packed += kPiece) {
        uint8_t piece[kPiece];  // a copy, so that the compiler knows that writes cannot overlap it
        std::memcpy(piece, packed, sizeof piece);
        for (int n = 0; n < kPerByte; ++n) {
            uint8_t* to = codes + first + n * kPiece;
            for (int j = 0; j < kPiece; ++j) {
                const int code = (piece[j] >> (n * kBits)) & kMask;
                to[j] = static_cast<uint8_t>(kPlace == 0 ? code : to[j] | code << kPlace);
            }
        }
    }
}

template <size_t kLayout>
void decode_codes(const uint8_t* block, uint8_t* codes) {
    constexpr BlockLayout layout = kLayouts[kLayout];
    constexpr CodePlane low = layout.planes[0];
    constexpr CodePlane high = layout.planes[1];
    put_plane<low.bits, low.piece, layout.len, 0>(block + low.at, codes);
    if constexpr (high.bits != 0) {
        put_plane<high.bits, high.piece, layout.len, low.bits>(block + high.at, codes);
    }
    if constexpr (layout.flip != 0) {
        for (int i = 0; i < layout.len; ++i) codes[i] ^= layout.flip;
    }
}

uint16_t half_at(const uint8_t* block, int64_t at) {
    uint16_t bits;
    std::memcpy(&bits, block + at, sizeof bits);
    return bits;
}

bool finite(uint16_t half) { return (half & 0x7c00U) != 0x7c00U; }

// 2^(e - 128) as float32: half the value of E8M0, because the code book of mxfp4 holds doubled values.
uint32_t power_bits(uint8_t e) { return e < 2 ? 0x00200000U << e : (e - 1U) << 23; }

int8_t number(int value) { return static_cast<int8_t>(value); }

// q2_k: scales in the lower halves of 16 bytes, minimums in the upper halves.
void four_bits(const uint8_t* packed, int8_t* scales, int8_t* minimums) {
    for (int i = 0; i < 16; ++i) {
        scales[i] = number(packed[i] & 15);
        minimums[i] = number(packed[i] >> 4);
    }
}

// q4_k and q5_k: 8 scales and 8 minimums in 12 bytes. The first four of each are the lower 6 bits of bytes
// 0 to 3 and 4 to 7. Scale and minimum 4 + i have their lower 4 bits in byte 8 + i, and their upper 2 bits
// in the top of bytes i and 4 + i.
void six_bits(const uint8_t* packed, int8_t* scales, int8_t* minimums) {
    for (int i = 0; i < 4; ++i) {
        scales[i] = number(packed[i] & 63);
        minimums[i] = number(packed[4 + i] & 63);
        scales[4 + i] = number((packed[8 + i] & 15) | (packed[i] >> 6 << 4));
        minimums[4 + i] = number(packed[8 + i] >> 4 | (packed[4 + i] >> 6 << 4));
    }
}

// q3_k: 16 scales in 12 bytes, stored with 32 added. The lower 4 bits of scale i are half of byte i % 8;
// the upper 2 bits of scale 4 j + i are pair j of byte 8 + i.
void six_bits_signed(const uint8_t* packed, int8_t* scales) {
    for (int i = 0; i < 16; ++i) {
        const int low = packed[i % 8] >> (i < 8 ? 0 : 4) & 15;
        const int high = packed[8 + i % 4] >> (2 * (i / 4)) & 3;
        scales[i] = number((low | high << 4) - 32);
    }
}

// iq4_xs: the lower 4 bits of 8 scales in 4 bytes, the upper 2 bits in 2 bytes; stored with 32 added.
void split_signed(const uint8_t* low, const uint8_t* high, int8_t* scales) {
    for (int i = 0; i < 8; ++i) {
        const int lower = low[i / 2] >> (4 * (i % 2)) & 15;
        const int upper = high[i / 4] >> (2 * (i % 4)) & 3;
        scales[i] = number((lower | upper << 4) - 32);
    }
}

template <size_t kLayout>
void decode_fine(const uint8_t* block, int8_t* scales, int8_t* minimums) {
    constexpr BlockLayout layout = kLayouts[kLayout];
    const uint8_t* packed = block + layout.fine_scales;
    if constexpr (layout.fine == FineScales::kFourBits) four_bits(packed, scales, minimums);
    if constexpr (layout.fine == FineScales::kSixBits) six_bits(packed, scales, minimums);
    if constexpr (layout.fine == FineScales::kSixBitsSigned) six_bits_signed(packed, scales);
    if constexpr (layout.fine == FineScales::kSplitSigned)
        split_signed(packed, block + layout.fine_high, scales);
    if constexpr (layout.fine == FineScales::kBytes) std::memcpy(scales, packed, 16);
}

}  // namespace

const BlockLayout& block_layout(const std::string& format) {
    const auto* found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                     [&](const BlockLayout& layout) { return layout.format == format; });
    if (found == std::end(kLayouts)) throw std::invalid_argument("GGUF files have no blocks of " + format);
    return *found;
}

DecodedRows::DecodedRows(const BlockLayout& layout, const IntegerFormat& format, int64_t cols)
    : layout_(layout), matrix_{kPanelRows, cols, format, nullptr, {}, {}} {
    const int64_t blocks = cols / layout.len;
    const int64_t groups = cols / layout.group_size;
    const auto room = [](int64_t columns) { return static_cast<size_t>(kPanelRows * columns); };
    codes_.resize(room(cols));
    matrix_.codes = codes_.data();
    const bool wide = layout.exponent >= 0;
    wide ? powers_.resize(room(blocks)) : scales_.resize(room(blocks));
    matrix_.scales = {wide ? static_cast<const void*>(powers_.data()) : scales_.data(), wide, blocks, nullptr,
                      0};
    if (layout.minimum >= 0) {
        minimums_.resize(room(blocks));
        matrix_.minimums = {minimums_.data(), false, blocks, nullptr, 0};
    }
    if (layout.fine == FineScales::kNone) return;
    fine_scales_.resize(room(groups));
    matrix_.scales.fine = fine_scales_.data();
    matrix_.scales.fine_columns = groups;
    if (layout.minimum < 0) return;
    fine_minimums_.resize(room(groups));
    matrix_.minimums.fine = fine_minimums_.data();
    matrix_.minimums.fine_columns = groups;
}

bool DecodedRows::decode(const BlockMatrix& from, int64_t first_row) {
    matrix_.rows = std::min(kPanelRows, from.rows - first_row);
    const uint8_t* block = from.blocks + first_row * layout_.row_bytes(from.cols);
    const int64_t count = matrix_.rows * (from.cols / layout_.len);
    const auto number = static_cast<size_t>(&layout_ - kLayouts);
    bool all_finite = true;
    const auto decode_as = [&]<size_t... kLayout>(std::index_sequence<kLayout...>) {
        ((kLayout == number ? void(all_finite = decode_blocks<kLayout>(block, count)) : void()), ...);
    };
    decode_as(std::make_index_sequence<std::size(kLayouts)>{});
    return all_finite;
}

// A separate function per layout, in which the compiler knows all offsets, is three to ten times as fast.
template <size_t kLayout>
bool DecodedRows::decode_blocks(const uint8_t* block, int64_t count) {
    constexpr BlockLayout layout = kLayouts[kLayout];
    bool all_finite = true;
    for (int64_t i = 0; i < count; ++i, block += layout.bytes) {
        decode_codes<kLayout>(block, codes_.data() + i * layout.len);
        all_finite &= decode_scales<kLayout>(block, i);
    }
    return all_finite;
}

// Decodes the scales of a block, which is number `at`.
template <size_t kLayout>
bool DecodedRows::decode_scales(const uint8_t* block, int64_t at) {
    constexpr BlockLayout layout = kLayouts[kLayout];
    const auto place = static_cast<size_t>(at);
    if constexpr (layout.exponent >= 0) {
        powers_[place] = power_bits(block[layout.exponent]);
        return true;
    }
    constexpr bool two_levels = layout.fine != FineScales::kNone;
    bool all_finite = finite(scales_[place] = half_at(block, layout.scale));
    if constexpr (layout.minimum >= 0) {
        // In files, minimums of two levels are subtracted.
        constexpr uint16_t sign = two_levels ? 0x8000 : 0;
        minimums_[place] = half_at(block, layout.minimum) ^ sign;
        all_finite &= finite(minimums_[place]);
    }
    if constexpr (two_levels) {
        const size_t group = place * static_cast<size_t>(layout.len / layout.group_size);
        int8_t* minimums = layout.minimum < 0 ? nullptr : fine_minimums_.data() + group;
        decode_fine<kLayout>(block, fine_scales_.data() + group, minimums);
    }
    return all_finite;
}

}  // namespace llmd
