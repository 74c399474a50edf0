/* A report's folder: there completely or not at all, and nobody else's; figures for papers; sections of one's own. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "results/report.h"

#include "tests/results/report/sample_report.h"
#include "tests/results/sample.h"

static char *database;
static struct store *store;

static int create(void **state)
{
    (void)state;
    database = sample_path("results.sqlite");
    assert_ok(store_open(&store, database, STORE_WRITE, &error));
    assert_ok(sample_report_write(store, &error));
    assert_ok(sample_report_write_single(store, &error));
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    store_close(store);
    sample_remove(database);
    return 0;
}

/* --- The folder --- */

#define REPORT "<!DOCTYPE html>\n" REPORT_MARK "\n"
#define FOLDER "a folder" /* in place of a file's text */
#define LINK "a link"

struct file {
    const char *name, *text;
};

static void put(const char *place, const struct file *file)
{
    char *path = path_format("%s/%s", place, file->name);
    if (strcmp(file->text, FOLDER) == 0)
        assert_ok(directory_create(path, &error));
    else if (strcmp(file->text, LINK) == 0)
        assert_int_equal(symlink("elsewhere", path), 0);
    else
        assert_ok(file_write(path, file->text, strlen(file->text), &error));
    free(path);
}

static size_t names_in(const char *place, const char *folder)
{
    struct directory names;
    char *path = path_format("%s/%s", place, folder);
    assert_ok(directory_list(&names, path, &error));
    size_t count = names.count;
    directory_free(&names);
    free(path);
    return count;
}

static status write_report(const char *place, const char *folder, struct report_request request, struct error *error)
{
    struct report_outcome outcome;
    char *path = path_format("%s/%s", place, folder);
    request.folder = *folder != 0 ? path : "";
    request.best = request.best != 0 ? request.best : 2;
    status result = report_write(store, &request, &outcome, error);
    free(path);
    return result;
}

/* Only a report is replaced, and nothing is left beside it. */
TEST(what_is_no_report_is_left_alone)
{
    static const struct {
        struct file files[3];
        const char *folder, *refused; /* NULL: written */
    } cases[] = {
        {{{0}}, "report", NULL},
        {{{"report", FOLDER}}, "report", NULL},
        {{{"report", FOLDER}}, "report//", NULL},
        {{{"report", FOLDER}, {"report/index.html", REPORT}}, "report", NULL},
        {{{"report", FOLDER}, {"report/index.html", REPORT}, {"report/figures", FOLDER}}, "report", NULL},
        {{{"report", FOLDER}, {"report/notes.txt", "mine"}}, "report", "found a folder with \"notes.txt\" in it"},
        {{{"report", FOLDER}, {"report/index.html", REPORT}, {"report/notes.txt", "mine"}}, "report", "notes.txt"},
        {{{"report", FOLDER}, {"report/index.html", "<title>Somebody else's</title>\n"}}, "report", "another page"},
        {{{"report", "a file"}}, "report", "found a file"},
        {{{"report", LINK}}, "report", "found a link"},
        {{{0}}, "", "is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *marker = sample_path("marker"), *place = path_parent(marker);
        size_t files = 0;
        while (files < 3 && cases[i].files[files].name != NULL)
            put(place, &cases[i].files[files++]);
        struct report_request request = {.filter = {.suite = "mini"}};
        if (cases[i].refused != NULL) {
            assert_fails(write_report(place, cases[i].folder, request, &error), ERROR_ARGUMENT, cases[i].refused);
            assert_int_equal(names_in(place, ""), files > 0);
            if (files > 1)
                assert_int_equal(names_in(place, "report"), files - 1);
        } else {
            assert_ok(write_report(place, cases[i].folder, request, &error));
            assert_int_equal(names_in(place, ""), 1);
            assert_int_equal(names_in(place, "report"), 1); /* the page; figures of before are gone */
        }
        free(place);
        sample_remove(marker);
    }
}

TEST(what_cannot_be_written_leaves_the_old_report)
{
    char *marker = sample_path("marker"), *place = path_parent(marker);
    struct stat before, after;
    struct stop stop = {.signal = 1};
    assert_ok(write_report(place, "report", (struct report_request){.filter = {.suite = "mini"}}, &error));
    char *report = path_format("%s/report", place);
    assert_int_equal(stat(report, &before), 0);
    assert_fails(write_report(place, "report", (struct report_request){.stop = &stop}, &error), ERROR_STOPPED,
                 "nothing was written");
    assert_fails(write_report(place, "report", (struct report_request){.filter = {.policy = "most_usd"}}, &error),
                 ERROR_ARGUMENT, "most_used");
    assert_int_equal(stat(report, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(names_in(place, ""), 1);
    free(report);
    free(place);
    sample_remove(marker);
}

/* --- Sections of one's own --- */

#define DRAWN                                                                                                          \
    "-- section: 65 Blocks Merges by block\n-- title: Merges of {%s}\n-- draw: %s\n"                                   \
    "SELECT 'blocks' AS what, label AS series, colour, block AS x, count(*) AS y FROM drawn "                          \
    "JOIN expert_events USING (run) GROUP BY number, block ORDER BY number, block\n"

TEST(a_section_is_a_file)
{
    static const struct {
        const char *column, *draw, *expected; /* on the page, or why not */
        status result;
    } cases[] = {
        {"what", "line points", "id=\"blocks\">\n<p class=\"title\">Merges of blocks</p>", OK},
        {"wat", "line", "question blocks: Merges of {wat}: unknown column \"wat\" (did you mean \"what\"?)",
         ERROR_ARGUMENT},
        {"what", "heat", "draw: heat needs a column column", ERROR_ARGUMENT},
        {"what", "line pionts", "found \"pionts\"", ERROR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *file = sample_path("blocks.sql"), *place = path_parent(file), *page, sql[600];
        struct report_request request = {.filter = {.suite = "mini"}, .questions = place};
        struct bytes html;
        assert_ok(
            file_write(file, sql, (size_t)snprintf(sql, sizeof sql, DRAWN, cases[i].column, cases[i].draw), &error));
        if (cases[i].result == OK) {
            assert_ok(write_report(place, "report", request, &error));
            page = path_format("%s/report/index.html", place);
            assert_ok(file_read(page, FILE_LIMIT, &html, &error));
            assert_non_null(strstr((const char *)html.data, cases[i].expected));
            bytes_free(&html);
            free(page);
        } else {
            assert_fails(write_report(place, "report", request, &error), cases[i].result, cases[i].expected);
        }
        free(place);
        sample_remove(file);
    }
}

/* --- Figures --- */

/* Every figure in two widths as SVG, its data and its caption; names that mean harm do none. A single task has
 * no Transfer to be compared; where there is nothing to report on, nothing is drawn. */
TEST(every_figure_is_drawn)
{
    static const char *const by[] = {"policy"};
    static const struct {
        struct query_filter filter;
        size_t least;
    } cases[] = {{{0}, 21}, {{.suite = "single"}, 5}, {{.since = "2100-01-01"}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *marker = sample_path("marker"), *place = path_parent(marker), *folder = path_format("%s/report", place),
             *figures = path_format("%s/figures", folder);
        struct report_request request = {
            .folder = folder, .filter = cases[i].filter, .by = by, .by_count = 1, .best = REPORT_BEST, .figures = true};
        struct report_outcome outcome;
        struct directory names = {0};
        assert_ok(report_write(store, &request, &outcome, &error));
        assert_int_equal(file_exists(figures), outcome.figures > 0);
        if (outcome.figures > 0)
            assert_ok(directory_list(&names, figures, &error));
        assert_true(outcome.figures >= cases[i].least && (cases[i].least > 0 || outcome.runs == 0));
        assert_int_equal(names.count, 4 * outcome.figures); /* and no file "harm" */
        for (size_t k = 0; k < names.count; k++) {
            char *path = path_format("%s/%s", figures, names.names[k]);
            struct bytes bytes;
            assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
            assert_true(bytes.size > 0);
            bytes_free(&bytes);
            free(path);
        }
        directory_free(&names);
        free(figures);
        free(folder);
        free(place);
        sample_remove(marker);
    }
}

TEST_GROUP(create, destroy)
