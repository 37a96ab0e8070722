#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handles.h"
#include "reply.h"

enum {
    CALL_ANSWER = CALL_CHAT | CALL_COMPLETE,
    CALL_ANY = CALL_CHAT | CALL_COMPLETE | CALL_EMBED | CALL_TOKENS,
    CALL_READY = CALL_CHAT | CALL_COMPLETE | CALL_EMBED
};

static const struct option table[] = {
    {"extra_body", OPTION_MEMBERS, CALL_ANY},
    {"model", OPTION_TEXT, CALL_ANY},
    {"chat_template_kwargs", OPTION_JSON, CALL_CHAT},
    {"dimensions", OPTION_INTEGER, CALL_EMBED},
    {"frequency_penalty", OPTION_NUMBER, CALL_ANSWER},
    {"ignore_eos", OPTION_BOOLEAN, CALL_ANSWER},
    {"keep_alive", OPTION_TEXT, CALL_READY},
    {"max_tokens", OPTION_INTEGER, CALL_ANSWER},
    {"min_p", OPTION_NUMBER, CALL_ANSWER},
    {"min_tokens", OPTION_INTEGER, CALL_ANSWER},
    {"presence_penalty", OPTION_NUMBER, CALL_ANSWER},
    {"prompt_name", OPTION_TEXT, CALL_EMBED},
    {"reasoning_effort", OPTION_TEXT, CALL_CHAT},
    {"repetition_penalty", OPTION_NUMBER, CALL_ANSWER},
    {"response_format", OPTION_JSON, CALL_ANSWER},
    {"seed", OPTION_INTEGER, CALL_ANSWER},
    {"stop", OPTION_TEXTS, CALL_ANSWER},
    {"structured_outputs", OPTION_JSON, CALL_ANSWER},
    {"temperature", OPTION_NUMBER, CALL_ANSWER},
    {"tool_choice", OPTION_CHOICE, CALL_CHAT},
    {"tools", OPTION_JSON, CALL_CHAT},
    {"top_k", OPTION_INTEGER, CALL_ANSWER},
    {"top_p", OPTION_NUMBER, CALL_ANSWER},
    {"typical_p", OPTION_NUMBER, CALL_ANSWER},
};
enum { OPTION_COUNT = sizeof table / sizeof *table };

static llmd_status copy_endpoint(llmd_daemon* daemon, llmd_request* request) {
    request->endpoint = daemon->endpoint;
    if (daemon->endpoint.key == NULL) return LLMD_OK;
    request->endpoint.key = strdup(daemon->endpoint.key);
    return request->endpoint.key == NULL ? out_of_memory(&daemon->fault) : LLMD_OK;
}

llmd_status llmd_request_new(llmd_daemon* daemon, llmd_request** request) {
    if (request != NULL) *request = NULL;
    if (request == NULL || daemon == NULL) return LLMD_BAD_ARGUMENT;
    clear_fault(&daemon->fault);
    llmd_status status = check_has_daemon(daemon);
    if (status != LLMD_OK) return status;
    llmd_request* made = calloc(1, sizeof *made);
    if (made == NULL) return out_of_memory(&daemon->fault);
    made->cancel[0] = made->cancel[1] = -1;
    options_begin(&made->options, table, OPTION_COUNT);
    status = copy_endpoint(daemon, made);
    if (status == LLMD_OK && pipe2(made->cancel, O_CLOEXEC | O_NONBLOCK) != 0)
        status = system_fault(&daemon->fault, "create a pipe", errno);
    if (status == LLMD_OK)
        *request = made;
    else
        llmd_request_free(made);
    return status;
}

void llmd_request_free(llmd_request* request) {
    if (request == NULL) return;
    for (int i = 0; i < 2; i++)
        if (request->cancel[i] >= 0) close(request->cancel[i]);
    options_free(&request->options);
    buffer_free(&request->messages);
    buffer_free(&request->answer);
    buffer_free(&request->reasoning);
    buffer_free(&request->finish_reason);
    free(request->vectors);
    free(request->tokens);
    free(request->endpoint.key);
    free(request);
}

void llmd_cancel(llmd_request* request) {
    if (request == NULL) return;
    const int error = errno;
    // If the pipe is full, the call is cancelled already.
    const ssize_t written = write(request->cancel[1], "", 1);
    (void)written;
    errno = error;
}

static llmd_status running(llmd_request* request) {
    return set_fault(&request->fault, LLMD_BAD_ARGUMENT, "use another request",
                     "a call with this request is running");
}

llmd_status begin_call(llmd_request* request) {
    if (request->is_running) return running(request);
    clear_fault(&request->fault);
    buffer_clear(&request->answer);
    buffer_clear(&request->reasoning);
    buffer_clear(&request->finish_reason);
    request->prompt_tokens = request->answer_tokens = 0;
    free(request->vectors);
    free(request->tokens);
    request->vectors = NULL;
    request->tokens = NULL;
    request->vector_count = request->token_count = 0;
    request->is_running = true;
    return LLMD_OK;
}

llmd_status end_call(llmd_request* request, llmd_status status) {
    char bytes[64];
    while (read(request->cancel[0], bytes, sizeof bytes) > 0) continue;
    request->is_running = false;
    if (status == LLMD_OK) clear_fault(&request->fault);  // a callback may have made calls that were refused
    return status;
}

llmd_status ask(llmd_request* request, const char* path, struct buffer* body, struct buffer* text,
                struct json* reply) {
    const struct exchange exchange = {&request->endpoint, request->cancel[0], "POST", path, body};
    const llmd_status status = body->failed ? out_of_memory(&request->fault)
                                            : exchange_json(&exchange, text, reply, &request->fault);
    buffer_free(body);
    return status;
}

llmd_status llmd_request_set(llmd_request* request, const char* option, const char* value, size_t length) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    if (request->is_running) return running(request);
    clear_fault(&request->fault);
    return options_set(&request->options, option, value, length, &request->fault);
}

// Adds a message, or restores the list if memory ran out.
static llmd_status add_message(llmd_request* request, const struct buffer* message) {
    struct buffer* messages = &request->messages;
    const size_t before = messages->length;
    if (before > 0) buffer_add(messages, ",", 1);
    buffer_add(messages, buffer_text(message), message->length);
    if (!messages->failed && !message->failed) return LLMD_OK;
    messages->failed = false;
    messages->length = before;
    return out_of_memory(&request->fault);
}

llmd_status llmd_add_message(llmd_request* request, const char* role, const char* text, size_t length) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    if (request->is_running) return running(request);
    clear_fault(&request->fault);
    size_t role_length = LLMD_NUL;
    llmd_status status = check_text("the role", role, &role_length, &request->fault);
    if (status == LLMD_OK) status = check_text("the text of the message", text, &length, &request->fault);
    if (status != LLMD_OK) return status;
    struct buffer message = {0};
    buffer_add_text(&message, "{\"role\":");
    json_write(&message, role, role_length);
    buffer_add_text(&message, ",\"content\":");
    json_write(&message, text, length);
    buffer_add(&message, "}", 1);
    status = add_message(request, &message);
    buffer_free(&message);
    return status;
}

llmd_status llmd_add_message_json(llmd_request* request, const char* json, size_t length) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    if (request->is_running) return running(request);
    clear_fault(&request->fault);
    const llmd_status status = check_text("the message", json, &length, &request->fault);
    if (status != LLMD_OK) return status;
    struct json value;
    if (!json_parse(json, length, &value) || !json_is_object(value))
        return set_fault(&request->fault, LLMD_BAD_ARGUMENT, "", "the message is not a JSON object");
    const struct buffer message = {(char*)value.text, value.length, value.length, false};
    return add_message(request, &message);
}

llmd_status llmd_clear_messages(llmd_request* request) {
    if (request == NULL) return LLMD_BAD_ARGUMENT;
    if (request->is_running) return running(request);
    clear_fault(&request->fault);
    buffer_clear(&request->messages);
    return LLMD_OK;
}

const char* llmd_request_message(const llmd_request* request) {
    return request == NULL ? "the handle is NULL" : request->fault.message;
}

const char* llmd_request_hint(const llmd_request* request) {
    return request == NULL ? "" : request->fault.hint;
}
