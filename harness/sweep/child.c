#include "harness/sweep/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

enum { TAIL = 8192 };

static const char error_mark[] = "mtil: error: ";

/* As text, from the start of a line. */
static void read_tail(const char *path, off_t begin, char tail[TAIL + 1])
{
    tail[0] = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return;
    off_t end = lseek(descriptor, 0, SEEK_END), first = end - TAIL > begin ? end - TAIL : begin;
    ssize_t got = pread(descriptor, tail, TAIL, first);
    close(descriptor);
    tail[got > 0 ? got : 0] = 0;
    char *line = first > begin ? strchr(tail, '\n') : NULL;
    if (line != NULL)
        memmove(tail, line + 1, strlen(line + 1) + 1);
}

/* The last line of a text that is not empty and begins so; NULL: there is none. */
static const char *find_last(const char *text, const char *beginning)
{
    const char *found = NULL;
    size_t length = strlen(beginning);
    for (const char *line = text; *line != 0;) {
        size_t span = strcspn(line, "\n");
        if (span > 0 && strncmp(line, beginning, length) == 0)
            found = line;
        line += span + (line[span] != 0);
    }
    return found;
}

static void copy_line(const char *line, char message[LOG_TAIL_MESSAGE])
{
    snprintf(message, LOG_TAIL_MESSAGE, "%.*s", line != NULL ? (int)strcspn(line, "\n") : 0, line != NULL ? line : "");
}

void log_tail_error(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE])
{
    char tail[TAIL + 1];
    read_tail(path, begin, tail);
    const char *line = find_last(tail, error_mark);
    copy_line(line != NULL ? line + sizeof error_mark - 1 : find_last(tail, ""), message);
}

void log_tail_line(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE])
{
    char tail[TAIL + 1];
    read_tail(path, begin, tail);
    copy_line(find_last(tail, ""), message);
}

enum { CANNOT_START = 127 };

static const int requests[] = {SIGINT, SIGTERM, SIGHUP}; /* to stop */

/* --- Start --- */

/* Between fork and exec: only async-signal-safe calls. */
static void become(char *const *arguments, int log, pid_t parent, const sigset_t *unblocked)
{
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (signal(requests[i], SIG_DFL) == SIG_IGN)
            signal(requests[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, unblocked, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(CANNOT_START);
    if (nothing > STDERR_FILENO)
        close(nothing);
    execv("/proc/self/exe", arguments);
    static const char message[] = "mtil: error: the program cannot be started again\n";
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
        _exit(CANNOT_START + 1);
    _exit(CANNOT_START);
}

/* Signals are blocked meanwhile: one before exec would run the parent's handler and be lost. */
static status fork_child(struct child *child, char *const *arguments, int log, struct error *error)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        sigaddset(&held, requests[i]);
    pid_t parent = getpid();
    child->begin = lseek(log, 0, SEEK_END);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    child->id = fork();
    int number = errno;
    if (child->id == 0)
        become(arguments, log, parent, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return child->id > 0 ? OK : error_errno(error, number, "%s: cannot start another process", arguments[1]);
}

status child_start(struct child *child, const struct strings *arguments, const char *log, struct error *error)
{
    static char name[] = "mtil";
    int descriptor;
    *child = (struct child){.log = log};
    TRY(file_open_own(AT_FDCWD, log, O_WRONLY | O_APPEND, &descriptor, error));
    char **words = xcalloc(arguments->count + 2, sizeof *words); /* ends with NULL */
    words[0] = name;
    memcpy(words + 1, arguments->items, arguments->count * sizeof *words);
    status result = fork_child(child, words, descriptor, error);
    close(descriptor);
    free(words);
    return result;
}

/* --- The end --- */

bool child_ended(const struct child *child, struct child_end *end)
{
    int ended;
    pid_t id = waitpid(child->id, &ended, WNOHANG);
    if (id == 0 || (id < 0 && errno == EINTR))
        return false;
    *end = (struct child_end){.exit_status = id > 0 && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1,
                              .signal = id > 0 && WIFSIGNALED(ended) ? WTERMSIG(ended) : 0};
    log_tail_error(child->log, child->begin, end->message);
    return true;
}

void child_signal(const struct child *child, int number)
{
    kill(child->id, number);
}

/* --- Another program --- */

enum { NOT_FOUND = 127 }; /* says the shell */

static status judge(const char *program, int ended, const struct text *output, struct error *error)
{
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return OK;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_FOUND)
        return error_set(error, ERROR_IO, "%s: there is no such program; install it, or put its folder into PATH",
                         program);
    const char *found = find_last(output->data, ""), *line = found != NULL ? found : "";
    bool killed = WIFSIGNALED(ended);
    return error_set(error, ERROR_IO, "%s: %s %d: %.*s", program, killed ? "ended by signal" : "exit status",
                     killed ? WTERMSIG(ended) : WEXITSTATUS(ended), (int)strcspn(line, "\n"), line);
}

status child_run(const char *const *arguments, struct text *output, struct error *error)
{
    struct text command = {0};
    char part[4096];
    text_add(&command, "exec");
    for (size_t i = 0; arguments[i] != NULL; i++) {
        text_add(&command, " ");
        text_add_word(&command, arguments[i]);
    }
    text_add(&command, " </dev/null 2>&1");
    FILE *pipe = popen(command.data, "re");
    text_free(&command);
    if (pipe == NULL)
        return error_errno(error, errno, "%s: cannot be run", arguments[0]);
    text_add(output, "%s", "");
    for (size_t got; (got = fread(part, 1, sizeof part, pipe)) > 0;)
        text_add_bytes(output, part, got);
    return judge(arguments[0], pclose(pipe), output, error);
}
