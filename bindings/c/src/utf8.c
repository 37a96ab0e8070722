#include "utf8.h"

#include <string.h>

static bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The length that the first byte promises; 0 if no character begins with it.
static size_t promised(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if ((first & 0xF0) == 0xE0) return 3;
    if (first >= 0xF0 && first <= 0xF4) return 4;
    return 0;
}

// Whether the second byte is in the range that the first allows.
static bool second_fits(unsigned char first, unsigned char second) {
    if (first == 0xE0) return second >= 0xA0;
    if (first == 0xED) return second <= 0x9F;
    if (first == 0xF0) return second >= 0x90;
    if (first == 0xF4) return second <= 0x8F;
    return true;
}

size_t utf8_character(const char* text, size_t length) {
    const unsigned char* bytes = (const unsigned char*)text;
    size_t size = length == 0 ? 0 : promised(bytes[0]);
    if (size == 0 || size > length) return 0;
    for (size_t i = 1; i < size; i++)
        if (!continues(bytes[i])) return 0;
    return size == 1 || second_fits(bytes[0], bytes[1]) ? size : 0;
}

size_t utf8_valid(const char* text, size_t length) {
    size_t done = 0;
    while (done < length) {
        size_t size = utf8_character(text + done, length - done);
        if (size == 0) break;
        done += size;
    }
    return done;
}

size_t utf8_encode(uint32_t code, char text[UTF8_MAX]) {
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char firsts[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--) {
        text[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    text[0] = (char)(firsts[size] | code);
    return size;
}

void make_utf8(char* text) {
    size_t length = strlen(text);
    size_t done = utf8_valid(text, length);
    while (done < length) {
        size_t size = promised((unsigned char)text[done]);
        if (size > length - done && size <= UTF8_MAX) {
            text[done] = '\0';  // the text was cut inside this character
            return;
        }
        text[done] = '?';
        done += utf8_valid(text + done, length - done);
    }
}
