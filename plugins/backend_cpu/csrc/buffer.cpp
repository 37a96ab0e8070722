#include "buffer.hpp"

#include <sys/mman.h>

#include <new>

namespace llmd {

Buffer::Buffer(size_t bytes) {
    if (bytes == 0) return;
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    madvise(data, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages may refuse it
    data_ = data;
    size_ = bytes;
}

Buffer::Buffer(int file, size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    data_ = data;
    size_ = bytes;
}

Buffer::~Buffer() {
    if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace llmd
