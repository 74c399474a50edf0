/* Signals, pipes and what is no file, as a user meets them: nothing waits for ever, nothing is lost, one message each. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define LONG "run tiny.yaml training.iterations=1000000 training.learning_rate=1e-6"
/* No spaces: they separate arguments. */
#define ENDLESS_SQL "WITH\tRECURSIVE\tn(i)\tAS\t(VALUES(1)UNION\tALL\tSELECT\ti+1\tFROM\tn)SELECT\tcount(*)FROM\tn"

enum { SECONDS_TO_END = 10, LOOK_MS = 5 };

/* --- What is no file --- */

static void make_pipe(const struct workshop *w, const char *name)
{
    char *path = workshop_path(w, name);
    unlink(path);
    assert_int_equal(mkfifo(path, 0644), 0);
    free(path);
}

TEST(pipes_are_refused_at_once)
{
    static const char *const commands[] = {
        "run pipe.yaml",
        "run tiny.yaml model.weights=pipe",
        "run tiny.yaml model.vocabulary=pipe",
        "run tiny.yaml run.database=pipe",
        "sweep tiny.yaml seed=1 run.database=pipe",
        "eval tiny.yaml --adapters pipe",
        "eval tiny.yaml --weights pipe",
        "embed --weights clip.safetensors --images pipes --out x",
        "embed --weights clip.safetensors --vocab vocabulary.txt --texts pipe --out x",
        "embed --weights clip.safetensors --images data/eurosat/2750/Forest --out pipe",
        "query pipe runs",
        "compare pipe",
        "report pipe --out report",
        "watch pipe",
        "export pipe --csv csv",
        "merge-db out.db pipe",
        "run tiny.yaml data.order=mnist", /* its images are a pipe */
    };
    struct workshop workshop;
    workshop_open(&workshop);
    workshop_own_data(&workshop, "MNIST");
    assert_int_equal(mkdir(scratch_file(&workshop.scratch, "pipes"), 0755), 0);
    make_pipe(&workshop, "pipe");
    make_pipe(&workshop, "pipe.yaml");
    make_pipe(&workshop, "pipes/a.jpg");
    char *images = workshop_find(&workshop, "data/MNIST/raw/train-images*");
    assert_non_null(images);
    make_pipe(&workshop, images + strlen(workshop.scratch.path) + 1);
    free(images);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        program_fails(&workshop, &(struct launch){.arguments = commands[i]},
                      (const char *const[]){"found a named pipe", NULL});
    workshop_close(&workshop);
}

/* An image that is a pipe is one more that cannot be read. */
TEST(pipes_among_images_are_reported)
{
    struct workshop workshop;
    workshop_open(&workshop);
    workshop_own_data(&workshop, "dtd");
    make_pipe(&workshop, "data/dtd/dtd/images/braided/braided_0080.jpg");
    struct outcome outcome = program_ends(&workshop, "data check data --problems --format csv", 1);
    assert_non_null(strstr(outcome.out.data, "braided_0080.jpg: expected a file, found a named pipe"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

/* --- Ctrl-C --- */

/* Sends the signal, and fails the test unless the process ends by it in time. */
static struct outcome end_by(struct process *process, int signal_number)
{
    siginfo_t ended = {0};
    kill(process->id, signal_number);
    for (int i = 0; i < SECONDS_TO_END * 1000 / LOOK_MS && ended.si_pid == 0; i++) {
        assert_int_equal(waitid(P_PID, (id_t)process->id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    if (ended.si_pid == 0)
        kill(process->id, SIGKILL);
    struct outcome outcome = program_wait(process);
    if (outcome.exit_status != 128 + signal_number)
        fail_msg("expected exit status %d within %d seconds, found %d, ended by signal %d: %s", 128 + signal_number,
                 SECONDS_TO_END, outcome.exit_status, outcome.signal, outcome.errors.data);
    assert_null(strstr(outcome.errors.data, "error:"));
    assert_non_null(strstr(outcome.errors.data, "stopped"));
    return outcome;
}

static bool has_open(pid_t process, const char *ending)
{
    char pattern[64], target[4096];
    bool found = false;
    for (int file = 3; file < 64 && !found; file++) {
        snprintf(pattern, sizeof pattern, "/proc/%d/fd/%d", (int)process, file);
        ssize_t length = readlink(pattern, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        size_t size = strlen(target), end = strlen(ending);
        found = size > end && strcmp(target + size - end, ending) == 0;
    }
    return found;
}

static void wait_for_open_file(const struct process *process, const char *ending)
{
    siginfo_t ended = {0};
    while (!has_open(process->id, ending)) {
        assert_int_equal(waitid(P_PID, (id_t)process->id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        if (ended.si_pid != 0)
            fail_msg("the program ended before it opened %s", ending);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

TEST(endless_sql_can_be_interrupted)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml method.name=zero_shot");
    program_start(&process, &workshop, &(struct launch){.arguments = "query results.db " ENDLESS_SQL});
    wait_for_open_file(&process, "results.db");
    struct outcome outcome = end_by(&process, SIGINT);
    assert_non_null(strstr(outcome.errors.data, "results.db: stopped"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

/* Another program holds the lock for writing, and would be waited for, for two minutes. */
TEST(waiting_for_a_lock_can_be_interrupted)
{
    struct workshop workshop;
    struct process process;
    sqlite3 *rival;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml method.name=zero_shot");
    char *path = workshop_path(&workshop, "results.db");
    assert_int_equal(sqlite3_open(path, &rival), SQLITE_OK);
    assert_int_equal(sqlite3_exec(rival, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    program_start(&process, &workshop, &(struct launch){.arguments = "run tiny.yaml"});
    wait_for_open_file(&process, "results.db-lock");
    struct outcome outcome = end_by(&process, SIGINT);
    outcome_free(&outcome);
    assert_int_equal(sqlite3_exec(rival, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(rival);
    program_succeeds(&workshop, "run tiny.yaml");
    free(path);
    workshop_close(&workshop);
}

/* A run that has to save while another program holds the lock: it gives up saving, and goes on from the file it has. */
TEST(a_locked_database_does_not_keep_a_run_from_stopping)
{
    struct workshop workshop;
    struct process process;
    sqlite3 *rival;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = LONG " run.checkpoint_every=0"});
    free(program_wait_for_file(&process, &workshop, "runs/*/seed1/resume.safetensors"));
    char *path = workshop_path(&workshop, "results.db");
    assert_int_equal(sqlite3_open(path, &rival), SQLITE_OK);
    sqlite3_busy_timeout(rival, 60000);
    assert_int_equal(sqlite3_exec(rival, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct outcome outcome = end_by(&process, SIGINT);
    outcome_free(&outcome);
    assert_int_equal(sqlite3_exec(rival, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(rival);
    char *resume = workshop_find(&workshop, "runs/*/seed1/resume.safetensors");
    assert_non_null(resume);
    free(resume);
    free(path);
    workshop_close(&workshop);
}

/* --- Hangup --- */

static void expect_stopped(const struct workshop *w)
{
    char *resume = workshop_find(w, "runs/*/seed1/resume.safetensors");
    assert_non_null(resume);
    free(resume);
    rows_expect(w, "results.db", "SELECT status FROM runs", "stopped\n");
    assert_int_equal(workshop_leftovers(w), 0);
}

TEST(a_closed_terminal_stops_a_run)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = LONG});
    free(program_wait_for_file(&process, &workshop, "runs/*/seed1/resume.safetensors"));
    kill(process.id, SIGHUP); /* from the shell; the system sends another */
    struct outcome outcome = end_by(&process, SIGHUP);
    outcome_free(&outcome);
    expect_stopped(&workshop);
    workshop_close(&workshop);
}

/* The processes of a sweep end with it. */
TEST(a_closed_terminal_stops_a_sweep)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop,
                  &(struct launch){.arguments = "sweep tiny.yaml training.iterations=1000000 seed=1"});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    struct outcome outcome = end_by(&process, SIGHUP);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "stopped\n");
    workshop_close(&workshop);
}

/* --- Standard output --- */

TEST(a_closed_pipe_stops_a_run)
{
    struct workshop workshop;
    workshop_open(&workshop);
    assert_int_equal(
        workshop_shell(&workshop, "{ \"$MTIL\" " LONG " 2>&1; echo $? >status; } |"
                                  "{ until ls runs/*/seed1/resume.safetensors 2>ls; do sleep 0.05; done; head -n 1; }"),
        0);
    assert_int_equal(workshop_shell(&workshop, "test \"$(cat status)\" = 141"), 0);
    expect_stopped(&workshop);
    workshop_close(&workshop);
}

TEST(output_that_nobody_reads_ends_quietly)
{
    static const char *const arguments[] = {
        "query results.db \"WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n LIMIT 100000) SELECT i FROM "
        "n\" --format csv",
        "predict --weights clip.safetensors --vocabulary vocabulary.txt --classes classes.txt --format csv data/dtd",
        "predict --weights clip.safetensors --vocabulary vocabulary.txt --classes classes.txt data/dtd",
        "list keys",
        "run tiny.yaml --dry-run",
    };
    struct workshop workshop;
    char script[512];
    workshop_open(&workshop);
    scratch_write_text(&workshop.scratch, "classes.txt", "a\nb\n");
    program_succeeds(&workshop, "run tiny.yaml method.name=zero_shot");
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        snprintf(script, sizeof script,
                 "{ until test -e closed; do sleep 0.01; done; \"$MTIL\" %s --quiet 2>errors; echo $? >status; rm "
                 "closed; } |"
                 "{ exec <&-; touch closed; until test ! -e closed; do sleep 0.01; done; };"
                 "test \"$(cat status)\" = 141 && test ! -s errors",
                 arguments[i]);
        if (workshop_shell(&workshop, script) != 0)
            fail_msg("mtil %s: expected exit status 141 and no message", arguments[i]);
    }
    workshop_close(&workshop);
}

TEST(output_that_cannot_be_written_is_an_error)
{
    static const char *const scripts[] = {
        "\"$MTIL\" query results.db runs >/dev/full",
        "\"$MTIL\" query results.db runs >&-",
        "\"$MTIL\" watch results.db --every 0.1 >/dev/full",
        "\"$MTIL\" run tiny.yaml method.name=zero_shot >/dev/full",
        "\"$MTIL\" list suites >/dev/full",
        "\"$MTIL\" --help >/dev/full",
    };
    struct workshop workshop;
    char script[512];
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml method.name=zero_shot");
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        snprintf(script, sizeof script, "%s 2>errors; test $? = 1 && grep -q 'error: standard output' errors",
                 scripts[i]);
        if (workshop_shell(&workshop, script) != 0)
            fail_msg("%s: expected exit status 1 and a message", scripts[i]);
    }
    workshop_close(&workshop);
}
