// Zeroed memory straight from the operating system, in huge pages where it has them: weights read from huge
// pages come a few percent faster, and pages that nothing touches cost nothing.

#pragma once

#include <cstddef>
#include <utility>

namespace llmd {

class Buffer {
  public:
    Buffer() = default;
    // Throws std::bad_alloc where the memory cannot be had.
    explicit Buffer(size_t bytes);
    // The first bytes of an open file, to be read alone; the system may drop their pages and read them again.
    Buffer(int file, size_t bytes);
    ~Buffer();
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }

    template <class T>
    T* as() const {
        return static_cast<T*>(data_);
    }
    size_t size() const { return size_; }

  private:
    void swap(Buffer& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    void* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace llmd
