#include "harness/sweep/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"

status child_start(struct child *child, const struct strings *arguments, const char *log, struct error *error)
{
    static char name[] = "mtil";
    int descriptor, nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *child = (struct child){.log = log};
    if (nothing < 0)
        return error_errno(error, errno, "/dev/null: cannot be opened");
    status result = file_open_own(AT_FDCWD, log, O_WRONLY | O_APPEND, &descriptor, error);
    char **words = xcalloc(arguments->count + 2, sizeof *words); /* ends with NULL */
    words[0] = name;
    memcpy(words + 1, arguments->items, arguments->count * sizeof *words);
    if (result == OK) {
        child->begin = lseek(descriptor, 0, SEEK_END);
        result = process_start(&(struct process_start){.program = "/proc/self/exe",
                                                       .arguments = words,
                                                       .input = nothing,
                                                       .output = descriptor,
                                                       .errors = descriptor,
                                                       .at_parents_end = SIGTERM},
                               &child->id, error);
        close(descriptor);
    }
    close(nothing);
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
    const char *found = text_last_line(output->data, ""), *line = found != NULL ? found : "";
    bool killed = WIFSIGNALED(ended);
    return error_set(error, ERROR_IO, "%s: %s %d: %.*s", program, killed ? "ended by signal" : "exit status",
                     killed ? WTERMSIG(ended) : WEXITSTATUS(ended), (int)strcspn(line, "\n"), line);
}

status child_run(const char *const *arguments, struct text *output, struct error *error)
{
    SCOPED(text_free) struct text command = {0};
    char part[4096];
    text_add(&command, "exec");
    for (size_t i = 0; arguments[i] != NULL; i++) {
        text_add(&command, " ");
        text_add_word(&command, arguments[i]);
    }
    text_add(&command, " </dev/null 2>&1");
    FILE *pipe = popen(command.data, "re");
    if (pipe == NULL)
        return error_errno(error, errno, "%s: cannot be run", arguments[0]);
    text_add(output, "%s", "");
    for (size_t got; (got = fread(part, 1, sizeof part, pipe)) > 0;)
        text_add_bytes(output, part, got);
    return judge(arguments[0], pclose(pipe), output, error);
}
