// outs[n] = epilogue(x[n] W^T) for many rows x, on cards of compute capability 9.0, whose tensor cores reach
// their full rate only with products of warpgroups. See gemv.cu for the formula; matrices, outputs and order
// of sums are the same. Whether a row has the same bits as there has to be shown on a card, and how fast this
// is, too: not used until then (ops/gemm_tiles.py).
//
// A block takes 64 * GROUPS weight rows and ROWS rows of x, in the order of round_rows.cu. Each warp reads
// the weights of its own tile from global memory, a chunk ahead, and turns them into float16 in registers,
// for two products in turn. x passes through shared memory in stages of a chunk, of which AHEAD are on their
// way. Each warpgroup is a chunk behind the one before: while one adds the sums of a slice to its totals,
// the others keep the tensor cores busy.
//
// Macros: those of weights.cuh; GROUPS, ROWS (64 or 128), AHEAD, RESIDENT (blocks of a multiprocessor).
#include "gemm.cuh"
#include "warpgroup.cuh"

constexpr int THREADS = GROUPS * 4 * WARP;
constexpr int TILES = GROUPS * 4;
// Chunks on their way, those of the groups, and the one before: its products may still run.
constexpr int STAGES = AHEAD + GROUPS + 1;
constexpr int STAGE_BYTES = ROWS * SWIZZLED_BYTES;
constexpr int NUM_SUMS = ROWS / 2;  // of a thread

DEVICE void copy_chunk(const Args& args, int chunk, int first_row, int chunks, u8* to) {
    constexpr int PIECES = SWIZZLED_BYTES / 16, ALL = ROWS * PIECES;
#pragma unroll
    for (int i = 0; i < (ALL + THREADS - 1) / THREADS; ++i) {
        const int place = i * THREADS + thread_index(), row = place / PIECES, piece = place % PIECES;
        if ((ALL % THREADS == 0 || row < ROWS) && first_row + row < args.num_rows) {
            const i64 from = (i64)(first_row + row) * chunks + chunk;
            copy_16(to + swizzled(row, piece), args.x + from * (CHUNK * 2) + piece * 16);
        }
    }
}

// Add the sums of a slice to the totals, and begin the next slice. Totals are in shared memory: in registers
// there is no room for them.
DEVICE void end_slice(float4* totals, float (&sums)[NUM_SUMS], bool is_first) {
#pragma unroll
    for (int i = 0; i < NUM_SUMS; i += 4) {
        float4 total = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
        float4* const at = totals + i / 4 * THREADS;
        if (!is_first) {
            const float4 earlier = *at;
            total.x = earlier.x + total.x, total.y = earlier.y + total.y;
            total.z = earlier.z + total.z, total.w = earlier.w + total.w;
        }
        *at = total;
        sums[i] = sums[i + 1] = sums[i + 2] = sums[i + 3] = 0.0f;
    }
}

KERNEL BOUNDS(THREADS, RESIDENT) gemm_warpgroup(IN_PLACE const Args args) {
    DYNAMIC_SHARED(shared);
    float4* const totals = (float4*)shared + thread_index();
    u8* const stages = swizzle_aligned(shared + NUM_SUMS * 4 * THREADS);
    const int first_row = block_x() * ROWS, group = warp_index() / 4;
    const Place place = place_of_block(args, TILES);
    const Matrix& m = args.matrices[place.matrix];
    const Output& output = args.outputs[place.matrix];
    const int chunks = m.chunks, tile = place.tile + warp_index();
    const bool has_weights = tile < output.tiles;  // others multiply what is not written
    allow_next_kernel();
    const Tile weights = tile_at(m, tile);
    const u32 ones = 0x00010001 + (args.num_rows >> 24);
    Codes codes = {}, next = {};
    if (has_weights) load_codes(next, weights, 0);
    wait_for_previous_kernel();
#pragma unroll
    for (int chunk = 0; chunk < AHEAD; ++chunk) {
        if (chunk < chunks) copy_chunk(args, chunk, first_row, chunks, stages + chunk * STAGE_BYTES);
        commit_copies();
    }
    int turn = 0, to = AHEAD, from = 0;
    auto next_turn = [&] {
        wait_for_copies<AHEAD - 1>();
        publish_to_products();
        block_barrier();
        if (turn + AHEAD < chunks)
            copy_chunk(args, turn + AHEAD, first_row, chunks, stages + to * STAGE_BYTES);
        commit_copies();
        to = to + 1 < STAGES ? to + 1 : 0;
        ++turn;
    };
    for (int i = 0; i <= group; ++i) next_turn();
    float sums[NUM_SUMS] = {};
    u32 a[2][4];
    for (int slice = 0; slice < SLICES; ++slice) {
        const int last = slice_start(slice + 1, chunks);
        for (int chunk = slice_start(slice, chunks); chunk < last; ++chunk) {
            codes = next;
            if (has_weights && chunk + 1 < chunks) load_codes(next, weights, chunk + 1);
#pragma unroll
            for (int step = 0; step < CHUNK / 16; ++step) {
                const Factors factors = factors_of(codes.scales, step / 2);
                wait_for_products<1>();  // the one before the last has read its `a`
                weight_tile(a[step % 2], codes, factors, step / 2, step % 2, ones);
                begin_products(a[step % 2]);
                multiply_group(sums, a[step % 2], stages + from * STAGE_BYTES, step);
                commit_products();
            }
            from = from + 1 < STAGES ? from + 1 : 0;
            next_turn();
        }
        wait_for_products<0>();
        take_sums(sums);
        end_slice(totals, sums, slice == 0);
    }
    for (int i = group; i < GROUPS - 1; ++i) next_turn();
    wait_for_copies<0>();

    const int g = lane_index() / 4, t = lane_index() % 4;
#pragma unroll
    for (int n = 0; n < ROWS / 8; ++n) {
        const float4 total = totals[n * THREADS];
        const float elements[4] = {total.x, total.y, total.z, total.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = tile * TILE + g + i / 2 * 8, row = first_row + n * 8 + 2 * t + i % 2;
            if (column >= output.width || row >= args.num_rows) continue;
            write_output(output, elements[i] * scale_of_row(weights.scales, column % TILE), row, column);
        }
    }
}
