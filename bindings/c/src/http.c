#include "http.h"

#include <string.h>
#include <strings.h>

#include "digits.h"

// Longest hexadecimal number of a chunk's size: 2^60 bytes cannot overflow.
enum { SIZE_DIGITS = 15 };

void http_begin(struct http_reader* reader, http_body body, void* context) {
    memset(reader, 0, sizeof *reader);
    reader->body = body;
    reader->context = context;
}

bool http_is_over(const struct http_reader* reader) { return reader->state >= HTTP_DONE; }

// "HTTP/1.1 200 OK"; the reason may be missing.
static enum http_state read_status_line(struct http_reader* reader) {
    const char* line = reader->line;
    if (strncmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) || line[8] != ' ') return HTTP_FAILED;
    const char* code = line + 9;
    if (!is_digit(code[0]) || !is_digit(code[1]) || !is_digit(code[2])) return HTTP_FAILED;
    if (code[3] != ' ' && code[3] != '\0') return HTTP_FAILED;
    reader->status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
    return reader->status < 100 ? HTTP_FAILED : HTTP_HEADER;
}

static bool read_length(struct http_reader* reader, const char* value) {
    uint64_t length = 0;
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 18 || value[digits] != '\0') return false;
    for (size_t i = 0; i < digits; i++) length = length * 10 + (uint64_t)(value[i] - '0');
    if (reader->has_length && reader->left != length) return false;
    reader->has_length = true;
    reader->left = length;
    return true;
}

// Ends the value of a header at the space behind it and returns its start.
static char* trimmed(char* value) {
    value += strspn(value, " \t");
    size_t length = strlen(value);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t')) length--;
    value[length] = '\0';
    return value;
}

static enum http_state after_head(struct http_reader* reader) {
    if (reader->status < 200) {  // an interim reply; the real one follows
        reader->has_length = reader->is_chunked = false;
        return reader->status == 101 ? HTTP_FAILED : HTTP_STATUS_LINE;
    }
    if (reader->status == 204 || reader->status == 304) return HTTP_DONE;
    if (reader->is_chunked) return HTTP_CHUNK_SIZE;
    if (!reader->has_length) return HTTP_BODY_TO_END;
    return reader->left == 0 ? HTTP_DONE : HTTP_BODY;
}

static enum http_state read_header(struct http_reader* reader) {
    if (reader->line_length == 0) return after_head(reader);
    char* colon = strchr(reader->line, ':');
    if (colon == NULL || colon == reader->line) return HTTP_FAILED;
    *colon = '\0';
    char* value = trimmed(colon + 1);
    if (strpbrk(reader->line, " \t") != NULL) return HTTP_FAILED;  // also lines that continue another one
    if (strcasecmp(reader->line, "Content-Length") == 0) {
        if (!read_length(reader, value)) return HTTP_FAILED;
    } else if (strcasecmp(reader->line, "Transfer-Encoding") == 0) {
        if (strcasecmp(value, "chunked") != 0) return HTTP_FAILED;
        reader->is_chunked = true;
    } else if (strcasecmp(reader->line, "Content-Encoding") == 0) {
        if (strcasecmp(value, "identity") != 0) return HTTP_FAILED;
    }
    return HTTP_HEADER;
}

static enum http_state read_chunk_size(struct http_reader* reader) {
    uint64_t size = 0;
    size_t digits = 0;
    for (; hex_digit(reader->line[digits]) >= 0; digits++) {
        if (digits == SIZE_DIGITS) return HTTP_FAILED;
        size = size << 4 | (uint64_t)hex_digit(reader->line[digits]);
    }
    const char next = reader->line[digits];
    if (digits == 0 || (next != '\0' && next != ';' && next != ' ' && next != '\t')) return HTTP_FAILED;
    reader->left = size;
    return size == 0 ? HTTP_TRAILER : HTTP_CHUNK;
}

static enum http_state read_line(struct http_reader* reader) {
    switch (reader->state) {
        case HTTP_STATUS_LINE:
            return read_status_line(reader);
        case HTTP_HEADER:
            return read_header(reader);
        case HTTP_CHUNK_SIZE:
            return read_chunk_size(reader);
        case HTTP_CHUNK_END:
            return reader->line_length == 0 ? HTTP_CHUNK_SIZE : HTTP_FAILED;
        default:
            return reader->line_length == 0 ? HTTP_DONE : HTTP_TRAILER;
    }
}

// Collects a line, which ends with LF or CRLF, and reads it when it is whole. Returns how many bytes it took.
static size_t feed_line(struct http_reader* reader, const char* bytes, size_t length) {
    const char* newline = memchr(bytes, '\n', length);
    const size_t part = newline == NULL ? length : (size_t)(newline - bytes);
    const bool is_head = reader->state != HTTP_CHUNK_SIZE && reader->state != HTTP_CHUNK_END;
    if (is_head) reader->head_bytes += part + 1;
    if (part >= HTTP_LINE_SIZE - reader->line_length || reader->head_bytes > HTTP_HEAD_LIMIT ||
        memchr(bytes, '\0', part) != NULL) {
        reader->state = HTTP_FAILED;
        return length;
    }
    memcpy(reader->line + reader->line_length, bytes, part);
    reader->line_length += part;
    if (newline == NULL) return length;
    if (reader->line_length > 0 && reader->line[reader->line_length - 1] == '\r') reader->line_length--;
    reader->line[reader->line_length] = '\0';
    reader->state = read_line(reader);
    reader->line_length = 0;
    return part + 1;
}

// Passes on a part of the body. Returns how many bytes it took.
static size_t feed_body(struct http_reader* reader, const char* bytes, size_t length) {
    const bool has_end = reader->state != HTTP_BODY_TO_END;
    const size_t part = has_end && reader->left < length ? (size_t)reader->left : length;
    if (!reader->body(reader->context, bytes, part)) {
        reader->state = HTTP_STOPPED;
        return length;
    }
    if (has_end) reader->left -= part;
    if (has_end && reader->left == 0) reader->state = reader->state == HTTP_BODY ? HTTP_DONE : HTTP_CHUNK_END;
    return part;
}

void http_feed(struct http_reader* reader, const char* bytes, size_t length) {
    while (length > 0 && !http_is_over(reader)) {
        const bool in_body =
            reader->state == HTTP_BODY || reader->state == HTTP_BODY_TO_END || reader->state == HTTP_CHUNK;
        const size_t taken = (in_body ? feed_body : feed_line)(reader, bytes, length);
        bytes += taken;
        length -= taken;
    }
}

void http_end(struct http_reader* reader) {
    if (reader->state == HTTP_BODY_TO_END) reader->state = HTTP_DONE;
    if (!http_is_over(reader)) reader->state = HTTP_FAILED;
}
