/* Makes the calls that its arguments name, one after the other, and prints a JSON object for each: its name,
 * its status, what the handle says, and what it returned. Tests run it in a process of its own, since a
 * library that crashes would end theirs. */
#include <llmd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static llmd_daemon* daemon_handle;
static llmd_request* request;
static int stop_after = -1, cancel_after = -1, pieces;
static int to_thread[2];

static void print_text(const char* text, size_t length) {
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_member(const char* name, const char* text) {
    printf(", \"%s\": ", name);
    print_text(text, strlen(text));
}

/* Another thread: cancels whenever it is told to. */
static void* cancel_when_told(void* unused) {
    char byte;
    (void)unused;
    while (read(to_thread[0], &byte, 1) == 1) llmd_cancel(request);
    return NULL;
}

static int on_piece(void* user, int kind, const char* text, size_t length) {
    if (user != &pieces || text[length] != '\0') abort();
    printf("%s[%d, ", pieces == 0 ? "" : ", ", kind);
    print_text(text, length);
    printf("]");
    fflush(stdout);
    pieces++;
    if (pieces == cancel_after && write(to_thread[1], "", 1) != 1) abort();
    return pieces == stop_after;
}

static void print_answer(void) {
    size_t length;
    const char* text = llmd_answer(request, &length);
    printf(", \"answer\": ");
    print_text(text, length);
    text = llmd_reasoning(request, &length);
    printf(", \"reasoning\": ");
    print_text(text, length);
    print_member("finish", llmd_finish_reason(request));
    printf(", \"prompt_tokens\": %zu, \"answer_tokens\": %zu", llmd_prompt_tokens(request),
           llmd_answer_tokens(request));
}

static llmd_status answer(bool is_chat, const char* prompt) {
    pieces = 0;
    printf(", \"pieces\": [");
    const llmd_status status = is_chat ? llmd_chat(request, on_piece, &pieces)
                                       : llmd_complete(request, prompt, LLMD_NUL, on_piece, &pieces);
    printf("]");
    print_answer();
    return status;
}

/* Texts are separated by bars. */
static llmd_status embed(char* joined) {
    const char* texts[16];
    size_t count = 0, dimensions = 0;
    for (char* text = strtok(joined, "|"); text != NULL && count < 16; text = strtok(NULL, "|"))
        texts[count++] = text;
    const llmd_status status = llmd_embed(request, texts, NULL, count);
    printf(", \"vectors\": [");
    for (size_t i = 0; llmd_vector(request, i, &dimensions) != NULL; i++) {
        printf("%s[", i == 0 ? "" : ", ");
        for (size_t j = 0; j < dimensions; j++)
            printf("%s%.9g", j == 0 ? "" : ", ", (double)llmd_vector(request, i, NULL)[j]);
        printf("]");
    }
    printf("]");
    return status;
}

static llmd_status tokenize(const char* text) {
    const llmd_status status = llmd_tokenize(request, text, LLMD_NUL);
    size_t count;
    const int32_t* tokens = llmd_tokens(request, &count);
    printf(", \"tokens\": [");
    for (size_t i = 0; i < count; i++) printf("%s%ld", i == 0 ? "" : ", ", (long)tokens[i]);
    printf("]");
    return status;
}

static llmd_status detokenize(void) {
    size_t count;
    const int32_t* tokens = llmd_tokens(request, &count);
    const llmd_status status = llmd_detokenize(request, tokens, count);
    print_answer();
    return status;
}

static llmd_status models(void) {
    size_t count;
    const llmd_status status = llmd_models(daemon_handle, &count);
    printf(", \"models\": [");
    for (size_t i = 0; i < count; i++) {
        printf("%s", i == 0 ? "" : ", ");
        print_text(llmd_model_name(daemon_handle, i), strlen(llmd_model_name(daemon_handle, i)));
    }
    printf("]");
    return status;
}

static llmd_status count_tokens(void) {
    size_t count;
    const llmd_status status = llmd_count_tokens(request, &count);
    printf(", \"count\": %zu", count);
    return status;
}

static llmd_status wait_for_line(void) {
    const char* address = llmd_address(daemon_handle);
    print_member("address", address == NULL ? "" : address);
    printf(", \"status\": 0}\n");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin)) continue;
    printf("{\"call\": \"waited\"");
    return LLMD_OK;
}

/* Runs a call; `left` are its arguments. Adds how many of them it used. */
static llmd_status run(const char* call, char** left, int* used) {
#define NEXT left[(*used)++]
    if (strcmp(call, "connect") == 0) return llmd_connect(daemon_handle);
    if (strcmp(call, "load") == 0) return llmd_load(daemon_handle, NEXT, LLMD_NUL);
    if (strcmp(call, "models") == 0) return models();
    if (strcmp(call, "set") == 0) {
        *used += 2;
        return llmd_set(daemon_handle, left[0], left[1], LLMD_NUL);
    }
    if (strcmp(call, "new") == 0) return llmd_request_new(daemon_handle, &request);
    if (strcmp(call, "option") == 0) {
        *used += 2;
        return llmd_request_set(request, left[0], left[1], LLMD_NUL);
    }
    if (strcmp(call, "reset") == 0) return llmd_request_set(request, NEXT, NULL, 0);
    if (strcmp(call, "message") == 0) {
        *used += 2;
        return llmd_add_message(request, left[0], left[1], LLMD_NUL);
    }
    if (strcmp(call, "json") == 0) return llmd_add_message_json(request, NEXT, LLMD_NUL);
    if (strcmp(call, "clear") == 0) return llmd_clear_messages(request);
    if (strcmp(call, "chat") == 0) return answer(true, NULL);
    if (strcmp(call, "complete") == 0) return answer(false, NEXT);
    if (strcmp(call, "embed") == 0) return embed(NEXT);
    if (strcmp(call, "count") == 0) return count_tokens();
    if (strcmp(call, "tokenize") == 0) return tokenize(NEXT);
    if (strcmp(call, "detokenize") == 0) return detokenize();
    if (strcmp(call, "cancel") == 0) return (llmd_cancel(request), LLMD_OK);
    if (strcmp(call, "stop-after") == 0) return (stop_after = atoi(NEXT), LLMD_OK);
    if (strcmp(call, "cancel-after") == 0) return (cancel_after = atoi(NEXT), LLMD_OK);
    if (strcmp(call, "wait") == 0) return wait_for_line();
    if (strcmp(call, "close") == 0) {
        llmd_close(daemon_handle);
        return llmd_open(&daemon_handle);
    }
    abort();
}

static bool is_call_of_daemon(const char* call) {
    static const char* const calls[] = {"set", "connect", "load", "models", "new"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(call, calls[i]) == 0) return true;
    return false;
}

int main(int count, char** arguments) {
    if (pipe(to_thread) != 0 || llmd_open(&daemon_handle) != LLMD_OK) return 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, cancel_when_told, NULL) != 0) return 1;
    int next = 1;
    while (next < count) {
        const char* call = arguments[next++];
        printf("{\"call\": \"%s\"", call);
        int used = 0;
        const llmd_status status = run(call, arguments + next, &used);
        next += used;
        printf(", \"status\": %d", status);
        print_member("message",
                     is_call_of_daemon(call) ? llmd_message(daemon_handle) : llmd_request_message(request));
        print_member("hint", is_call_of_daemon(call) ? llmd_hint(daemon_handle) : llmd_request_hint(request));
        printf("}\n");
        fflush(stdout);
    }
    close(to_thread[1]);
    pthread_join(thread, NULL);
    close(to_thread[0]);
    llmd_request_free(request);
    llmd_close(daemon_handle);
    return 0;
}
