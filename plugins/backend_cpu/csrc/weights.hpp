// The weights of a program on this device.

#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "gguf_blocks.hpp"
#include "kernels.hpp"
#include "packed_file.hpp"
#include "program.hpp"
#include "thread_pool.hpp"
#include "zeros.hpp"

namespace llmd {

class Weights {
  public:
    Weights(Program program, ThreadPool& pool, const Kernels& kernels)
        : program(std::move(program)),
          pool(pool),
          kernels(kernels),
          meets_zeros_(weights_that_meet_zeros(this->program)) {}
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;

    // Weights come in the order of Program.weights. A plain matrix stays where it is: its owner keeps it
    // alive.
    void add_matrix(Format format, int64_t rows, int64_t cols, const void* data);
    // Widened to float32: vectors are small and read often.
    void add_vector(Format format, int64_t count, const void* data);
    // A matrix that will be packed into panels. Throws std::invalid_argument for a format that panels cannot
    // hold.
    void add_integers(int64_t rows, int64_t cols, const IntegerFormat& format);

    // Bytes of all that is packed. Strips are a second form of some matrices, which saves time alone: they
    // may be left out once all weights are added.
    int64_t packed_bytes() const { return panel_bytes_; }
    void drop_strips();

    // Once all weights are added: the memory for panels, in one piece. Then each matrix is packed by all
    // threads of the pool, or what was packed before is read from a file.
    void allocate_panels();
    void pack(int64_t index, const IntegerMatrix& matrix);
    // The same from the blocks of a file. False where a scale is infinite or not a number.
    bool pack_blocks(int64_t index, const BlockMatrix& matrix);
    // False where no such file can be used: then every matrix is to be packed.
    bool read_packed(const std::string& path);
    // As `read_packed`, but the panels stay in the file, whose pages the system may drop; nothing is
    // allocated before. False also where the file does not lie in huge pages, unless it may be in any.
    bool map_packed(const std::string& path, bool any_pages);
    // Keeps the panels in a file; `stop_writing` from another thread ends that early.
    void write_packed(const std::string& path) const;
    void stop_writing() { stopped_.store(true); }

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
    template <class RowsOf>
    void pack_all(const Matrix& place, const RowsOf& rows_of);
    // Where a matrix is packed. Throws std::invalid_argument where it is of another shape.
    const Matrix& place_of(int64_t index, int64_t rows, int64_t cols) const;
    int64_t strip_bytes(size_t index) const;
    void place_panels(uint8_t* panels);
    Packing packing() const;

    std::vector<bool> meets_zeros_;  // of each weight: it is packed by input besides, where its shape allows
    std::vector<Matrix> matrices_;
    std::vector<Buffer> owned_;
    Buffer panels_;
    int64_t panel_bytes_ = 0;
    uint8_t* first_panel_ = nullptr;
    std::atomic<bool> stopped_{false};
};

}  // namespace llmd
