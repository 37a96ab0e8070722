/* Answers a prompt, piece by piece; Ctrl-C ends the answer.
 *
 *     chat PROMPT             asks a daemon that runs already
 *     chat PROMPT MODEL       starts a private daemon with this model and ends it afterwards
 */
#include <llmd.h>
#include <signal.h>
#include <stdio.h>

static llmd_request* asked;

static void cancel(int signal_number) {
    (void)signal_number;
    llmd_cancel(asked);
}

static int print_piece(void* user, int kind, const char* text, size_t length) {
    (void)user;
    if (kind == LLMD_PIECE_TEXT) fwrite(text, 1, length, stdout);
    fflush(stdout);
    return 0;
}

/* Prints what a handle says; returns the status of the program. */
static int failed(const char* message, const char* hint) {
    fprintf(stderr, "%s%s%s\n", message, *hint == '\0' ? "" : "\n", hint);
    return 1;
}

static int ask(llmd_daemon* daemon, const char* prompt) {
    if (llmd_request_new(daemon, &asked) != LLMD_OK) return failed(llmd_message(daemon), llmd_hint(daemon));
    signal(SIGINT, cancel);
    llmd_status status = llmd_request_set(asked, "max_tokens", "200", LLMD_NUL);
    if (status == LLMD_OK) status = llmd_add_message(asked, "user", prompt, LLMD_NUL);
    if (status == LLMD_OK) status = llmd_chat(asked, print_piece, NULL);
    printf("\n");
    int result = 0;
    if (status == LLMD_OK)
        printf("(%s; %zu tokens)\n", llmd_finish_reason(asked), llmd_answer_tokens(asked));
    else
        result = failed(llmd_request_message(asked), llmd_request_hint(asked));
    signal(SIGINT, SIG_DFL);
    llmd_request_free(asked);
    return result;
}

int main(int count, char** arguments) {
    if (count < 2 || count > 3) return failed("usage: chat PROMPT [MODEL]", "");
    llmd_daemon* daemon;
    if (llmd_open(&daemon) != LLMD_OK)
        return failed("libllmd has another version than llmd.h", "compile this again");
    const llmd_status status = count == 3 ? llmd_load(daemon, arguments[2], LLMD_NUL) : llmd_connect(daemon);
    const int result =
        status == LLMD_OK ? ask(daemon, arguments[1]) : failed(llmd_message(daemon), llmd_hint(daemon));
    llmd_close(daemon);
    return result;
}
