#include "base64.h"

#include <stdint.h>
#include <string.h>

enum { FLOAT_BYTES = 4 };

static int value_of(char digit) {
    if (digit >= 'A' && digit <= 'Z') return digit - 'A';
    if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9') return digit - '0' + 52;
    if (digit == '+') return 62;
    return digit == '/' ? 63 : -1;
}

static size_t padding(const char* text, size_t length) {
    if (length == 0 || text[length - 1] != '=') return 0;
    return text[length - 2] == '=' ? 2 : 1;
}

bool base64_count(const char* text, size_t length, size_t* count) {
    if (length % 4 != 0) return false;
    const size_t bytes = length / 4 * 3 - padding(text, length);
    *count = bytes / FLOAT_BYTES;
    return bytes % FLOAT_BYTES == 0;
}

bool base64_floats(const char* text, size_t length, float* floats, size_t count) {
    const size_t digits = length - padding(text, length);
    uint32_t bits = 0, number = 0;
    unsigned held = 0, bytes = 0;
    size_t done = 0;
    for (size_t i = 0; i < digits; i++) {
        const int value = value_of(text[i]);
        if (value < 0) return false;
        bits = (bits << 6 | (uint32_t)value) & 0xFFFF;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        number |= (bits >> held & 0xFF) << (8 * bytes);
        if (++bytes < FLOAT_BYTES) continue;
        if (done == count) return false;
        memcpy(&floats[done++], &number, sizeof number);
        bytes = 0;
        number = 0;
    }
    return done == count && bytes == 0;
}
