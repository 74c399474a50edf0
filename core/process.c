#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Start --- */

enum { CANNOT_START = 127 };

static const int requests[] = {SIGINT, SIGTERM, SIGHUP}; /* to stop */

/* Between fork and exec: only async-signal-safe calls. An errno that goes into `failed` says why there was no exec. */
static void become(const struct process_start *start, pid_t parent, const sigset_t *unblocked, int failed)
{
    setpgid(0, 0);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (signal(requests[i], SIG_DFL) == SIG_IGN)
            signal(requests[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, unblocked, NULL);
    prctl(PR_SET_PDEATHSIG, start->at_parents_end);
    if (getppid() == parent && dup2(start->input, STDIN_FILENO) >= 0 && dup2(start->output, STDOUT_FILENO) >= 0 &&
        dup2(start->errors, STDERR_FILENO) >= 0) {
        if (start->program != NULL)
            execv(start->program, start->arguments);
        else
            execvp(start->arguments[0], start->arguments);
    }
    int number = errno;
    _exit(write(failed, &number, sizeof number) == sizeof number ? CANNOT_START : CANNOT_START + 1);
}

/* The pipe closes with exec. Waits for a process that did not get so far. */
static status check_exec(const char *name, pid_t id, int pipe, struct error *error)
{
    int number;
    ssize_t got;
    do
        got = read(pipe, &number, sizeof number);
    while (got < 0 && errno == EINTR);
    if (got != sizeof number)
        return OK;
    while (waitpid(id, NULL, 0) < 0 && errno == EINTR)
        ;
    return number == ENOENT ? error_set(error, ERROR_IO,
                                        "%s: there is no such program; install it, or put its folder into PATH", name)
                            : error_errno(error, number, "%s: cannot be started", name);
}

/* Signals are blocked meanwhile: one before exec would run the parent's handler and be lost. */
status process_start(const struct process_start *start, pid_t *id, struct error *error)
{
    sigset_t held, before;
    int ends[2];
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        sigaddset(&held, requests[i]);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(error, errno, "%s: cannot be started", start->arguments[0]);
    pid_t parent = getpid();
    pthread_sigmask(SIG_BLOCK, &held, &before);
    *id = fork();
    int number = errno;
    if (*id == 0)
        become(start, parent, &before, ends[1]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    status result = *id > 0 ? check_exec(start->arguments[0], *id, ends[0], error)
                            : error_errno(error, number, "%s: cannot be started", start->arguments[0]);
    close(ends[0]);
    return result;
}

/* --- Logs --- */

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

const char *text_last_line(const char *text, const char *beginning)
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
    const char *line = text_last_line(tail, error_mark);
    copy_line(line != NULL ? line + sizeof error_mark - 1 : text_last_line(tail, ""), message);
}

void log_tail_line(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE])
{
    char tail[TAIL + 1];
    read_tail(path, begin, tail);
    copy_line(text_last_line(tail, ""), message);
}
