#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "handles.h"
#include "reply.h"

// Writes the list of texts. Status and fault as check_text.
static llmd_status write_texts(llmd_request* request, const char* const* texts, const size_t* lengths,
                               size_t count, struct buffer* body) {
    buffer_add_text(body, "\"input\":[");
    for (size_t i = 0; i < count; i++) {
        size_t length = lengths == NULL ? LLMD_NUL : lengths[i];
        const llmd_status status = check_text("a text", texts[i], &length, &request->fault);
        if (status != LLMD_OK) return status;
        if (i > 0) buffer_add(body, ",", 1);
        json_write(body, texts[i], length);
    }
    buffer_add_text(body, "],\"encoding_format\":\"base64\"}");
    return LLMD_OK;
}

// Makes room for all vectors once the first has shown their dimensions.
static llmd_status make_room(llmd_request* request, size_t dimensions, size_t count) {
    request->dimensions = dimensions;
    if (dimensions == 0 || dimensions > SIZE_MAX / sizeof(float) / count)
        return bad_reply(&request->fault, "a vector without numbers");
    request->vectors = calloc(count * dimensions, sizeof(float));
    return request->vectors == NULL ? out_of_memory(&request->fault) : LLMD_OK;
}

static llmd_status take_vector(llmd_request* request, struct json row, size_t count) {
    struct json text;
    size_t dimensions;
    const bool is_vector = request->vector_count < count && json_member(row, "embedding", &text) &&
                           json_is_string(text) && base64_count(text.text + 1, text.length - 2, &dimensions);
    if (!is_vector) return bad_reply(&request->fault, "a row that is no vector");
    llmd_status status = LLMD_OK;
    if (request->vectors == NULL) status = make_room(request, dimensions, count);
    if (status != LLMD_OK) return status;
    float* vector = request->vectors + request->vector_count * request->dimensions;
    if (dimensions != request->dimensions ||
        !base64_floats(text.text + 1, text.length - 2, vector, dimensions))
        return bad_reply(&request->fault, "a vector that is not base64 of floats");
    request->vector_count++;
    return LLMD_OK;
}

static llmd_status take_vectors(llmd_request* request, struct json reply, size_t count) {
    struct json data, row = {NULL, 0}, usage, tokens;
    if (!json_member(reply, "data", &data) || !json_is_array(data))
        return bad_reply(&request->fault, "no list of vectors");
    while (json_next(data, &row)) {
        const llmd_status status = take_vector(request, row, count);
        if (status != LLMD_OK) return status;
    }
    if (json_member(reply, "usage", &usage) && json_member(usage, "prompt_tokens", &tokens))
        json_count(tokens, SIZE_MAX, &request->prompt_tokens);
    if (request->vector_count == count) return LLMD_OK;
    return bad_reply(&request->fault, "fewer vectors than texts");
}

llmd_status llmd_embed(llmd_request* request, const char* const* texts, const size_t* lengths, size_t count) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = begin_call(request);
    if (status != LLMD_OK) return status;
    if (texts == NULL || count == 0)
        return end_call(request,
                        set_fault(&request->fault, LLMD_BAD_ARGUMENT, "", "there is no text to embed"));
    struct buffer body = {0}, text = {0};
    struct json reply;
    buffer_add(&body, "{", 1);
    options_write(&request->options, CALL_EMBED, &body);
    status = write_texts(request, texts, lengths, count, &body);
    if (status == LLMD_OK) status = ask(request, "/v1/embeddings", &body, &text, &reply);
    if (status == LLMD_OK) status = take_vectors(request, reply, count);
    if (status != LLMD_OK) request->vector_count = 0;
    buffer_free(&body);
    buffer_free(&text);
    return end_call(request, status);
}

const float* llmd_vector(const llmd_request* request, size_t index, size_t* dimensions) {
    const bool is_there = request != NULL && index < request->vector_count;
    if (dimensions != NULL) *dimensions = is_there ? request->dimensions : 0;
    return is_there ? request->vectors + index * request->dimensions : NULL;
}
