// head: raw = softcap(x w^T * scale + bias) for the selected rows, then their candidates
//
//   x       [rows of the step, cols] f32; w  [vocab, cols] of any format; raw, edited  [selected, vocab]
//           f32
//   edits   z becomes z / factor if z > 0, else z * factor, then + bias; masked-out ids become -inf
//   result  the top K of edited by (value descending, id ascending) with their raw values, the log-sum-exp
//           of raw, the shape of edited / temperature (row_shape.hpp), the raw value of a target, the top
//           of raw
//   work    one selected row at a time, after ops/linear.hpp has run over all of them
//   check   tests/plugins/backend_cpu/test_device.py

#pragma once

#include "ops/log_sum_exp.hpp"
#include "ops/row_shape.hpp"
#include "ops/top_k.hpp"

namespace llmd::LLMD_ISA {

// Copies the selected rows.
void gather(const GatherArgs& args, Worker& worker) {
    const auto bytes = sizeof(float) * static_cast<size_t>(args.cols);
    for (int64_t n; (n = worker.take(1)) < args.rows;) {
        std::memcpy(args.out + n * args.cols, args.x + args.row_numbers[n] * args.cols, bytes);
    }
}

LLMD_INLINE void finish_logits(const CandidateArgs& args, float* z) {
    const int64_t vocab = args.vocab;
    if (args.scale == 1.0F && args.bias == nullptr && args.softcap == 0.0F) return;
    for (int64_t i = 0; i < vocab; i += Vec::kLanes) {
        const int n = vocab - i < Vec::kLanes ? static_cast<int>(vocab - i) : Vec::kLanes;
        Vec value = load_n(z + i, n) * set1(args.scale);
        if (args.bias != nullptr) value = value + load_n(args.bias + i, n);
        if (args.softcap > 0.0F) value = softcap(value, args.softcap);
        store_n(z + i, value, n);
    }
}

LLMD_INLINE void edit(const Selection& selection, int64_t n, float* z) {
    for (int64_t e = selection.edit_offsets[n]; e < selection.edit_offsets[n + 1]; ++e) {
        float& logit = z[selection.edit_ids[e]];
        const float factor = selection.edit_factors[e];
        logit = (logit > 0.0F ? logit / factor : logit * factor) + selection.edit_biases[e];
    }
}

LLMD_INLINE void reduce_raw(const Selection& selection, const Outputs& out, int64_t n, int64_t vocab) {
    const float* raw = out.raw + n * vocab;
    out.raw_logsumexp[n] = log_sum_exp(raw, vocab, 1.0F);
    out.target_raw[n] = selection.targets[n] < 0 ? __builtin_nanf("") : raw[selection.targets[n]];
    const int64_t top = selection.raw_top < vocab ? selection.raw_top : vocab;
    top_k(raw, vocab, top, out.top_ids + n * top, out.top_raw + n * top);
}

LLMD_INLINE void reduce_edited(const Selection& selection, const Outputs& out, int64_t n, int64_t vocab,
                               int64_t k) {
    const float* edited = out.edited + n * vocab;
    const RowShape shape = row_shape(edited, vocab, 1.0F / selection.temperatures[n]);
    out.edited_logsumexp[n] = shape.log_sum_exp;
    out.edited_entropy[n] = shape.entropy;
    out.edited_deviation[n] = shape.deviation;
    out.num_allowed[n] = shape.finite;
    top_k(edited, vocab, k, out.ids + n * k, out.edited_values + n * k);
    for (int64_t i = 0; i < k; ++i) out.raw_values[n * k + i] = out.raw[n * vocab + out.ids[n * k + i]];
}

void candidates(const CandidateArgs& args, Worker& worker) {
    const Selection& selection = *args.selection;
    const Outputs& out = *args.outputs;
    const int64_t vocab = args.vocab;
    const auto bytes = sizeof(float) * static_cast<size_t>(vocab);
    for (int64_t n; (n = worker.take(1)) < selection.rows;) {
        finish_logits(args, out.raw + n * vocab);
        reduce_raw(selection, out, n, vocab);
        std::memcpy(out.edited + n * vocab, out.raw + n * vocab, bytes);
        edit(selection, n, out.edited + n * vocab);
        if (!selection.masked[n]) reduce_edited(selection, out, n, vocab, args.num_candidates);
    }
}

LLMD_INLINE void hide_forbidden(const uint32_t* mask, float* z, int64_t vocab) {
    for (int64_t word = 0; word * 32 < vocab; ++word) {
        if (mask[word] == ~0U) continue;
        const int64_t end = word * 32 + 32 < vocab ? word * 32 + 32 : vocab;
        for (int64_t id = word * 32; id < end; ++id) {
            if ((mask[word] >> (id % 32) & 1U) == 0) z[id] = -__builtin_inff();
        }
    }
}

void mask(const MaskArgs& args, Worker& worker) {
    const Selection& selection = *args.selection;
    int64_t masked_before = 0;
    int64_t seen = 0;
    for (int64_t n; (n = worker.take(1)) < selection.rows;) {
        for (; seen < n; ++seen) masked_before += selection.masked[seen] ? 1 : 0;
        if (!selection.masked[n]) continue;
        hide_forbidden(args.masks + masked_before * args.words, args.outputs->edited + n * args.vocab,
                       args.vocab);
        reduce_edited(selection, *args.outputs, n, args.vocab, args.num_candidates);
    }
}

}  // namespace llmd::LLMD_ISA
