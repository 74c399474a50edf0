#include "harness/sweep/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/sweep/log_tail.h"

static status spawn(pid_t *id, const char *const *arguments, int output, struct error *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    /* the prototype predates const; nothing is written */
    int number = posix_spawnp(id, arguments[0], &actions, NULL, (char *const *)(void *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (number == ENOENT)
        return error_set(error, ERROR_IO, "%s: there is no such program; install it, or put its folder into PATH",
                         arguments[0]);
    return number == 0 ? OK : error_errno(error, number, "%s: cannot be run", arguments[0]);
}

static void read_all(int descriptor, struct text *output)
{
    char part[4096];
    ssize_t got;
    text_add(output, "%s", "");
    while ((got = read(descriptor, part, sizeof part)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            text_add_bytes(output, part, (size_t)got);
}

static status judge(const char *program, int ended, const struct text *output, struct error *error)
{
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return OK;
    const char *found = log_tail_find(output->data, ""), *line = found != NULL ? found : "";
    bool killed = WIFSIGNALED(ended);
    return error_set(error, ERROR_IO, "%s: %s %d: %.*s", program, killed ? "ended by signal" : "exit status",
                     killed ? WTERMSIG(ended) : WEXITSTATUS(ended), (int)strcspn(line, "\n"), line);
}

status tool_run(const char *const *arguments, struct text *output, struct error *error)
{
    int ends[2], ended = 0;
    pid_t id;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(error, errno, "%s: cannot be listened to", arguments[0]);
    status result = spawn(&id, arguments, ends[1], error);
    close(ends[1]);
    if (result == OK)
        read_all(ends[0], output);
    close(ends[0]);
    if (result != OK)
        return result;
    while (waitpid(id, &ended, 0) < 0 && errno == EINTR)
        continue;
    return judge(arguments[0], ended, output, error);
}
