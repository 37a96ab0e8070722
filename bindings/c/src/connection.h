// A connection to a daemon: every wait ends with the daemon, a timeout or a cancellation.
#ifndef LLMD_CONNECTION_H
#define LLMD_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "address.h"
#include "fault.h"

// Where to send requests, and how long to wait.
struct endpoint {
    struct address address;
    char* key;  // the API key, or NULL
    int connect_ms;
    int silence_ms;  // how long the daemon may send and take nothing
};

struct connection {
    const struct endpoint* endpoint;
    int socket;
    int cancel;  // becomes readable when the request is cancelled; -1: never
};

// Milliseconds on a clock that only goes forward.
long long clock_ms(void);

// Waits until `events` of poll happen with a descriptor, or until `deadline`.
enum wait_result { WAIT_READY, WAIT_CANCELLED, WAIT_TIMED_OUT, WAIT_FAILED };
enum wait_result wait_for(int descriptor, short events, int cancel, long long deadline);

bool is_cancelled(int cancel);

llmd_status open_connection(struct connection* connection, const struct endpoint* endpoint, int cancel,
                            struct fault* fault);
llmd_status send_bytes(struct connection* connection, const char* bytes, size_t length, struct fault* fault);

// Receives at least a byte; `*received` is 0 if the daemon has closed the connection.
llmd_status receive_bytes(struct connection* connection, char* bytes, size_t size, size_t* received,
                          struct fault* fault);
void close_connection(struct connection* connection);

llmd_status cancelled(struct fault* fault);

#endif
