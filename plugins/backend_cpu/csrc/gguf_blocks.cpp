// The layouts are those of docs/formats.md and `llmd.models.formats.gguf_blocks`, which is the reference.

#include "gguf_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

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

// Puts a plane of a block of `len` codes on top of the bits below `place`.
template <int kBits, int kPiece>
void add_plane(const uint8_t* packed, int64_t len, int place, uint8_t* codes) {
    constexpr int kPerByte = 8 / kBits;
    constexpr auto kMask = static_cast<uint8_t>((1 << kBits) - 1);
    for (int64_t first = 0; first < len; first += kPiece * kPerByte, packed += kPiece) {
        for (int n = 0; n < kPerByte; ++n) {
            uint8_t* to = codes + first + n * kPiece;
            for (int j = 0; j < kPiece; ++j) {
                const int code = (packed[j] >> (n * kBits)) & kMask;
                to[j] = static_cast<uint8_t>(to[j] | code << place);
            }
        }
    }
}

void add_plane(const CodePlane& plane, const uint8_t* block, int64_t len, int place, uint8_t* codes) {
    const uint8_t* packed = block + plane.at;
    switch (100 * plane.bits + plane.piece) {
        case 101:
            return add_plane<1, 1>(packed, len, place, codes);
        case 132:
            return add_plane<1, 32>(packed, len, place, codes);
        case 232:
            return add_plane<2, 32>(packed, len, place, codes);
        case 416:
            return add_plane<4, 16>(packed, len, place, codes);
        case 432:
            return add_plane<4, 32>(packed, len, place, codes);
        case 464:
            return add_plane<4, 64>(packed, len, place, codes);
        case 832:
            return add_plane<8, 32>(packed, len, place, codes);
        default:
            throw std::logic_error("a plane of a block that no layout has");
    }
}

void decode_codes(const BlockLayout& layout, const uint8_t* block, uint8_t* codes) {
    std::memset(codes, 0, static_cast<size_t>(layout.len));
    add_plane(layout.planes[0], block, layout.len, 0, codes);
    if (layout.planes[1].bits != 0) {
        add_plane(layout.planes[1], block, layout.len, layout.planes[0].bits, codes);
    }
    if (layout.flip != 0) {
        for (int64_t i = 0; i < layout.len; ++i) codes[i] ^= layout.flip;
    }
}

uint16_t half_at(const uint8_t* block, int64_t at) {
    uint16_t bits;
    std::memcpy(&bits, block + at, sizeof bits);
    return bits;
}

bool finite(uint16_t half) { return (half & 0x7c00U) != 0x7c00U; }

// 2^(e - 128) as float32: half of what E8M0 says, since the book of mxfp4 has doubled values.
uint32_t power_bits(uint8_t e) { return e < 2 ? 0x00200000U << e : (e - 1U) << 23; }

int8_t number(int value) { return static_cast<int8_t>(value); }

// Of q2_k: scales in the lower halves of 16 bytes, minimums in the upper.
void four_bits(const uint8_t* packed, int8_t* scales, int8_t* minimums) {
    for (int i = 0; i < 16; ++i) {
        scales[i] = number(packed[i] & 15);
        minimums[i] = number(packed[i] >> 4);
    }
}

// Of q4_k and q5_k: 8 scales and 8 minimums in 12 bytes. The first four of each are the lower 6 bits of bytes
// 0 to 3 and 4 to 7; scale and minimum 4 + i have their lower 4 bits in byte 8 + i and their upper 2 on top
// of bytes i and 4 + i.
void six_bits(const uint8_t* packed, int8_t* scales, int8_t* minimums) {
    for (int i = 0; i < 4; ++i) {
        scales[i] = number(packed[i] & 63);
        minimums[i] = number(packed[4 + i] & 63);
        scales[4 + i] = number((packed[8 + i] & 15) | (packed[i] >> 6 << 4));
        minimums[4 + i] = number(packed[8 + i] >> 4 | (packed[4 + i] >> 6 << 4));
    }
}

// Of q3_k: 16 scales in 12 bytes, each 32 too large. The lower 4 bits of scale i are a half of byte i % 8,
// the upper 2 bits of scale 4 j + i pair j of byte 8 + i.
void six_bits_signed(const uint8_t* packed, int8_t* scales) {
    for (int i = 0; i < 16; ++i) {
        const int low = packed[i % 8] >> (i < 8 ? 0 : 4) & 15;
        const int high = packed[8 + i % 4] >> (2 * (i / 4)) & 3;
        scales[i] = number((low | high << 4) - 32);
    }
}

// Of iq4_xs: the lower 4 bits of 8 scales in 4 bytes, the upper 2 bits in 2 bytes, each 32 too large.
void split_signed(const uint8_t* low, const uint8_t* high, int8_t* scales) {
    for (int i = 0; i < 8; ++i) {
        const int lower = low[i / 2] >> (4 * (i % 2)) & 15;
        const int upper = high[i / 4] >> (2 * (i % 4)) & 3;
        scales[i] = number((lower | upper << 4) - 32);
    }
}

void decode_fine(const BlockLayout& layout, const uint8_t* block, int8_t* scales, int8_t* minimums) {
    const uint8_t* packed = block + layout.fine_scales;
    switch (layout.fine) {
        case FineScales::kNone:
            return;
        case FineScales::kFourBits:
            return four_bits(packed, scales, minimums);
        case FineScales::kSixBits:
            return six_bits(packed, scales, minimums);
        case FineScales::kSixBitsSigned:
            return six_bits_signed(packed, scales);
        case FineScales::kSplitSigned:
            return split_signed(packed, block + layout.fine_high, scales);
        case FineScales::kBytes:
            std::memcpy(scales, packed, 16);
    }
}

}  // namespace

const BlockLayout& block_layout(const std::string& format) {
    const auto* found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                     [&](const BlockLayout& layout) { return layout.format == format; });
    if (found == std::end(kLayouts)) throw std::invalid_argument("no file has blocks of " + format);
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
    const int64_t blocks = from.cols / layout_.len;
    matrix_.rows = std::min(kPanelRows, from.rows - first_row);
    const uint8_t* block = from.blocks + first_row * layout_.row_bytes(from.cols);
    bool all_finite = true;
    for (int64_t i = 0; i < matrix_.rows * blocks; ++i, block += layout_.bytes) {
        decode_codes(layout_, block, codes_.data() + i * layout_.len);
        all_finite &= decode_scales(block, i);
    }
    return all_finite;
}

// Those of a block, as number `at`.
bool DecodedRows::decode_scales(const uint8_t* block, int64_t at) {
    const auto place = static_cast<size_t>(at);
    if (layout_.exponent >= 0) {
        powers_[place] = power_bits(block[layout_.exponent]);
        return true;
    }
    const bool two_levels = layout_.fine != FineScales::kNone;
    bool all_finite = finite(scales_[place] = half_at(block, layout_.scale));
    if (layout_.minimum >= 0) {
        // Minimums of two levels are subtracted in files.
        const uint16_t sign = two_levels ? 0x8000 : 0;
        minimums_[place] = half_at(block, layout_.minimum) ^ sign;
        all_finite &= finite(minimums_[place]);
    }
    const size_t group = place * static_cast<size_t>(layout_.len / layout_.group_size);
    int8_t* minimums = fine_minimums_.empty() ? nullptr : fine_minimums_.data() + group;
    if (two_levels) decode_fine(layout_, block, fine_scales_.data() + group, minimums);
    return all_finite;
}

}  // namespace llmd
