/* Feeds altered replies to every call: fuzz SEED COUNT REPLY…
 *
 * It has connection.c's functions with a connection that reads from memory, so that a million replies take a
 * minute. Each REPLY is a file with a good reply; a round alters one of them and reads it in random portions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "handles.h"
#include "utf8.h"

enum { MOST_REPLIES = 32, MOST_BYTES = 1 << 14 };

static char replies[MOST_REPLIES][MOST_BYTES];
static size_t lengths[MOST_REPLIES];
static char sent[2 * MOST_BYTES];
static size_t sent_length, sent_place;
static unsigned long long state;

/* Xorshift: the same rounds on every machine. */
static size_t draw(size_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % below);
}

long long clock_ms(void) { return 0; }

enum wait_result wait_for(int descriptor, short events, int cancel, long long deadline) {
    (void)descriptor, (void)events, (void)cancel, (void)deadline;
    return WAIT_READY;
}

bool is_cancelled(int cancel) {
    (void)cancel;
    return false;
}

llmd_status cancelled(struct fault* fault) { return set_fault(fault, LLMD_CANCELLED, "", "cancelled"); }

llmd_status open_connection(struct connection* connection, const struct endpoint* endpoint, int cancel,
                            struct fault* fault) {
    (void)fault;
    *connection = (struct connection){endpoint, -1, cancel};
    sent_place = 0;
    return LLMD_OK;
}

llmd_status send_bytes(struct connection* connection, const char* bytes, size_t length, struct fault* fault) {
    (void)connection, (void)fault;
    if (utf8_valid(bytes, length) != length) abort();
    return LLMD_OK;
}

llmd_status receive_bytes(struct connection* connection, char* bytes, size_t size, size_t* received,
                          struct fault* fault) {
    (void)connection, (void)fault;
    const size_t left = sent_length - sent_place;
    const size_t most = left < size ? left : size;
    *received = most == 0 ? 0 : 1 + draw(draw(4) == 0 ? most : 1 + most / 8);
    memcpy(bytes, sent + sent_place, *received);
    sent_place += *received;
    return LLMD_OK;
}

void close_connection(struct connection* connection) { (void)connection; }

/* Changes, removes, repeats or inserts some bytes. */
static void alter(void) {
    static const char interesting[] = "{}[]\",:\\u\r\n 09-eE+.\0\xff\xc3\xe2\xf0\x80\xed";
    const size_t place = draw(sent_length + 1), length = draw(1 + draw(40));
    const size_t end = place + length < sent_length ? place + length : sent_length;
    switch (draw(5)) {
        case 0:
            if (place < sent_length) sent[place] = (char)draw(256);
            break;
        case 1:
            if (place < sent_length) sent[place] = interesting[draw(sizeof interesting - 1)];
            break;
        case 2:
            memmove(sent + place, sent + end, sent_length - end);
            sent_length -= end - place;
            break;
        case 3:
            if (sent_length + (end - place) > sizeof sent) break;
            memmove(sent + end, sent + place, sent_length - place);
            sent_length += end - place;
            break;
        default:
            sent_length = draw(8) == 0 ? place : sent_length;
    }
}

static int on_piece(void* user, int kind, const char* text, size_t length) {
    (void)user;
    if (kind < LLMD_PIECE_TEXT || kind > LLMD_PIECE_USAGE || length == 0) abort();
    if (utf8_valid(text, length) != length || text[length] != '\0') abort();
    return draw(50) == 0;
}

/* What a call left behind must be consistent, whatever was sent. */
static void check(llmd_status status, const llmd_request* request) {
    size_t length, dimensions;
    const char* answer = llmd_answer(request, &length);
    if (utf8_valid(answer, length) != length || answer[length] != '\0') abort();
    const char* message = llmd_request_message(request);
    if ((status == LLMD_OK) != (*message == '\0') || utf8_valid(message, strlen(message)) != strlen(message))
        abort();
    if (status != LLMD_OK && (llmd_vector(request, 0, NULL) != NULL || llmd_tokens(request, NULL) != NULL))
        abort();
    for (size_t i = 0; llmd_vector(request, i, &dimensions) != NULL; i++) {
        volatile float last = llmd_vector(request, i, NULL)[dimensions - 1];
        (void)last;
    }
}

static void run(llmd_daemon* daemon, llmd_request* request) {
    static const char* const texts[] = {"a", "b"};
    size_t count;
    check(llmd_chat(request, on_piece, NULL), request);
    check(llmd_embed(request, texts, NULL, 2), request);
    check(llmd_tokenize(request, "a", LLMD_NUL), request);
    check(llmd_detokenize(request, NULL, 0), request);
    check(llmd_count_tokens(request, &count), request);
    llmd_models(daemon, &count);
    for (size_t i = 0; i < count; i++)
        if (llmd_model_name(daemon, i) == NULL) abort();
}

int main(int count, char** arguments) {
    const size_t known = count < 4 ? 0 : (size_t)count - 3;
    if (known == 0 || known > MOST_REPLIES) return 2;
    state = strtoull(arguments[1], NULL, 10) * 2654435761u + 1;
    for (size_t i = 0; i < known; i++) {
        FILE* file = fopen(arguments[i + 3], "rb");
        if (file == NULL) return 2;
        lengths[i] = fread(replies[i], 1, MOST_BYTES, file);
        fclose(file);
    }
    llmd_daemon* daemon;
    llmd_request* request;
    if (llmd_open(&daemon) != LLMD_OK || llmd_set(daemon, "address", "127.0.0.1", LLMD_NUL) != LLMD_OK)
        return 2;
    if (llmd_connect(daemon) != LLMD_OK || llmd_request_new(daemon, &request) != LLMD_OK) return 2;
    for (long round = atol(arguments[2]); round > 0; round--) {
        const size_t chosen = draw(known);
        memcpy(sent, replies[chosen], lengths[chosen]);
        sent_length = lengths[chosen];
        for (size_t i = draw(4); i > 0; i--) alter();
        run(daemon, request);
    }
    llmd_request_free(request);
    llmd_close(daemon);
    return 0;
}
