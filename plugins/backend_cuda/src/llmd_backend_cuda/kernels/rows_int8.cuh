// Rows of x as int8, as docs/ops.md defines them: for a group of columns, a = max |x|, codes
// rint(x * (127 / a)) in -127 .. 127 with ties to even, and the scale a / 127; zeros if a is 0. All in
// float32.
//
// A chunk of 64 columns is a record of 80 bytes: 64 codes, and for each half the float32 scale and the sums
// of the codes of its two times 16 columns, as float16. These are exact: at most 16 * 127. Both halves have
// the same scale if groups have 64 columns or more.
#pragma once

#include "rows.cuh"

// The scale of half a chunk, and the sums of its codes.
struct alignas(8) HalfScale {
    float scale;
    half2 sums;
};

// The code of an element.
DEVICE u32 to_code(float x, float inverse) {
    return (u32)(i32)fminf(fmaxf(rintf(x * inverse), -127.0f), 127.0f) & 0xff;
}

DEVICE u32 to_codes(float4 v, float inverse) {
    return to_code(v.x, inverse) | to_code(v.y, inverse) << 8 | to_code(v.z, inverse) << 16 |
           to_code(v.w, inverse) << 24;
}

DEVICE float largest_of(float4 v) {
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Write rows as records, `stride` bytes apart; the last one is padded with zeros. `group` columns share a
// scale: 32, 64, 128 or 256. `sums` has a float for each row and warp. All threads of the block take part,
// each with 8 columns at a time, so that a group is in one warp; a barrier must follow.
DEVICE void stage_int8_rows(const Rows& rows, int first_row, int num_rows, int chunks, int group, u8* to,
                            int stride, float* sums) {
    sum_squares(rows, first_row, num_rows, sums);
    for (int n = 0; n < num_rows; ++n) {
        const float* x = row_of(rows, first_row + n);
        const float factor = norm_factor(rows, n, sums);
        for (int first = 0; first < chunks * 64; first += 8 * num_threads()) {
            const int column = first + 8 * thread_index();
            const float4 v = load_normed(rows, x, column, factor);
            const float4 w = load_normed(rows, x, column + 4, factor);
            float largest = fmaxf(largest_of(v), largest_of(w));
            for (int lanes = 1; lanes < group / 8; lanes *= 2)
                largest = fmaxf(largest, shuffle_xor(largest, lanes));
            const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
            const Words2 codes = {to_codes(v, inverse), to_codes(w, inverse)};
            i32 sum = dot4(codes.x, 0x01010101, dot4(codes.y, 0x01010101, 0));
            sum += shuffle_xor(sum, 1);
            if (column >= chunks * 64) continue;
            const int place = column % 64;
            u8* record = to + (i64)n * stride + column / 64 * INT8_CHUNK;
            *(Words2*)(record + place) = codes;
            HalfScale& of_half = ((HalfScale*)(record + 64))[place / 32];
            if (place % 32 == 0) of_half.scale = largest / 127.0f;
            if (place % 16 == 0) ((u16*)&of_half.sums)[place % 32 / 16] = to_half((float)sum);
        }
    }
}
