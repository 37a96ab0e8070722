// What the handles of llmd.h hold.
#ifndef LLMD_HANDLES_H
#define LLMD_HANDLES_H

#include <stdbool.h>

#include "buffer.h"
#include "connection.h"
#include "exchange.h"
#include "fault.h"
#include "options.h"
#include "private_daemon.h"

struct llmd_daemon {
    struct options options;
    struct endpoint endpoint;
    bool has_address;  // llmd_connect or llmd_load has succeeded
    struct private_daemon child;
    struct buffer names;  // of models, each ended by a NUL byte
    size_t name_count;
    struct fault fault;
};

// The calls that an option of a request belongs to.
enum { CALL_CHAT = 1, CALL_COMPLETE = 2, CALL_EMBED = 4, CALL_TOKENS = 8 };

struct llmd_request {
    struct options options;
    struct endpoint endpoint;  // a copy of the daemon's: requests of several threads share nothing
    int cancel[2];             // a pipe; a byte in it cancels the call
    bool is_running;
    struct buffer messages;  // JSON objects with commas between them
    // Results of the last call.
    struct buffer answer, reasoning, finish_reason;
    size_t prompt_tokens, answer_tokens;
    float* vectors;
    size_t vector_count, dimensions;
    int32_t* tokens;
    size_t token_count;
    struct fault fault;
};

// Takes timeouts and key from the options; the handle then has no daemon. Refuses a handle with a private
// daemon.
llmd_status set_timeouts_and_key(llmd_daemon* daemon);

// LLMD_BAD_ARGUMENT if neither llmd_connect nor llmd_load has succeeded.
llmd_status check_has_daemon(llmd_daemon* daemon);

// Each call with a request begins and ends with these. A call that is running already cannot begin again.
llmd_status begin_call(llmd_request* request);
llmd_status end_call(llmd_request* request, llmd_status status);

// Sends a body to a path and frees it. The reply is one JSON value, held by `text`.
llmd_status ask(llmd_request* request, const char* path, struct buffer* body, struct buffer* text,
                struct json* reply);

#endif
