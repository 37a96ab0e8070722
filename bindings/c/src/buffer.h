// Bytes that grow. A NUL byte, which the length does not count, always follows them.
#ifndef LLMD_BUFFER_H
#define LLMD_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char* data;  // NULL as long as nothing was added
    size_t length;
    size_t capacity;
    bool failed;  // memory ran out; what was added since is lost
};

void buffer_add(struct buffer* buffer, const char* bytes, size_t length);
void buffer_add_text(struct buffer* buffer, const char* text);

// Empties the buffer and keeps its memory.
void buffer_clear(struct buffer* buffer);
void buffer_free(struct buffer* buffer);

// The bytes as a text; empty if nothing was added.
const char* buffer_text(const struct buffer* buffer);

#endif
