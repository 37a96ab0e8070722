#include "kv_pools.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace llmd {

namespace {

int64_t one_layer_bytes(const KvGroup& group, KvDtype dtype) {
    return group.keeps_states()
               ? group.state_bytes
               : KvLayout{dtype, group.kv_heads, group.head_dim, group.is_latent(), group.block_vectors()}
                     .block_bytes();
}

}  // namespace

int64_t kv_block_bytes(const KvGroup& group, KvDtype dtype) {
    return group.layers * one_layer_bytes(group, dtype);
}

KvPools::KvPools(const std::vector<KvGroup>& groups, std::vector<int64_t> blocks, KvDtype dtype)
    : groups_(groups), blocks_(std::move(blocks)) {
    for (size_t g = 0; g < groups.size(); ++g) {
        layer_block_bytes_.push_back(one_layer_bytes(groups[g], dtype));
        // With huge pages, the first token would clear 2 MB for each layer: 72 MB for 36 layers.
        const auto bytes = static_cast<size_t>(blocks_[g] * kv_block_bytes(groups[g], dtype));
        memory_.emplace_back(bytes, Pages::kAny);
    }
}

void* KvPools::layer(int64_t group, int64_t layer) const {
    const auto g = static_cast<size_t>(group);
    return memory_[g].as<uint8_t>() + layer * blocks_[g] * layer_block_bytes_[g];
}

void KvPools::copy(int64_t group, int64_t source, int64_t target) {
    const auto g = static_cast<size_t>(group);
    const int64_t bytes = layer_block_bytes_[g];
    if (source == target) return;
    for (int64_t i = 0; i < groups_[g].layers; ++i) {
        auto* blocks = static_cast<uint8_t*>(layer(group, i));
        std::memcpy(blocks + target * bytes, blocks + source * bytes, static_cast<size_t>(bytes));
    }
}

void KvPools::read(int64_t group, int64_t block, uint8_t* contents) const {
    check(group, block);
    const auto bytes = static_cast<size_t>(layer_block_bytes_[static_cast<size_t>(group)]);
    for (int64_t i = 0; i < groups_[static_cast<size_t>(group)].layers; ++i, contents += bytes) {
        std::memcpy(contents, find(group, i, block), bytes);
    }
}

void KvPools::write(int64_t group, int64_t block, const uint8_t* contents) {
    check(group, block);
    const auto bytes = static_cast<size_t>(layer_block_bytes_[static_cast<size_t>(group)]);
    for (int64_t i = 0; i < groups_[static_cast<size_t>(group)].layers; ++i, contents += bytes) {
        std::memcpy(find(group, i, block), contents, bytes);
    }
}

int64_t KvPools::block_bytes(int64_t group) const {
    return groups_.at(static_cast<size_t>(group)).layers * layer_block_bytes_.at(static_cast<size_t>(group));
}

uint8_t* KvPools::find(int64_t group, int64_t layer, int64_t block) const {
    return static_cast<uint8_t*>(this->layer(group, layer)) +
           block * layer_block_bytes_[static_cast<size_t>(group)];
}

void KvPools::check(int64_t group, int64_t block) const {
    if (group >= 0 && group < static_cast<int64_t>(groups_.size()) && block >= 0 &&
        block < blocks_[static_cast<size_t>(group)])
        return;
    throw std::invalid_argument("KV group " + std::to_string(group) + " has no block " +
                                std::to_string(block));
}

}  // namespace llmd
