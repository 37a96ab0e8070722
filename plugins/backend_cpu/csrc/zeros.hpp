// Finds the weights that are multiplied by zeros which an activation made.

#pragma once

#include <vector>

#include "program.hpp"

namespace llmd {

// For each weight of a program, by index: whether its input comes from an activation that turns negative
// numbers into zero.
std::vector<bool> weights_that_meet_zeros(const Program& program);

}  // namespace llmd
