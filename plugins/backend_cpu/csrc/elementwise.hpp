// Ops whose results depend on one element of each input, and the joining of values: bound to the buffers of a
// stage.

#pragma once

#include "operands.hpp"

namespace llmd {

Call bind_glu(const Operands& of);
Call bind_activate(const Operands& of);
Call bind_add(const Operands& of);
Call bind_multiply(const Operands& of);
Call bind_gate(const Operands& of);
Call bind_join(const Operands& of);

}  // namespace llmd
