// Decodes the blocks of GGUF files, 16 rows at a time, into the integer groups that panels are packed from.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace llmd {

// A run of bits of every code of a block: pieces of `piece` bytes, whose lowest bits belong to the first
// `piece` codes, the next ones to the next codes.
struct CodePlane {
    int bits;
    int piece;
    int64_t at;  // in the block
};

// How the fine scales, and minimums, of a block are packed.
enum class FineScales { kNone, kFourBits, kSixBits, kSixBitsSigned, kSplitSigned, kBytes };

// Where the fields of a block lie; -1: it has none.
struct BlockLayout {
    const char* format;
    int64_t len;  // weights of a block
    int64_t bytes;
    int32_t bits;
    int64_t group_size;
    CodePlane planes[2];  // from the lowest bits upwards; of the second 0 bits: there is one
    int64_t scale;        // float16
    int64_t minimum = -1;
    int64_t exponent = -1;  // E8M0, in place of a scale
    FineScales fine = FineScales::kNone;
    int64_t fine_scales = -1;
    int64_t fine_high = -1;
    uint8_t flip = 0;  // bits of codes that the core has the other way round

    int64_t row_bytes(int64_t cols) const { return cols / len * bytes; }
};

// Throws std::invalid_argument where no file has blocks of that format.
const BlockLayout& block_layout(const std::string& format);

// A matrix as a file has it: rows of whole blocks.
struct BlockMatrix {
    const BlockLayout& layout;
    int64_t rows;
    int64_t cols;
    const uint8_t* blocks;
};

// Room for the integer groups of the rows of a panel.
class DecodedRows {
  public:
    DecodedRows(const BlockLayout& layout, const IntegerFormat& format, int64_t cols);
    DecodedRows(DecodedRows&&) = default;  // keeps what `matrix_` points to in its place
    DecodedRows(const DecodedRows&) = delete;

    // Decodes rows from `first_row` on. False where a scale is infinite or not a number.
    bool decode(const BlockMatrix& from, int64_t first_row);
    // They, until the next are decoded.
    const IntegerMatrix& matrix() const { return matrix_; }

  private:
    template <size_t kLayout>
    bool decode_blocks(const uint8_t* block, int64_t count);
    template <size_t kLayout>
    bool decode_scales(const uint8_t* block, int64_t at);

    const BlockLayout& layout_;
    std::vector<uint8_t> codes_;
    std::vector<uint16_t> scales_;
    std::vector<uint16_t> minimums_;
    std::vector<uint32_t> powers_;
    std::vector<int8_t> fine_scales_;
    std::vector<int8_t> fine_minimums_;
    IntegerMatrix matrix_;
};

}  // namespace llmd
