// What the shaders of products share: constants, places, and what happens to a sum before it is stored.
//
// Both give an element of `out` the same bits, by this order of sums. A row of the matrix is cut into chunks of 128
// bits (matrix.glsl). Lane l of LANES has the chunks l, l + LANES, .. from left to right: of each STEP elements, the
// products are summed one by one, then multiplied by the scale and added to the sum of the lane; outliers follow. The
// sums of the lanes are added from the first to the last. LANES depends on the matrix alone.

layout(constant_id = 11) const uint ROWS = 4; // weight rows of a thread
layout(constant_id = 12) const uint COLS = 4; // rows of x of a thread
layout(constant_id = 13) const bool GATHER = false;
layout(constant_id = 14) const bool HAS_BIAS = false;
layout(constant_id = 15) const uint LANES = 16;
layout(constant_id = 16) const uint THREADS = 64;
layout(constant_id = 17) const bool RESIDUAL = false;
layout(constant_id = 18) const bool EXPERTS = false;
#include "activations.glsl"
#include "halves.glsl"
#include "matrix.glsl"
layout(binding = 0) buffer Work { vec4 work[]; }; // as work.glsl, in fours
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(push_constant) uniform Push {
    uint count_at, x, x_stride, out_at, out_stride, width, height, low_at, high_at, scales_at, row_scales, coarse_at;
    uint row_coarse, outliers_at, bias_at, index;
    float scale, softcap;
    uint residual, residual_stride;
    float residual_scale;
    uint first_member, num_members, member_rows;
};

const uint STEP = CHUNK < 16u ? CHUNK : 16u; // elements that share a scale for certain

uint word(uint at) { return floatBitsToUint(work[at >> 2][at & 3u]); }

uint first_row, end_row;  // of x
uint stack_row, bias_row; // where the rows of a member begin in the piece, and among the biases of a stack

// Finds the rows of x of the work group, at most some; returns whether there are any. With EXPERTS, the weights are a
// stack: members [first_member, first_member + num_members) are in the piece, each with `member_rows` rows, and
// `count_at` is where the groups of rows are (experts_assign.comp). A work group has one of them.
bool find_rows(uint most) {
    if (!EXPERTS) {
        first_row = gl_WorkGroupID.y * most;
        end_row = word(count_at);
        stack_row = bias_row = 0u;
        return first_row < end_row;
    }
    uint group = count_at + 4u * gl_WorkGroupID.y, member = word(group);
    first_row = word(group + 1u);
    end_row = word(group + 2u);
    stack_row = (member - first_member) * member_rows;
    bias_row = member * member_rows;
    return first_row < end_row && member - first_member < num_members; // a wrapped difference is not below
}

// A row of weights in the piece; of those after the last, the last.
uint stored_row(uint column) { return stack_row + min(column, height - 1u); }

// Where a row of x begins, in fours.
uint row_of_x(uint row) { return (x + (GATHER ? word(index + row) : row) * x_stride) >> 2; }

// Scale and minimum of a weight row at a column.
vec2 scale_at(uint row, uint column) {
    uint group = GROUP == 0u ? 0u : column / GROUP;
    return scale_of(scales_at + row * row_scales, coarse_at + row * row_coarse, group);
}

// Outlier e of a group of a weight row: its column, and what its weight has in addition.
struct Outlier {
    uint column;
    float residual;
};

Outlier outlier_of(uint row, uint group, uint e) {
    uint at = outliers_at + (row * ((width + GROUP - 1u) / GROUP) + group) * 2u;
    float step_size = 8.0 * scale_of(scales_at + row * row_scales, 0u, group).x;
    return Outlier(group * GROUP + byte_of(weight_word(at), e),
                   step_size * fine_of(byte_of(weight_word(at + 1u), e), true));
}

void store(uint row, uint column, float sum) {
    precise float result = sum * scale;
    if (HAS_BIAS) {
        result = result + uintBitsToFloat(biases[bias_at + bias_row + column]);
    }
    if (softcap != 0.0) {
        result = softcap * tanh_of(result / softcap);
    }
    if (RESIDUAL) {
        uint from_at = residual + row * residual_stride + column;
        precise float added = result * residual_scale;
        result = work[from_at >> 2][from_at & 3u] + added;
    }
    uint at = out_at + row * out_stride + column;
    work[at >> 2][at & 3u] = result;
}
