// Memory between guard pages: an access beyond its end faults at once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace simt {

constexpr std::size_t PAGE_BYTES = 4096;
constexpr std::size_t GUARD = 1 << 20;   // on both sides; address space only
constexpr unsigned char SPOILED = 0xff;  // every float of it is not a number, every integer is -1

inline std::size_t pages_of(std::size_t bytes) { return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; }

// A range that ends at a guard page, but for at most 15 bytes up to the alignment of 16. If its size is a
// multiple of 256, so is its address.
class Guarded {
  public:
    static unsigned char* allocate(std::size_t bytes) {
        const std::size_t pages = pages_of(bytes);
        void* all =
            mmap(nullptr, pages + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) return nullptr;
        unsigned char* begin = (unsigned char*)all + GUARD;
        if (mprotect(begin, pages, PROT_READ | PROT_WRITE)) {
            munmap(all, pages + 2 * GUARD);
            return nullptr;
        }
        memset(begin, SPOILED, pages);
        return begin + pages - (bytes + 15) / 16 * 16;
    }

    static void release(unsigned char* pointer, std::size_t bytes) {
        munmap(first_page(pointer, bytes) - GUARD, pages_of(bytes) + 2 * GUARD);
    }

    // Return whether the pages of the range have the address.
    static bool has(unsigned char* pointer, std::size_t bytes, std::uintptr_t address) {
        const std::uintptr_t begin = (std::uintptr_t)first_page(pointer, bytes);
        return address >= begin && address < begin + pages_of(bytes);
    }

    // Allow what PROT_... say to all pages of the range.
    static void protect(unsigned char* pointer, std::size_t bytes, int allowed) {
        mprotect(first_page(pointer, bytes), pages_of(bytes), allowed);
    }

    // Return whether nothing wrote to the bytes before and behind the range that are not guard pages.
    static bool is_intact(const unsigned char* pointer, std::size_t bytes) {
        const unsigned char* begin = first_page((unsigned char*)pointer, bytes);
        return is_spoiled(begin, pointer) && is_spoiled(pointer + bytes, begin + pages_of(bytes));
    }

    static void repair(unsigned char* pointer, std::size_t bytes) {
        unsigned char* begin = first_page(pointer, bytes);
        memset(begin, SPOILED, pointer - begin);
        memset(pointer + bytes, SPOILED, begin + pages_of(bytes) - (pointer + bytes));
    }

  private:
    static unsigned char* first_page(unsigned char* pointer, std::size_t bytes) {
        return pointer + (bytes + 15) / 16 * 16 - pages_of(bytes);
    }

    static bool is_spoiled(const unsigned char* from, const unsigned char* to) {
        // All bytes are alike if the first is right and each is like the next.
        return from == to || (*from == SPOILED && memcmp(from, from + 1, to - from - 1) == 0);
    }
};

// Write where an address is from a range, such as ", 8 bytes behind a memory of 400 bytes"; return false if
// not near.
inline bool describe_distance(char* text, std::size_t length, std::uintptr_t address,
                              const unsigned char* pointer, std::size_t bytes, const char* name) {
    const std::uintptr_t begin = (std::uintptr_t)pointer, end = begin + bytes;
    const bool behind = address >= end && address - end < GUARD;
    const bool before = address < begin && begin - address < GUARD;
    if (!behind && !before) return false;
    snprintf(text, length, ", %llu bytes %s %s of %llu bytes",
             (unsigned long long)(behind ? address - end : begin - address), behind ? "behind" : "before",
             name, (unsigned long long)bytes);
    return true;
}

// Shared memory of a block whose size is given at the launch.
class DynamicShared {
  public:
    // Make it as large as asked, and no larger. Return null if there is no memory.
    unsigned char* resize(std::size_t bytes) {
        if (pointer && bytes == size) return pointer;
        if (pointer) Guarded::release(pointer, size);
        size = bytes;
        return pointer = Guarded::allocate(bytes);
    }
    bool is_intact() const { return Guarded::is_intact(pointer, size); }
    bool contains(const unsigned char* address, int bytes) const {
        return address >= pointer && address + bytes <= pointer + size;
    }
    // Write where an address is; return false if that is not near.
    bool describe(char* text, std::size_t length, std::uintptr_t address) const {
        return describe_distance(text, length, address, pointer, size, "the dynamic shared memory");
    }
    void spoil() { memset(pointer, SPOILED, size); }

  private:
    unsigned char* pointer = nullptr;
    std::size_t size = 0;
};

}  // namespace simt
