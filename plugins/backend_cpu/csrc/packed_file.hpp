// Packed weights on disk: written once, read by all threads at the next load.
//
// A file holds the panels, a checksum for each piece of them, and a header of one page. It is a cache: if
// anything does not match, the weights are packed again.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "buffer.hpp"
#include "thread_pool.hpp"

namespace llmd {

// All packed weights of a program, in one contiguous piece of memory.
struct Packing {
    uint8_t* data;
    int64_t bytes;
    std::string layout;  // the name of the layout: a file with another one is not read
};

// Fills the memory from a file. Returns false if there is no file, or if it is damaged or has another
// layout or size; the memory is then undefined.
bool read_packed(const std::string& path, const Packing& packing, ThreadPool& pool);

// Like `read_packed`, but maps the file instead of copying it and sets `packing.data`, which is null if
// the file cannot be used or is not in pages of the requested kind.
Buffer map_packed(const std::string& path, Packing& packing, Pages pages, ThreadPool& pool);

// Writes the whole file or nothing: readers see the old file or the new one. `stop` ends the writing
// early. Throws std::system_error if the disk refuses the write.
void write_packed(const std::string& path, const Packing& packing, const std::atomic<bool>& stop);

}  // namespace llmd
