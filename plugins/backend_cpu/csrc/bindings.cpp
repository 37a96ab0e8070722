// The nanobind module llmd_backend_cpu._ext.

#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_ext, module) {
    module.def(
        "version", [] { return LLMD_VERSION; },
        "Version of the distribution that this module was built from.");
}
