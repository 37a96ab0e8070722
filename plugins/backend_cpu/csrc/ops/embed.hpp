// embed: out[r] = table[ids[r]] * scale      embed_position, embed_token_type: ids are positions or types
//
//   table  [vocab, columns]  f32, f16 or bf16, row-major, read where it is mapped; FP8 alike;
//          or packed integers
//   out    [rows, width]  f32: the columns from `first` on
//   work   one row of the step at a time
//   check  exact except for one rounding   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/near.hpp"
#include "ops/unpack.hpp"
#include "ops/unpack_float8.hpp"

namespace llmd::LLMD_ISA {

template <class Element>
void embed_rows(const EmbedArgs& args, Worker& worker) {
    const int64_t width = args.width;
    const Vec scale = set1(args.scale);
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const Element* from =
            static_cast<const Element*>(args.table->data) + args.ids[r] * args.table->cols + args.first;
        float* to = args.out + r * width;
        int64_t i = 0;
        for (; i + Vec::kLanes <= width; i += Vec::kLanes) store(to + i, load(from + i) * scale);
        if (i < width) store_n(to + i, load_n(from + i, width - i) * scale, width - i);
    });
}

void embed_packed(const EmbedArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        unpack_columns(*args.table, args.ids[r], args.first, args.width, args.scale,
                       args.out + r * args.width);
    });
}

void embed_float8(const EmbedArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        unpack_float8(*args.table, args.ids[r], args.first, args.width, args.scale,
                      args.out + r * args.width);
    });
}

void embed(const EmbedArgs& args, Worker& worker) {
    switch (args.table->format) {
        case Format::kF32:
            return embed_rows<float>(args, worker);
        case Format::kF16:
            return embed_rows<F16>(args, worker);
        case Format::kBF16:
            return embed_rows<BF16>(args, worker);
        case Format::kFloat8:
            return embed_float8(args, worker);
        case Format::kInteger:
            return embed_packed(args, worker);
    }
}

}  // namespace llmd::LLMD_ISA
