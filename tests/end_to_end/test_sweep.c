/* A sweep that finds a run of another process; what else sweeps do is in scripts/sweep.txt. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The process that a sweep has started; 0 where the system does not say. */
static pid_t child_of(pid_t parent)
{
    char path[64], line[64];
    pid_t child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fgets(line, sizeof line, file) != NULL)
            child = (pid_t)strtol(line, NULL, 10);
        fclose(file);
    }
    return child;
}

static void kill_sweep(struct process *process)
{
    kill(process->id, SIGKILL);
    struct outcome outcome = program_wait(process);
    assert_int_equal(outcome.signal, SIGKILL);
    outcome_free(&outcome);
}

/* Its child is held up and so still has the run when the next sweep looks. The test adopts it: when a stopped process
 * falls to init, its group is orphaned, and the kernel wakes it with SIGHUP and SIGCONT. */
TEST(killed_sweeps_are_taken_over_at_once)
{
    static const char arguments[] = "sweep tiny.yaml training.iterations=300 seed=1";
    struct workshop workshop;
    struct process process;
    char expected[64];
    workshop_open(&workshop);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    pid_t child = child_of(process.id);
    kill(child > 0 ? child : process.id, SIGSTOP);
    while (child > 0 && !rows_may_be_written(&workshop, "results.db")) { /* held up in the middle of a commit */
        kill(child, SIGCONT);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        kill(child, SIGSTOP);
    }
    kill_sweep(&process);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    if (child > 0) {
        snprintf(expected, sizeof expected, "wait process %d (seed=1)", (int)child);
        program_wait_for_words(&process, expected);
        kill(child, SIGCONT);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 0);
    assert_int_equal(words_count(outcome.errors.data, "seed=1 goes on, "), 1);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "finished\n");
    program_succeeds(&workshop, "run tiny.yaml training.iterations=300 run.database=single.db run.folder=one");
    rows_expect_alike(&workshop, "results.db", "single.db");
    workshop_close(&workshop);
}

/* Ctrl-C while a sweep waits for a run of somebody else; that one goes on. */
TEST(waiting_can_be_stopped)
{
    static const char run[] = "run tiny.yaml training.iterations=50000";
    static const char sweep[] = "sweep tiny.yaml training.iterations=50000 seed=1";
    struct workshop workshop;
    struct process runs, waits;
    workshop_open(&workshop);
    program_start(&runs, &workshop, &(struct launch){.arguments = run});
    free(program_wait_for_file(&runs, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    program_start(&waits, &workshop, &(struct launch){.arguments = sweep});
    char expected[64];
    snprintf(expected, sizeof expected, "wait process %d (seed=1)", (int)runs.id);
    program_wait_for_words(&waits, expected);
    kill(waits.id, SIGINT);
    struct outcome outcome = program_wait(&waits);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    assert_int_equal(words_count(outcome.errors.data, " begins, "), 0);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "running\n");
    kill(runs.id, SIGTERM);
    outcome = program_wait(&runs);
    assert_int_equal(outcome.exit_status, 128 + SIGTERM);
    outcome_free(&outcome);
    workshop_close(&workshop);
}
