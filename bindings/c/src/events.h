// Reads server-sent events from bytes that arrive in any portions. Only the data of events counts.
#ifndef LLMD_EVENTS_H
#define LLMD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"

enum { EVENT_LIMIT = 16 << 20 };

// Gets the data of an event. Returns false to stop reading.
typedef bool (*event_data)(void* context, const char* data, size_t length);

struct event_reader {
    event_data data;
    void* context;
    struct buffer line;
    struct buffer event;   // the lines of data so far, each ended by a line feed
    bool is_after_return;  // the last byte was CR: LF belongs to it
    bool is_too_large;
};

void events_begin(struct event_reader* reader, event_data data, void* context);

// Reads a portion. Returns false if the callback stopped it, an event is over the limit, or memory ran out.
bool events_feed(struct event_reader* reader, const char* bytes, size_t length);

void events_free(struct event_reader* reader);

#endif
