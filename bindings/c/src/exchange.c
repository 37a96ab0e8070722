#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "reply.h"

enum { PORTION = 16 << 10, ERROR_LIMIT = 1 << 20, REPLY_LIMIT = 1 << 30 };

#define LOST_HINT "see the log of the daemon"

// A reply that is being read: the body goes to `sink`, or to `error` if the HTTP status is one of an error.
struct receiver {
    struct http_reader reader;
    http_body sink;
    void* context;
    struct buffer error;
    char portion[PORTION];
};

static bool keep_error(struct receiver* receiver, const char* bytes, size_t length) {
    if (receiver->error.length + length > ERROR_LIMIT) return false;
    buffer_add(&receiver->error, bytes, length);
    return !receiver->error.failed;
}

static bool receive_body(void* context, const char* bytes, size_t length) {
    struct receiver* receiver = context;
    if (receiver->reader.status != 200) return keep_error(receiver, bytes, length);
    return receiver->sink(receiver->context, bytes, length);
}

static void add_header(struct buffer* head, const char* name, const char* value) {
    buffer_add_text(head, name);
    buffer_add(head, ": ", 2);
    buffer_add_text(head, value);
    buffer_add(head, "\r\n", 2);
}

static void write_request(const struct exchange* exchange, struct buffer* text) {
    const struct endpoint* endpoint = exchange->endpoint;
    const size_t length = exchange->body == NULL ? 0 : exchange->body->length;
    char number[24];
    snprintf(number, sizeof number, "%zu", length);
    buffer_add_text(text, exchange->method);
    buffer_add(text, " ", 1);
    buffer_add_text(text, exchange->path);
    buffer_add_text(text, " HTTP/1.1\r\n");
    add_header(text, "Host", endpoint->address.is_unix ? "llmd" : endpoint->address.shown);
    add_header(text, "User-Agent", "libllmd");
    add_header(text, "Connection", "close");
    if (endpoint->key != NULL) {
        buffer_add_text(text, "Authorization: Bearer ");
        buffer_add_text(text, endpoint->key);
        buffer_add(text, "\r\n", 2);
    }
    if (exchange->body != NULL) add_header(text, "Content-Type", "application/json");
    if (exchange->body != NULL) add_header(text, "Content-Length", number);
    buffer_add(text, "\r\n", 2);
    if (exchange->body != NULL) buffer_add(text, exchange->body->data, length);
}

static llmd_status send_request(struct connection* connection, const struct exchange* exchange,
                                struct fault* fault) {
    struct buffer text = {0};
    write_request(exchange, &text);
    const llmd_status status =
        text.failed ? out_of_memory(fault) : send_bytes(connection, text.data, text.length, fault);
    buffer_free(&text);
    return status;
}

static llmd_status receive_reply(struct connection* connection, struct receiver* receiver,
                                 struct fault* fault) {
    struct http_reader* reader = &receiver->reader;
    while (!http_is_over(reader)) {
        size_t received = 0;
        const llmd_status status =
            receive_bytes(connection, receiver->portion, sizeof receiver->portion, &received, fault);
        if (status != LLMD_OK) return status;
        http_feed(reader, receiver->portion, received);
        if (received > 0) continue;
        http_end(reader);
        if (reader->state == HTTP_FAILED)
            return set_fault(fault, LLMD_UNREACHABLE, LOST_HINT,
                             "the daemon at %s closed the connection too early",
                             connection->endpoint->address.shown);
    }
    return reader->state == HTTP_FAILED ? bad_reply(fault, "malformed HTTP") : LLMD_OK;
}

// What a reply means that was read to its end, or until its receiver had enough.
static llmd_status result_of(const struct receiver* receiver, struct fault* fault) {
    const struct http_reader* reader = &receiver->reader;
    if (reader->status == 200) return reader->state == HTTP_STOPPED ? fault->status : LLMD_OK;
    if (receiver->error.failed) return out_of_memory(fault);
    return fault_of_reply(reader->status, buffer_text(&receiver->error), receiver->error.length, fault);
}

// The sink sets the fault if it stops the reply because of one.
static llmd_status run(const struct exchange* exchange, struct receiver* receiver, struct fault* fault) {
    struct connection connection;
    llmd_status status = open_connection(&connection, exchange->endpoint, exchange->cancel, fault);
    if (status != LLMD_OK) return status;
    status = send_request(&connection, exchange, fault);
    // A daemon that refuses a request replies before it has read all of it, and closes the connection.
    const bool is_refused = status == LLMD_UNREACHABLE;
    if (status == LLMD_OK || is_refused) {
        struct fault other = {0};
        const llmd_status received = receive_reply(&connection, receiver, is_refused ? &other : fault);
        if (is_refused && received == LLMD_OK && receiver->reader.status != 200)
            status = result_of(receiver, fault);
        if (!is_refused) status = received == LLMD_OK ? result_of(receiver, fault) : received;
    }
    close_connection(&connection);
    return status;
}

static llmd_status exchange_with(const struct exchange* exchange, http_body sink, void* context,
                                 struct fault* fault) {
    struct receiver* receiver = malloc(sizeof *receiver);
    if (receiver == NULL) return out_of_memory(fault);
    receiver->sink = sink;
    receiver->context = context;
    receiver->error = (struct buffer){0};
    http_begin(&receiver->reader, receive_body, receiver);
    const llmd_status status = run(exchange, receiver, fault);
    buffer_free(&receiver->error);
    free(receiver);
    return status;
}

struct json_sink {
    struct buffer* text;
    struct fault* fault;
};

static bool keep_json(void* context, const char* bytes, size_t length) {
    const struct json_sink* sink = context;
    if (sink->text->length + length > REPLY_LIMIT) {
        bad_reply(sink->fault, "more than a gigabyte");
        return false;
    }
    buffer_add(sink->text, bytes, length);
    if (sink->text->failed) out_of_memory(sink->fault);
    return !sink->text->failed;
}

llmd_status exchange_json(const struct exchange* exchange, struct buffer* text, struct json* reply,
                          struct fault* fault) {
    struct json_sink sink = {text, fault};
    const llmd_status status = exchange_with(exchange, keep_json, &sink, fault);
    if (status != LLMD_OK) return status;
    return json_parse(buffer_text(text), text->length, reply) ? LLMD_OK : bad_reply(fault, "malformed JSON");
}

struct stream_sink {
    struct event_reader events;
    const struct exchange* exchange;
    event_handler handler;
    void* context;
    struct fault* fault;
    bool is_done;
};

static bool take_event(void* context, const char* data, size_t length) {
    static const char done[] = "[DONE]";
    struct stream_sink* sink = context;
    if (is_cancelled(sink->exchange->cancel)) return cancelled(sink->fault) == LLMD_OK;
    sink->is_done = length == sizeof done - 1 && memcmp(data, done, length) == 0;
    if (sink->is_done) return false;
    struct json event, error;
    if (!json_parse(data, length, &event)) return bad_reply(sink->fault, "malformed JSON") == LLMD_OK;
    if (json_member(event, "error", &error) && json_is_object(error))
        return fault_of_error(error, sink->fault) == LLMD_OK;
    return sink->handler(sink->context, event, sink->fault) == LLMD_OK;
}

static bool take_bytes(void* context, const char* bytes, size_t length) {
    struct stream_sink* sink = context;
    if (events_feed(&sink->events, bytes, length)) return true;
    if (sink->events.is_too_large) bad_reply(sink->fault, "an event that is too large");
    if (sink->events.line.failed || sink->events.event.failed) out_of_memory(sink->fault);
    return false;
}

llmd_status exchange_stream(const struct exchange* exchange, event_handler handler, void* context,
                            struct fault* fault) {
    struct stream_sink sink = {.exchange = exchange, .handler = handler, .context = context, .fault = fault};
    events_begin(&sink.events, take_event, &sink);
    const llmd_status status = exchange_with(exchange, take_bytes, &sink, fault);
    events_free(&sink.events);
    if (status == LLMD_OK && !sink.is_done) return bad_reply(fault, "a stream without its end");
    return status;
}
