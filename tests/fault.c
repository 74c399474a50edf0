#include "tests/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

/* What the child says before it aborts. */
void expect_fault(void (*call)(void), const char *const *words)
{
    char said[4096];
    size_t length = 0;
    int ends[2], ended;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        call();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; length + 1 < sizeof said && (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    said[length] = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFSIGNALED(ended) || WTERMSIG(ended) != SIGABRT)
        fail_msg("expected the program to abort, found status %d and \"%s\"", ended, said);
    for (; *words != NULL; words++)
        if (strstr(said, *words) == NULL)
            fail_msg("expected \"%s\", found \"%s\"", *words, said);
}
