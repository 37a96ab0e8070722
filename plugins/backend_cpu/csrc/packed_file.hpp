// Packed weights on disk: written once, read back by all threads at the next load.
//
// A file is the regions one after the other, a checksum for each piece of them, and a header of one page. It
// is a cache: whatever contradicts, the weights are packed anew.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "buffer.hpp"
#include "thread_pool.hpp"

namespace llmd {

// All packed weights of a program, in one piece of memory.
struct Packing {
    uint8_t* data;
    int64_t bytes;
    std::string layout;  // names what the bytes mean: another layout's file is not read
};

// Fills the memory from a file. False where there is none, or it is damaged or of another layout or size: the
// memory is then undefined.
bool read_packed(const std::string& path, const Packing& packing, ThreadPool& pool);

// As `read_packed`, where the memory is the file itself: sets `packing.data`, null where the file cannot be
// used, or does not lie in such pages.
Buffer map_packed(const std::string& path, Packing& packing, Pages pages, ThreadPool& pool);

// Writes the file whole, or not at all: readers see the old one or the new one. `stop` ends the writing
// early. Throws std::system_error where the disk does not take it.
void write_packed(const std::string& path, const Packing& packing, const std::atomic<bool>& stop);

}  // namespace llmd
