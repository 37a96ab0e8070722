// Which units this machine can run. Compiled with no instruction-set flag: it must not fail on the machine it
// probes.

#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace llmd {

// Names of the units that this machine can run, the fastest first; `generic` is always the last.
std::vector<std::string> available_isas();

// The kernels of a unit. Throws std::invalid_argument where this machine cannot run it.
const Kernels& kernels_of(const std::string& isa);

}  // namespace llmd
