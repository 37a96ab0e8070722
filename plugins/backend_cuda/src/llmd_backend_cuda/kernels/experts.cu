// Experts, besides their products (gemv.cu, gemm.cu): which rows they have, their gates and their sum.
//
//   routes  [rows, experts]  f32: the weight of each expert; 0 if the row does not use it
//   assign_rows  groups, row_numbers and places (experts.cuh), and which experts have rows, by one block: a
//                thread counts the rows of an expert in a range of rows, then numbers them
//   gate_rows    out = activation(min(gate, limit)) * (max(min(up, limit), -limit) + offset), or without a
//                gate activation(up), for all assigned rows [assigned rows, width]
//   sum_rows     out[r] = sum over the experts of the row, in ascending order: route * outputs[place], one
//                fma each
//   exact   the order of assigned rows and of sums depends on the row only
//   speed   bound by latency for few rows; assign_rows reads routes twice, with one block

#include "experts.cuh"
#include "prefix.cuh"
#include "step.cuh"

constexpr int MOST_EXPERTS = 1024;  // and threads of assign_rows
constexpr int COLUMNS = 256;        // and threads of the other kernels

struct Args {
    const i32* counts;  // of Step
    const float* routes;
    Group* groups;         // [most_groups]
    i32* assigned;         // [1]: the number of assigned rows
    i32* row_numbers;      // [assigned rows]: the row of the step
    i32* places;           // [rows, experts]: the assigned row, if the row uses the expert
    const float* gate;     // [assigned rows, inner]; null: none
    const float* up;       // [assigned rows, inner]
    float* activated;      // [assigned rows, inner]
    const float* outputs;  // [assigned rows, width]
    float* out;            // [rows, width]
    ExpertGate of_gate;
    i32 experts;
    i32 top_k;
    i32 inner;
    i32 width;
    i32 most_groups;
    i32 group_rows;  // most rows of a group
    u32* used;       // a bit for each expert, set if it has rows; null: not needed
};

// Write the groups of an expert; its rows begin at `first`.
DEVICE void write_groups(const Args& args, int expert, int first, int rows, int number) {
    for (int row = 0; row < rows; row += args.group_rows, ++number) {
        const int count = min(args.group_rows, rows - row);
        if (number < args.most_groups) args.groups[number] = {expert, first + row, first + row + count, 0};
    }
}

KERNEL BOUNDS(MOST_EXPERTS, 1) assign_rows(const Args args) {
    SHARED i32 found[MOST_EXPERTS];  // rows of an expert in a range; then the first of them
    SHARED i32 sums[2][WARP];
    allow_next_kernel();
    wait_for_previous_kernel();
    const int thread = thread_index(), ranges = num_threads() / args.experts;
    const int expert = thread % args.experts, range = thread / args.experts, rows = args.counts[0];
    const int each = (rows + ranges - 1) / ranges, first = min(rows, range * each);
    const int end = range < ranges ? min(rows, first + each) : first;
    const float* routes = args.routes + expert;
    int count = 0;
#pragma unroll 8
    for (int row = first; row < end; ++row) count += routes[(i64)row * args.experts] != 0.0f;
    found[thread] = count;
    block_barrier();
    int total = 0;
    for (int i = 0; thread < args.experts && i < ranges; ++i) total += found[i * args.experts + thread];
    const Prefix of_rows = prefix_of(total, sums[0]);
    const Prefix of_groups = prefix_of((total + args.group_rows - 1) / args.group_rows, sums[1]);
    if (thread < args.experts) {
        int place = of_rows.before;
        for (int i = 0; i < ranges; ++i) {
            i32& begins = found[i * args.experts + thread];
            const int rows_of_range = begins;
            begins = place;
            place += rows_of_range;
        }
        write_groups(args, thread, of_rows.before, total, of_groups.before);
    }
    for (int number = of_groups.all + thread; number < args.most_groups; number += num_threads())
        args.groups[number] = {0, 0, 0, 0};
    if (thread == 0) *args.assigned = of_rows.all;
    if (args.used) {
        const u32 used = ballot(thread < args.experts && total > 0);
        if (lane_index() == 0 && thread < args.experts) args.used[warp_index()] = used;
    }
    block_barrier();
    int place = found[thread];
    for (int row = first; row < end; ++row) {
        const i64 at = (i64)row * args.experts;
        if (routes[at] == 0.0f) continue;
        args.row_numbers[place] = row;
        args.places[at + expert] = place++;
    }
}

// Grid x: an assigned row, grid y: COLUMNS columns.
KERNEL BOUNDS(COLUMNS, 4) gate_rows(const Args args) {
    allow_next_kernel();
    wait_for_previous_kernel();
    const int column = block_y() * COLUMNS + thread_index();
    if (block_x() >= *args.assigned || column >= args.inner) return;
    const i64 at = (i64)block_x() * args.inner + column;
    args.activated[at] = args.gate ? gated(args.of_gate, args.gate[at], args.up[at])
                                   : activate(args.of_gate.activation, args.up[at], 0.0f);
}

struct alignas(8) Route {
    i32 place;
    float weight;
};

// Grid x: a row, grid y: COLUMNS columns. Dynamic shared memory: top_k routes.
KERNEL BOUNDS(COLUMNS, 4) sum_rows(const Args args) {
    DYNAMIC_SHARED(shared);
    SHARED i32 count;
    Route* routes = (Route*)shared;
    allow_next_kernel();
    wait_for_previous_kernel();
    if (block_x() >= args.counts[0]) return;
    if (warp_index() == 0) {
        int found = 0;
        for (int first = 0; first < args.experts; first += WARP) {
            const int expert = first + lane_index();
            const i64 at = (i64)block_x() * args.experts + expert;
            const float weight = expert < args.experts ? args.routes[at] : 0.0f;
            const u32 used = ballot(weight != 0.0f);
            const int number = found + count_bits(used & ((1u << lane_index()) - 1));
            if (weight != 0.0f && number < args.top_k) routes[number] = {args.places[at], weight};
            found += count_bits(used);
        }
        if (lane_index() == 0) count = min(found, args.top_k);
    }
    block_barrier();
    const int column = block_y() * COLUMNS + thread_index();
    if (column >= args.width) return;
    float total = 0.0f;
    for (int i = 0; i < count; ++i)
        total = fmaf(args.outputs[(i64)routes[i].place * args.width + column], routes[i].weight, total);
    args.out[(i64)block_x() * args.width + column] = total;
}
