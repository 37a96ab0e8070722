#include <string.h>

#include "handles.h"
#include "reply.h"

// Keeps the names of a reply of /v1/models.
static llmd_status keep_names(llmd_daemon* daemon, struct json reply) {
    struct json data, item = {NULL, 0}, id;
    if (!json_member(reply, "data", &data) || !json_is_array(data))
        return bad_reply(&daemon->fault, "no list of models");
    while (json_next(data, &item)) {
        if (!json_member(item, "id", &id) || !json_is_string(id))
            return bad_reply(&daemon->fault, "a model without id");
        json_text(id, &daemon->names);
        buffer_add(&daemon->names, "", 1);
        daemon->name_count++;
    }
    return daemon->names.failed ? out_of_memory(&daemon->fault) : LLMD_OK;
}

llmd_status llmd_models(llmd_daemon* daemon, size_t* count) {
    if (daemon == NULL) return LLMD_BAD_ARGUMENT;
    clear_fault(&daemon->fault);
    buffer_clear(&daemon->names);
    daemon->name_count = 0;
    if (count != NULL) *count = 0;
    llmd_status status = check_has_daemon(daemon);
    if (status != LLMD_OK) return status;
    const struct exchange exchange = {&daemon->endpoint, -1, "GET", "/v1/models", NULL};
    struct buffer text = {0};
    struct json reply;
    status = exchange_json(&exchange, &text, &reply, &daemon->fault);
    if (status == LLMD_OK) status = keep_names(daemon, reply);
    buffer_free(&text);
    if (status != LLMD_OK) daemon->name_count = 0;
    if (count != NULL) *count = daemon->name_count;
    return status;
}

const char* llmd_model_name(const llmd_daemon* daemon, size_t index) {
    if (daemon == NULL || index >= daemon->name_count) return NULL;
    const char *at = daemon->names.data, *end = at + daemon->names.length;
    for (size_t i = 0; i < index && at < end; i++) at += strlen(at) + 1;
    return at < end ? at : NULL;
}
