/* llmd.h: the C interface of llmd, an inference daemon for language models.
 *
 * An `llmd_daemon` handle stands for a daemon: one that runs already (llmd_connect), or a private one that
 * starts with the handle and ends with it (llmd_load). An `llmd_request` handle asks it: chat, completion,
 * embeddings, tokens.
 *
 *     llmd_daemon *daemon;
 *     llmd_request *request;
 *     if (llmd_open(&daemon) == LLMD_OK && llmd_connect(daemon) == LLMD_OK &&
 *         llmd_request_new(daemon, &request) == LLMD_OK) {
 *         llmd_add_message(request, "user", "Hello", LLMD_NUL);
 *         if (llmd_chat(request, on_piece, NULL) != LLMD_OK) report(llmd_request_message(request));
 *         llmd_request_free(request);
 *     }
 *     llmd_close(daemon);
 *
 * Status. Every call that can fail returns a status. The handle then has a message and a hint: what happened,
 * and what to do about it. A call that fails changes nothing else, except that results of the call before are
 * gone.
 *
 * Text is UTF-8 with a length in bytes. LLMD_NUL as the length means that the text ends with a NUL byte. Text
 * that the library returns is valid UTF-8 and ends with a NUL byte that its length does not count.
 *
 * Memory. Pointers that a call returns belong to the handle. They are valid until the next call with that
 * handle that is not a getter. Handles that are NULL are allowed in every call: it returns LLMD_BAD_ARGUMENT,
 * NULL or 0.
 *
 * Threads. One thread at a time uses a handle, and any thread may. Only llmd_cancel may be called while
 * another thread uses the same request. Requests of one daemon are independent: threads that have a request
 * each run at the same time. llmd_connect and llmd_load set the address, key and timeouts that new requests
 * copy.
 *
 * The library never prints, ends the process, or changes a signal handler, the locale or the environment.
 *
 * Versions. LLMD_ABI_VERSION changes only if programs that were compiled before would break; llmd_open
 * refuses those. Within one ABI version, functions, constants and options are only added. So ignore pieces of
 * an unknown kind, and treat an unknown status as a failure.
 */
#ifndef LLMD_H
#define LLMD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define LLMD_ABI_VERSION 1

/* Length of a text that ends with a NUL byte. */
#define LLMD_NUL ((size_t)-1)

/* What a call returns. */
typedef int llmd_status;
enum {
    LLMD_OK = 0,           /* the call succeeded */
    LLMD_CANCELLED = 1,    /* the callback, llmd_cancel or `POST /llmd/cancel` ended the call */
    LLMD_BAD_ARGUMENT = 2, /* an argument, an option or its value cannot be used; nothing was sent */
    LLMD_BAD_ABI = 3,      /* the program was compiled for another ABI version of the library */
    LLMD_NO_MEMORY = 4,    /* the program is out of memory */
    LLMD_UNREACHABLE = 5,  /* no daemon answers, or the connection was lost */
    LLMD_TIMED_OUT = 6,    /* the daemon was silent for too long */
    LLMD_DENIED = 7,       /* the API key is missing or unknown, or lacks the right */
    LLMD_NOT_FOUND = 8,    /* there is no such model */
    LLMD_REJECTED = 9,     /* the daemon refused the request; the message says why */
    LLMD_BUSY = 10,        /* the daemon cannot answer now, but may later */
    LLMD_FAILED = 11,      /* the daemon failed while it answered */
    LLMD_BAD_REPLY = 12,   /* the reply is not that of an llmd daemon */
    LLMD_NOT_STARTED = 13, /* the private daemon did not start; the message has the end of its log */
    LLMD_SYSTEM = 14       /* the system refused something, such as a file descriptor */
};

/* A daemon. */
typedef struct llmd_daemon llmd_daemon;

/* What to ask it, and the answer. */
typedef struct llmd_request llmd_request;

/* What a callback gets. */
enum {
    LLMD_PIECE_TEXT = 1,      /* text of the answer */
    LLMD_PIECE_REASONING = 2, /* text of the reasoning before it */
    LLMD_PIECE_TOOL_CALL = 3, /* JSON: a piece of a tool call, as in `tool_calls` of a chat chunk */
    LLMD_PIECE_FINISH = 4,    /* why the answer ended: "stop", "length" or "tool_calls" */
    LLMD_PIECE_USAGE = 5      /* JSON: the token counts */
};

/* Called for each piece of an answer, by the thread that made the call and before that call returns. `text`
 * is valid during the callback only. Return 0 to go on; any other value cancels the call. The callback may
 * use getters and llmd_cancel with its request, and no other call. It must not leave by longjmp or an
 * exception. */
typedef int (*llmd_on_piece)(void* user, int kind, const char* text, size_t length);

/* The ABI version of the library that is loaded; compare with LLMD_ABI_VERSION. */
int llmd_abi_version(void);

/* The version of the library that is loaded, such as "0.1.0". */
const char* llmd_version(void);

/* ---- Daemons ---- */

/* Make a handle for a daemon; nothing is connected yet. LLMD_BAD_ABI if the library does not have the ABI
 * version that the caller was compiled with. Sets *daemon to NULL if it fails. Use the macro
 * llmd_open(&daemon). */
llmd_status llmd_open_abi(int abi_version, llmd_daemon** daemon);
#define llmd_open(daemon) llmd_open_abi(LLMD_ABI_VERSION, (daemon))

/* Set an option by name. NULL as the value sets it back to the default. LLMD_BAD_ARGUMENT if there is no such
 * option: the message names the nearest one. The options are listed in docs/c-api.md. */
llmd_status llmd_set(llmd_daemon* daemon, const char* option, const char* value, size_t length);

/* Find a daemon that runs: at the option `address`, else where LLMD_HOST says, else on the user's socket, the
 * system's socket, then 127.0.0.1:8642. The API key is the option `api_key`, else LLMD_API_KEY. */
llmd_status llmd_connect(llmd_daemon* daemon);

/* Start a private daemon that serves one model: a name that `llmd list` shows, a directory or a GGUF file.
 * Returns when the model is loaded. It listens on a socket that only this user can reach. llmd_close ends it;
 * if the program ends without that, it ends too. */
llmd_status llmd_load(llmd_daemon* daemon, const char* model, size_t length);

/* Where the daemon listens, such as "unix:/run/user/1000/llmd/llmd.sock"; NULL before llmd_connect or
 * llmd_load. */
const char* llmd_address(const llmd_daemon* daemon);

/* Ask for the models that the daemon has; llmd_model_name gets their names. */
llmd_status llmd_models(llmd_daemon* daemon, size_t* count);

/* A name from the last llmd_models; NULL if there are not that many. */
const char* llmd_model_name(const llmd_daemon* daemon, size_t index);

/* The message of the last call, if it failed; else empty. Never NULL. */
const char* llmd_message(const llmd_daemon* daemon);

/* What to do about the failure; may be empty. Never NULL. */
const char* llmd_hint(const llmd_daemon* daemon);

/* End a private daemon, its answers included, and free the handle. Requests may be freed later. */
void llmd_close(llmd_daemon* daemon);

/* ---- Requests ---- */

/* Make a request. Sets *request to NULL if it fails; the message is then the daemon's. */
llmd_status llmd_request_new(llmd_daemon* daemon, llmd_request** request);

/* Set an option by name, as llmd_set does. Options stay set for all later calls with the request. */
llmd_status llmd_request_set(llmd_request* request, const char* option, const char* value, size_t length);

/* Add a message to the conversation; `role` is "system", "user", "assistant" or "tool". */
llmd_status llmd_add_message(llmd_request* request, const char* role, const char* text, size_t length);

/* Add a message as a JSON object in OpenAI's format, such as the result of a tool. */
llmd_status llmd_add_message_json(llmd_request* request, const char* json, size_t length);

/* Remove all messages. Options stay. */
llmd_status llmd_clear_messages(llmd_request* request);

/* Answer the conversation. `on_piece` may be NULL: the answer is kept by the request in any case. The
 * conversation does not change; to continue it, add the answer and the next message. */
llmd_status llmd_chat(llmd_request* request, llmd_on_piece on_piece, void* user);

/* Continue a text, without messages and chat template. */
llmd_status llmd_complete(llmd_request* request, const char* prompt, size_t length, llmd_on_piece on_piece,
                          void* user);

/* Cancel the running call of a request; if none runs, the next one. It returns LLMD_CANCELLED, unless it has
 * just ended. The only call that another thread may make while the request is in use; safe in a signal
 * handler. */
void llmd_cancel(llmd_request* request);

/* The answer so far. `length` may be NULL. Never NULL. */
const char* llmd_answer(const llmd_request* request, size_t* length);

/* The reasoning so far. `length` may be NULL. Never NULL. */
const char* llmd_reasoning(const llmd_request* request, size_t* length);

/* Why the answer ended: "stop", "length" or "tool_calls"; empty if it did not end. Never NULL. */
const char* llmd_finish_reason(const llmd_request* request);

/* Tokens of the prompt of the last answer or embedding; 0 if the daemon did not say. */
size_t llmd_prompt_tokens(const llmd_request* request);

/* Tokens of the last answer, reasoning included; 0 if the daemon did not say. */
size_t llmd_answer_tokens(const llmd_request* request);

/* Embed texts; llmd_vector gets the vectors. `lengths` may be NULL if every text ends with a NUL byte. */
llmd_status llmd_embed(llmd_request* request, const char* const* texts, const size_t* lengths, size_t count);

/* The vector of a text of the last llmd_embed; NULL if there is none. All vectors have the same dimensions.
 */
const float* llmd_vector(const llmd_request* request, size_t index, size_t* dimensions);

/* Count the tokens of the conversation, as llmd_chat would send it. */
llmd_status llmd_count_tokens(llmd_request* request, size_t* count);

/* Convert text to token ids, without special tokens around it; llmd_tokens gets them. */
llmd_status llmd_tokenize(llmd_request* request, const char* text, size_t length);

/* The token ids of the last llmd_tokenize; NULL if there are none. */
const int32_t* llmd_tokens(const llmd_request* request, size_t* count);

/* Convert token ids to text; llmd_answer gets it. */
llmd_status llmd_detokenize(llmd_request* request, const int32_t* tokens, size_t count);

/* The message of the last call, if it failed; else empty. Never NULL. */
const char* llmd_request_message(const llmd_request* request);

/* What to do about the failure; may be empty. Never NULL. */
const char* llmd_request_hint(const llmd_request* request);

/* Free a request. No call with it may be running. */
void llmd_request_free(llmd_request* request);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
