// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef LLMD_UTF8_H
#define LLMD_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX = 4 };

// The length in bytes of the character that the text begins with; 0 if it begins with none.
size_t utf8_character(const char* text, size_t length);

// How many bytes at the start are whole characters.
size_t utf8_valid(const char* text, size_t length);

// Writes a code point and returns its length in bytes. A surrogate becomes U+FFFD.
size_t utf8_encode(uint32_t code, char text[UTF8_MAX]);

// Replaces each byte of a NUL-terminated text that is not UTF-8 by a question mark; drops a character that
// was cut.
void make_utf8(char* text);

#endif
