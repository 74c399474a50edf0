/* What a run writes to is taken away while it goes on: it stops with a message that says what happened, exit status 1,
 * and keeps the file from which it can go on. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN "run tiny.yaml --quiet training.iterations=400 run.checkpoint_every=20 "
#define SHORT "run tiny.yaml --quiet training.iterations=2 training.warmup=0 "
#define RESUME "runs/*/seed1/resume.safetensors"

struct loss {
    const char *what;
    void (*take)(const struct workshop *w);
    const char *words[4];
};

static void shell(const struct workshop *w, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd '%s' && %s", w->scratch.path, command);
    assert_int_equal(system(line), 0);
}

/* Through a connection of its own, as another program would. */
static void execute(const struct workshop *w, const char *sql)
{
    sqlite3 *database;
    char *path = workshop_path(w, "results.db"), *said = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 60000);
    if (sqlite3_exec(database, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(path);
}

static void delete_file(const struct workshop *w)
{
    shell(w, "rm results.db");
}

static void rename_file(const struct workshop *w)
{
    shell(w, "mv results.db elsewhere.db");
}

static void replace_file(const struct workshop *w)
{
    shell(w, "cp results.db copy.db && mv copy.db results.db");
}

static void empty_file(const struct workshop *w)
{
    shell(w, ": > results.db");
}

static void cut_file(const struct workshop *w)
{
    workshop_cut(w, "results.db", 500);
}

static void delete_log(const struct workshop *w)
{
    shell(w, "rm results.db-wal");
}

static void empty_log(const struct workshop *w)
{
    shell(w, ": > results.db-wal");
}

static void delete_lock(const struct workshop *w)
{
    shell(w, "rm results.db-lock");
}

static void replace_lock(const struct workshop *w)
{
    shell(w, "cp results.db-lock copy && mv copy results.db-lock");
}

static void delete_rows(const struct workshop *w)
{
    execute(w, "DELETE FROM evaluations WHERE task = 2");
}

static void delete_run(const struct workshop *w)
{
    execute(w, "DELETE FROM runs");
}

static void rename_folder(const struct workshop *w)
{
    shell(w, "mv runs elsewhere");
}

static const struct loss losses[] = {
    {"delete", delete_file, {"results.db", "deleted or renamed"}},
    {"rename", rename_file, {"results.db", "deleted or renamed"}},
    {"replace", replace_file, {"results.db", "replaced by another file"}},
    {"empty", empty_file, {"results.db", "0 bytes"}},
    {"cut", cut_file, {"results.db", "was cut from"}},
    {"delete log", delete_log, {"results.db-wal", "deleted or renamed"}},
    {"empty log", empty_log, {"results.db-wal", "was cut from"}},
    {"delete lock", delete_lock, {"results.db-lock", "deleted or renamed"}},
    {"replace lock", replace_lock, {"results.db-lock", "replaced by another file"}},
    {"delete rows", delete_rows, {"results.db", "of run 2", "somebody changed them"}},
    {"delete run", delete_run, {"results.db", "run 2 is gone"}},
    {"rename folder", rename_folder, {"seed1", "replaced while the run used it"}},
};

static bool is_unlocked(const struct workshop *w)
{
    sqlite3 *database;
    char *path = workshop_path(w, "results.db");
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    bool unlocked = sqlite3_exec(database, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) == SQLITE_OK;
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(path);
    return unlocked;
}

/* The run stands still behind its first resume file, outside a transaction. */
static void start_and_pause(struct process *process, const struct workshop *w)
{
    siginfo_t state;
    program_start(process, w, &(struct launch){.arguments = RUN});
    free(program_wait_for_file(process, w, RESUME));
    for (bool unlocked = false; !unlocked;) {
        assert_int_equal(kill(process->id, SIGCONT), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(kill(process->id, SIGSTOP), 0);
        assert_int_equal(waitid(P_PID, (id_t)process->id, &state, WSTOPPED | WEXITED | WNOWAIT), 0);
        assert_int_equal(state.si_code, CLD_STOPPED);
        unlocked = is_unlocked(w);
    }
}

static void expect_stopped(const struct workshop *w, const struct loss *loss, const struct outcome *outcome)
{
    const char *line = strstr(outcome->errors.data, "mtil: error: ");
    char *resume = workshop_find(w, loss->take == rename_folder ? "elsewhere/*/seed1/resume.safetensors" : RESUME);
    if (outcome->exit_status != 1 || line == NULL || words_count(outcome->errors.data, "error:") != 1)
        fail_msg("%s: exit status %d, signal %d: %s", loss->what, outcome->exit_status, outcome->signal,
                 outcome->errors.data);
    for (size_t i = 0; i < 4 && loss->words[i] != NULL; i++)
        if (strstr(line, loss->words[i]) == NULL)
            fail_msg("%s: expected \"%s\" in: %s", loss->what, loss->words[i], line);
    if (resume == NULL)
        fail_msg("%s: the resume file is gone", loss->what);
    free(resume);
}

TEST(what_is_taken_away_stops_the_run)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        struct workshop w;
        struct process process;
        workshop_open(&w);
        program_succeeds(&w, SHORT "run.seeds=2"); /* its rows are in the file, and those of the next in the log */
        start_and_pause(&process, &w);
        losses[i].take(&w);
        assert_int_equal(kill(process.id, SIGCONT), 0);
        struct outcome outcome = program_wait(&process);
        expect_stopped(&w, &losses[i], &outcome);
        outcome_free(&outcome);
        workshop_close(&w);
    }
}

/* Put back, it goes on to the rows of a run that was never disturbed. */
TEST(a_file_that_is_put_back_goes_on)
{
    struct workshop w;
    struct process process;
    struct text expected = {0}, found = {0};
    workshop_open(&w);
    start_and_pause(&process, &w);
    rename_file(&w);
    assert_int_equal(kill(process.id, SIGCONT), 0);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 1);
    outcome_free(&outcome);
    program_complains(
        &w, &(struct launch){.arguments = RUN},
        (const char *const[]){"results.db", "there is no such file", "results.db-wal", "put that file back", NULL});
    program_complains(&w, &(struct launch){.arguments = "query results.db runs"},
                      (const char *const[]){"there is no such file", "results.db-wal", NULL});
    shell(&w, ": > results.db");
    program_complains(&w, &(struct launch){.arguments = RUN},
                      (const char *const[]){"is empty, but", "results.db-wal", NULL});
    shell(&w, "mv elsewhere.db results.db");
    program_succeeds(&w, RUN);
    program_succeeds(&w, RUN "run.database=undisturbed.db run.folder=undisturbed");
    char *path = workshop_path(&w, "results.db"), *other = workshop_path(&w, "undisturbed.db");
    rows_read(path, &found);
    rows_read(other, &expected);
    assert_string_equal(found.data, expected.data);
    text_free(&expected);
    text_free(&found);
    free(path);
    free(other);
    workshop_close(&w);
}
