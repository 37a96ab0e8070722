// Functions of gpu.cuh that all lanes of a warp call together.
#pragma once

namespace shim {

using namespace ::simt;

// What a lane brings to a shuffle, and takes away.
template <class Value>
struct Shuffle {
    Value value, result;
    int lane;  // that to read from
};

template <class Value>
Value shuffle_from(Value value, int lane, const char* name, Site site) {
    Shuffle<Value> mine = {value, value, lane};
    meet_warp(
        [](void* const* records) {
            for (int lane = 0; lane < 32; ++lane) {
                Shuffle<Value>& reader = *(Shuffle<Value>*)records[lane];
                reader.result = ((const Shuffle<Value>*)records[reader.lane])->value;
            }
        },
        &mine, name, site);
    return mine.result;
}

struct Vote {
    bool condition;
    u32 result;
};

inline void count_votes(void* const* records) {
    u32 word = 0;
    for (int lane = 0; lane < 32; ++lane) word |= (u32)((const Vote*)records[lane])->condition << lane;
    for (int lane = 0; lane < 32; ++lane) ((Vote*)records[lane])->result = word;
}

struct MatrixRow {
    const u16* row;
    u32* words;
};

// What a lane brings to a product of int8 tiles.
struct IntegerTile {
    i32* sums;
    const u32 *a, *b;
};

inline void multiply_integer_tiles(void* const* records) {
    i8 a[16][32], b[32][8];
    for (int lane = 0; lane < 32; ++lane) {
        const IntegerTile& tile = *(const IntegerTile*)records[lane];
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 16; ++i) {
            const int word = i / 4, k = word / 2 * 16 + 4 * t + i % 4, bits = i % 4 * 8;
            a[g + word % 2 * 8][k] = tile.a[word] >> bits;
            if (word % 2 == 0) b[k][g] = tile.b[word / 2] >> bits;
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            i32& sum = ((const IntegerTile*)records[lane])->sums[i];
            for (int k = 0; k < 32; ++k) sum += a[row][k] * b[k][column];
        }
    }
}

inline void give_matrices(void* const* records) {
    for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < 4; ++matrix) {
            const u16* row = ((const MatrixRow*)records[matrix * 8 + lane / 4])->row;
            const int column = lane % 4 * 2;
            ((MatrixRow*)records[lane])->words[matrix] = row[column] | (u32)row[column + 1] << 16;
        }
    }
}

}  // namespace shim

DEVICE float shuffle_xor(float value, int lanes, SITE) {
    return shim::shuffle_from(value, lane_index() ^ (lanes & 31), "shuffle_xor", site);
}
DEVICE u32 shuffle_xor(u32 value, int lanes, SITE) {
    return shim::shuffle_from(value, lane_index() ^ (lanes & 31), "shuffle_xor", site);
}
DEVICE i32 shuffle_xor(i32 value, int lanes, SITE) {
    return shim::shuffle_from(value, lane_index() ^ (lanes & 31), "shuffle_xor", site);
}
DEVICE u64 shuffle_xor(u64 value, int lanes, SITE) {
    return shim::shuffle_from(value, lane_index() ^ (lanes & 31), "shuffle_xor", site);
}
DEVICE double shuffle_xor(double value, int lanes, SITE) {
    return shim::shuffle_from(value, lane_index() ^ (lanes & 31), "shuffle_xor", site);
}
DEVICE float shuffle(float value, int lane, SITE) {
    return shim::shuffle_from(value, lane & 31, "shuffle", site);
}
DEVICE u32 shuffle(u32 value, int lane, SITE) {
    return shim::shuffle_from(value, lane & 31, "shuffle", site);
}
DEVICE i32 shuffle(i32 value, int lane, SITE) {
    return shim::shuffle_from(value, lane & 31, "shuffle", site);
}

namespace shim {
inline int lane_below(int lanes) {
    const int lane = lane_index() - (lanes & 31);
    return lane < 0 ? lane_index() : lane;
}
}  // namespace shim

DEVICE float shuffle_up(float value, int lanes, SITE) {
    return shim::shuffle_from(value, shim::lane_below(lanes), "shuffle_up", site);
}
DEVICE u32 shuffle_up(u32 value, int lanes, SITE) {
    return shim::shuffle_from(value, shim::lane_below(lanes), "shuffle_up", site);
}
DEVICE double shuffle_up(double value, int lanes, SITE) {
    return shim::shuffle_from(value, shim::lane_below(lanes), "shuffle_up", site);
}

DEVICE u32 ballot(bool condition, SITE) {
    shim::Vote vote = {condition, 0};
    simt::meet_warp(shim::count_votes, &vote, "ballot", site);
    return vote.result;
}

DEVICE void load_matrices(u32 (&words)[4], const void* shared_row, SITE) {
    if ((u64)shared_row % 16)
        simt::fail(site, "load_matrices from %p, which is not aligned to 16 bytes", shared_row);
    if (!simt::is_shared(shared_row, 16))
        simt::fail(site, "load_matrices from %p, not shared memory", shared_row);
    shim::MatrixRow mine = {(const u16*)shared_row, words};
    simt::meet_warp(shim::give_matrices, &mine, "load_matrices", site);
}

DEVICE void multiply_tile(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2], SITE) {
    simt::Tile mine = {sums, a, b};
    simt::meet_warp(simt::multiply_tiles, &mine, "multiply_tile", site);
}

DEVICE void multiply_tile(i32 (&sums)[4], const u32 (&a)[4], const u32 (&b)[2], SITE) {
    shim::IntegerTile mine = {sums, a, b};
    simt::meet_warp(shim::multiply_integer_tiles, &mine, "multiply_tile", site);
}
