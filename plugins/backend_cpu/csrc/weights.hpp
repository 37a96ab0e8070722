// The weights of a program on this device.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "expert_cache.hpp"
#include "gguf_blocks.hpp"
#include "kernels.hpp"
#include "packed_file.hpp"
#include "program.hpp"
#include "thread_pool.hpp"
#include "zeros.hpp"

namespace llmd {

// Bytes of a matrix without the scales of FP8, and rounded up to whole cache lines.
int64_t num_bytes(const Matrix& matrix);
int64_t whole_lines(int64_t bytes);
// Throws std::invalid_argument if the kernels cannot cut the rows of an FP8 matrix at the ends of its groups.
void check_groups(const Matrix& matrix);

class Weights {
  public:
    Weights(Program program, ThreadPool& pool, const Kernels& kernels)
        : program(std::move(program)),
          pool(pool),
          kernels(kernels),
          meets_zeros_(weights_that_meet_zeros(this->program)) {}
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;

    // Add weights in the order of Program.weights, the matrices of a stack one after the other: all but
    // the first of them `join` the one before. A plain matrix is used in place: its owner keeps it alive.
    void add_matrix(Format format, int64_t rows, int64_t cols, const void* data, bool joins = false);
    // The same for FP8: `scales` are [rows, groups]. Throws std::invalid_argument if the kernels cannot cut
    // rows at the ends of groups.
    void add_float8(const Matrix& matrix, bool joins = false);
    // Widens a vector to float32: vectors are small and read often. A stack of vectors is one vector.
    void add_vector(Format format, int64_t count, const void* data);
    // Adds a matrix that will be packed into panels. Throws std::invalid_argument if panels cannot hold
    // the format.
    void add_integers(int64_t rows, int64_t cols, const IntegerFormat& format, bool joins = false);

    // Before weights are added: decides that at most `budget` bytes of experts are in memory. Matrices of
    // experts are then added without data, and `fill` reads those that a step needs: it packs integers, and
    // copies others. FP8 needs its `group_size`.
    void cache_experts(int64_t budget, ExpertCache::Fill fill);
    void add_absent(Format format, int64_t rows, int64_t cols, int64_t group_size, bool joins = false);
    // Once all weights are added. Throws std::invalid_argument if the experts of an op are not complete.
    void begin_cache();
    // Copies a plain matrix, or an FP8 one with its scales, to its place.
    void copy(int64_t index, const Matrix& matrix, int64_t member);
    // Null without `cache_experts`.
    ExpertCache* expert_cache() const { return cache_.get(); }

    // Bytes of all packed weights but cached experts. Strips are a second copy of some matrices that only
    // saves time: once all weights are added, `drop_strips` decides to do without them.
    int64_t packed_bytes() const { return panel_bytes_; }
    void drop_strips();

    // Call this once all weights are added: allocates the panels of all matrices in one piece. Then either
    // pack each matrix, on all threads of the pool, or read the panels from a file.
    void allocate_panels();
    void pack(int64_t index, const IntegerMatrix& matrix, int64_t member = 0);
    // The same from the blocks of a file. Returns false if a scale is infinite or NaN.
    bool pack_blocks(int64_t index, const BlockMatrix& matrix, int64_t member = 0);
    // Returns false if the file cannot be used: then every matrix must be packed.
    bool read_packed(const std::string& path);
    // Like `read_packed`, but uses the panels in the file, whose pages the system may drop, and needs no
    // `allocate_panels`. Also returns false if the file is not in huge pages, unless `any_pages` is set.
    bool map_packed(const std::string& path, bool any_pages);
    // Writes the panels to a file. `stop_writing` from another thread ends that early.
    void write_packed(const std::string& path) const;
    void stop_writing() { stopped_.store(true); }

    // Throw std::invalid_argument if there is no weight with that index, or no such member of its stack.
    const Matrix& matrix(int64_t index, int64_t member = 0) const;
    int64_t members(int64_t index) const;
    const float* vector(int64_t index, int64_t count) const;

    // Reads every weight that a step multiplies by once, on all threads and as fast as the unit can.
    // Returns the bytes read: a lower bound for the memory traffic of a one-row step.
    int64_t read_factors() const;

    const Program program;
    ThreadPool& pool;
    const Kernels& kernels;

  private:
    void begin_weight(bool joins);
    std::vector<Matrix> factors() const;
    template <class RowsOf>
    void pack_all(const Matrix& place, const RowsOf& rows_of);
    // The matrix to pack into. Throws std::invalid_argument if it has another shape.
    const Matrix& place_of(int64_t index, int64_t member, int64_t rows, int64_t cols) const;
    int64_t strip_bytes(size_t matrix) const;
    bool is_cached(size_t matrix) const;
    void place_panels(uint8_t* panels);
    Packing packing() const;

    std::vector<bool> meets_zeros_;  // for each weight: whether it gets strips, if its shape allows
    std::vector<Matrix> matrices_;
    std::vector<size_t> firsts_;   // for each weight: the first of its matrices
    std::vector<size_t> weights_;  // for each matrix: its weight
    std::vector<bool> caches_;     // for each weight: whether it is a stack of cached experts; empty: none is
    std::unique_ptr<ExpertCache> cache_;
    std::vector<Buffer> owned_;
    Buffer panels_;
    int64_t panel_bytes_ = 0;
    uint8_t* first_panel_ = nullptr;
    std::atomic<bool> stopped_{false};
};

}  // namespace llmd
