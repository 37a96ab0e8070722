// The best tokens of a row, from the best logits of its groups.
//
// Each of the best K tokens is in one of the K groups whose best token comes first: the best tokens of K such
// groups would all come before a token of any other group. Ids of a group are consecutive, so that equal
// logits of groups are in the order of the groups.
#pragma once

#include "outputs_order.cuh"

constexpr int LISTS = THREADS;  // of groups; the best group of each is known first

// What the threads of a block share besides the keys.
struct SelectScratch {
    i32 groups[MAX_CANDIDATES];
    i32 count;
};

// Visit the groups of this thread's list. Loads come first: a compiler cannot move them over what a visit
// writes.
template <class Visit>
DEVICE void visit_groups(const u32* group_best, int groups, Visit visit) {
    constexpr int AT_ONCE = 16;  // loads of a thread that are under way
#pragma unroll 1
    for (int first = thread_index(); first < groups; first += LISTS * AT_ONCE) {
        u32 orders[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int group = first + i * LISTS;
            orders[i] = group < groups ? group_best[group] : 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int group = first + i * LISTS;
            if (group < groups) visit(key_of(orders[i], group));
        }
    }
}

// Write keys of groups, the best first; the first `wanted` are right. With many groups, only those are sorted
// that are not worse than the best groups of `wanted` lists: at most `wanted` lists have such groups.
DEVICE void order_groups(const u32* group_best, int groups, int wanted, u64* keys, SelectScratch& scratch) {
    block_barrier();
    if (thread_index() == 0) scratch.count = 0;
    u64 best = 0;
    visit_groups(group_best, groups, [&](u64 key) { best = larger(best, key); });
    keys[thread_index()] = best;
    sort_keys(keys, LISTS);
    if (groups <= LISTS) return;
    const u64 least = keys[wanted - 1];
    block_barrier();
    visit_groups(group_best, groups, [&](u64 key) {
        if (key >= least) keys[atomic_add(&scratch.count, 1)] = key;
    });
    block_barrier();
    sort_some(keys, scratch.count);
}

// Append those keys of a warp whose order is at least `least`. The lanes have a place for all of them at
// once.
template <int count>
DEVICE void append_found(const u64 (&found)[count], u32 least, u64* keys, SelectScratch& scratch) {
    u32 taken[count];
    int total = 0, place = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        taken[i] = ballot(found[i] != 0 && (u32)(found[i] >> 32) >= least);
        total += count_bits(taken[i]);
    }
    if (lane_index() == 0) place = atomic_add(&scratch.count, total);
    place = shuffle(place, 0);
#pragma unroll
    for (int i = 0; i < count; ++i) {
        const u32 lane = 1u << lane_index();
        if (taken[i] & lane) keys[place + count_bits(taken[i] & (lane - 1))] = found[i];
        place += count_bits(taken[i]);
    }
}

// Write the keys of the best `kept` tokens, the best first. All threads of the block take part. There must be
// room for max(LISTS, kept * GROUP, kept * ceil(groups / LISTS)) keys, rounded up to a power of two.
DEVICE void select_best(const float* logits, const u32* group_best, int vocab, int kept, u64* keys,
                        SelectScratch& scratch) {
    constexpr int AT_ONCE = 8;  // loads of a warp that are under way
    const int groups = num_groups(vocab);
    const int wanted = min(kept, groups);
    order_groups(group_best, groups, wanted, keys, scratch);
    // The best tokens of K groups are at least as good as this: no worse token is among the best K.
    const u32 least = wanted == kept ? (u32)(keys[kept - 1] >> 32) : 0;
    for (int i = thread_index(); i < wanted; i += THREADS) scratch.groups[i] = id_of(keys[i]);
    block_barrier();
    if (thread_index() == 0) scratch.count = 0;
    block_barrier();
#pragma unroll 1
    for (int first = warp_index(); first < wanted; first += WARPS * AT_ONCE) {
        u64 found[AT_ONCE];  // 0: no token, or none that is good enough
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int place = first + i * WARPS;
            const int id = place < wanted ? scratch.groups[place] * GROUP + lane_index() : vocab;
            found[i] = id < vocab ? key_of(logits[id], id) : 0;
        }
        append_found(found, least, keys, scratch);
    }
    block_barrier();
    sort_some(keys, scratch.count);
}
