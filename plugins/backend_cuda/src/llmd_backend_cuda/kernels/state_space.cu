// state_space: S = exp(-rate time) S + B (time x), out = C S + skip x, one row of a sequence after another
//
//   C, B, x  convolved: the q, k and v of state_rows.cuh. Groups are its key heads
//   time     softplus(time + bias), between two bounds
//   from     Dao & Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through
//            Structured State Space Duality" (Mamba-2)
//
// Shapes, macros and work: state_rows.cuh.
#include "state_rows.cuh"

struct SpaceRule {
    static constexpr bool NORMALISED = false;
    static constexpr bool CORRECTS = false;

    DEVICE static void weigh_head(const Args& args, int row, int head) {
        if (thread_index() > 0) return;
        const i64 at = (i64)row * args.heads + head;
        const float stated = softplus(args.decay[at] + args.bias[head]);
        const float time = fminf(fmaxf(stated, args.least_time), args.most_time);
        args.decays[at] = expf(-rate_of(args, head) * time);
        args.shares[at] = time;
    }

    DEVICE static float result(float read, float x, float skip) { return fmaf(skip, x, read); }
};

KERNEL BOUNDS(THREADS, 4) prepare_rows(const Args args) {
    SHARED float sums[THREADS / WARP];
    prepare<SpaceRule>(args, sums);
}

KERNEL BOUNDS(THREADS, 2) run_rows(const Args args) {
    SHARED Row rows[2];
    run<SpaceRule>(args, rows);
}
