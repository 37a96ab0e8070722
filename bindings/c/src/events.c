#include "events.h"

#include <string.h>

void events_begin(struct event_reader* reader, event_data data, void* context) {
    memset(reader, 0, sizeof *reader);
    reader->data = data;
    reader->context = context;
}

void events_free(struct event_reader* reader) {
    buffer_free(&reader->line);
    buffer_free(&reader->event);
}

// An empty line ends an event.
static bool end_event(struct event_reader* reader) {
    const size_t length = reader->event.length;
    if (length == 0) return true;
    const bool goes_on = reader->data(reader->context, buffer_text(&reader->event), length - 1);
    buffer_clear(&reader->event);
    return goes_on;
}

static bool end_line(struct event_reader* reader) {
    static const char field[] = "data:";
    const char* line = buffer_text(&reader->line);
    const size_t length = reader->line.length;
    bool goes_on = true;
    if (length == 0) {
        goes_on = end_event(reader);
    } else if (length >= sizeof field - 1 && memcmp(line, field, sizeof field - 1) == 0) {
        size_t start = sizeof field - 1;
        if (start < length && line[start] == ' ') start++;
        buffer_add(&reader->event, line + start, length - start);
        buffer_add(&reader->event, "\n", 1);
    }
    buffer_clear(&reader->line);
    return goes_on && !reader->event.failed;
}

static size_t length_of_line(const char* bytes, size_t length) {
    size_t i = 0;
    while (i < length && bytes[i] != '\n' && bytes[i] != '\r') i++;
    return i;
}

bool events_feed(struct event_reader* reader, const char* bytes, size_t length) {
    while (length > 0) {
        if (reader->is_after_return && *bytes == '\n') {
            bytes++;
            length--;
        }
        reader->is_after_return = false;
        const size_t part = length_of_line(bytes, length);
        reader->is_too_large = reader->line.length + reader->event.length + part > EVENT_LIMIT;
        if (reader->is_too_large) return false;
        buffer_add(&reader->line, bytes, part);
        if (reader->line.failed) return false;
        if (part == length) return true;
        reader->is_after_return = bytes[part] == '\r';
        if (!end_line(reader)) return false;
        bytes += part + 1;
        length -= part + 1;
    }
    return true;
}
