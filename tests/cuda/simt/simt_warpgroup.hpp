// The functions of warpgroup.cuh for the host.
#pragma once

DEVICE u8* swizzle_aligned(u8* shared) {
    return (u8*)(((u64)shared + SWIZZLE_ALIGNMENT - 1) / SWIZZLE_ALIGNMENT * SWIZZLE_ALIGNMENT);
}
DEVICE void publish_to_products() { simt::publish_copies(); }
DEVICE void begin_products(u32 (&)[4]) { simt::begin_products(); }
DEVICE void commit_products() { simt::commit_products(); }
template <int pending>
DEVICE void wait_for_products(SITE) {
    simt::finish_products(pending, site);
}
template <int COUNT>
DEVICE void take_sums(float (&)[COUNT]) {}
template <int COUNT>
DEVICE void multiply_group(float (&sums)[COUNT], const u32 (&a)[4], const u8* rows, int step, SITE) {
    simt::start_product(sums, COUNT, a, rows, step, site);
}
