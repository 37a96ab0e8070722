// The blocks of a KV group, and which of them its sequences have.
#pragma once

#include "step.cuh"

constexpr int BLOCK_LEN = 16;  // positions of a block

struct KVMemory {
    u8* blocks;
    const i32* block_table;  // see blocks_of
    i64 block_bytes;
    i64 layer_at;  // bytes before the layer in a block
    i32 kv_heads;
};
