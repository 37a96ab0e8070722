// What the daemon's errors mean.
#ifndef LLMD_REPLY_H
#define LLMD_REPLY_H

#include <stddef.h>

#include "fault.h"
#include "json.h"

// Stores the fault that an error object of the daemon describes.
llmd_status fault_of_error(struct json error, struct fault* fault);

// Stores the fault that the body of a reply with an HTTP status of 400 or more describes.
llmd_status fault_of_reply(int http_status, const char* body, size_t length, struct fault* fault);

// The reply is not that of a daemon; `reason` says why.
llmd_status bad_reply(struct fault* fault, const char* reason);

#endif
