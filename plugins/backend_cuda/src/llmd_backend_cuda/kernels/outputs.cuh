// What the kernels after the logits share: the selection of a step in device memory, and what they leave for
// each other.
//
// The logits of a row are in parts of PART, and in groups of GROUP with consecutive ids. Both depend on the
// vocabulary only, so that the sums of a row do not depend on the other rows.
#pragma once

#include "gpu.cuh"

constexpr int THREADS = 256;  // of a block of all these kernels
constexpr int WARPS = THREADS / WARP;
constexpr int LOADS = 8;  // logits of a thread in a part
constexpr int PART = THREADS * LOADS;
constexpr int GROUP = WARP;
constexpr int MAX_CANDIDATES = 128;
constexpr int MAX_TOP = 20;      // raw logits that a selection may ask for
constexpr int RECORD_START = 8;  // words of a record before its lists

enum Kind : i32 { HOST, GREEDY, SAMPLED };

// z becomes z / factor if z > 0, else z * factor, and then z + bias.
struct Edit {
    i32 id;
    float factor;
    float bias;
};

struct OutputsHeader {
    i32 num_rows;
    i32 raw_top;  // at most the vocabulary
    const Edit* edits;
};

// One output row of the selection.
struct OutputRow {
    double filter_temperature, draw_temperature, top_k, top_p, min_p_before, min_p_after;
    u64 seed;
    u32 position, choice;
    float temperature;
    i32 target;  // id whose raw logit is wanted; -1: none
    i32 kind;
    i32 phase;   // the phase in which the row is computed: see OutputsArgs
    i32 record;  // place of its candidates in the results; -1: only the token is wanted
    i32 first_edit, num_edits;
    i32 late;  // place in the late edits; -1: none
    i32 mask;  // place in the masks; -1: none
    i32 unused;
};

// Sums over a part of a row. A logit that is not allowed is -inf and has no weight.
struct PartSums {
    u64 best;  // key of the best edited logit
    float raw_best;
    float raw_sum;     // of exp(raw - raw_best)
    float sum;         // of e = exp((edited - best) / temperature)
    float weighted;    // of e * (edited - best) / temperature
    float filter_sum;  // as `sum`, at the filter temperature
    float draw_sum;    // as `sum`, at the draw temperature
    float mean;        // of the allowed edited logits, nearly
    float deviations;  // sum of edited - mean
    float squares;     // sum of (edited - mean)^2
    i32 count;         // of allowed logits
};

struct OutputsArgs {
    const OutputsHeader* header;
    const OutputRow* rows;          // [outputs]
    const Edit* const* late_edits;  // the address of the late edits
    const i32* late_offsets;        // [late rows + 1]
    const u32* masks;               // [masked rows, ceil(vocab / 32)]; a set bit allows an id
    const float* raw;               // [outputs, vocab]
    float* edited;                  // [outputs, vocab]; rows without edits and masks are not written
    u32* group_best;      // [outputs, groups]: the best edited logit of each group, in order (see ordered)
    u32* raw_group_best;  // [outputs, groups]: the same of the raw logits, for rows that are edited
    PartSums* parts;      // [outputs, parts]
    i32* tokens;          // [outputs]
    u32* records;         // [records, record words]
    i32 vocab;
    i32 num_candidates;
    i32 capacity;  // keys that fit in shared memory
    i32 phase;     // 0: rows that need nothing more, 1: rows with late edits, 2: rows with masks
};

DEVICE int num_groups(int vocab) { return (vocab + GROUP - 1) / GROUP; }
DEVICE int num_parts(int vocab) { return (vocab + PART - 1) / PART; }

// Words of a record: RECORD_START for the sums, ids, edited and raw logits of the candidates, top ids, top
// logits.
DEVICE int record_words(int num_candidates) { return RECORD_START + 3 * num_candidates + 2 * MAX_TOP; }

// Rows of another phase, and the padding of the bucket, have nothing to do. Both are read at once: a padding
// row has any phase.
DEVICE bool is_due(const OutputsArgs& args, int output) {
    const i32 num_rows = args.header->num_rows, phase = args.rows[output].phase;
    return output < num_rows && phase == args.phase;
}

DEVICE bool is_edited(const OutputRow& row) { return row.num_edits > 0 || row.late >= 0 || row.mask >= 0; }

// Whether a draw may need the weight of the whole row: with a smaller top-k, the candidates are enough.
DEVICE bool needs_row_weight(const OutputsArgs& args, const OutputRow& row) {
    return row.kind == SAMPLED && row.top_k > args.num_candidates && args.vocab > args.num_candidates;
}
