// The weights of a program on this device.

#pragma once

#include <vector>

#include "buffer.hpp"
#include "kernels.hpp"
#include "program.hpp"
#include "thread_pool.hpp"

namespace llmd {

class Parts {
  public:
    Parts(Program program, ThreadPool& pool, const Kernels& kernels)
        : program(std::move(program)), pool(pool), kernels(kernels) {}
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    // Weights come in the order of Program.weights. A plain matrix stays where it is: its owner keeps it
    // alive.
    void add_matrix(Format format, int64_t rows, int64_t cols, const void* data);
    // Widened to float32: vectors are small and read often.
    void add_vector(Format format, int64_t count, const void* data);
    // Packed into panels by all threads of the pool. Throws std::invalid_argument for a format that panels
    // cannot hold.
    void add_integers(const IntegerMatrix& matrix);

    // Throws std::invalid_argument where the index names no weight.
    const Matrix& matrix(int64_t index) const;
    const float* vector(int64_t index, int64_t count) const;

    // Reads every weight that a step multiplies by once, on all threads and as fast as the unit can, and
    // returns how many bytes these are: what a step of one row can be compared with.
    int64_t read_factors() const;

    const Program program;
    ThreadPool& pool;
    const Kernels& kernels;

  private:
    std::vector<Matrix> factors() const;

    std::vector<Matrix> matrices_;
    std::vector<Buffer> owned_;
};

}  // namespace llmd
