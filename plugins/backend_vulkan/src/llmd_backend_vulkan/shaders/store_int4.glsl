// Stores a rotated head in the form of kv_int4.glsl. All 64 threads take part, each for an element of 64 at a time.
//
// From Conway & Sloane 1982, "Fast Quantizing and Decoding Algorithms for Lattice Quantizers and Codes".

const float UNIT = 64.0, LOWEST_LEVEL = -120.0, HIGHEST_LEVEL = 127.0;
const float REACH = 255.0;       // elements are clamped to this, in units of levels
const uint LARGEST_SCALE = 0xf7; // the next one is infinite
const uint SCALES_TRIED = 3;

shared float head_values[576];
shared float detours[64], squares[64];
shared uint codes[64];

#define HEADS_TO_ROTATE head_values
#include "hadamard.glsl"

struct Point {
    uint code;
    uint other;   // the nearer of the two codes next to it
    float square; // its squared error
    float detour; // what the other one adds to it
};

float square_to(float y, uint code) {
    precise float distance = y - level_of(code);
    precise float square = distance * distance;
    return square;
}

Point nearest_to(float y) {
    uint code = 0u;
    for (uint by = 16u; by > 0u; by /= 2u) {
        if (2.0 * y > level_of(code + by - 1u) + level_of(code + by)) {
            code += by;
        }
    }
    bool up = code == 0u || (code < LAST_CODE && square_to(y, code + 1u) < square_to(y, code - 1u));
    uint other = up ? code + 1u : code - 1u;
    float square = square_to(y, code);
    return Point(code, other, square, square_to(y, other) - square);
}

// Rounds the element of each thread with a scale; returns its code, and the squared error of the 32 elements.
uint rounded(float x, uint bits, out float error) {
    uint thread = gl_LocalInvocationID.x, group = thread & 32u, lane = thread & 31u;
    float wide = scale_of(bits);
    precise float unit = wide / UNIT;
    precise float inverse = unit > 0.0 ? 1.0 / unit : 0.0;
    precise float quotient = x * inverse;
    Point point = nearest_to(clamp(roundEven(quotient), -REACH, REACH));
    barrier();
    codes[thread] = point.code;
    detours[thread] = point.detour;
    barrier();
    uint quad = group + (lane & 14u);
    uint sum = 0u, moved = 0u;
    float least = 0.0;
    for (uint i = 0u; i < 4u; i++) {
        uint place = quad + (i & 1u) + (i & 2u) * 8u;
        sum += codes[place];
        if (i == 0u || detours[place] < least) {
            least = detours[place];
            moved = place;
        }
    }
    bool moves = (sum & 1u) == 1u && moved == thread;
    squares[thread] = moves ? point.square + point.detour : point.square;
    barrier();
    float total = 0.0;
    for (uint i = 0u; i < 32u; i++) {
        total += squares[group + i]; // integers below 2^24
    }
    precise float scaled = total * wide * wide;
    error = scaled;
    return moves ? point.other : point.code;
}

// Stores the elements [first, first + 64) of `head_values`; those beyond the head repeat its last one.
void store_64(uint to, uint first, uint head_dim) {
    uint thread = gl_LocalInvocationID.x, group = thread & 32u, lane = thread & 31u;
    float x = head_values[min(first + thread, head_dim - 1u)];
    float highest = x, lowest = x;
    for (uint i = 0u; i < 32u; i++) {
        float y = head_values[min(first + group + i, head_dim - 1u)];
        highest = max(highest, y);
        lowest = min(lowest, y);
    }
    precise float widest = max(highest / HIGHEST_LEVEL, lowest / LOWEST_LEVEL) * UNIT;
    uint bits = ((to_half(widest) & 0x7fffu) + 64u) >> 7, scale = 0u, code = 0u;
    float least = 0.0;
    for (uint i = 0u; i < SCALES_TRIED; i++) {
        uint tried = min(bits + i, LARGEST_SCALE);
        float error;
        uint found = rounded(x, tried, error);
        if (i == 0u || error < least) {
            least = error;
            scale = tried;
            code = found;
        }
    }
    barrier();
    codes[thread] = code;
    barrier();
    if ((thread & 7u) == 0u && first + thread < head_dim) {
        uint upper = 0u;
        for (uint i = 0u; i < 8u; i++) {
            upper |= (codes[thread + i] >> 1) << (4u * i);
        }
        pool[to + (first + thread) / 8u] = upper;
    }
    if (lane == 0u && first + thread < head_dim) {
        uint word = scale << 24;
        for (uint i = 0u; i < 16u; i++) {
            word |= (codes[thread + i] & 1u) << i;
        }
        for (uint i = 0u; i < 8u; i++) {
            word |= (codes[thread + 16u + 2u * i] & 1u) << (16u + i);
        }
        pool[to + code_words(head_dim) + (first + thread) / 32u] = word;
    }
}

// Rotates `head_values`, and stores it.
void store_rotated(uint to, bool is_odd, uint head_dim) {
    rotate_heads(1u, 576u, head_dim);
    for (uint i = gl_LocalInvocationID.x; i < head_dim; i += 64u) {
        head_values[i] = is_odd ? -head_values[i] : head_values[i];
    }
    barrier();
    for (uint first = 0u; first < head_dim; first += 64u) {
        store_64(to, first, head_dim);
    }
}
