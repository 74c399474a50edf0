#include "harness/sweep/tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/characters.h"
#include "harness/sweep/log_tail.h"

enum { NOT_FOUND = 127 }; /* says the shell */

static status judge(const char *program, int ended, const struct text *output, struct error *error)
{
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return OK;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_FOUND)
        return error_set(error, ERROR_IO, "%s: there is no such program; install it, or put its folder into PATH",
                         program);
    const char *found = log_tail_find(output->data, ""), *line = found != NULL ? found : "";
    bool killed = WIFSIGNALED(ended);
    return error_set(error, ERROR_IO, "%s: %s %d: %.*s", program, killed ? "ended by signal" : "exit status",
                     killed ? WTERMSIG(ended) : WEXITSTATUS(ended), (int)strcspn(line, "\n"), line);
}

status tool_run(const char *const *arguments, struct text *output, struct error *error)
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
