/* mtil watch beside a run that goes on, and after it was killed. */
#include "tests/end_to_end/workshop.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LOOKS_MOST = 1200, LOOK_MS = 100 };

/* Looks until part is there. */
static void watch_for(const struct workshop *workshop, const char *part)
{
    for (int i = 0; i < LOOKS_MOST; i++) {
        struct outcome outcome = program_run(workshop, &(struct launch){.arguments = "watch results.db --once"});
        bool there = outcome.exit_status == 0 && strstr(outcome.out.data, part) != NULL;
        if (i + 1 == LOOKS_MOST)
            fail_msg("expected \"%s\", found: %s%s", part, outcome.out.data, outcome.errors.data);
        outcome_free(&outcome);
        if (there)
            return;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

TEST(a_run_is_seen_while_it_goes_on)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop,
                  &(struct launch){.arguments = "run tiny.yaml training.iterations=1000000 run.log_every=1"});
    free(program_wait_for_file(&process, &workshop, "results.db-lock"));
    watch_for(&workshop, "train mnist");
    watch_for(&workshop, "/1000000");
    watch_for(&workshop, "zero-shot");
    kill(process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.signal, SIGKILL);
    outcome_free(&outcome);
    watch_for(&workshop, "process is gone");
    outcome = program_ends(&workshop, "watch --once", 0);
    assert_non_null(strstr(outcome.out.data, "process is gone"));
    outcome_free(&outcome);
    outcome = program_ends(&workshop, "query runs --format csv", 0);
    assert_non_null(strstr(outcome.out.data, ",process is gone,"));
    assert_non_null(strstr(outcome.out.data, "runs/tiny-"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

TEST(what_cannot_be_watched_is_told)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_fails(&workshop, &(struct launch){.arguments = "watch missing.db"},
                  (const char *const[]){"missing.db", "no such file", NULL});
    program_fails(&workshop, &(struct launch){.arguments = "watch tiny.yaml --once"},
                  (const char *const[]){"tiny.yaml", "expected a results database", NULL});
    workshop_close(&workshop);
}

/* Without a terminal it prints lines, and a signal is an ordinary end. */
TEST(a_signal_ends_it)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml method.name=zero_shot");
    program_start(&process, &workshop, &(struct launch){.arguments = "watch results.db --every 0.1"});
    struct stat printed = {0};
    for (int i = 0; i < LOOKS_MOST && printed.st_size == 0; i++) {
        assert_int_equal(fstat(fileno(process.out), &printed), 0);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    kill(process.id, SIGINT);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 0);
    assert_string_equal(outcome.out.data, "results.db: 1 finished\n");
    outcome_free(&outcome);
    workshop_close(&workshop);
}
