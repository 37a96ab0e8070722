// What the module has for quantising weights.

#pragma once

#include <nanobind/nanobind.h>

void bind_group_fit(nanobind::module_& module);
