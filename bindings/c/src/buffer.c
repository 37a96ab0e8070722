#include "buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct buffer* buffer, size_t length) {
    if (buffer->failed || length > SIZE_MAX / 4 - buffer->length) return false;
    size_t needed = buffer->length + length + 1;
    if (needed <= buffer->capacity) return true;
    size_t capacity = buffer->capacity == 0 ? 64 : buffer->capacity;
    while (capacity < needed) capacity *= 2;
    char* data = realloc(buffer->data, capacity);
    if (data == NULL) return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void buffer_add(struct buffer* buffer, const char* bytes, size_t length) {
    if (!make_room(buffer, length)) {
        buffer->failed = true;
        return;
    }
    if (length > 0) memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
}

void buffer_add_text(struct buffer* buffer, const char* text) { buffer_add(buffer, text, strlen(text)); }

void buffer_clear(struct buffer* buffer) {
    buffer->length = 0;
    buffer->failed = false;
    if (buffer->data != NULL) buffer->data[0] = '\0';
}

void buffer_free(struct buffer* buffer) {
    free(buffer->data);
    *buffer = (struct buffer){NULL, 0, 0, false};
}

const char* buffer_text(const struct buffer* buffer) { return buffer->data == NULL ? "" : buffer->data; }
