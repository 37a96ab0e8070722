// The memory that the host has taken for kernels, and which of it kernels have written.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace simt {

// Other threads of the host may take and release memory while a kernel runs.
//
// A launch that overlaps begins while kernels before it may still run. Until it waits for them, it may read
// only what they did not write, and write nothing. So memory is protected while a kernel runs, once there is
// such a launch: a first write faults, and makes the memory written until the host has waited for the stream.
// What was written is closed before a launch that overlaps, and opened again by the first access after its
// wait, since there are hundreds of memories, and a kernel uses few of them.
class Memories {
  public:
    void* allocate(std::size_t bytes) {
        unsigned char* pointer = Guarded::allocate(bytes);
        const std::lock_guard<std::mutex> guard(lock);
        if (pointer) {
            memories[pointer] = {bytes, false, PROT_READ | PROT_WRITE};
            open.push_back(pointer);
        }
        return pointer;
    }
    void release(unsigned char* pointer) {
        const std::lock_guard<std::mutex> guard(lock);
        Guarded::release(pointer, memories.at(pointer).bytes);
        memories.erase(pointer);
        open.erase(std::remove(open.begin(), open.end(), pointer), open.end());
    }

    // From now on, see which memory kernels write.
    void track() { tracked = true; }

    // The host has waited for all kernels.
    void forget_writes() {
        const std::lock_guard<std::mutex> guard(lock);
        for (auto& [pointer, memory] : memories) memory.written = false;
    }

    // A kernel begins; `early`: without having waited for those before it.
    void begin(bool early) {
        if (tracked) close(early);
        is_early = tracked && early;
    }
    // The kernel has waited for those before it.
    void wait() { is_early = false; }
    void end() { wait(); }

    // The host is about to read or write a memory.
    void allow_host(unsigned char* pointer) {
        const std::lock_guard<std::mutex> guard(lock);
        set(pointer, memories.at(pointer), PROT_READ | PROT_WRITE);
    }

    // Note the first access to a memory that is closed; return false if it is an error.
    bool note_access(std::uintptr_t address) {
        const std::lock_guard<std::mutex> guard(lock);
        const auto found = find_beside(address);
        if (!tracked || found == memories.end()) return false;
        auto& [pointer, memory] = *found;
        if (memory.allowed == PROT_NONE && !memory.written) {
            set(pointer, memory, PROT_READ);
            return true;
        }
        if (is_early || memory.allowed == (PROT_READ | PROT_WRITE)) return false;
        memory.written = true;
        set(pointer, memory, PROT_READ | PROT_WRITE);
        return true;
    }

    // Return the size of a memory beside which something wrote, and forget that it did; 0 if there is none.
    std::size_t damaged() {
        const std::lock_guard<std::mutex> guard(lock);
        for (auto& [pointer, memory] : memories) {
            if (memory.allowed != PROT_NONE) note_damage(pointer, memory);
        }
        return std::exchange(damaged_bytes, 0);
    }

    // Write what an address is, such as ", 8 bytes behind a memory of 400 bytes"; nothing if no memory is
    // near.
    void describe(char* text, std::size_t length, std::uintptr_t address) {
        const std::lock_guard<std::mutex> guard(lock);
        text[0] = 0;
        const auto found = find(address);
        if (found != memories.end()) {
            const char* what =
                found->second.written ? "which a kernel before it writes" : "which is not to be written";
            snprintf(text, length, " in a memory of %llu bytes, %s, without wait_for_previous_kernel",
                     (unsigned long long)found->second.bytes, what);
            return;
        }
        for (const auto& [pointer, memory] : memories) {
            if (describe_distance(text, length, address, pointer, memory.bytes, "a memory")) return;
        }
    }

  private:
    struct Memory {
        std::size_t bytes;
        bool written;
        int allowed;  // PROT_...
    };

    std::map<unsigned char*, Memory>::iterator find(std::uintptr_t address) {
        auto after = memories.upper_bound((unsigned char*)address);
        if (after == memories.begin()) return memories.end();
        const auto found = std::prev(after);
        return address < (std::uintptr_t)found->first + found->second.bytes ? found : memories.end();
    }

    // The memory that has the address, or a page with it: what is written beside a memory is found later.
    std::map<unsigned char*, Memory>::iterator find_beside(std::uintptr_t address) {
        auto found = memories.upper_bound((unsigned char*)address);
        if (found != memories.end() && Guarded::has(found->first, found->second.bytes, address)) return found;
        if (found == memories.begin()) return memories.end();
        --found;
        return Guarded::has(found->first, found->second.bytes, address) ? found : memories.end();
    }

    // Close what is open: to all accesses if it was written and the kernel has not waited, else to writes.
    void close(bool early) {
        const std::lock_guard<std::mutex> guard(lock);
        for (unsigned char* pointer : std::exchange(open, {})) {
            Memory& memory = memories.at(pointer);
            if (memory.written && !early) {
                open.push_back(pointer);
                continue;
            }
            if (memory.written) note_damage(pointer, memory);
            set(pointer, memory, memory.written ? PROT_NONE : PROT_READ);
        }
    }

    void note_damage(unsigned char* pointer, Memory& memory) {
        if (Guarded::is_intact(pointer, memory.bytes)) return;
        set(pointer, memory, PROT_READ | PROT_WRITE);
        Guarded::repair(pointer, memory.bytes);
        damaged_bytes = memory.bytes;
    }

    void set(unsigned char* pointer, Memory& memory, int allowed) {
        if (memory.allowed == allowed) return;
        Guarded::protect(pointer, memory.bytes, allowed);
        memory.allowed = allowed;
        if (allowed == (PROT_READ | PROT_WRITE)) open.push_back(pointer);
    }

    std::mutex lock;
    std::map<unsigned char*, Memory> memories;
    std::vector<unsigned char*> open;  // those that may be read and written
    std::size_t damaged_bytes = 0;
    bool tracked = false, is_early = false;
};

}  // namespace simt
