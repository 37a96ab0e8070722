// Zeroed memory straight from the operating system. Pages that nothing touches cost nothing.

#pragma once

#include <cstddef>
#include <utility>

namespace llmd {

// Each token reads all weights, and they come a few percent faster from huge pages.
enum class Pages { kAny, kHuge };

class Buffer {
  public:
    Buffer() = default;
    // Throws std::bad_alloc where the memory cannot be had.
    explicit Buffer(size_t bytes, Pages pages = Pages::kHuge);
    // The first bytes of an open file, to be read alone; the system may drop their pages and read them again.
    // They begin at a multiple of a huge page, so that file systems with such can map them.
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
    // Of a file, the bytes that are mapped as huge pages by now; 0 where the system does not tell.
    size_t huge_page_bytes() const;

    static constexpr size_t kHugePage = size_t{2} << 20;  // of x86-64, and of AArch64 with pages of 4 KiB

  private:
    void swap(Buffer& other) {
        std::swap(place_, other.place_);
        std::swap(room_, other.room_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    void* place_ = nullptr;  // what was taken of the address space
    size_t room_ = 0;
    void* data_ = nullptr;
    size_t size_ = 0;
};

// Asks the system to hold memory of somebody else in huge pages, together with what lies around it. Of a file
// these are pages that are read from the disk from now on, where its file system has large folios.
void ask_for_huge_pages(const void* data, size_t bytes);

}  // namespace llmd
