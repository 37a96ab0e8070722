// Sends one HTTP request on a new connection and reads the reply.
#ifndef LLMD_EXCHANGE_H
#define LLMD_EXCHANGE_H

#include "buffer.h"
#include "connection.h"
#include "events.h"
#include "fault.h"
#include "json.h"

struct exchange {
    const struct endpoint* endpoint;
    int cancel;  // becomes readable when the exchange is cancelled; -1: never
    const char* method;
    const char* path;
    const struct buffer* body;  // JSON, or NULL
};

// Reads a reply that is one JSON value. `text` holds it.
llmd_status exchange_json(const struct exchange* exchange, struct buffer* text, struct json* reply,
                          struct fault* fault);

// Gets the JSON of an event. A status other than LLMD_OK ends the stream; the fault is then set.
typedef llmd_status (*event_handler)(void* context, struct json event, struct fault* fault);

// Reads a reply that is a stream of JSON events and ends with "[DONE]".
llmd_status exchange_stream(const struct exchange* exchange, event_handler handler, void* context,
                            struct fault* fault);

#endif
