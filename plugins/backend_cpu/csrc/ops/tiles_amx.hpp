// The tile registers of AMX: their shapes, sums in four of them, and memory for such sums.
//
//   from   Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 20. The instructions
//          are written in assembly: the unit is compiled without AMX flags, and g++ before 13 gets the
//          tile configuration wrong.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;
// Rows and panels whose totals a thread holds at a time.
constexpr int64_t kAmxRowBlock = 512;
constexpr int64_t kAmxPanels = 16;

// Rows of each of the eight registers (never 0), and bytes per row.
struct alignas(64) TileShapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};

    LLMD_INLINE_MEMBER void set(int i, int64_t count, int64_t bytes) {
        rows[i] = static_cast<uint8_t>(count > 0 ? count : 1);
        row_bytes[i] = static_cast<uint16_t>(bytes);
    }
};
LLMD_INLINE void set_tiles(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
LLMD_INLINE void release_tiles() { asm volatile("tilerelease"); }

// Zeroes registers 0 and 1; with two tiles also 2 and 3.
template <int kTiles>
LLMD_INLINE void start_sums() {
    if constexpr (kTiles == 2) {
        asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3"
                     :
                     :
                     : "memory");
    } else {
        asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1" : : : "memory");
    }
}
// Stores registers 0 and 1, kTileBytes each; with two tiles also 2 and 3 after them.
template <int kTiles>
LLMD_INLINE void store_sums(void* sums) {
    asm volatile("tilestored %%tmm0, (%0, %1, 1)\n\ttilestored %%tmm1, 1024(%0, %1, 1)"
                 :
                 : "r"(sums), "r"(kTileRowBytes)
                 : "memory");
    if constexpr (kTiles == 2) {
        asm volatile("tilestored %%tmm2, 2048(%0, %1, 1)\n\ttilestored %%tmm3, 3072(%0, %1, 1)"
                     :
                     : "r"(sums), "r"(kTileRowBytes)
                     : "memory");
    }
}

// Calls f(panels, rows) for blocks of panels [first, last) and rows whose totals a thread can hold.
template <class F>
LLMD_INLINE void each_amx_block(int64_t rows, int64_t first, int64_t last, F&& f) {
    for (int64_t p = first; p < last; p += kAmxPanels) {
        const Run panels{p, p + kAmxPanels < last ? p + kAmxPanels : last};
        for (int64_t r = 0; r < rows; r += kAmxRowBlock) {
            f(panels, Run{r, r + kAmxRowBlock < rows ? r + kAmxRowBlock : rows});
        }
    }
}

// A buffer of the calling thread.
LLMD_INLINE float* amx_totals() {
    alignas(64) static thread_local float totals[kAmxRowBlock * kAmxPanels * kPanelRows];
    return totals;
}

}  // namespace llmd::LLMD_ISA
