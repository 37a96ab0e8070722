// Finds the units that this machine can run. Compiled without instruction-set flags, because it must not
// crash on the machine that it probes.

#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace llmd {

// Names of the units that this machine can run, the fastest first; `generic` is always last.
std::vector<std::string> available_isas();

// The kernels of a unit. Throws std::invalid_argument if this machine cannot run it.
const Kernels& kernels_of(const std::string& isa);

}  // namespace llmd
