/* A report's folder: there completely or not at all, and nobody else's. */
#include "tests/results/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "results/report.h"
#include "results/report/folder.h"
#include "tests/results/report/sample_report.h"
#include "tests/results/sample.h"

struct fixture {
    char *database, *folder, *path;
    struct store *store;
};

static int create(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->database = sample_path("results.sqlite");
    fixture->folder = sample_path("report");
    fixture->path = strdup(getenv("PATH"));
    assert_ok(store_open(&fixture->store, fixture->database, STORE_WRITE, &error));
    assert_ok(sample_report_write(fixture->store, &error));
    *state = fixture;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *fixture = *state;
    setenv("PATH", fixture->path, 1);
    store_close(fixture->store);
    sample_remove(fixture->database);
    sample_remove(fixture->folder);
    free(fixture->path);
    free(fixture);
    return 0;
}

static struct report_request request_of(const struct fixture *fixture)
{
    return (struct report_request){.folder = fixture->folder, .filter = {.suite = "mini"}, .best = 2};
}

/* A file or folder beside or in the report's; the caller frees. */
static char *beside(const struct fixture *fixture, const char *name)
{
    char *path =
        path_format("%.*s%s", (int)(strrchr(fixture->folder, '/') + 1 - fixture->folder), fixture->folder, name);
    assert_non_null(path);
    return path;
}

static bool is_there(const struct fixture *fixture, const char *name)
{
    char *path = beside(fixture, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void put(const struct fixture *fixture, const char *name, const char *text)
{
    char *path = beside(fixture, name);
    assert_ok(file_write(path, text, strlen(text), &error));
    free(path);
}

static void make_folder(const struct fixture *fixture, const char *name)
{
    char *path = beside(fixture, name);
    assert_ok(directory_create(path, &error));
    free(path);
}

/* Nothing was left beside the report but what is expected: so many names. */
static void expect_names(const struct fixture *fixture, const char *folder, size_t expected)
{
    struct directory names;
    char *path = beside(fixture, folder);
    assert_ok(directory_list(&names, path, &error));
    assert_int_equal(names.count, expected);
    directory_free(&names);
    free(path);
}

static void write_report(const struct fixture *fixture, const struct report_request *request)
{
    struct report_outcome outcome;
    assert_ok(report_write(fixture->store, request, &outcome, &error));
}

static void refuse_report(const struct fixture *fixture, const char *words)
{
    struct report_request request = request_of(fixture);
    struct report_outcome outcome;
    assert_fails(report_write(fixture->store, &request, &outcome, &error), ERROR_ARGUMENT, words);
}

static void a_report_replaces_a_report(void **state)
{
    struct fixture *fixture = *state;
    struct report_request request = request_of(fixture);
    write_report(fixture, &request);
    assert_true(is_there(fixture, "report/index.html"));
    assert_false(is_there(fixture, "report/figures"));
    make_folder(fixture, "report/figures");
    put(fixture, "report/figures/old.svg", "<svg/>");
    write_report(fixture, &request);
    assert_false(is_there(fixture, "report/figures"));
    expect_names(fixture, "report", 1);
    expect_names(fixture, "", 1);
}

static void an_empty_folder_and_a_new_one_will_do(void **state)
{
    struct fixture *fixture = *state;
    struct report_request request = request_of(fixture);
    make_folder(fixture, "report");
    write_report(fixture, &request);
    char *deep = beside(fixture, "a/b/c//");
    request.folder = deep;
    write_report(fixture, &request);
    assert_true(is_there(fixture, "a/b/c/index.html"));
    expect_names(fixture, "a/b", 1);
    free(deep);
}

static void what_is_no_report_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    make_folder(fixture, "report");
    put(fixture, "report/notes.txt", "mine");
    refuse_report(fixture, "found a folder with \"notes.txt\" in it");
    put(fixture, "report/index.html", "<!DOCTYPE html>\n" REPORT_MARK "\n");
    refuse_report(fixture, "notes.txt");
    assert_true(is_there(fixture, "report/notes.txt"));
    char *notes = beside(fixture, "report/notes.txt");
    assert_int_equal(unlink(notes), 0);
    free(notes);
    put(fixture, "report/index.html", "<!DOCTYPE html>\n<title>Somebody else's</title>\n");
    refuse_report(fixture, "another page");
    expect_names(fixture, "", 1);
}

static void a_file_or_link_is_no_folder(void **state)
{
    struct fixture *fixture = *state;
    put(fixture, "report", "a file");
    refuse_report(fixture, "found a file");
    char *target = beside(fixture, "report");
    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink("elsewhere", target), 0);
    refuse_report(fixture, "found a link");
    free(target);
    struct report_request request = request_of(fixture);
    struct report_outcome outcome;
    request.folder = "";
    assert_fails(report_write(fixture->store, &request, &outcome, &error), ERROR_ARGUMENT, "is empty");
}

static bool stop_at_once(void *context)
{
    (void)context;
    return true;
}

static void a_stop_leaves_the_old_report(void **state)
{
    struct fixture *fixture = *state;
    struct report_request request = request_of(fixture);
    struct report_outcome outcome;
    write_report(fixture, &request);
    struct stat before, after;
    assert_int_equal(stat(fixture->folder, &before), 0);
    request.stopped = stop_at_once;
    assert_fails(report_write(fixture->store, &request, &outcome, &error), ERROR_STOPPED, "nothing was written");
    assert_int_equal(stat(fixture->folder, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    expect_names(fixture, "", 1);
}

static void an_unknown_name_writes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct report_request request = request_of(fixture);
    struct report_outcome outcome;
    request.filter.policy = "most_usd";
    assert_fails(report_write(fixture->store, &request, &outcome, &error), ERROR_ARGUMENT, "most_used");
    expect_names(fixture, "", 0);
}

static void a_database_without_runs_makes_a_page(void **state)
{
    struct fixture *fixture = *state;
    struct store *empty;
    struct bytes page;
    struct report_request request = {.folder = fixture->folder, .best = REPORT_BEST, .figures = true};
    struct report_outcome outcome;
    char *database = beside(fixture, "empty.sqlite"), *path = beside(fixture, "report/index.html");
    assert_ok(store_open(&empty, database, STORE_WRITE, &error));
    assert_ok(report_write(empty, &request, &outcome, &error));
    assert_ok(file_read(path, FILE_LIMIT, &page, &error));
    assert_non_null(strstr((char *)page.data, "There is no run to report on."));
    assert_int_equal(outcome.runs + outcome.figures, 0);
    bytes_free(&page);
    store_close(empty);
    free(database);
    free(path);
}

/* A single task has no Transfer to be compared. */
static void a_single_task_is_drawn(void **state)
{
    static const char *const by[] = {"policy"};
    struct fixture *fixture = *state;
    assert_ok(sample_report_write_single(fixture->store, &error));
    write_report(fixture, &(struct report_request){.folder = fixture->folder,
                                                   .filter = {.suite = "single"},
                                                   .by = by,
                                                   .by_count = 1,
                                                   .best = REPORT_BEST,
                                                   .figures = true});
    assert_true(is_there(fixture, "report/figures/comparison.svg"));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, create, destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_report_replaces_a_report),           WITH_FIXTURE(an_empty_folder_and_a_new_one_will_do),
        WITH_FIXTURE(what_is_no_report_is_left_alone),      WITH_FIXTURE(a_file_or_link_is_no_folder),
        WITH_FIXTURE(a_stop_leaves_the_old_report),         WITH_FIXTURE(an_unknown_name_writes_nothing),
        WITH_FIXTURE(a_database_without_runs_makes_a_page), WITH_FIXTURE(a_single_task_is_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
