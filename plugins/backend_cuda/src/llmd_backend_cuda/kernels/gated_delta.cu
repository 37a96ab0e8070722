// gated_delta: S = decay S + k (share (v - k decay S)), out = q S, one row of a sequence after another
//
//   q, k    convolved, with length 1 (q: KEY_DIM^-1/2); v is convolved
//   decay   exp(-rate softplus(decay + bias)), share = 1 / (1 + e^-beta)
//   from    Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule"
//
// Shapes, macros and work: state_rows.cuh.
#include "state_rows.cuh"

struct DeltaRule {
    static constexpr bool NORMALISED = true;  // queries and keys are
    static constexpr bool CORRECTS = true;    // a value is written less what the state already holds

    DEVICE static void weigh_head(const Args& args, int row, int head) {
        const float rate = rate_of(args, head);
        for (int i = thread_index(); i < DECAYS; i += THREADS) {
            const int place = head * DECAYS + i;
            const i64 at = (i64)row * args.heads * DECAYS + place;
            args.decays[at] = expf(-rate * softplus(args.decay[at] + args.bias[place]));
        }
        const i64 at = (i64)row * args.heads + head;
        if (thread_index() == 0) args.shares[at] = sigmoid(args.beta[at]);
    }

    DEVICE static float result(float read, float, float) { return read; }
};

KERNEL BOUNDS(THREADS, 4) prepare_rows(const Args args) {
    SHARED float sums[THREADS / WARP];
    prepare<DeltaRule>(args, sums);
}

KERNEL BOUNDS(THREADS, 2) run_rows(const Args args) {
    SHARED Row rows[2];
    run<DeltaRule>(args, rows);
}
