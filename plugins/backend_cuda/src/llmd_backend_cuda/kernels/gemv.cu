// outs[n] = epilogue(x[n] W^T) for 1 to 8 rows x: the matrices of a decode step, bound by reading the
// weights.
//
//   x [rows, in] float32, normalised first if there is a norm, then rounded to float16, or with INT8 to int8
//                (rows_int8.cuh)
//   W [out, in] as in weights.cuh; up to 4 matrices with the same input and format, one output each
//   epilogue: + bias, or residual + scale * (...), or softcap(scale * ... + bias) for logits;
//   with PAIR 1: activation(first) * second of two matrices (a gated feed-forward)
//   with HEADS 1: grid y is the number of the slice that each row has for a matrix of the stack
//   with EXPERTS 1: grid y is a group of rows, which the matrices of their expert multiply (experts.cuh,
//   also for CACHED);
//   those of a pair with its limit and offset. Weights are then read after the kernel before, which says
//   what experts there are
//
// A block has 8 warps. It takes tiles of 16 weight rows in turn; each warp reads one eighth of the columns (a
// slice), with DEPTH chunks in flight, those of the next tile while the block adds up this one. Tensor cores
// multiply 16 weight rows by 8 rows of x, of which those that do not exist are not written. The sums of the
// slices are added in order. gemm.cu adds in the same order, so that a row has the same bits there.
#include "rows.cuh"
#include "weights.cuh"
#if INT8
#include "products_int8.cuh"
#endif

constexpr int THREADS = SLICES * WARP;
constexpr int STREAMS = PAIR ? 2 : 1;

struct Args {
    Rows x;
    i32 num_rows;   // at most 8
    i32 num_items;  // tiles, or pairs of tiles
    Output outputs[MATRICES];
    Matrix matrices[MATRICES];
    const Group* groups;  // of experts
    ExpertGate gate;      // of experts
    i32 heads;            // slices of a row, with HEADS
    const u64* blocks;    // address of the block of each expert, with CACHED
};

// Read again where it is needed, since there are few registers.
DEVICE Group group_of_block(const Args& args) {
#if EXPERTS
    return args.groups[block_y()];
#else
    return {HEADS ? block_y() : 0, 0, args.num_rows, 0};
#endif
}

// The matrix and the tile in it of an item. Experts have one matrix, or a pair.
struct Place {
    int matrix, tile;
};

DEVICE Place place_of(const Args& args, int item) {
    Place place = {0, item};
    while (!PAIR && !EXPERTS && place.matrix + 1 < MATRICES &&
           place.tile >= args.outputs[place.matrix].tiles) {
        place.tile -= args.outputs[place.matrix].tiles;
        ++place.matrix;
    }
    return place;
}

DEVICE void find_tiles(const Args& args, Tile (&tiles)[STREAMS], Place place) {
#if CACHED
    const u64 block = args.blocks[group_of_block(args).member];
    const int tile = place.tile;
#else
    constexpr u64 block = 0;
    const int tile = group_of_block(args).member * args.outputs[place.matrix].tiles + place.tile;
#endif
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) tiles[s] = tile_at(args.matrices[PAIR ? s : place.matrix], tile, block);
}

DEVICE void load_streams(Codes (&codes)[STREAMS], const Tile (&tiles)[STREAMS], int chunk) {
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) load_codes(codes[s], tiles[s], chunk);
}

// sums += the products of a chunk; `x` is where the lane reads the chunk of x.
DEVICE void multiply_chunk(float (&sums)[STREAMS][1][4], const Codes (&codes)[STREAMS], const LaneRows& x,
                           u32 ones) {
#if INT8
    multiply_int8_chunk(sums, codes, x, 0);
#else
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const Words4 words = *(const Words4*)(x.row + half * CHUNK);
        const u32 b[2][2] = {{words.x, words.y}, {words.z, words.w}};
        Factors factors[STREAMS];
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) factors[s] = factors_of(codes[s].scales, half);
#pragma unroll
        for (int k_tile = 0; k_tile < 2; ++k_tile) {
#pragma unroll
            for (int s = 0; s < STREAMS; ++s) {
                u32 a[4];
                weight_tile(a, codes[s], factors[s], half, k_tile, ones);
                multiply_tile(sums[s][0], a, b[k_tile]);
            }
        }
    }
#endif
}

DEVICE void stage_x(const Args& args, const Group& group, int chunks, u8* to, float* sums) {
    const int stride = row_stride(chunks), at_once = HEADS ? 1 : rows_of(group);
    for (int row = group.first_row; row < group.end_row; row += at_once) {
        const int place = place_of_row(group, row, args.heads);
        u8* at = to + (row - group.first_row) * stride;
#if INT8
        stage_int8_rows(args.x, place, at_once, chunks, ACTIVATION_GROUP, at, stride, sums);
#else
        stage_rows(args.x, place, at_once, chunks * CHUNK, at, stride, sums);
#endif
    }
}

KERNEL BOUNDS(THREADS, BLOCKS) gemv(IN_PLACE const Args args) {
    DYNAMIC_SHARED(shared);
    SHARED float parts[STREAMS][SLICES][TILE * 8];
    const int lane = lane_index(), warp = warp_index(), g = lane / 4, t = lane % 4;
    const int chunks = args.matrices[0].chunks;
    const int first = slice_start(warp, chunks), last = slice_start(warp + 1, chunks);

    allow_next_kernel();
    if (EXPERTS) wait_for_previous_kernel();
    if (EXPERTS && rows_of(group_of_block(args)) == 0) return;
    Codes codes[DEPTH][STREAMS];
    int item = block_x();
    Place place = place_of(args, item);
    Tile tiles[STREAMS];
    find_tiles(args, tiles, place);
#pragma unroll
    for (int slot = 0; slot < DEPTH; ++slot) {
        if (first + slot < last) load_streams(codes[slot], tiles, first + slot);
    }
    if (!EXPERTS) wait_for_previous_kernel();
    stage_x(args, group_of_block(args), chunks, shared, &parts[0][0][0]);
    block_barrier();
    const LaneRows x = lane_rows(shared, row_stride(chunks), rows_of(group_of_block(args)));
    const u32 ones = 0x00010001 + (args.num_rows >> 16);

    while (item < args.num_items) {
        float sums[STREAMS][1][4] = {};
        float scales[STREAMS];  // of this thread's row of a tile: read early, used late
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) scales[s] = scale_of_row(tiles[s].scales, thread_index() % TILE);
        for (int chunk = first; chunk < last; chunk += DEPTH) {
#pragma unroll
            for (int slot = 0; slot < DEPTH; ++slot) {
                if (chunk + slot >= last) break;
                multiply_chunk(sums, codes[slot], at_chunk(x, chunk + slot), ones);
                if (chunk + slot + DEPTH < last) load_streams(codes[slot], tiles, chunk + slot + DEPTH);
            }
        }
        const Place done = place;
        item += grid_x();
        if (item < args.num_items) {
            place = place_of(args, item);
            find_tiles(args, tiles, place);
#pragma unroll
            for (int slot = 0; slot < DEPTH; ++slot) {
                if (first + slot < last) load_streams(codes[slot], tiles, first + slot);
            }
        }
        // Element (weight row, row of x) of a tile is at weight row + 16 * row of x.
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) {
            float* part = parts[s][warp];
            part[g + TILE * (2 * t)] = sums[s][0][0], part[g + TILE * (2 * t + 1)] = sums[s][0][1];
            part[g + 8 + TILE * (2 * t)] = sums[s][0][2], part[g + 8 + TILE * (2 * t + 1)] = sums[s][0][3];
        }
        block_barrier();
        const int element = thread_index(), row = element / TILE, column = done.tile * TILE + element % TILE;
        const Output& output = args.outputs[done.matrix];
        const Group group = group_of_block(args);
        if (row < rows_of(group) && column < output.width) {
            float totals[STREAMS];
#pragma unroll
            for (int s = 0; s < STREAMS; ++s) {
                totals[s] = parts[s][0][element];
                for (int slice = 1; slice < SLICES; ++slice) totals[s] += parts[s][slice][element];
                totals[s] *= scales[s];
            }
            if (PAIR) {
                const float gate = biased(output, totals[0], column, group.member);
                const float up = biased(args.outputs[1], totals[STREAMS - 1], column, group.member);
                output.out[(i64)(group.first_row + row) * output.width + column] =
                    EXPERTS ? gated(args.gate, gate, up)
                            : gated(output.activation, output.threshold, output.limit, gate, up);
            } else {
                const int place = place_of_row(group, group.first_row + row, args.heads);
                write_output(output, totals[0], place, column, group.member);
            }
        }
        block_barrier();
    }
}
