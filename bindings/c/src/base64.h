// Vectors as /v1/embeddings sends them: base64 of little-endian float32. Exact, and free of the locale.
#ifndef LLMD_BASE64_H
#define LLMD_BASE64_H

#include <stdbool.h>
#include <stddef.h>

// How many floats a text holds; false if its length is that of no list of floats.
bool base64_count(const char* text, size_t length, size_t* count);

// Converts a text to `count` floats; false if it has other bytes than those of base64 with padding.
bool base64_floats(const char* text, size_t length, float* floats, size_t count);

#endif
