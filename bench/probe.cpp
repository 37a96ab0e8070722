// The peak performance of this machine: memory read by plain loops, and integer products in registers only.
//
// Built by `bench.probe` as a shared library for the processor it runs on. Every loop runs on as many threads
// as the benchmarks use; rates cover the time from when all have started until the last has ended.

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
using Line = std::uint64_t __attribute__((vector_size(64)));

std::atomic<std::uint64_t> sink;  // keeps results alive

template <class Work>
double seconds(int threads, Work work) {
    std::atomic<int> waiting{threads};
    Clock::time_point start;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; ++thread) {
        crew.emplace_back([&, thread] {
            if (--waiting == 0) start = Clock::now();
            while (waiting > 0) {
            }
            work(thread);
        });
    }
    for (auto& one : crew) one.join();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Four lines of each stream in turn.
template <int kAhead, int kStreams>
std::uint64_t read(const Line* lines, std::size_t count) {
    constexpr int kRun = 4;
    const std::size_t apart = count / kStreams;
    Line sums[kRun] = {};
    for (std::size_t at = 0; at + kRun <= apart; at += kRun) {
        for (int stream = 0; stream < kStreams; ++stream) {
            const Line* from = lines + stream * apart + at;
            for (int lane = 0; lane < kRun; ++lane) {
                if constexpr (kAhead > 0) {
                    __builtin_prefetch(reinterpret_cast<const char*>(from + lane) + kAhead, 0, 3);
                }
                sums[lane] += from[lane];
            }
        }
    }
    Line sum = sums[0] + sums[1] + sums[2] + sums[3];
    return sum[0] + sum[7];
}

using Reader = std::uint64_t (*)(const Line*, std::size_t);

template <int kStreams>
Reader reader(int ahead) {
    switch (ahead) {
        case 0:
            return read<0, kStreams>;
        case 512:
            return read<512, kStreams>;
        case 1024:
            return read<1024, kStreams>;
        case 2048:
            return read<2048, kStreams>;
        default:
            return read<4096, kStreams>;
    }
}

#if defined(__AVX2__)
constexpr long kRounds = 400'000;
constexpr int kChains = 12;

// Twelve sums that wait for nothing but themselves: named one by one, since GCC leaves arrays of them in
// memory.
template <class Vector, class Product>
void chains(Vector ones, Product product) {
    Vector a = ones, b = ones, c = ones, d = ones, e = ones, f = ones;
    Vector g = ones, h = ones, i = ones, j = ones, k = ones, l = ones;
    for (long round = 0; round < kRounds; ++round) {
        a = product(a, ones), b = product(b, ones), c = product(c, ones), d = product(d, ones);
        e = product(e, ones), f = product(f, ones), g = product(g, ones), h = product(h, ones);
        i = product(i, ones), j = product(j, ones), k = product(k, ones), l = product(l, ones);
        // Says that all have changed, so that the compiler can neither join rounds nor drop them.
        asm volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f));
        asm volatile("" : "+v"(g), "+v"(h), "+v"(i), "+v"(j), "+v"(k), "+v"(l));
    }
    Vector sum = a + b + c + d + e + f + g + h + i + j + k + l;
    sink += static_cast<std::uint64_t>(sum[0]);
}

double avx2(int threads) {
    double took = seconds(threads, [](int) {
        chains(_mm256_set1_epi8(1), [](__m256i sum, __m256i ones) {
            __m256i pairs = _mm256_maddubs_epi16(ones, sum);
            return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
        });
    });
    return 2.0 * 32 * kChains * kRounds * threads / took;
}
#endif

#if defined(__AVX512VNNI__)
double avx512_vnni(int threads) {
    double took = seconds(threads, [](int) {
        chains(_mm512_set1_epi8(1),
               [](__m512i sum, __m512i ones) { return _mm512_dpbusd_epi32(sum, ones, ones); });
    });
    return 2.0 * 64 * kChains * kRounds * threads / took;
}
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
double vnni_256(int threads) {
    double took = seconds(threads, [](int) {
        chains(_mm256_set1_epi8(1),
               [](__m256i sum, __m256i ones) { return _mm256_dpbusd_epi32(sum, ones, ones); });
    });
    return 2.0 * 32 * kChains * kRounds * threads / took;
}
#endif

#if defined(__AMX_INT8__) && defined(__linux__)
struct TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

double amx(int threads) {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    if (syscall(SYS_arch_prctl, kRequestPermission, kTileData)) return 0;
    constexpr long kTiles = 4, kTileRounds = 60'000;
    double took = seconds(threads, [](int) {
        alignas(64) TileConfig config;
        // Not the intrinsic: that of GCC before 13 tells the compiler of the first 8 bytes alone.
        asm volatile("ldtilecfg %0" ::"m"(config));
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        _tile_zero(4);
        _tile_zero(5);
        for (long round = 0; round < kTileRounds; ++round) {
            _tile_dpbusd(0, 4, 5);
            _tile_dpbusd(1, 4, 5);
            _tile_dpbusd(2, 4, 5);
            _tile_dpbusd(3, 4, 5);
        }
        _tile_release();
    });
    return 2.0 * 16 * 16 * 64 * kTiles * kTileRounds * threads / took;
}
#endif

}  // namespace

extern "C" {

// Memory that was written to, in huge pages where the system has them.
void* probe_memory(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(memory)[at] = 1;
    return memory;
}

// Returns bytes per second. Each thread reads its own part of the memory in `streams` streams (1, 2 or 4) and
// prefetches `ahead` bytes ahead.
double probe_read(const void* memory, std::size_t bytes, int threads, int ahead, int streams) {
    std::size_t share = bytes / sizeof(Line) / threads;
    const Reader one = streams == 1 ? reader<1>(ahead) : streams == 2 ? reader<2>(ahead) : reader<4>(ahead);
    double took = seconds(
        threads, [=](int thread) { sink += one(static_cast<const Line*>(memory) + thread * share, share); });
    return static_cast<double>(share) * threads * sizeof(Line) / took;
}

// Operations a second (a product and a sum are two) of 8-bit integers, 0 where this processor has no such
// instruction.
double probe_avx2(int threads) {
#if defined(__AVX2__)
    return avx2(threads);
#else
    return 0 * threads;
#endif
}

double probe_vnni(int threads) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    double narrow = vnni_256(threads), wide = avx512_vnni(threads);
    return narrow > wide ? narrow : wide;
#elif defined(__AVX512VNNI__)
    return avx512_vnni(threads);
#else
    return 0 * threads;
#endif
}

double probe_amx(int threads) {
#if defined(__AMX_INT8__) && defined(__linux__)
    return amx(threads);
#else
    return 0 * threads;
#endif
}
}
