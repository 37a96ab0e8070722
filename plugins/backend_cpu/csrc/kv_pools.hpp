// Blocks of keys and values, or slots of states: one pool for each KV group that has layers in the program.

#pragma once

#include <vector>

#include "buffer.hpp"
#include "kv_layout.hpp"
#include "program.hpp"

namespace llmd {

// Bytes of one block of a group, for all its layers.
int64_t kv_block_bytes(const KvGroup& group, KvDtype dtype);

class KvPools {
  public:
    // `blocks` has one number per group.
    KvPools(const std::vector<KvGroup>& groups, std::vector<int64_t> blocks, KvDtype dtype);

    // The blocks of one layer of a group, in the layout of kv_layout.hpp.
    void* layer(int64_t group, int64_t layer) const;
    // Copies all layers of a block.
    void copy(int64_t group, int64_t source, int64_t target);
    // Read and write the contents of a block: kv_block_bytes bytes, layer after layer. Both throw
    // std::invalid_argument if there is no such block.
    void read(int64_t group, int64_t block, uint8_t* contents) const;
    void write(int64_t group, int64_t block, const uint8_t* contents);

    // Bytes of a block, for all its layers.
    int64_t block_bytes(int64_t group) const;

    const std::vector<int64_t>& blocks() const { return blocks_; }

  private:
    uint8_t* find(int64_t group, int64_t layer, int64_t block) const;
    void check(int64_t group, int64_t block) const;

    const std::vector<KvGroup>& groups_;
    std::vector<int64_t> blocks_;
    std::vector<int64_t> layer_block_bytes_;
    std::vector<Buffer> memory_;
};

}  // namespace llmd
