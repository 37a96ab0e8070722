// add: out = a + b * scale      activate: out = activation(a)
// glu: out = activation(min(a, limit)) * (b within +-limit)
// gate: out = a / (1 + e^-b), with an element of b for each `slice` elements of a
// multiply: out = a * b, with one b      join: out = slices of a and of b in turn, those of b shorter or
// longer
//
//   a, b, out  [rows, width] f32, as one array of `count` elements
//              (of a gate, b has count / slice elements, of a product 1, of a join the rest)
//   work       a thread makes four neighbouring elements
//   speed      bound by the launch for few rows, else by memory: each element is read and written once
//
// Macro: ACTIVATION, an index in llmd.api.activations.ACTIVATIONS.

#include "activations.cuh"

#ifndef ACTIVATION
#define ACTIVATION 0
#endif

// Neighbouring elements that are read and written by one instruction.
struct alignas(16) Elements {
    float at[4];
};

struct Args {
    const float* a;
    const float* b;
    float* out;
    i64 count;
    float scale;      // of add
    float threshold;  // of glu with relu: lower values become 0
    float limit;      // of glu; infinity: none
    i32 slice;        // of gate: elements that share a gate; of join: elements of a slice of a
    i32 other_slice;  // of join: elements of a slice of b
};

DEVICE i64 first_element() { return ((i64)block_x() * num_threads() + thread_index()) * 4; }

// Read the elements from `first` on; zeros follow the last.
DEVICE Elements read_elements(const float* from, i64 first, i64 count) {
    if (first + 4 <= count) return *(const Elements*)(from + first);
    Elements elements;
    for (int i = 0; i < 4; ++i) elements.at[i] = first + i < count ? from[first + i] : 0.0f;
    return elements;
}

DEVICE void write_elements(float* to, i64 first, i64 count, const Elements& elements) {
    if (first + 4 <= count) {
        *(Elements*)(to + first) = elements;
        return;
    }
    for (int i = 0; i < 4; ++i) {
        if (first + i < count) to[first + i] = elements.at[i];
    }
}

KERNEL add_rows(Args args) {
    const i64 first = first_element();
    const Elements a = read_elements(args.a, first, args.count);
    const Elements b = read_elements(args.b, first, args.count);
    Elements out;
    for (int i = 0; i < 4; ++i) out.at[i] = fmaf(b.at[i], args.scale, a.at[i]);
    write_elements(args.out, first, args.count, out);
}

KERNEL glu_rows(Args args) {
    const i64 first = first_element();
    const Elements gate = read_elements(args.a, first, args.count);
    const Elements up = read_elements(args.b, first, args.count);
    Elements out;
    for (int i = 0; i < 4; ++i) {
        out.at[i] = gated(ACTIVATION, args.threshold, args.limit, gate.at[i], up.at[i]);
    }
    write_elements(args.out, first, args.count, out);
}

KERNEL gate_rows(Args args) {
    const i64 first = first_element();
    const Elements x = read_elements(args.a, first, args.count);
    Elements out;
    for (int i = 0; i < 4; ++i) {
        const i64 place = first + i < args.count ? first + i : args.count - 1;
        out.at[i] = x.at[i] * sigmoid(args.b[place / args.slice]);
    }
    write_elements(args.out, first, args.count, out);
}

KERNEL multiply_rows(Args args) {
    const i64 first = first_element();
    const float factor = args.b[0];
    Elements out = read_elements(args.a, first, args.count);
    for (int i = 0; i < 4; ++i) out.at[i] *= factor;
    write_elements(args.out, first, args.count, out);
}

KERNEL join_rows(Args args) {
    const i64 first = first_element(), both = args.slice + args.other_slice;
    Elements out = {};
    for (int i = 0; i < 4; ++i) {
        const i64 number = (first + i) / both, place = (first + i) % both;
        if (first + i >= args.count) break;
        out.at[i] = place < args.slice ? args.a[number * args.slice + place]
                                       : args.b[number * args.other_slice + place - args.slice];
    }
    write_elements(args.out, first, args.count, out);
}

KERNEL activate_rows(Args args) {
    const i64 first = first_element();
    const Elements x = read_elements(args.a, first, args.count);
    Elements out;
    for (int i = 0; i < 4; ++i) out.at[i] = activate(ACTIVATION, x.at[i], 0.0f);
    write_elements(args.out, first, args.count, out);
}
