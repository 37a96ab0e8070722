#include "reply.h"

#include <string.h>

struct meaning {
    const char* name;
    llmd_status status;
    const char* hint;
};

// By the error's code, which is more exact than its type.
static const struct meaning codes[] = {
    {"request_cancelled", LLMD_CANCELLED, ""},
    {"out_of_memory", LLMD_FAILED, ""},
    {"model_failed", LLMD_FAILED, ""},
    {"model_not_found", LLMD_NOT_FOUND, "llmd_models lists the models that the daemon has"},
};

static const struct meaning types[] = {
    {"invalid_request_error", LLMD_REJECTED, ""},
    {"not_found_error", LLMD_NOT_FOUND, ""},
    {"authentication_error", LLMD_DENIED, "set the option api_key, or LLMD_API_KEY"},
    {"permission_error", LLMD_DENIED, ""},
    {"timeout_error", LLMD_TIMED_OUT, ""},
    {"rate_limit_error", LLMD_BUSY, "try again later"},
    {"unavailable_error", LLMD_BUSY, "try again later"},
};

static const struct meaning failed = {"", LLMD_FAILED, "see the log of the daemon"};

static const struct meaning* find(const struct meaning* table, size_t count, struct json error,
                                  const char* key) {
    struct json value;
    if (!json_member(error, key, &value) || !json_is_string(value)) return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(table[i].name);
        if (value.length == length + 2 && memcmp(value.text + 1, table[i].name, length) == 0)
            return &table[i];
    }
    return NULL;
}

llmd_status fault_of_error(struct json error, struct fault* fault) {
    struct json message;
    if (!json_member(error, "message", &message) || !json_is_string(message) || message.length == 2)
        return bad_reply(fault, "an error without a message");
    struct buffer text = {0};
    if (!json_text(message, &text)) {
        buffer_free(&text);
        return out_of_memory(fault);
    }
    const struct meaning* meaning = find(codes, sizeof codes / sizeof *codes, error, "code");
    if (meaning == NULL) meaning = find(types, sizeof types / sizeof *types, error, "type");
    if (meaning == NULL) meaning = &failed;
    set_fault(fault, meaning->status, meaning->hint, "%s", buffer_text(&text));
    buffer_free(&text);
    return meaning->status;
}

llmd_status fault_of_reply(int http_status, const char* body, size_t length, struct fault* fault) {
    struct json value, error;
    if (json_parse(body, length, &value) && json_member(value, "error", &error) && json_is_object(error))
        return fault_of_error(error, fault);
    return set_fault(fault, LLMD_BAD_REPLY, "check the address",
                     "the server at this address is not an llmd daemon: it replied with HTTP status %d",
                     http_status);
}

llmd_status bad_reply(struct fault* fault, const char* reason) {
    return set_fault(fault, LLMD_BAD_REPLY, "check the address",
                     "the server at this address is not an llmd daemon: it sent %s", reason);
}
