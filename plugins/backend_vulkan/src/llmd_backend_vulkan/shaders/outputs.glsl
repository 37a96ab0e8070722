// What the shaders after the head share: the selection of a step, and what they leave for each other in `work`.
//
// The logits of a row are cut into parts of PART. A part leaves its best MOST_KEPT keys, sorted, and its sums; of a row
// that needs no more than its best token, it leaves the best key.

const uint THREADS = 128; // of a work group
const uint PART = 1024;
const uint NO_LOGIT = 0xff800000u; // the bits of minus infinity: a logit that is not allowed

const uint HOST = 0, GREEDY = 1, SAMPLED = 2;

// Words of the selection: its rows, the number of raw logits that are wanted, 0, 0; then rows of ROW_WORDS.
const uint HEADER_WORDS = 4, ROW_WORDS = 20;
const uint TEMPERATURE = 0, TARGET = 1, KIND = 2, DESCRIBED = 3, FIRST_EDIT = 4, NUM_EDITS = 5, MASK = 6;
const uint FILTER_TEMPERATURE = 8, DRAW_TEMPERATURE = 9, TOP_K = 10, TOP_P = 11, MIN_P_BEFORE = 12;
const uint MIN_P_AFTER = 13, SEED = 14, POSITION = 16, CHOICE = 17;

// Words of the sums of a part. Weights are exp((z - best) / temperature) of the edited logits that are allowed.
const uint SUM_WORDS = 12;
const uint BEST = 0, COUNT = 1, TOTAL = 2, WEIGHT = 3, WEIGHTED = 4, SQUARES = 5, FILTER_WEIGHT = 6, DRAW_WEIGHT = 7;
const uint RAW_BEST = 8, RAW_WEIGHT = 9;

// By its bits: Vulkan lets compilers assume that no number is infinite.
bool is_cut(float logit) { return floatBitsToUint(logit) == NO_LOGIT; }

bool is_finite(float logit) { return (floatBitsToUint(logit) & 0x7f800000u) != 0x7f800000u; }

// A key orders tokens: the larger logit first, of equal ones the lower id. x is 0 where there is no token.
uvec2 key_of(float logit, uint id) {
    uint bits = floatBitsToUint(logit);
    bits = bits == 0x80000000u ? 0u : bits; // -0 is equal to 0
    return uvec2((bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u, ~id);
}

float logit_of(uvec2 key) {
    return uintBitsToFloat((key.x & 0x80000000u) != 0u ? key.x ^ 0x80000000u : ~key.x);
}

uint id_of(uvec2 key) { return ~key.y; }

bool is_better(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }

bool needs_best_only(uint of_row) { return work[of_row + KIND] != SAMPLED && work[of_row + DESCRIBED] == 0u; }

uint num_parts(uint vocab) { return (vocab + PART - 1u) / PART; }

float weight_of(float logit, float best, float temperature) {
    return is_cut(logit) ? 0.0 : exp((logit - best) / temperature);
}
