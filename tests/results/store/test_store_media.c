/* Media as the kernel has them: a small one that fills up and is emptied, and one that is mounted read-only. Each test has
 * a mount of its own that nobody else sees; where the kernel refuses that, it is skipped. */
#include "tests/results/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "results/query.h"
#include "tests/results/sample.h"

enum { REFUSED = 77, MEDIUM_BYTES = 2 << 20, BALLAST_BYTES = 1 << 20 };

static int complain(const char *what, const struct error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, status_name(error->code), error->message);
    return 1;
}

/* --- The mount --- */

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

/* Runs check in a process whose folder is a new medium, and expects it to return 0. */
static void on_medium(int (*check)(const char *path), const char *path)
{
    char *folder = strdup(path);
    *strrchr(folder, '/') = '\0';
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(mount_medium(folder) ? check(path) : REFUSED);
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

static int create_path(void **state)
{
    *state = sample_path("results.sqlite");
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

/* --- Checks, each in a child --- */

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
static status check_whole(struct store *store, int64_t least, struct error *error)
{
    struct table table = {0};
    TRY(store_check(store, error));
    status result = query_sql(store,
                              "SELECT count(*), sum(cells) FROM (SELECT count(*) AS cells FROM runs JOIN evaluations "
                              "USING (run) WHERE status = 'finished' GROUP BY run)",
                              &table, error);
    int64_t runs = result == OK ? table_cell_at(&table, 0, 0)->integer : 0;
    int64_t cells = result == OK ? table_cell_at(&table, 0, 1)->integer : 0;
    table_free(&table);
    if (result == OK && (runs < least || cells != runs * SAMPLE_TASKS * (SAMPLE_TASKS + 1)))
        return error_set(error, ERROR_FORMAT, "%d finished runs with %d cells", (int)runs, (int)cells);
    return result;
}

/* What is open goes on as soon as there is room, and so does whoever opens it anew. */
static int fills_and_is_emptied(const char *path)
{
    struct error error = {0};
    struct store *store;
    int64_t seed = 0;
    char *ballast = path_format("%s.ballast", path), *zeros = calloc(1, BALLAST_BYTES);
    if (file_write(ballast, zeros, BALLAST_BYTES, &error) != OK || store_open(&store, path, STORE_WRITE, &error) != OK)
        return complain("preparing", &error);
    if (write_until_full(store, &seed, &error) != ERROR_IO || !strstr(error.message, "the disk is full"))
        return complain("filling", &error);
    int64_t written = seed - 1;
    if (check_whole(store, written, &error) != OK)
        return complain("full", &error);
    if (unlink(ballast) != 0 || write_run(store, seed, &error) != OK || check_whole(store, written + 1, &error) != OK)
        return complain("with room again", &error);
    if (write_until_full(store, &seed, &error) != ERROR_IO)
        return complain("filling again", &error);
    written = seed - 1;
    store_close(store);
    if (store_open(&store, path, STORE_READ, &error) != OK || check_whole(store, written, &error) != OK)
        return complain("reading a full medium", &error);
    store_close(store);
    free(ballast);
    free(zeros);
    return 0;
}

static int full_from_the_start(const char *path)
{
    struct error error = {0};
    struct store *store;
    char *ballast = path_format("%s.ballast", path);
    int file = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char zeros[4096];
    while (write(file, zeros, sizeof zeros) > 0)
        continue;
    if (errno != ENOSPC || close(file) != 0)
        return complain("filling", &error);
    if (store_open(&store, path, STORE_WRITE, &error) != ERROR_IO || !strstr(error.message, "full"))
        return complain("creating", &error);
    if (unlink(ballast) != 0 || store_open(&store, path, STORE_WRITE, &error) != OK ||
        write_run(store, 1, &error) != OK || check_whole(store, 1, &error) != OK)
        return complain("with room again", &error);
    store_close(store);
    free(ballast);
    return 0;
}

static int is_mounted_read_only(const char *path)
{
    struct error error = {0};
    struct store *store;
    struct table table = {0};
    char *folder = strdup(path), *other = path_format("%s.new", path);
    *strrchr(folder, '/') = '\0';
    if (store_open(&store, path, STORE_WRITE, &error) != OK || write_run(store, 1, &error) != OK)
        return complain("preparing", &error);
    store_close(store);
    if (mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return complain("mounting", &error);
    if (store_open(&store, path, STORE_WRITE, &error) != ERROR_IO || !strstr(error.message, "read-only"))
        return complain("writing", &error);
    if (store_open(&store, other, STORE_WRITE, &error) != ERROR_IO || !strstr(error.message, other))
        return complain("creating", &error);
    if (store_open(&store, path, STORE_READ, &error) != OK || check_whole(store, 1, &error) != OK ||
        query_named(store, "leaderboard", &(struct query_filter){0}, &table, &error) != OK || table_rows(&table) != 1)
        return complain("reading", &error);
    table_free(&table);
    store_close(store);
    free(folder);
    free(other);
    return 0;
}

/* The log holds what a run that was killed had committed; SQLite has to write beside it to read it. */
static int read_only_with_a_log(const char *path)
{
    struct error error = {0};
    struct store *store, *reader;
    char *copy = path_format("%s.copy", path), *folder = strdup(path), command[1024];
    *strrchr(folder, '/') = '\0';
    if (store_open(&store, path, STORE_WRITE, &error) != OK)
        return complain("writing", &error);
    sample_finished_run(store, 1);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s-wal' '%s-wal'", path, copy, path, copy);
    if (system(command) != 0)
        return complain("copying", &error);
    store_close(store);
    if (mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return complain("mounting", &error);
    if (store_open(&reader, copy, STORE_READ, &error) != ERROR_IO ||
        !strstr(error.message, "-wal beside it holds rows") || !strstr(error.message, "copy both files"))
        return complain("reading", &error);
    free(folder);
    free(copy);
    return 0;
}

static void a_log_on_a_read_only_medium_is_reported(void **state)
{
    on_medium(read_only_with_a_log, *state);
}

static void a_medium_that_fills_up_and_is_emptied(void **state)
{
    on_medium(fills_and_is_emptied, *state);
}

static void a_medium_that_is_full_from_the_start(void **state)
{
    on_medium(full_from_the_start, *state);
}

static void a_medium_that_is_mounted_read_only(void **state)
{
    on_medium(is_mounted_read_only, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_medium_that_fills_up_and_is_emptied, create_path, destroy),
        cmocka_unit_test_setup_teardown(a_log_on_a_read_only_medium_is_reported, create_path, destroy),
        cmocka_unit_test_setup_teardown(a_medium_that_is_full_from_the_start, create_path, destroy),
        cmocka_unit_test_setup_teardown(a_medium_that_is_mounted_read_only, create_path, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
