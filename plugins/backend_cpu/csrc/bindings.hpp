// Shared by the files of the Python module: array types, and the device that other objects are created on.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cpu_features.hpp"
#include "kv_layout.hpp"
#include "thread_pool.hpp"

template <class T, int kAxes>
using In = nanobind::ndarray<const T, nanobind::ndim<kAxes>, nanobind::c_contig, nanobind::device::cpu>;
template <class T, int kAxes>
using Out = nanobind::ndarray<T, nanobind::ndim<kAxes>, nanobind::c_contig, nanobind::device::cpu>;
using AnyIn = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

int64_t length(const auto& array, size_t axis = 0) { return static_cast<int64_t>(array.shape(axis)); }

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

inline void require_processors(int threads, const std::vector<int>& processors) {
    require(threads > 0 && (processors.empty() || processors.size() == static_cast<size_t>(threads)),
            "pass a processor for each thread, or none");
}

// A pool of threads and the kernels that they run.
struct Device {
    llmd::ThreadPool pool;
    const llmd::Kernels& kernels;

    Device(const std::string& isa, int threads, int spin_us, const std::vector<int>& processors)
        : pool((require_processors(threads, processors), threads), spin_us, processors),
          kernels(llmd::kernels_of(isa)) {}
};

// Throws std::invalid_argument if there is no such dtype.
llmd::KvDtype kv_dtype(const std::string& name);

void bind_quantization(nanobind::module_& module);
void bind_weights(nanobind::module_& module);
