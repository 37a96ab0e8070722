#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MS = 10 };

#define START_ONE "start one with `llmd serve`, or name it with the option address"

long long clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum wait_result wait_for(int descriptor, short events, int cancel, long long deadline) {
    struct pollfd waited[] = {{descriptor, events, 0}, {cancel, POLLIN, 0}};
    for (;;) {
        const long long left = deadline - clock_ms();
        const int ready = poll(waited, 2, left > 0 ? (int)left : 0);
        if (ready < 0 && errno != EINTR) return WAIT_FAILED;
        if (ready > 0 && waited[1].revents != 0) return WAIT_CANCELLED;
        if (ready > 0) return WAIT_READY;
        if (ready == 0 && left <= 0) return WAIT_TIMED_OUT;
    }
}

bool is_cancelled(int cancel) {
    struct pollfd waited = {cancel, POLLIN, 0};
    return poll(&waited, 1, 0) > 0;
}

llmd_status cancelled(struct fault* fault) {
    return set_fault(fault, LLMD_CANCELLED, "", "the call was cancelled");
}

static llmd_status unreachable(const struct address* address, const char* reason, struct fault* fault) {
    return set_fault(fault, LLMD_UNREACHABLE, START_ONE, "no daemon answers at %s: %s", address->shown,
                     reason);
}

static llmd_status lost(const struct connection* connection, int error, struct fault* fault) {
    char text[128];
    return set_fault(fault, LLMD_UNREACHABLE, "see the log of the daemon",
                     "the connection to the daemon at %s was lost: %s", connection->endpoint->address.shown,
                     error_text(error, text, sizeof text));
}

static llmd_status not_ready(const struct connection* connection, enum wait_result result,
                             struct fault* fault) {
    if (result == WAIT_CANCELLED) return cancelled(fault);
    if (result == WAIT_FAILED) return system_fault(fault, "wait for the daemon", errno);
    return set_fault(fault, LLMD_TIMED_OUT, "raise the option silence_timeout_ms",
                     "the daemon at %s was silent for %d ms", connection->endpoint->address.shown,
                     connection->endpoint->silence_ms);
}

// Waits for a connection that was begun. Sets errno if it fails.
static bool finish_connecting(struct connection* connection, long long deadline, enum wait_result* result) {
    *result = wait_for(connection->socket, POLLOUT, connection->cancel, deadline);
    if (*result == WAIT_TIMED_OUT) errno = ETIMEDOUT;
    if (*result != WAIT_READY) return false;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(connection->socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return false;
    errno = error;
    return error == 0;
}

// Connects to one address of the system. Sets errno if it fails.
static bool connect_to(struct connection* connection, int family, const struct sockaddr* where,
                       socklen_t size, long long deadline, enum wait_result* result) {
    *result = WAIT_READY;
    connection->socket = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->socket < 0) return false;
    if (connect(connection->socket, where, size) == 0) return true;
    if (errno == EINPROGRESS && finish_connecting(connection, deadline, result)) return true;
    const int error = errno;
    close_connection(connection);
    errno = error;
    return false;
}

static llmd_status open_unix(struct connection* connection, long long deadline, struct fault* fault) {
    const struct address* address = &connection->endpoint->address;
    struct sockaddr_un where = {0};
    where.sun_family = AF_UNIX;
    memcpy(where.sun_path, address->path, strlen(address->path) + 1);
    enum wait_result result;
    while (
        !connect_to(connection, AF_UNIX, (const struct sockaddr*)&where, sizeof where, deadline, &result)) {
        char text[128];
        if (errno != EAGAIN || clock_ms() >= deadline)
            return unreachable(address, error_text(errno, text, sizeof text), fault);
        // The daemon's queue of connections is full; the system does not say when it no longer is.
        if (wait_for(-1, 0, connection->cancel, clock_ms() + QUEUE_MS) == WAIT_CANCELLED)
            return cancelled(fault);
    }
    return LLMD_OK;
}

static llmd_status open_tcp(struct connection* connection, long long deadline, struct fault* fault) {
    const struct address* address = &connection->endpoint->address;
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo* found = NULL;
    const int failed = getaddrinfo(address->host, address->port, &wanted, &found);
    if (failed != 0) return unreachable(address, gai_strerror(failed), fault);
    enum wait_result result = WAIT_FAILED;
    bool is_open = false;
    for (struct addrinfo* at = found; at != NULL && !is_open && result != WAIT_CANCELLED; at = at->ai_next)
        is_open = connect_to(connection, at->ai_family, at->ai_addr, at->ai_addrlen, deadline, &result);
    const int error = errno;
    freeaddrinfo(found);
    char text[128];
    if (is_open) return LLMD_OK;
    if (result == WAIT_CANCELLED) return cancelled(fault);
    return unreachable(address, error_text(error, text, sizeof text), fault);
}

llmd_status open_connection(struct connection* connection, const struct endpoint* endpoint, int cancel,
                            struct fault* fault) {
    *connection = (struct connection){endpoint, -1, cancel};
    const long long deadline = clock_ms() + endpoint->connect_ms;
    return (endpoint->address.is_unix ? open_unix : open_tcp)(connection, deadline, fault);
}

llmd_status send_bytes(struct connection* connection, const char* bytes, size_t length, struct fault* fault) {
    while (length > 0) {
        const long long deadline = clock_ms() + connection->endpoint->silence_ms;
        const enum wait_result result = wait_for(connection->socket, POLLOUT, connection->cancel, deadline);
        if (result != WAIT_READY) return not_ready(connection, result, fault);
        const ssize_t sent = send(connection->socket, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return lost(connection, errno, fault);
        if (sent < 0) continue;
        bytes += sent;
        length -= (size_t)sent;
    }
    return LLMD_OK;
}

llmd_status receive_bytes(struct connection* connection, char* bytes, size_t size, size_t* received,
                          struct fault* fault) {
    const long long deadline = clock_ms() + connection->endpoint->silence_ms;
    for (;;) {
        const enum wait_result result = wait_for(connection->socket, POLLIN, connection->cancel, deadline);
        if (result != WAIT_READY) return not_ready(connection, result, fault);
        const ssize_t got = recv(connection->socket, bytes, size, 0);
        if (got < 0 && errno != EAGAIN && errno != EINTR) return lost(connection, errno, fault);
        if (got < 0) continue;
        *received = (size_t)got;
        return LLMD_OK;
    }
}

void close_connection(struct connection* connection) {
    if (connection->socket >= 0) close(connection->socket);
    connection->socket = -1;
}
