// Reads an HTTP/1.1 reply from bytes that arrive in any portions.
#ifndef LLMD_HTTP_H
#define LLMD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Gets the bytes of a body. Returns false to stop reading.
typedef bool (*http_body)(void* context, const char* bytes, size_t length);

enum { HTTP_LINE_SIZE = 16 << 10, HTTP_HEAD_LIMIT = 64 << 10 };

enum http_state {
    HTTP_STATUS_LINE,
    HTTP_HEADER,
    HTTP_BODY,         // `left` bytes of it are missing
    HTTP_BODY_TO_END,  // until the connection ends
    HTTP_CHUNK_SIZE,
    HTTP_CHUNK,  // as HTTP_BODY
    HTTP_CHUNK_END,
    HTTP_TRAILER,
    HTTP_DONE,
    HTTP_STOPPED,  // by the callback
    HTTP_FAILED
};

struct http_reader {
    http_body body;
    void* context;
    enum http_state state;
    int status;  // 0 before the status line
    bool is_chunked, has_length;
    uint64_t left;
    size_t head_bytes;  // of status line, headers and trailers
    size_t line_length;
    char line[HTTP_LINE_SIZE];
};

void http_begin(struct http_reader* reader, http_body body, void* context);

// Reads a portion. Afterwards `state` says whether more is expected. A reply that is malformed or over a
// limit ends in HTTP_FAILED; bytes after the end of a reply are ignored.
void http_feed(struct http_reader* reader, const char* bytes, size_t length);

// The connection has ended. The reply is complete if the state is then HTTP_DONE.
void http_end(struct http_reader* reader);

// Whether nothing more is expected.
bool http_is_over(const struct http_reader* reader);

#endif
