// outs[n] = epilogue(x[n] W^T) for more than 8 rows x, which round_rows has rounded to float16 or int8. See
// gemv.cu for the formula; its matrices, outputs and order of sums are the same, so that a row has the same
// bits.
//
// A block takes 128 weight rows and ROWS rows of x. x passes through shared memory in stages of STAGE_CHUNKS
// chunks, of which STAGES - 1 are on their way. Each warp reads the weights of its own tiles from global
// memory, a stage ahead, and turns them into float16 or int8 in registers. With ROWS 16 and 32 a warp has 1
// tile and all rows; with 64 and 128, 2 tiles and half of the rows.
//
// Macros: those of weights.cuh and rows.cuh; ROWS, STAGES and STAGE_CHUNKS (ops/linear.py chooses them);
// SPLIT.
//
// EXPERTS 1: grid x is a group of rows, which the matrices of their expert multiply (experts.cuh, also for
// CACHED). Weights
// are then read after the kernel before, which says what experts there are.
// HEADS 1: grid x has blocks of rows for each slice, which is a row of x of its own.
//
// SPLIT 0: a block goes through all slices of the columns and writes the outputs. For many rows, bound by the
// tensor cores.
//
// SPLIT 1: grid z is the slice; a block writes its sums to `partials` [slice][row][column], and add_slices
// writes the outputs. For few rows, where a block for each 128 weight rows would leave most of the device
// idle.
#include "gemm.cuh"
#if INT8
#include "products_int8.cuh"
#endif

constexpr int WARPS = 8;
constexpr int THREADS = WARPS * WARP;
constexpr int WARPS_OUT = ROWS <= 32 ? 8 : 4;
constexpr int WARPS_ROWS = WARPS / WARPS_OUT;
constexpr int TILES = 8 / WARPS_OUT;            // of a warp
constexpr int N_TILES = ROWS / WARPS_ROWS / 8;  // of a warp
// Blocks that a processor has registers for. Scales and minimums of 16 columns take many of them with int8.
constexpr bool NARROW_INT8 = INT8 && GROUP == 16 && MINIMUM && !NEGATED;
constexpr int RESIDENT = ROWS <= 32 && !NARROW_INT8 ? 2 : 1;
constexpr int STAGE_STRIDE = row_stride(STAGE_CHUNKS);
constexpr int STAGE_BYTES = ROWS * STAGE_STRIDE;

// A stage: `count` chunks from `chunk` on, which end a slice if `ends`.
struct Stage {
    int slice, chunk, count;
    bool ends;
};

DEVICE Stage stage_at(int slice, int chunk, int chunks) {
    const int left = slice_start(slice + 1, chunks) - chunk;
    return {slice, chunk, left < STAGE_CHUNKS ? left : STAGE_CHUNKS, left <= STAGE_CHUNKS};
}

DEVICE Stage next_stage(const Stage& stage, int chunks) {
    if (!stage.ends) return stage_at(stage.slice, stage.chunk + STAGE_CHUNKS, chunks);
    return stage_at(stage.slice + 1, slice_start(stage.slice + 1, chunks), chunks);
}

// The rows of this block. Read again where they are needed, since there are few registers.
DEVICE Group group_of_block(const Args& args) {
#if EXPERTS
    return args.groups[block_x()];
#elif HEADS
    return {block_x() % args.heads, block_x() / args.heads * ROWS, args.num_rows, 0};
#else
    return {0, block_x() * ROWS, args.num_rows, 0};
#endif
}

DEVICE void copy_stage(const Args& args, const Stage& stage, int chunks, u8* to) {
    const Group group = group_of_block(args);
    constexpr int CHUNK_PIECES = X_CHUNK / 16, PIECES = STAGE_CHUNKS * CHUNK_PIECES;
#pragma unroll
    for (int i = 0; i < (ROWS * PIECES + THREADS - 1) / THREADS; ++i) {
        const int place = i * THREADS + thread_index(), row = place / PIECES, piece = place % PIECES;
        if (ROWS * PIECES % THREADS != 0 && row >= ROWS) break;
        if (piece < stage.count * CHUNK_PIECES && group.first_row + row < group.end_row) {
            const i64 place = place_of_row(group, group.first_row + row, args.heads);
            const i64 chunk = place * chunks + stage.chunk;
            copy_16(to + row * STAGE_STRIDE + piece * 16, args.x + chunk * X_CHUNK + piece * 16);
        }
    }
}

typedef float Sums[TILES][N_TILES][4];

// sums += the products of a chunk; `x` is where the lane reads the chunk for the warp's first n-tile.
DEVICE void multiply_chunk(Sums& sums, const Codes (&codes)[TILES], const LaneRows& x, u32 ones) {
#if INT8
    multiply_int8_chunk(sums, codes, x, 8 * STAGE_STRIDE);
#else
    constexpr int N_GROUP = N_TILES < 4 ? N_TILES : 4;  // whose products do not wait for each other
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        u32 a[2][TILES][4];
        Factors factors[TILES];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) factors[tile] = factors_of(codes[tile].scales, half);
#pragma unroll
        for (int k_tile = 0; k_tile < 2; ++k_tile) {
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
                weight_tile(a[k_tile][tile], codes[tile], factors[tile], half, k_tile, ones);
        }
#pragma unroll
        for (int first = 0; first < N_TILES; first += N_GROUP) {
            u32 b[N_GROUP][2][2];
#pragma unroll
            for (int n = 0; n < N_GROUP; ++n) {
                const Words4 words = *(const Words4*)(x.row + (first + n) * 8 * STAGE_STRIDE + half * CHUNK);
                b[n][0][0] = words.x, b[n][0][1] = words.y, b[n][1][0] = words.z, b[n][1][1] = words.w;
            }
#pragma unroll
            for (int k_tile = 0; k_tile < 2; ++k_tile) {
#pragma unroll
                for (int n = 0; n < N_GROUP; ++n) {
#pragma unroll
                    for (int tile = 0; tile < TILES; ++tile)
                        multiply_tile(sums[tile][first + n], a[k_tile][tile], b[n][k_tile]);
                }
            }
        }
    }
#endif
}

// Load the weights of a chunk of a stage, if it has as many.
DEVICE void load_slot(Codes (&codes)[TILES], const Tile (&tiles)[TILES], int num_tiles, const Stage& stage,
                      int slot) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        if (slot < stage.count && tile < num_tiles) load_codes(codes[tile], tiles[tile], stage.chunk + slot);
    }
}

// Add the sums of a slice to the totals, and begin the next slice. A thread's totals are THREADS floats
// apart: in registers there is no room for them.
DEVICE void end_slice(float* totals, Sums& sums, bool is_first) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& total = totals[((tile * N_TILES + n) * 4 + i) * THREADS];
                total = is_first ? sums[tile][n][i] : total + sums[tile][n][i];
                sums[tile][n][i] = 0.0f;
            }
        }
    }
}

KERNEL BOUNDS(THREADS, RESIDENT) gemm(IN_PLACE const Args args) {
    DYNAMIC_SHARED(shared);
    const int lane = lane_index(), g = lane / 4, t = lane % 4;
    const int warp_out = warp_index() % WARPS_OUT, warp_rows = warp_index() / WARPS_OUT;
    const Place place = place_of_block(args, WARPS_OUT * TILES);
    const Matrix& m = args.matrices[place.matrix];
    const Output& output = args.outputs[place.matrix];
    const int chunks = m.chunks;
    const int last_slice = SPLIT ? block_z() + 1 : SLICES;
    const int first_tile = place.tile + warp_out * TILES;
    allow_next_kernel();
    if (EXPERTS) wait_for_previous_kernel();
    if (EXPERTS && rows_of(group_of_block(args)) == 0) return;
#if CACHED
    const u64 block = args.blocks[group_of_block(args).member];
    const int first_read = first_tile;
#else
    constexpr u64 block = 0;
    const int first_read = group_of_block(args).member * output.tiles + first_tile;
#endif
    Tile tiles[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) tiles[tile] = tile_at(m, first_read + tile, block);
    const int num_tiles =
        output.tiles - first_tile;  // of this warp; others have no weights and are not written
    const u32 ones = 0x00010001 + (args.num_rows >> 24);

    const int first_slice = SPLIT ? block_z() : 0;
    Stage now = stage_at(first_slice, slice_start(first_slice, chunks), chunks), ahead = now;
    Codes codes[STAGE_CHUNKS][TILES];
#pragma unroll
    for (int slot = 0; slot < STAGE_CHUNKS; ++slot) load_slot(codes[slot], tiles, num_tiles, now, slot);
    if (!EXPERTS) wait_for_previous_kernel();
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
        if (ahead.slice < last_slice) {
            copy_stage(args, ahead, chunks, shared + i * STAGE_BYTES);
            ahead = next_stage(ahead, chunks);
        }
        commit_copies();
    }
    Sums sums = {};
    float* totals = (float*)(shared + STAGES * STAGE_BYTES) + thread_index();
    int buffer = 0;
    while (now.slice < last_slice) {
        wait_for_copies<STAGES - 2>();
        block_barrier();
        if (ahead.slice < last_slice) {
            const int to = buffer + STAGES - 1;
            copy_stage(args, ahead, chunks, shared + (to < STAGES ? to : to - STAGES) * STAGE_BYTES);
            ahead = next_stage(ahead, chunks);
        }
        commit_copies();
        const LaneRows x = lane_rows(shared + buffer * STAGE_BYTES + warp_rows * N_TILES * 8 * STAGE_STRIDE,
                                     STAGE_STRIDE, 8);
        Stage next = next_stage(now, chunks);
        if (next.slice >= last_slice) next.count = 0;
#pragma unroll
        for (int slot = 0; slot < STAGE_CHUNKS; ++slot) {
            if (slot < now.count) multiply_chunk(sums, codes[slot], at_chunk(x, slot), ones);
            load_slot(codes[slot], tiles, num_tiles, next, slot);
        }
        if (!SPLIT && now.ends) end_slice(totals, sums, now.slice == 0);
        now = next;
        buffer = buffer + 1 < STAGES ? buffer + 1 : 0;
    }
    wait_for_copies<0>();

    const Group group = group_of_block(args);
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int column = (first_tile + tile) * TILE + g + i / 2 * 8;
                const int row = group.first_row + (warp_rows * N_TILES + n) * 8 + 2 * t + i % 2;
                if (column >= output.width || row >= group.end_row) continue;
                if (SPLIT) {
                    args.partials[((i64)block_z() * args.num_rows + row) * args.num_columns + place.column +
                                  column] = sums[tile][n][i];
                } else {
                    const float scale = scale_of_row(tiles[tile].scales, column % TILE);
                    write_output(output, totals[((tile * N_TILES + n) * 4 + i) * THREADS] * scale,
                                 place_of_row(group, row, args.heads), column, group.member);
                }
            }
        }
    }
}

#if SPLIT
// Grid x: 256 columns, grid y: a row.
KERNEL BOUNDS(256, 4) add_slices(IN_PLACE const Args args) {
    allow_next_kernel();
    wait_for_previous_kernel();
    int column = block_x() * 256 + thread_index();
    if (column >= args.num_columns) return;
    const float* partial = args.partials + (i64)block_y() * args.num_columns + column;
    float total = partial[0];
#pragma unroll
    for (int slice = 1; slice < SLICES; ++slice)
        total += partial[(i64)slice * args.num_rows * args.num_columns];
    int matrix = 0;
    while (matrix + 1 < MATRICES && column >= args.outputs[matrix].width)
        column -= args.outputs[matrix++].width;
    total *= scale_of_row(tile_at(args.matrices[matrix], column / TILE).scales, column % TILE);
    write_output(args.outputs[matrix], total, block_y(), column);
}
#endif
