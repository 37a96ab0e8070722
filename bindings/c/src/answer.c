#include <limits.h>
#include <string.h>

#include "handles.h"
#include "reply.h"

// Who gets the pieces of an answer.
struct listener {
    llmd_request* request;
    llmd_on_piece on_piece;
    void* user;
};

static llmd_status pass_on(const struct listener* listener, int kind, const char* text, size_t length) {
    if (listener->on_piece == NULL) return LLMD_OK;
    if (listener->on_piece(listener->user, kind, text, length) == 0) return LLMD_OK;
    return cancelled(&listener->request->fault);
}

// Adds a member that may be a string to a result, and passes on what was added.
static llmd_status take_text(const struct listener* listener, struct json object, const char* name, int kind,
                             struct buffer* result) {
    struct json value;
    if (!json_member(object, name, &value) || !json_is_string(value)) return LLMD_OK;
    const size_t before = result->length;
    if (!json_text(value, result)) return out_of_memory(&listener->request->fault);
    if (result->length == before) return LLMD_OK;
    return pass_on(listener, kind, result->data + before, result->length - before);
}

// Passes on JSON as it came. The callback may count on a NUL byte behind it.
static llmd_status pass_json(const struct listener* listener, int kind, struct json value) {
    struct buffer text = {0};
    buffer_add(&text, value.text, value.length);
    const llmd_status status = text.failed ? out_of_memory(&listener->request->fault)
                                           : pass_on(listener, kind, text.data, text.length);
    buffer_free(&text);
    return status;
}

static llmd_status take_tool_calls(const struct listener* listener, struct json delta) {
    struct json calls, call = {NULL, 0};
    llmd_status status = LLMD_OK;
    if (!json_member(delta, "tool_calls", &calls)) return LLMD_OK;
    while (status == LLMD_OK && json_next(calls, &call))
        status = pass_json(listener, LLMD_PIECE_TOOL_CALL, call);
    return status;
}

static llmd_status take_choice(const struct listener* listener, struct json choice) {
    llmd_request* request = listener->request;
    struct json delta;
    if (!json_is_object(choice)) return bad_reply(&request->fault, "a choice that is no object");
    llmd_status status = take_text(listener, choice, "text", LLMD_PIECE_TEXT, &request->answer);
    if (status == LLMD_OK && json_member(choice, "delta", &delta)) {
        status = take_text(listener, delta, "reasoning", LLMD_PIECE_REASONING, &request->reasoning);
        if (status == LLMD_OK)
            status = take_text(listener, delta, "content", LLMD_PIECE_TEXT, &request->answer);
        if (status == LLMD_OK) status = take_tool_calls(listener, delta);
    }
    if (status == LLMD_OK && request->finish_reason.length == 0)
        status = take_text(listener, choice, "finish_reason", LLMD_PIECE_FINISH, &request->finish_reason);
    return status;
}

static void keep_count(struct json usage, const char* name, size_t* count) {
    struct json value;
    if (json_member(usage, name, &value)) json_count(value, SIZE_MAX, count);
}

static llmd_status take_chunk(void* context, struct json chunk, struct fault* fault) {
    const struct listener* listener = context;
    struct json choices, choice = {NULL, 0}, usage;
    if (!json_member(chunk, "choices", &choices) || !json_is_array(choices))
        return bad_reply(fault, "an event without choices");
    // Only the first choice of a chunk: an answer has one, unless `n` of extra_body asks for more.
    if (json_next(choices, &choice)) {
        const llmd_status status = take_choice(listener, choice);
        if (status != LLMD_OK) return status;
    }
    if (!json_member(chunk, "usage", &usage) || !json_is_object(usage)) return LLMD_OK;
    keep_count(usage, "prompt_tokens", &listener->request->prompt_tokens);
    keep_count(usage, "completion_tokens", &listener->request->answer_tokens);
    return pass_json(listener, LLMD_PIECE_USAGE, usage);
}

// Sends a body that ends in the members of an answer's input, and frees it.
static llmd_status stream_answer(llmd_request* request, const char* path, struct buffer* body,
                                 llmd_on_piece on_piece, void* user) {
    struct listener listener = {request, on_piece, user};
    const struct exchange exchange = {&request->endpoint, request->cancel[0], "POST", path, body};
    buffer_add_text(body, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    const llmd_status status = body->failed
                                   ? out_of_memory(&request->fault)
                                   : exchange_stream(&exchange, take_chunk, &listener, &request->fault);
    buffer_free(body);
    return end_call(request, status);
}

static void write_conversation(const llmd_request* request, struct buffer* body) {
    buffer_add(body, "{", 1);
    options_write(&request->options, CALL_CHAT, body);
    buffer_add_text(body, "\"messages\":[");
    buffer_add(body, buffer_text(&request->messages), request->messages.length);
    buffer_add(body, "]", 1);
}

llmd_status llmd_chat(llmd_request* request, llmd_on_piece on_piece, void* user) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    const llmd_status status = begin_call(request);
    if (status != LLMD_OK) return status;
    struct buffer body = {0};
    write_conversation(request, &body);
    return stream_answer(request, "/v1/chat/completions", &body, on_piece, user);
}

llmd_status llmd_complete(llmd_request* request, const char* prompt, size_t length, llmd_on_piece on_piece,
                          void* user) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = begin_call(request);
    if (status != LLMD_OK) return status;
    status = check_text("the prompt", prompt, &length, &request->fault);
    if (status != LLMD_OK) return end_call(request, status);
    struct buffer body = {0};
    buffer_add(&body, "{", 1);
    options_write(&request->options, CALL_COMPLETE, &body);
    buffer_add_text(&body, "\"prompt\":");
    json_write(&body, prompt, length);
    return stream_answer(request, "/v1/completions", &body, on_piece, user);
}

llmd_status llmd_count_tokens(llmd_request* request, size_t* count) {
    if (count != NULL) *count = 0;
    if (request == NULL || count == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = begin_call(request);
    if (status != LLMD_OK) return status;
    struct buffer body = {0}, text = {0};
    struct json reply, number;
    write_conversation(request, &body);
    buffer_add(&body, "}", 1);
    status = ask(request, "/v1/chat/completions/input_tokens", &body, &text, &reply);
    if (status == LLMD_OK &&
        (!json_member(reply, "input_tokens", &number) || !json_count(number, SIZE_MAX, count)))
        status = bad_reply(&request->fault, "no number of tokens");
    buffer_free(&text);
    return end_call(request, status);
}

const char* llmd_answer(const llmd_request* request, size_t* length) {
    if (length != NULL) *length = request == NULL ? 0 : request->answer.length;
    return request == NULL ? "" : buffer_text(&request->answer);
}

const char* llmd_reasoning(const llmd_request* request, size_t* length) {
    if (length != NULL) *length = request == NULL ? 0 : request->reasoning.length;
    return request == NULL ? "" : buffer_text(&request->reasoning);
}

const char* llmd_finish_reason(const llmd_request* request) {
    return request == NULL ? "" : buffer_text(&request->finish_reason);
}

size_t llmd_prompt_tokens(const llmd_request* request) {
    return request == NULL ? 0 : request->prompt_tokens;
}

size_t llmd_answer_tokens(const llmd_request* request) {
    return request == NULL ? 0 : request->answer_tokens;
}
