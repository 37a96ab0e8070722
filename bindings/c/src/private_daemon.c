#include "private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"

extern char** environ;

enum { END_MS = 15000, POLL_MS = 5, LOG_TAIL = 600, LINE_SIZE = 512 };

#define SOCKET_NAME "llmd.sock"
#define LOG_NAME "daemon.log"

static llmd_status make_folder(struct private_daemon* daemon, struct fault* fault) {
    const char* given = getenv("TMPDIR");
    const size_t length = given == NULL ? 0 : strlen(given);
    // The path of a socket is short; and the program may change its folder, so the path must be absolute.
    const bool fits = length > 0 && *given == '/' && length + sizeof "/llmd-XXXXXX" <= FOLDER_SIZE;
    snprintf(daemon->folder, FOLDER_SIZE, "%s/llmd-XXXXXX", fits ? given : "/tmp");
    if (mkdtemp(daemon->folder) != NULL) return LLMD_OK;
    daemon->folder[0] = '\0';
    return system_fault(fault, "create a folder for the private daemon", errno);
}

static void remove_folder(struct private_daemon* daemon) {
    static const char* const names[] = {SOCKET_NAME, LOG_NAME};
    char path[FOLDER_SIZE + 16];
    if (daemon->folder[0] == '\0') return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", daemon->folder, names[i]);
        unlink(path);
    }
    rmdir(daemon->folder);
    daemon->folder[0] = '\0';
}

static void close_end(int* descriptor) {
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

// Actions of the child before it runs the program: `input` and `output` are its ends of the pipes.
static int add_actions(posix_spawn_file_actions_t* actions, const char* log, int input, int output) {
    int error = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (error == 0) error = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
                                                 0600);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // Descriptors of the program that are not closed on exec would stay open as long as the daemon.
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#endif
    return error;
}

// A process group of its own, so that Ctrl-C reaches only the program; no blocked or ignored signals.
static int set_attributes(posix_spawnattr_t* attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0) error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
    return error;
}

static int spawn(struct private_daemon* daemon, const char* program, char* const* arguments, int input,
                 int output) {
    char log[FOLDER_SIZE + 16];
    snprintf(log, sizeof log, "%s/" LOG_NAME, daemon->folder);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = add_actions(&actions, log, input, output);
        if (error == 0) error = set_attributes(&attributes);
        if (error == 0)
            error = posix_spawnp(&daemon->process, program, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) daemon->process = 0;
    return error;
}

static llmd_status spawn_with_pipes(struct private_daemon* daemon, const char* program,
                                    char* const* arguments, struct fault* fault) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0) return system_fault(fault, "create a pipe", errno);
    if (pipe2(output, O_CLOEXEC) != 0) {
        const int error = errno;
        close(input[0]);
        close(input[1]);
        return system_fault(fault, "create a pipe", error);
    }
    daemon->input = input[1];
    daemon->output = output[0];
    const int error = spawn(daemon, program, arguments, input[0], output[1]);
    close(input[0]);
    close(output[1]);
    if (error == 0) return LLMD_OK;
    char text[128];
    return set_fault(fault, LLMD_NOT_STARTED, "install llmd, or name its program with the option program",
                     "cannot run %s: %s", program, error_text(error, text, sizeof text));
}

static void nap(void) {
    const struct timespec pause = {0, POLL_MS * 1000000L};
    nanosleep(&pause, NULL);
}

// Whether the process has ended; if so, nothing of it is left. The program may have waited for it already.
static bool has_ended(struct private_daemon* daemon) {
    pid_t ended;
    do {
        ended = waitpid(daemon->process, NULL, WNOHANG);
    } while (ended < 0 && errno == EINTR);
    return ended != 0;
}

static void end_process(struct private_daemon* daemon) {
    close_end(&daemon->input);
    const long long deadline = clock_ms() + END_MS;
    bool ended = has_ended(daemon);
    if (!ended) kill(daemon->process, SIGTERM);
    while (!(ended = ended || has_ended(daemon)) && clock_ms() < deadline) nap();
    if (!ended) kill(-daemon->process, SIGKILL);
    while (!ended && !has_ended(daemon)) nap();
    daemon->process = 0;
}

void end_private_daemon(struct private_daemon* daemon) {
    const bool is_mine = daemon->owner == getpid();
    if (daemon->process != 0 && is_mine) end_process(daemon);
    close_end(&daemon->input);
    close_end(&daemon->output);
    if (is_mine) remove_folder(daemon);
    *daemon = (struct private_daemon){.input = -1, .output = -1};
}

// The last lines of the log, in one line.
static void read_log(const struct private_daemon* daemon, char text[LOG_TAIL]) {
    char path[FOLDER_SIZE + 16];
    snprintf(path, sizeof path, "%s/" LOG_NAME, daemon->folder);
    FILE* log = fopen(path, "rbe");
    size_t length = 0;
    if (log != NULL) {
        if (fseek(log, -(LOG_TAIL - 1), SEEK_END) != 0) rewind(log);
        length = fread(text, 1, LOG_TAIL - 1, log);
        fclose(log);
    }
    while (length > 0 && text[length - 1] == '\n') length--;
    text[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' || text[i] == '\0') text[i] = ' ';
    if (length == 0) snprintf(text, LOG_TAIL, "it logged nothing");
}

static llmd_status not_started(const struct private_daemon* daemon, const char* reason, struct fault* fault) {
    char log[LOG_TAIL];
    read_log(daemon, log);
    return set_fault(fault, LLMD_NOT_STARTED, "run `llmd serve` with the same model to see more", "%s: %s",
                     reason, log);
}

// Waits for the line that the daemon prints when it is ready.
static llmd_status wait_until_ready(struct private_daemon* daemon, int start_ms, struct fault* fault) {
    const long long deadline = clock_ms() + start_ms;
    for (;;) {
        const enum wait_result result = wait_for(daemon->output, POLLIN, -1, deadline);
        if (result == WAIT_FAILED) return system_fault(fault, "wait for the private daemon", errno);
        if (result == WAIT_TIMED_OUT)
            return not_started(daemon, "the private daemon was not ready in time", fault);
        char line[LINE_SIZE];
        const ssize_t length = read(daemon->output, line, sizeof line);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return not_started(daemon, "the private daemon ended before it was ready", fault);
        if (memchr(line, '\n', (size_t)length) != NULL) return LLMD_OK;
    }
}

static llmd_status start_in_folder(struct private_daemon* daemon, const struct daemon_command* command,
                                   const char* address, struct fault* fault) {
    static const char* const before[] = {"serve", "--exit-on-eof", "--no-spare-engine", "--addr"};
    enum { BEFORE = sizeof before / sizeof *before, AROUND = BEFORE + 5 };
    const char** arguments = calloc(command->flag_count + AROUND, sizeof *arguments);
    if (arguments == NULL) return out_of_memory(fault);
    size_t count = 0;
    arguments[count++] = command->program;
    for (size_t i = 0; i < BEFORE; i++) arguments[count++] = before[i];
    arguments[count++] = address;
    for (size_t i = 0; i < command->flag_count; i++) arguments[count++] = command->flags[i];
    arguments[count++] = "--";
    arguments[count] = command->model;
    llmd_status status = spawn_with_pipes(daemon, command->program, (char* const*)arguments, fault);
    free(arguments);
    if (status == LLMD_OK) status = wait_until_ready(daemon, command->start_ms, fault);
    return status;
}

llmd_status start_private_daemon(struct private_daemon* daemon, const struct daemon_command* command,
                                 struct address* address, struct fault* fault) {
    *daemon = (struct private_daemon){.owner = getpid(), .input = -1, .output = -1};
    llmd_status status = make_folder(daemon, fault);
    char text[FOLDER_SIZE + 32];
    snprintf(text, sizeof text, "unix:%s/" SOCKET_NAME, daemon->folder);
    if (status == LLMD_OK) status = parse_address(text, "the address of the private daemon", address, fault);
    if (status == LLMD_OK) status = start_in_folder(daemon, command, text, fault);
    if (status != LLMD_OK) end_private_daemon(daemon);
    return status;
}
