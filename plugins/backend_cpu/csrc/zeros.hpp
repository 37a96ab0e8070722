// Where a program computes zeros that its next weights need not meet.

#pragma once

#include <vector>

#include "program.hpp"

namespace llmd {

// Whether each weight of a program, by its number, multiplies what an activation has made zero where it was
// negative.
std::vector<bool> weights_that_meet_zeros(const Program& program);

}  // namespace llmd
