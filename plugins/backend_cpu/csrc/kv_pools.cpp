#include "kv_pools.hpp"

#include <cstdint>
#include <cstring>

namespace llmd {

namespace {

int64_t one_layer_bytes(const KvGroup& group, bool half_precision) {
    const KvLayout layout{group.kv_heads, padded_dim(group.head_dim)};
    return layout.block_size() * (half_precision ? 2 : 4);
}

}  // namespace

int64_t kv_block_bytes(const KvGroup& group, bool half_precision) {
    return group.layers * one_layer_bytes(group, half_precision);
}

KvPools::KvPools(const std::vector<KvGroup>& groups, std::vector<int64_t> blocks, bool half_precision)
    : groups_(groups), blocks_(std::move(blocks)) {
    for (size_t g = 0; g < groups.size(); ++g) {
        layer_block_bytes_.push_back(one_layer_bytes(groups[g], half_precision));
        memory_.emplace_back(static_cast<size_t>(blocks_[g] * kv_block_bytes(groups[g], half_precision)));
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

}  // namespace llmd
