// Binds ops of attention.

#pragma once

#include "operands.hpp"

namespace llmd {

// Both throw std::invalid_argument if the operands contradict each other.
Call bind_attention(const Operands& of, const Bindings& to);
Call bind_encoder_attention(const Operands& of, const Bindings& to);

}  // namespace llmd
