// How far apart two names are, for suggestions after a mistyped one.
#ifndef LLMD_NEAREST_H
#define LLMD_NEAREST_H

#include <stddef.h>

// The least number of characters that must be added, removed, replaced or swapped with their neighbour. Only
// the first 63 characters of a name count.
size_t edit_steps(const char* one, const char* other);

#endif
