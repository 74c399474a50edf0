/* One results database under the program: twenty runs that write it at once, a lock that lasts a minute, pages that were
 * overwritten. Whatever happens, a run goes on or ends with a message, and the file is whole. */
#include "tests/end_to_end/rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUN "run tiny.yaml --quiet run.threads=1 training.iterations=2 training.warmup=0 "

enum { WRITERS = 20, LOCKED_SECONDS = 61 };

static void expect_whole(const struct workshop *w, const char *finished)
{
    rows_expect(w, "results.db", "PRAGMA integrity_check", "ok\n");
    rows_expect(w, "results.db", "PRAGMA foreign_key_check", "");
    rows_expect(w, "results.db", "SELECT count(*) FROM runs WHERE status = 'finished'", finished);
    rows_expect(w, "results.db", "SELECT count(*) FROM metrics", finished);
}

static void expect_success(struct process *process)
{
    struct outcome outcome = program_wait(process);
    if (outcome.exit_status != 0)
        fail_msg("exit status %d, signal %d: %s", outcome.exit_status, outcome.signal, outcome.errors.data);
    outcome_free(&outcome);
}

static sqlite3 *lock_database(const struct workshop *w)
{
    sqlite3 *rival;
    char *path = workshop_path(w, "results.db");
    assert_int_equal(sqlite3_open(path, &rival), SQLITE_OK);
    assert_int_equal(sqlite3_exec(rival, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    free(path);
    return rival;
}

static void unlock_database(sqlite3 *rival)
{
    assert_int_equal(sqlite3_exec(rival, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(rival), SQLITE_OK);
}

/* Each run has the rows that it has when it is alone. */
TEST(twenty_runs_at_once_lose_nothing)
{
    struct workshop workshop;
    struct process processes[WRITERS];
    workshop_open(&workshop);
    for (int i = 0; i < WRITERS; i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, RUN "run.seeds=%d", i + 1);
        program_start(&processes[i], &workshop, &(struct launch){.arguments = arguments});
    }
    for (int i = 0; i < WRITERS; i++)
        expect_success(&processes[i]);
    expect_whole(&workshop, "20\n");
    program_succeeds(&workshop, RUN "run.seeds=7 run.database=alone.db run.folder=alone");
    char *alone = workshop_path(&workshop, "alone.db"), *together = workshop_path(&workshop, "results.db");
    struct text expected = {0}, found = {0};
    static const char *const tables[] = {
        "SELECT task, after_task, correct, images FROM evaluations JOIN runs USING (run) WHERE seed = 7 ORDER BY 1, 2",
        "SELECT task, iteration, loss, learning_rate FROM steps JOIN runs USING (run) WHERE seed = 7 ORDER BY 1, 2",
        "SELECT task, encoder, block, expert, count FROM expert_counts JOIN runs USING (run) WHERE seed = 7 "
        "ORDER BY 1, 2, 3, 4",
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        rows_query(alone, tables[i], &expected);
        rows_query(together, tables[i], &found);
        assert_true(expected.size > 0);
        assert_string_equal(found.data, expected.data);
    }
    text_free(&expected);
    text_free(&found);
    free(alone);
    free(together);
    workshop_close(&workshop);
}

/* Reading does not wait; writing does, and loses nothing. */
TEST(a_lock_of_a_minute_only_takes_time)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_succeeds(&workshop, RUN "run.seeds=1");
    sqlite3 *rival = lock_database(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = RUN "run.seeds=2"});
    nanosleep(&(struct timespec){.tv_sec = LOCKED_SECONDS}, NULL);
    program_succeeds(&workshop, "query results.db leaderboard");
    unlock_database(rival);
    expect_success(&process);
    expect_whole(&workshop, "2\n");
    workshop_close(&workshop);
}

/* The file is what a bad disk made of it: the first page of a table is noise. */
static void overwrite_table(const struct workshop *w, const char *table)
{
    struct text page = {0};
    char sql[128], noise[4096], *path = workshop_path(w, "results.db");
    snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
    rows_query(path, sql, &page);
    memset(noise, 0x5a, sizeof noise);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (strtol(page.data, NULL, 10) - 1) * (long)sizeof noise, SEEK_SET), 0);
    assert_int_equal(fwrite(noise, 1, sizeof noise, file), sizeof noise);
    assert_int_equal(fclose(file), 0);
    text_free(&page);
    free(path);
}

TEST(damaged_pages_are_told)
{
    static const char *const tables[] = {"runs", "evaluations", "steps"};
    const char *const words[] = {"results.db", "damaged", ".recover", NULL};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct workshop workshop;
        workshop_open(&workshop);
        program_succeeds(&workshop, RUN "run.seeds=1");
        overwrite_table(&workshop, tables[i]);
        program_fails(&workshop, &(struct launch){.arguments = RUN "run.seeds=2"}, words);
        if (strcmp(tables[i], "steps") != 0)
            program_fails(&workshop, &(struct launch){.arguments = "query results.db matrix"}, words);
        workshop_close(&workshop);
    }
}

TEST(a_run_that_is_refused_leaves_no_database)
{
    struct workshop w;
    workshop_open(&w);
    program_fails(&w, &(struct launch){.arguments = RUN "data.root=absent"},
                  (const char *const[]){"data.root", "absent", NULL});
    assert_null(workshop_find(&w, "results.db*"));
    workshop_close(&w);
}
