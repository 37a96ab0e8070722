// Decodes the blocks of GGUF files, 16 rows at a time, into integer groups that can be packed into panels.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace llmd {

// Some of the bits of every code in a block, stored in pieces of `piece` bytes. The lowest bits of a piece
// belong to the first `piece` codes, the next bits to the next codes.
struct CodePlane {
    int bits;
    int piece;
    int64_t at;  // offset in the block
};

// How the fine scales and fine minimums of a block are packed.
enum class FineScales { kNone, kFourBits, kSixBits, kSixBitsSigned, kSplitSigned, kBytes };

// Offsets of the fields of a block; -1: the block has no such field.
struct BlockLayout {
    const char* format;
    int64_t len;  // weights in a block
    int64_t bytes;
    int32_t bits;
    int64_t group_size;
    CodePlane planes[2];  // from the lowest bits upwards; the second has 0 bits if there is only one
    int64_t scale;        // float16
    int64_t minimum = -1;
    int64_t exponent = -1;  // E8M0, instead of a scale
    FineScales fine = FineScales::kNone;
    int64_t fine_scales = -1;
    int64_t fine_high = -1;
    uint8_t flip = 0;  // bits of a code that are inverted in the file

    int64_t row_bytes(int64_t cols) const { return cols / len * bytes; }
};

// Throws std::invalid_argument if GGUF files have no blocks of that format.
const BlockLayout& block_layout(const std::string& format);

// A matrix as stored in a file: rows of whole blocks.
struct BlockMatrix {
    const BlockLayout& layout;
    int64_t rows;
    int64_t cols;
    const uint8_t* blocks;
};

// A buffer for the decoded rows of one panel.
class DecodedRows {
  public:
    DecodedRows(const BlockLayout& layout, const IntegerFormat& format, int64_t cols);
    DecodedRows(DecodedRows&&) = default;  // moves the buffers that `matrix_` points to, without copying
    DecodedRows(const DecodedRows&) = delete;

    // Decodes the rows from `first_row` on. Returns false if a scale is infinite or NaN.
    bool decode(const BlockMatrix& from, int64_t first_row);
    // The decoded rows; valid until the next call of `decode`.
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
