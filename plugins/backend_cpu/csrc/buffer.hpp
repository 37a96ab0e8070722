// Zeroed memory straight from the operating system. Pages that are never touched cost nothing.

#pragma once

#include <cstddef>
#include <utility>

namespace llmd {

// Each token reads all weights, which is a few percent faster from huge pages.
enum class Pages { kAny, kHuge };

class Buffer {
  public:
    Buffer() = default;
    // Throws std::bad_alloc if the system refuses the memory.
    explicit Buffer(size_t bytes, Pages pages = Pages::kHuge);
    // Maps the first bytes of an open file, read-only; the system may drop their pages and read them
    // again. The mapping starts at a multiple of a huge page, so that file systems that support huge pages
    // can use them.
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
    // For a file, the bytes that are mapped as huge pages now; 0 if the system does not report it.
    size_t huge_page_bytes() const;

    static constexpr size_t kHugePage = size_t{2} << 20;  // on x86-64, and on AArch64 with pages of 4 KiB

  private:
    void swap(Buffer& other) {
        std::swap(place_, other.place_);
        std::swap(room_, other.room_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    void* place_ = nullptr;  // the reserved address range
    size_t room_ = 0;
    void* data_ = nullptr;
    size_t size_ = 0;
};

// Asks the system to keep memory that something else owns, and the memory around it, in huge pages. For a
// mapped file this applies to pages read from the disk from now on, if its file system supports large
// folios.
void ask_for_huge_pages(const void* data, size_t bytes);

}  // namespace llmd
