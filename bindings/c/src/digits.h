// Digits in ASCII, whatever the locale.
#ifndef LLMD_DIGITS_H
#define LLMD_DIGITS_H

#include <stdbool.h>

static inline bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// The value of a hexadecimal digit; -1 if it is none.
static inline int hex_digit(char byte) {
    if (is_digit(byte)) return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

#endif
