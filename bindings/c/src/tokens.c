#include <stdio.h>
#include <stdlib.h>

#include "handles.h"
#include "reply.h"

static size_t item_count(struct json array) {
    struct json item = {NULL, 0};
    size_t count = 0;
    while (json_next(array, &item)) count++;
    return count;
}

static llmd_status take_tokens(llmd_request* request, struct json reply) {
    struct json tokens, item = {NULL, 0};
    if (!json_member(reply, "tokens", &tokens) || !json_is_array(tokens))
        return bad_reply(&request->fault, "no list of tokens");
    request->tokens = calloc(item_count(tokens) + 1, sizeof *request->tokens);
    if (request->tokens == NULL) return out_of_memory(&request->fault);
    while (json_next(tokens, &item)) {
        size_t token;
        if (!json_count(item, INT32_MAX, &token)) {
            request->token_count = 0;
            return bad_reply(&request->fault, "a token that is no number");
        }
        request->tokens[request->token_count++] = (int32_t)token;
    }
    return LLMD_OK;
}

llmd_status llmd_tokenize(llmd_request* request, const char* text, size_t length) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = begin_call(request);
    if (status != LLMD_OK) return status;
    status = check_text("the text", text, &length, &request->fault);
    if (status != LLMD_OK) return end_call(request, status);
    struct buffer body = {0}, kept = {0};
    struct json reply;
    buffer_add(&body, "{", 1);
    options_write(&request->options, CALL_TOKENS, &body);
    buffer_add_text(&body, "\"content\":");
    json_write(&body, text, length);
    buffer_add(&body, "}", 1);
    status = ask(request, "/tokenize", &body, &kept, &reply);
    if (status == LLMD_OK) status = take_tokens(request, reply);
    buffer_free(&kept);
    return end_call(request, status);
}

const int32_t* llmd_tokens(const llmd_request* request, size_t* count) {
    const bool are_there = request != NULL && request->token_count > 0;
    if (count != NULL) *count = are_there ? request->token_count : 0;
    return are_there ? request->tokens : NULL;
}

llmd_status llmd_detokenize(llmd_request* request, const int32_t* tokens, size_t count) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    if (tokens == NULL && count > 0)
        return set_fault(&request->fault, LLMD_BAD_ARGUMENT, "", "the tokens are NULL");
    struct buffer body = {0}, kept = {0};
    struct json reply, content;
    buffer_add(&body, "{", 1);
    options_write(&request->options, CALL_TOKENS, &body);
    buffer_add_text(&body, "\"tokens\":[");
    for (size_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, i == 0 ? "%ld" : ",%ld", (long)tokens[i]);
        buffer_add_text(&body, number);
    }
    buffer_add_text(&body, "]}");
    // The tokens may be those of the call before, which this call frees.
    llmd_status status = begin_call(request);
    if (status != LLMD_OK) {
        buffer_free(&body);
        return status;
    }
    status = ask(request, "/detokenize", &body, &kept, &reply);
    if (status == LLMD_OK && (!json_member(reply, "content", &content) || !json_is_string(content)))
        status = bad_reply(&request->fault, "no text");
    if (status == LLMD_OK && !json_text(content, &request->answer)) status = out_of_memory(&request->fault);
    buffer_free(&kept);
    return end_call(request, status);
}
