#include "packed_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <vector>

namespace llmd {

namespace {

// File systems that support huge pages cache a file in them if it is written in pieces of this size, each
// at a multiple of the size.
constexpr auto kPieceBytes = static_cast<int64_t>(Buffer::kHugePage);
constexpr int64_t kHeaderBytes = 4096;
constexpr char kMagic[8] = {'L', 'L', 'M', 'D', 'P', 'K', '0', '2'};
constexpr int64_t kSamples = 16;

class File {
  public:
    File(const std::string& path, int flags) : number_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    ~File() {
        if (number_ >= 0) close(number_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    bool is_open() const { return number_ >= 0; }
    int64_t size() const {
        struct stat status{};
        return fstat(number_, &status) == 0 ? static_cast<int64_t>(status.st_size) : -1;
    }
    bool read(void* to, int64_t bytes, int64_t offset) const {
        for (auto* at = static_cast<uint8_t*>(to); bytes > 0;) {
            const ssize_t count = pread(number_, at, static_cast<size_t>(bytes), offset);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            at += count;
            bytes -= count;
            offset += count;
        }
        return true;
    }
    void write(const void* from, int64_t bytes) const {
        for (auto* at = static_cast<const uint8_t*>(from); bytes > 0;) {
            const ssize_t count = ::write(number_, at, static_cast<size_t>(bytes));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw std::system_error(errno, std::generic_category(), "packed weights");
            at += count;
            bytes -= count;
        }
    }
    // Maps the first bytes of the file, read-only.
    Buffer map(int64_t bytes) const { return Buffer(number_, static_cast<size_t>(bytes)); }

  private:
    int number_;
};

// Sums 64-bit words, and sums those sums, in eight lanes, so that the order of words matters too.
//
// Source: Fletcher 1982, "An Arithmetic Checksum for Serial Transmissions".
uint64_t checksum(const uint8_t* data, int64_t bytes) {
    constexpr int kLanes = 8;
    constexpr int64_t kRow = kLanes * static_cast<int64_t>(sizeof(uint64_t));
    constexpr int64_t kAhead = 1024;  // a third faster than with the hardware prefetcher alone
    uint64_t sums[kLanes] = {1, 2, 3, 4,
                             5, 6, 7, 8};  // zeros, which a disk may have lost, are no checksum of zeros
    uint64_t places[kLanes] = {};
    const auto add = [&](const uint64_t* words) {
        for (int lane = 0; lane < kLanes; ++lane) {
            sums[lane] += words[lane];
            places[lane] += sums[lane];
        }
    };
    uint64_t words[kLanes];
    int64_t i = 0;
    for (; i + kRow <= bytes; i += kRow) {
        __builtin_prefetch(data + i + kAhead);
        std::memcpy(words, data + i, kRow);
        add(words);
    }
    std::memset(words, 0, kRow);
    std::memcpy(words, data + i, static_cast<size_t>(bytes - i));
    add(words);
    uint64_t result = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        result = result * 0x9E3779B97F4A7C15U + sums[lane];
        result = result * 0x9E3779B97F4A7C15U + places[lane];
    }
    return result;
}

int64_t num_pieces(int64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

int64_t piece_bytes(const Packing& packing, int64_t piece) {
    const int64_t left = packing.bytes - piece * kPieceBytes;
    return left < kPieceBytes ? left : kPieceBytes;
}

uint64_t piece_checksum(const Packing& packing, int64_t piece) {
    return checksum(packing.data + piece * kPieceBytes, piece_bytes(packing, piece));
}

// The header at the end of a file.
std::vector<uint8_t> header_of(const Packing& packing) {
    std::vector<uint8_t> header(kHeaderBytes);
    std::memcpy(header.data(), kMagic, sizeof kMagic);
    std::memcpy(header.data() + 8, &packing.bytes, sizeof packing.bytes);
    packing.layout.copy(reinterpret_cast<char*>(header.data()) + 16, kHeaderBytes - 16);
    return header;
}

// The checksums of the pieces of an open file; empty if the file has another header or size.
std::vector<uint64_t> read_checksums(const File& file, const Packing& packing) {
    std::vector<uint64_t> checksums(static_cast<size_t>(num_pieces(packing.bytes)));
    const auto table_bytes = static_cast<int64_t>(checksums.size() * sizeof(uint64_t));
    const int64_t header_at = packing.bytes + table_bytes;
    std::vector<uint8_t> header(kHeaderBytes);
    const bool fits = file.is_open() && file.size() == header_at + kHeaderBytes &&
                      file.read(header.data(), kHeaderBytes, header_at) && header == header_of(packing) &&
                      file.read(checksums.data(), table_bytes, packing.bytes);
    return fits ? checksums : std::vector<uint64_t>{};
}

// Whether the system holds a mapped file in huge pages, judging by a sample of places. Fragmented memory
// leaves some small pages; one in eight costs 2 percent of the read speed.
bool in_huge_pages(const Buffer& mapped) {
    const int64_t whole = static_cast<int64_t>(mapped.size()) / kPieceBytes;
    const int64_t samples = std::min(whole, kSamples);
    for (int64_t i = 0; i < samples; ++i) {
        volatile uint8_t touched = mapped.as<uint8_t>()[i * whole / samples * kPieceBytes];
        static_cast<void>(touched);
    }
    return samples > 0 && 8 * static_cast<int64_t>(mapped.huge_page_bytes()) >= 7 * samples * kPieceBytes;
}

// Checks each piece against its checksum on all threads, after `fetch(piece, bytes)` has read it into
// memory.
template <class Fetch>
bool check_pieces(const std::vector<uint64_t>& checksums, const Packing& packing, ThreadPool& pool,
                  Fetch fetch) {
    struct Job {
        const std::vector<uint64_t>& checksums;
        const Packing& packing;
        Fetch& fetch;
        std::atomic<bool> whole{true};
    } job{checksums, packing, fetch};
    const auto check = [](void* context, Worker& worker) {
        Job& job = *static_cast<Job*>(context);
        const auto pieces = static_cast<int64_t>(job.checksums.size());
        for (int64_t piece; (piece = worker.take(1)) < pieces;) {
            const bool whole =
                job.fetch(piece, piece_bytes(job.packing, piece)) &&
                piece_checksum(job.packing, piece) == job.checksums[static_cast<size_t>(piece)];
            if (!whole) job.whole.store(false, std::memory_order_relaxed);
        }
    };
    pool.run(check, &job);
    return job.whole.load();
}

}  // namespace

bool read_packed(const std::string& path, const Packing& packing, ThreadPool& pool) {
    const File file(path, O_RDONLY);
    const std::vector<uint64_t> checksums = read_checksums(file, packing);
    const auto read = [&](int64_t piece, int64_t bytes) {
        const int64_t first = piece * kPieceBytes;
        return file.read(packing.data + first, bytes, first);
    };
    return !checksums.empty() && check_pieces(checksums, packing, pool, read);
}

Buffer map_packed(const std::string& path, Packing& packing, Pages pages, ThreadPool& pool) {
    const File file(path, O_RDONLY);
    const std::vector<uint64_t> checksums = read_checksums(file, packing);
    packing.data = nullptr;
    if (checksums.empty()) return {};
    Buffer mapped = file.map(packing.bytes);
    if (pages == Pages::kHuge && !in_huge_pages(mapped)) return {};
    packing.data = mapped.as<uint8_t>();
    const auto there = [](int64_t, int64_t) { return true; };
    if (!check_pieces(checksums, packing, pool, there)) packing.data = nullptr;
    return mapped;
}

void write_packed(const std::string& path, const Packing& packing, const std::atomic<bool>& stop) {
    const std::string fresh = path + ".new";
    try {
        const File file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
        if (!file.is_open()) throw std::system_error(errno, std::generic_category(), "packed weights");
        std::vector<uint64_t> checksums;
        for (int64_t piece = 0; piece < num_pieces(packing.bytes); ++piece) {
            if (stop.load(std::memory_order_relaxed)) {
                unlink(fresh.c_str());
                return;
            }
            checksums.push_back(piece_checksum(packing, piece));
            file.write(packing.data + piece * kPieceBytes, piece_bytes(packing, piece));
        }
        file.write(checksums.data(), static_cast<int64_t>(checksums.size() * sizeof(uint64_t)));
        file.write(header_of(packing).data(), kHeaderBytes);
    } catch (...) {
        unlink(fresh.c_str());
        throw;
    }
    if (rename(fresh.c_str(), path.c_str()) != 0) {
        throw std::system_error(errno, std::generic_category(), "packed weights");
    }
}

}  // namespace llmd
