#include "buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <new>
#include <string>

namespace llmd {

Buffer::Buffer(size_t bytes, Pages pages) {
    if (bytes == 0) return;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    // Only advice: some kernels lack huge pages.
    if (pages == Pages::kHuge) madvise(data, bytes, MADV_HUGEPAGE);
    place_ = data_ = data;
    room_ = size_ = bytes;
}

Buffer::Buffer(int file, size_t bytes) {
    const size_t room = bytes + kHugePage;
    void* place = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    const size_t skipped = -reinterpret_cast<uintptr_t>(place) % kHugePage;
    void* data =
        mmap(static_cast<uint8_t*>(place) + skipped, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
    if (data == MAP_FAILED) {
        munmap(place, room);
        throw std::bad_alloc();
    }
    madvise(data, bytes, MADV_HUGEPAGE);  // pages read from the disk from now on are huge if possible
    place_ = place;
    room_ = room;
    data_ = data;
    size_ = bytes;
}

Buffer::~Buffer() {
    if (place_ != nullptr) munmap(place_, room_);
}

void ask_for_huge_pages(const void* data, size_t bytes) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<uintptr_t>(data);
    const uintptr_t begin = first / page * page;
    // Only advice, as above.
    madvise(reinterpret_cast<void*>(begin), first + bytes - begin, MADV_HUGEPAGE);
}

size_t Buffer::huge_page_bytes() const {
    // Each mapping has a line with its address range, followed by lines with its properties, in kB.
    const auto wanted = reinterpret_cast<uintptr_t>(data_);
    std::ifstream mappings("/proc/self/smaps");
    bool found = false;
    for (std::string line; std::getline(mappings, line);) {
        unsigned long long first = 0;
        unsigned long long last = 0;
        size_t kib = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &first, &last) == 2) {
            if (found) break;
            found = first == wanted;
        } else if (found && std::sscanf(line.c_str(), "FilePmdMapped: %zu", &kib) == 1) {
            return kib << 10;
        }
    }
    return 0;
}

}  // namespace llmd
