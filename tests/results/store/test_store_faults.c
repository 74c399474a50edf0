/* Damaged files, rivals, media that are full or read-only, files and rows that are taken away under a run: one message each,
 * nothing unnoticed, and a database that is still whole. */
#include "tests/test.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "core/rng.h"
#include "results/query.h"
#include "results/query/question.h"
#include "results/store/database.h"
#include "tests/results/sample.h"

static struct error problem; /* of the children, and where its words are compared */

static int create_path(void **state)
{
    *state = sample_path("results.db");
    return 0;
}

static int create_runs(void **state, int64_t runs)
{
    struct store *store;
    create_path(state);
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    for (int64_t seed = 1; seed <= runs; seed++)
        sample_finished_run(store, seed);
    store_close(store);
    return 0;
}

static int create(void **state)
{
    return create_runs(state, 1);
}

static int create_six(void **state)
{
    return create_runs(state, 6);
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

/* In the folder of the file at path. */
static void shell(const char *path, const char *command)
{
    char line[1024], *folder = path_parent(path);
    snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
    assert_int_equal(system(line), 0);
    free(folder);
}

/* --- Damaged files --- */

TEST_WITH(files_that_are_no_databases_are_refused, create, destroy)
{
    struct store *store;
    char *folder = path_parent(*state), *missing = path_format("%s.missing", (char *)*state);
    assert_fails(store_open(&store, missing, STORE_READ, &error), ERROR_IO, "no such file");
    assert_false(file_exists(missing));
    assert_fails(store_open(&store, folder, STORE_WRITE, &error), ERROR_ARGUMENT, "found a folder");
    assert_fails(store_open(&store, "", STORE_WRITE, &error), ERROR_ARGUMENT, "empty");
    assert_fails(store_open(&store, "/nonexistent/results.sqlite", STORE_WRITE, &error), ERROR_IO, "/nonexistent/");
    shell(*state, "echo 'suite: mini' >results.db");
    assert_fails(store_open(&store, *state, STORE_WRITE, &error), ERROR_FORMAT, "found something else");
    assert_fails(store_open(&store, *state, STORE_READ, &error), ERROR_FORMAT, (const char *)*state);
    shell(*state, ": >results.db");
    assert_fails(store_open(&store, *state, STORE_READ, &error), ERROR_FORMAT, "an empty file");
    free(folder);
    free(missing);
}

/* Root may read everything, so it reads as another user here. */
TEST_WITH(a_file_that_may_not_be_read_is_refused, create, destroy)
{
    struct store *store;
    char *folder = path_parent(*state);
    uid_t user = geteuid();
    assert_true(chmod(folder, 0755) == 0 && chmod(*state, 0) == 0 && (user != 0 || seteuid(65534) == 0));
    status result = store_open(&store, *state, STORE_READ, &problem);
    assert_int_equal(seteuid(user), 0);
    assert_true(result == ERROR_IO && strstr(problem.message, *state));
    free(folder);
}

static status ask_everything(struct store *store, struct error *error)
{
    struct questions questions;
    status asked = questions_open(&questions, NULL, error);
    for (size_t i = 0; i < questions.count && asked == OK; i++) {
        struct table table = {0};
        asked = query_ask(store, &questions, &questions.question[i], &(struct query_filter){0}, &table, NULL, error);
        table_free(&table);
    }
    questions_close(&questions);
    TRY(asked);
    struct table table = {0};
    status result = query_named(store, "end-of-run", &(struct query_filter){.run = 1}, &table, error);
    table_free(&table);
    TRY(result);
    struct per_image kept;
    TRY(store_read_per_image(store, 1, 1, 1, &kept, error));
    per_image_free(&kept);
    return sample_check(store, error);
}

static status open_and_ask(const char *path, struct error *error)
{
    struct store *store;
    TRY(store_open(&store, path, STORE_READ, error));
    status result = ask_everything(store, error);
    store_close(store);
    return result;
}

/* No damage to any page may do more than fail; most of it is found. */
TEST_WITH(damaged_pages_are_found, create, destroy)
{
    struct bytes good;
    struct rng rng = rng_make(3, RNG_TEST, 0, 0);
    int found = 0;
    assert_ok(file_read(*state, FILE_LIMIT, &good, &error));
    size_t pages = good.size / 4096, trials = 100;
    for (size_t trial = 0; trial < trials; trial++) {
        uint8_t *bad = malloc(good.size);
        problem = (struct error){0};
        memcpy(bad, good.data, good.size);
        size_t page = trial % pages;
        for (size_t i = 0; i < 64; i++) {
            uint32_t at = rng_below(&rng, trial * 128 + i * 2, i < 32 ? 64 : 4096);
            bad[page * 4096 + (page == 0 ? 100 : 0) + at % 3996] = (uint8_t)rng_uint32(&rng, trial * 128 + i * 2 + 1);
        }
        assert_ok(file_write(*state, bad, good.size, &error));
        status result = open_and_ask(*state, &problem);
        assert_true(result == OK || problem.message[0]);
        found += result != OK;
        free(bad);
    }
    assert_true(found > (int)trials / 2);
    bytes_free(&good);
}

/* The file says that it is ours, and is not; wrong values in tables that look right may pass, but do no harm. */
TEST_WITH(foreign_tables_under_our_name_only_fail, create, destroy)
{
    static const struct {
        const char *script;
        bool harmless;
    } cases[] = {
        {"DROP TABLE runs; CREATE TABLE runs (run)", false},
        {"DROP TABLE properties", false},
        {"DROP VIEW metrics; CREATE TABLE metrics (x)", false},
        {"PRAGMA ignore_check_constraints = ON; UPDATE runs SET tasks = 1000000000", true}, /* nothing is whole */
        {"UPDATE evaluations SET images = 1000000000, correct = 1", false},
        {"PRAGMA ignore_check_constraints = ON; UPDATE evaluations SET images = 0, correct = -1", false},
        {"DROP TABLE tasks; CREATE TABLE tasks (run, task, name);"
         "INSERT INTO tasks VALUES (1, -9, 'x'), (1, 1, x'00'), (1, 1, 'y')",
         true},
    };
    struct bytes good;
    assert_ok(file_read(*state, FILE_LIMIT, &good, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        problem = (struct error){0};
        assert_ok(file_write(*state, good.data, good.size, &error));
        assert_ok(sample_execute(*state, cases[i].script, &error));
        status result = open_and_ask(*state, &problem);
        if (result == OK ? !cases[i].harmless : !problem.message[0])
            fail_msg("%s: status %d, \"%s\"", cases[i].script, (int)result, problem.message);
    }
    bytes_free(&good);
}

/* --- Rivals --- */

_Static_assert(DATABASE_PATIENCE > 60000, "a lock of a minute only takes time");

TEST_WITH(waiting_for_a_rival_ends, create, destroy)
{
    struct store *store;
    struct database *rival;
    assert_ok(store_open(&store, *state, STORE_WRITE, &error));
    assert_ok(database_open(&rival, *state, STORE_WRITE, NULL, &error));
    database_set_patience(store_database(store), 50);
    assert_ok(database_execute(rival, "BEGIN IMMEDIATE", &error));
    assert_fails(sample_add_step(store, 1, 0, 99, 0, &error), ERROR_BUSY, "locked for 0.05 seconds");
    store_begin(store);
    assert_ok(sample_add_step(store, 1, 0, 99, 0, &error));
    assert_fails(store_commit(store, &error), ERROR_BUSY, (const char *)*state);
    struct table table = {0};
    assert_ok(query_sql(store, "SELECT count(*) FROM steps", &table, &error)); /* readers never wait */
    table_free(&table);
    database_rollback(rival);
    assert_ok(store_commit(store, &error)); /* the rows were kept */
    assert_fails(sample_add_step(store, 1, 0, 99, 0, &error), ERROR_ARGUMENT, "UNIQUE");
    database_close(rival);
    store_close(store);
}

/* --- What is taken away --- */

/* A run as the harness writes it, with rows that wait to be committed. */
static struct store *begin_run(const char *path, int64_t *run)
{
    struct store *store;
    struct run_start start;
    struct run_description description = sample_description(7);
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(store_run_rewind(store, start.run, -1, 0, &error));
    assert_ok(sample_write_at_once(store, start.run, 7, -1, 0, 2, 10, &error));
    store_begin(store);
    assert_ok(sample_write(store, start.run, 7, 2, 9, -1, 0, &error));
    *run = start.run;
    return store;
}

#define OF_TASK "run = 7 AND task = 1 AND after_task = 0"

static const struct {
    const char *command, *words; /* capitals: SQL */
} losses[] = {
    {"yes | dd of=results.db bs=4096 seek=4 count=12 conv=notrunc iflag=fullblock status=none", "damaged"},
    {"rm results.db", "results.db: was deleted or renamed"},
    {"mv results.db a.db", "results.db: was deleted or renamed"},
    {"cp results.db a.db && mv a.db results.db", "results.db: was replaced"},
    {": >results.db", "results.db: was cut from"},
    {"truncate -s 20480 results.db", " to 20480 bytes"},
    {"rm results.db-wal", "results.db-wal: was deleted"},
    {": >results.db-wal", "results.db-wal: was cut from"},
    {"rm results.db-shm", "results.db-shm: was deleted"},
    {"rm results.db-lock", "results.db-lock: was deleted"},
    {"cp results.db-lock a && mv a results.db-lock", "results.db-lock: was replaced"},
    {"DELETE FROM evaluations WHERE " OF_TASK, "of run 7 as they were written, found "},
    {"UPDATE evaluations SET correct = correct - 1 WHERE " OF_TASK, " with other values: somebody changed them"},
    {"UPDATE timings SET seconds = 0 WHERE run = 7", "somebody changed them"},
    {"DELETE FROM runs WHERE run = 7", "run 7 is gone"},
};

/* Between the last commit and the end, and before a commit, which does not read anew what it has in memory. */
TEST_WITH(what_is_lost_fails_the_commit_and_the_end, create_six, destroy)
{
    shell(*state, "mkdir kept && cp results.db kept");
    for (size_t i = 1; i < 2 * (sizeof losses / sizeof *losses); i++) {
        int64_t run;
        struct store *store = begin_run(*state, &run);
        assert_int_equal(run, 7);
        if (i % 2)
            assert_ok(store_commit(store, &error));
        if (isupper((unsigned char)*losses[i / 2].command))
            assert_ok(sample_execute(*state, losses[i / 2].command, &error));
        else
            shell(*state, losses[i / 2].command);
        status result = i % 2 ? store_run_end(store, run, RUN_FINISHED, NULL, &problem) : store_commit(store, &problem);
        if (result == OK || !strstr(problem.message, losses[i / 2].words))
            fail_msg("%zu: expected \"%s\", found %s", i, losses[i / 2].words, result ? problem.message : "success");
        if (i % 2 == 0)
            assert_true(store_commit(store, NULL) != OK && store_run_end(store, run, RUN_FINISHED, NULL, NULL) != OK);
        store_close(store);
        shell(*state, "rm -f results.db* && cp kept/results.db .");
    }
}

/* The file is whole; that it cannot be opened once more is all that is said. */
TEST_WITH(what_cannot_be_asked_is_no_damage, create_six, destroy)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    struct rlimit files, none;
    assert_ok(store_commit(store, &error));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)dup(STDIN_FILENO), .rlim_max = files.rlim_max};
    close((int)none.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    status result = store_run_end(store, run, RUN_FINISHED, NULL, &problem);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(result, ERROR_MEMORY);
    assert_non_null(strstr(problem.message, "Too many open files"));
    assert_null(strstr(problem.message, "damaged"));
    assert_ok(sample_check(store, &error));
    store_close(store);
}

/* Other programs may write other rows, make the file smaller and empty the log. */
TEST_WITH(an_undisturbed_run_ends, create_six, destroy)
{
    int64_t run;
    struct store *store = begin_run(*state, &run);
    assert_ok(sample_execute(
        *state, "UPDATE runs SET message = 1 WHERE seed = 1; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", &error));
    assert_ok(store_commit(store, &error));
    assert_ok(sample_execute(*state, "PRAGMA wal_checkpoint(TRUNCATE)", &error));
    assert_ok(store_run_end(store, run, RUN_FINISHED, NULL, &error));
    store_close(store);
}

/* --- Media as the kernel has them ---
 * Each test has a mount of its own in a child, which nobody else sees; where the kernel refuses that, it is skipped. */

enum { REFUSED = 77, MEDIUM_BYTES = 2 << 20, BALLAST_BYTES = 1 << 20 };

/* In a child, which has no tests to go on with. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s: %s\n", #condition, problem.message);                                                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static bool fails(status result, const char *words)
{
    return result == ERROR_IO && strstr(problem.message, words) != NULL;
}

static bool write_line(const char *path, const char *line)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, line, strlen(line)) == (ssize_t)strlen(line);
    if (file >= 0)
        close(file);
    return written;
}

/* Who is not root may mount in a namespace where he is. */
static bool enter_namespace(void)
{
    char users[64], groups[64];
    if (geteuid() == 0)
        return unshare(CLONE_NEWNS) == 0;
    snprintf(users, sizeof users, "0 %d 1", (int)geteuid());
    snprintf(groups, sizeof groups, "0 %d 1", (int)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_line("/proc/self/setgroups", "deny") &&
           write_line("/proc/self/uid_map", users) && write_line("/proc/self/gid_map", groups);
}

static bool mount_medium(const char *folder)
{
    char options[64];
    snprintf(options, sizeof options, "size=%d", MEDIUM_BYTES);
    return enter_namespace() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

/* Runs check in a process whose folder is a new medium. */
static void on_medium(void (*check)(char *path), char *path)
{
    char *folder = path_parent(path);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!mount_medium(folder))
            _exit(REFUSED);
        check(path);
        _exit(0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    free(folder);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == REFUSED) {
        print_message("skipped: the kernel refuses a mount of one's own\n");
        skip();
    }
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        fail_msg("the child ended with %d", ended);
}

/* Begins anew what was begun, as the program does that has no resume file. */
static status write_run(struct store *store, int64_t seed, struct error *error)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    store_rollback(store);
    TRY(store_run_start(store, &description, &start, error));
    TRY(store_run_rewind(store, start.run, -1, 0, error));
    TRY(sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, error));
    return store_run_end(store, start.run, RUN_FINISHED, NULL, error);
}

static status write_until_full(struct store *store, int64_t *seed, struct error *error)
{
    status result = OK;
    while (result == OK && *seed < 10000)
        result = write_run(store, ++*seed, error);
    return result;
}

/* Finished runs are there with all their rows: four tasks, each evaluated five times. */
static bool is_whole(struct store *store, int64_t least)
{
    struct table table = {0};
    MUST(sample_check(store, &problem) == OK);
    MUST(query_sql(store,
                   "SELECT count(*), sum(cells) FROM (SELECT count(*) AS cells FROM runs JOIN evaluations USING (run) "
                   "WHERE status = 'finished' GROUP BY run)",
                   &table, &problem) == OK);
    int64_t runs = table_cell_at(&table, 0, 0)->integer, cells = table_cell_at(&table, 0, 1)->integer;
    table_free(&table);
    return runs >= least && cells == runs * SAMPLE_TASKS * (SAMPLE_TASKS + 1);
}

/* What is open goes on as soon as there is room, and so does whoever opens it anew. */
static void fill_and_empty(char *path)
{
    static const char zeros[BALLAST_BYTES];
    struct store *store;
    int64_t seed = 0;
    char *ballast = path_format("%s.ballast", path);
    MUST(file_write(ballast, zeros, BALLAST_BYTES, &problem) == OK);
    MUST(store_open(&store, path, STORE_WRITE, &problem) == OK);
    MUST(fails(write_until_full(store, &seed, &problem), "the disk is full"));
    int64_t written = seed - 1;
    MUST(is_whole(store, written));
    MUST(unlink(ballast) == 0 && write_run(store, seed, &problem) == OK && is_whole(store, written + 1));
    MUST(fails(write_until_full(store, &seed, &problem), "the disk is full"));
    store_close(store);
    MUST(store_open(&store, path, STORE_READ, &problem) == OK && is_whole(store, seed - 1));
}

/* The log of a copy, which a link names, holds what a run that was killed had committed; SQLite has to write beside it to read
 * it. */
static void read_read_only(char *path)
{
    struct store *store;
    struct table table = {0};
    char *folder = path_parent(path), *other = path_format("%s/new.db", folder), *copy = path_format("%s/a.db", folder);
    MUST(store_open(&store, path, STORE_WRITE, &problem) == OK && write_run(store, 1, &problem) == OK);
    shell(path, "cp results.db b.db && cp results.db-wal b.db-wal && ln -s b.db a.db");
    store_close(store);
    MUST(mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    MUST(fails(store_open(&store, path, STORE_WRITE, &problem), "read-only"));
    MUST(fails(store_open(&store, other, STORE_WRITE, &problem), other));
    MUST(store_open(&store, path, STORE_READ, &problem) == OK && is_whole(store, 1));
    MUST(query_named(store, "leaderboard", &(struct query_filter){0}, &table, &problem) == OK);
    MUST(table_rows(&table) == 1);
    store_close(store);
    MUST(fails(store_open(&store, copy, STORE_READ, &problem), "b.db-wal beside it holds rows"));
}

TEST_WITH(a_medium_that_fills_up_and_is_emptied, create_path, destroy)
{
    on_medium(fill_and_empty, *state);
}

TEST_WITH(a_medium_that_is_mounted_read_only, create_path, destroy)
{
    on_medium(read_read_only, *state);
}
