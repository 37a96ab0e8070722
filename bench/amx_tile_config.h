// Included before all else where llama.cpp is compiled. The `_tile_loadconfig` of GCC before 13 tells the
// compiler that it reads 8 bytes. The optimiser then drops what llama.cpp writes to the other 56 bytes of the
// configuration, and the first instruction on an AMX tile faults. This one names all 64.
#if defined(__AMX_TILE__)
#include <immintrin.h>
#undef _tile_loadconfig
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg\t%0" ::"m"(*(const char (*)[64])(config)))
#endif
