#include "zeros.hpp"

#include <algorithm>

#include "kernels.hpp"

namespace llmd {

namespace {

bool makes_zeros(const Op& op) {
    if (op.kind != OpKind::kGlu && op.kind != OpKind::kActivate) return false;
    const int64_t activation = op.ints.at(0);
    return activation == kRelu || activation == kRelu2;
}

// The last op before op `reader` that writes a slot; null if there is none.
const Op* writer_of(const Program& program, size_t reader, int64_t slot) {
    for (size_t i = reader; i-- > 0;) {
        const Op& op = program.ops[i];
        if (std::find(op.outputs.begin(), op.outputs.end(), slot) != op.outputs.end()) return &op;
    }
    return nullptr;
}

}  // namespace

std::vector<bool> weights_that_meet_zeros(const Program& program) {
    std::vector<bool> found;
    if (!program.rounds) return found;  // weights are unpacked row by row
    for (size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        if (op.kind != OpKind::kLinear || op.outputs.size() != 1) continue;
        const Op* writer = writer_of(program, i, op.inputs.at(0));
        if (writer == nullptr || !makes_zeros(*writer)) continue;
        const auto weight = static_cast<size_t>(op.weights.at(0));
        if (weight >= found.size()) found.resize(weight + 1);
        found[weight] = true;
    }
    return found;
}

}  // namespace llmd
