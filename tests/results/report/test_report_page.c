/* What a page says, read as text. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/report.h"
#include "results/report/data.h"
#include "tests/results/report/sample_report.h"
#include "tests/results/sample.h"

struct fixture {
    char *database, *folder;
    struct store *store;
};

static int create(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->database = sample_path("results.sqlite");
    fixture->folder = sample_path("report");
    assert_ok(store_open(&fixture->store, fixture->database, STORE_WRITE, &error));
    assert_ok(sample_report_write(fixture->store, &error));
    *state = fixture;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    sample_remove(fixture->database);
    sample_remove(fixture->folder);
    free(fixture);
    return 0;
}

/* The page; the caller frees. */
static struct bytes page_of(void **state, struct query_filter filter, size_t best)
{
    struct fixture *fixture = *state;
    static const char *const by[] = {"policy"};
    struct report_request request = {
        .filter = filter, .folder = fixture->folder, .by = by, .by_count = 1, .best = best};
    struct report_outcome outcome;
    struct bytes page;
    assert_ok(report_write(fixture->store, &request, &outcome, &error));
    char *path = path_format("%s/index.html", fixture->folder);
    assert_ok(file_read(path, FILE_LIMIT, &page, &error));
    free(path);
    return page;
}

static size_t count_of(const struct bytes *page, const char *part)
{
    size_t count = 0;
    for (const char *at = (const char *)page->data; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void expect(const struct bytes *page, const char *part)
{
    if (count_of(page, part) == 0)
        fail_msg("the page does not say: %s", part);
}

static void every_section_is_there_and_linked(void **state)
{
    static const char *const ids[] = {"leaderboard",    "comparison", "tasks",   "matrix", "forgetting",
                                      "frozen",         "experts",    "classes", "events", "merges",
                                      "class-accuracy", "router",     "loss",    "costs",  "hyperparameters",
                                      "differences",    "runs"};
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char id[64], link[64];
        snprintf(id, sizeof id, "<h2 id=\"section-%s\">", ids[i]);
        snprintf(link, sizeof link, "<a href=\"#section-%s\">", ids[i]);
        assert_int_equal(count_of(&page, id), 1);
        assert_int_equal(count_of(&page, link), 1);
    }
    expect(&page, "<p class=\"facts\">11 runs, 11 finished; 3 configurations.");
    expect(&page, "Only suite mini.");
    expect(&page, "merged experts never chosen, %");
    expect(&page, "use in the next task</text>"); /* in the picture */
    expect(&page, "use in the next task</th>");
    bytes_free(&page);
}

/* Rows of a suite are called by their names, in figures too. */
static void rows_have_their_names(void **state)
{
    struct fixture *fixture = *state;
    assert_ok(sample_report_write_rows(fixture->store, &error));
    struct bytes page = page_of(state, (struct query_filter){.suite = "rows"}, REPORT_BEST);
    expect(&page, "<th scope=\"row\">Merging</th>");
    expect(&page, "<th scope=\"row\">No merging</th>");
    expect(&page, ">Merging</text>");
    bytes_free(&page);
}

/* A quarter of a second and 64 images per iteration. */
static void time_and_memory_are_shown(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    expect(&page, "<td>train</td>");
    expect(&page, "<td class=\"n\" data-v=\"250\">250.0</td>");
    expect(&page, "<td class=\"n\" data-v=\"256\">256</td>");
    expect(&page, "<td class=\"n\" data-v=\"300\">300</td>");
    expect(&page, "Training loss over the time that each task was trained");
    bytes_free(&page);
}

/* Wrong images are taken for the next class; a class whose name means harm is text. */
static void classes_are_confused(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    expect(&page, "what the images of each class were taken for");
    expect(&page, "<th scope=\"row\">apple</th>");
    expect(&page, "<th scope=\"row\">&lt;script&gt;alert(1)&lt;/script&gt;");
    assert_int_equal(count_of(&page, "<script>"), 1); /* the page's own */
    bytes_free(&page);
}

/* Each metric is a table of configurations and tasks, and one of settings has the configurations as rows. */
static void metrics_and_settings_are_tables(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    static const char *const names[] = {"transfer",          "average",          "last", "forgetting",
                                        "backward_transfer", "forward_transfer", "gain", "zero_shot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char table[64];
        snprintf(table, sizeof table, "data-name=\"tasks-%s\"", names[i]);
        expect(&page, table);
    }
    expect(&page, "data-name=\"merge.every\">merge.<wbr>every</th>");
    expect(&page, "Lopez-Paz and Ranzato");
    bytes_free(&page);
}

/* Images of a class choose 1, 2, 3 or 4 experts in the blocks, all of them together each of the 12. */
static void experts_of_classes_are_counted(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    const char *table = strstr((const char *)page.data, "data-name=\"served\"");
    assert_non_null(table);
    const char *end = strstr(table, "</table>");
    for (int block = 0; block < 4; block++) {
        char row[64], cell[32];
        snprintf(row, sizeof row, "<th scope=\"row\">image %d</th>", block);
        snprintf(cell, sizeof cell, ">%d.0</td></tr>", block + 1);
        table = strstr(table, row);
        assert_true(table != NULL && table < end);
        const char *all = strstr(table, ">12.0</td>"), *one = strstr(table, cell);
        assert_true(all != NULL && one != NULL && all < one && one < strstr(table, "</tr>"));
    }
    expect(&page, "A row per class, by its number");
    bytes_free(&page);
}

/* The text of the figure with this id; the caller frees. */
static char *figure_of(const struct bytes *page, const char *name)
{
    char id[64];
    snprintf(id, sizeof id, "id=\"%s\">", name);
    const char *at = strstr((const char *)page->data, id), *end = at != NULL ? strstr(at, "</figure>") : NULL;
    assert_non_null(end);
    return strndup(at, (size_t)(end - at));
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected %s in %s", part, text);
}

/* In block 0 halves, of one rectangle per row; in block 1 a row per expert, the last of which share a colour. */
static void patches_have_the_colours_of_their_experts(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    char *halves = figure_of(&page, "patches-1-0"), *rows = figure_of(&page, "patches-1-1");
    expect(&page, "Which patches go to which expert");
    expect_in(halves, "Experts of patches of aircraft in block 0");
    expect_in(halves, "</svg>expert 2</span>");
    expect_in(halves, "</svg>expert 7</span>");
    expect_in(halves, ">0  zebra 1.png</text>");
    expect_in(halves, "100  &lt;script&gt;");
    expect_in(halves, "<path class=\"m c0\" shape-rendering=\"crispEdges\" d=\"M0 20H130V52.5H0zM0 52.5H130V85H0z");
    expect_in(halves, "<path class=\"m c1\" shape-rendering=\"crispEdges\" d=\"M130 20H260V52.5H130z");
    assert_null(strstr(halves, "class=\"m c2\""));
    expect_in(rows, "</svg>expert 4</span>");
    expect_in(rows, "</svg>the other 3 experts</span>");
    expect_in(rows, "<path class=\"m c5\" shape-rendering=\"crispEdges\" d=\"M0 182.5H260V215H0zM0 215H260");
    assert_null(strstr(rows, "expert 5"));
    assert_int_equal(count_of(&page, "id=\"patches-2-0\""), 0); /* nothing is stored of the second task */
    free(halves);
    free(rows);
    bytes_free(&page);
}

/* The policy without a balance loss has no curve; gates are three quarters of the shares. */
static void balance_losses_and_gates_are_drawn(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    char *balance = figure_of(&page, "balance"), *gates = figure_of(&page, "gates-1"),
         *tasks = figure_of(&page, "gates-tasks");
    expect_in(balance, "Balance loss over the iterations of each task");
    assert_null(strstr(balance, "</svg>none")); /* the legend */
    assert_int_equal(count_of(&page, "id=\"balance\""), 1);
    expect_in(gates, "Mean gates of each class of aircraft");
    expect_in(gates, ">0.75</text>"); /* the end of the scale */
    expect_in(tasks, "Mean gates of each task&#39;s images");
    free(balance);
    free(gates);
    free(tasks);
    bytes_free(&page);
}

/* Every configuration is called by what sets it apart, and no more. */
static void labels_tell_configurations_apart(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    expect(&page, "<th scope=\"row\">most_used · merge.every=20</th>");
    expect(&page, "<th scope=\"row\">most_used · merge.every=50</th>");
    expect(&page, "<th scope=\"row\">none</th>");
    expect(&page, "<th scope=\"row\">merge.every</th><td>20</td><td>20</td><td>50</td>");
    bytes_free(&page);
    page = page_of(state, (struct query_filter){.suite = "mini", .policy = "none"}, REPORT_BEST);
    expect(&page, "<th scope=\"row\">moe_adapters · none</th>");
    assert_int_equal(count_of(&page, "section-differences"), 0);
    bytes_free(&page);
}

static double last_of_seed(int64_t seed)
{
    double sum = 0;
    for (int64_t task = 0; task < SAMPLE_REPORT_TASKS; task++)
        sum += (double)sample_report_correct(seed, SAMPLE_REPORT_TASKS - 1, task);
    return sum / 2 / SAMPLE_REPORT_TASKS;
}

/* Student's t of 4 degrees of freedom: 2.776445. */
static void the_leaderboard_has_means_and_intervals(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    double mean = 0, squares = 0;
    for (int64_t seed = 1; seed <= 5; seed++)
        mean += last_of_seed(seed) / 5;
    for (int64_t seed = 1; seed <= 5; seed++)
        squares += pow(last_of_seed(seed) - mean, 2);
    char cells[128];
    snprintf(cells, sizeof cells, "[%.1f, %.1f]", mean - 2.776445 * sqrt(squares / 4 / 5),
             mean + 2.776445 * sqrt(squares / 4 / 5));
    expect(&page, cells);
    snprintf(cells, sizeof cells, "<b>%.1f</b>", mean);
    expect(&page, cells);
    bytes_free(&page);
}

/* Seed by seed "none" has its 6 images of 200 less on each task once learnt: 3 points of Last. */
static void policies_are_compared(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST);
    expect(&page, "Differences by policy");
    expect(&page, "most_used − none");
    expect(&page, "Last: most_used is 3.00 points above none");
    expect(&page, "the others are compared with none");
    expect(&page, "<td class=\"n\" data-v=\"0.1875\">0.1875</td>"); /* 3 · 2/2⁵ */
    expect(&page, "they differ in merge.every");
    bytes_free(&page);
    page = page_of(state, (struct query_filter){.suite = "mini", .policy = "none"}, REPORT_BEST);
    assert_int_equal(count_of(&page, "section-comparison"), 0);
    bytes_free(&page);
}

static void each_board_has_its_own_comparison(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){0}, REPORT_BEST);
    assert_int_equal(count_of(&page, "Differences by policy"), 1); /* the other board has nothing to compare */
    assert_int_equal(count_of(&page, "id=\"board1-section-comparison\""), 1);
    assert_int_equal(count_of(&page, "id=\"board2-section-comparison\""), 0);
    bytes_free(&page);
}

static void an_unknown_setting_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    static const char *const by[] = {"merge.evry"};
    struct report_request request = {.folder = fixture->folder, .by = by, .by_count = 1, .best = 1};
    struct report_outcome outcome;
    assert_fails(report_write(fixture->store, &request, &outcome, &error), ERROR_ARGUMENT, "merge.every");
}

static void one_seed_has_no_interval(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.has_seed = true, .seed = 5}, REPORT_BEST);
    char *figure = strstr((char *)page.data, "<figure class=\"drawing intervals\" id=\"leaderboard\">");
    assert_non_null(figure);
    char *end = strstr(figure, "</figure>");
    assert_non_null(end);
    assert_null(memchr(figure, '[', (size_t)(end - figure)));
    expect(&page, "<td class=\"n\" data-v=\"\">–</td>");
    expect(&page, "Only seed 5.");
    bytes_free(&page);
}

/* The colour of a mark in a figure of the page: that of the first whose title has the word. */
static int colour_of(const struct bytes *page, const char *figure, const char *word)
{
    char id[64];
    snprintf(id, sizeof id, "id=\"%s\">", figure);
    const char *at = strstr((const char *)page->data, id), *end = at != NULL ? strstr(at, "</figure>") : NULL;
    assert_non_null(end);
    while ((at = strstr(at, "<path class=\"m c")) != NULL && at < end) {
        const char *title = strstr(at, "<title>"), *title_end = strstr(at, "</title>"), *found = strstr(title, word);
        if (found != NULL && found < title_end)
            return at[strlen("<path class=\"m c")] - '0';
        at = title_end;
    }
    return -1;
}

/* Second of three, or alone. */
static void a_name_has_one_colour(void **state)
{
    static const char *const figures[] = {"leaderboard", "events"};
    struct bytes all = page_of(state, (struct query_filter){.suite = "mini"}, REPORT_BEST),
                 alone = page_of(state, (struct query_filter){.suite = "mini", .policy = "none"}, REPORT_BEST);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        int colour = colour_of(&all, figures[i], "none");
        assert_int_equal(colour, 0);
        assert_true(colour_of(&all, figures[i], "merge.every=20") == 1 ||
                    colour_of(&all, figures[i], "merge.every=50") == 1);
        assert_int_equal(colour, colour_of(&alone, figures[i], "none"));
        assert_int_not_equal(colour, colour_of(&all, figures[i], "merge.every=20"));
        assert_int_not_equal(colour, colour_of(&all, figures[i], "merge.every=50"));
        assert_int_not_equal(colour_of(&all, figures[i], "merge.every=20"),
                             colour_of(&all, figures[i], "merge.every=50"));
    }
    bytes_free(&all);
    bytes_free(&alone);
}

/* A second configuration of a policy leaves the colours of others alone. */
static void two_of_a_policy_take_no_colour_of_another(void **state)
{
    struct fixture *fixture = *state;
    assert_ok(sample_report_write_colours(fixture->store, &error));
    struct bytes all = page_of(state, (struct query_filter){.suite = "colours"}, REPORT_BEST),
                 alone = page_of(state, (struct query_filter){.suite = "colours", .policy = "random"}, REPORT_BEST);
    int random = colour_of(&all, "leaderboard", "random"), first = colour_of(&all, "leaderboard", "merge.every=20"),
        second = colour_of(&all, "leaderboard", "merge.every=50");
    assert_true(random >= 0 && first >= 0 && second >= 0);
    assert_int_equal(random, colour_of(&alone, "leaderboard", "random"));
    assert_int_not_equal(random, first);
    assert_int_not_equal(random, second);
    assert_int_not_equal(first, second);
    bytes_free(&all);
    bytes_free(&alone);
}

/* During a sweep: beside finished runs those that are not would be drawn as if they were worse. */
static void what_is_not_finished_is_not_drawn(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){0}, REPORT_BEST);
    const char *figure = strstr((const char *)page.data, "id=\"board2-leaderboard\">");
    assert_non_null(figure);
    const char *end = strstr(figure, "</figure>"), *drawn = strstr(figure, "none");
    assert_true(drawn == NULL || drawn > end);
    expect(&page, "1 configuration without a finished run is not drawn.");
    bytes_free(&page);
    page = page_of(state, (struct query_filter){.suite = "other"}, REPORT_BEST);
    expect(&page, "1 seed, unfinished");
    assert_int_equal(count_of(&page, "is not drawn"), 0);
    bytes_free(&page);
}

static void what_is_not_drawn_is_told(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "mini"}, 1);
    expect(&page, "Drawn is the configuration with the highest Last of 3.");
    assert_int_equal(count_of(&page, "Accuracy on each task, %, after"), 1);
    bytes_free(&page);
    page = page_of(state, (struct query_filter){.suite = "mini"}, 2);
    expect(&page, "Drawn are the 2 configurations with the highest Last of 3.");
    bytes_free(&page);
}

static void other_tasks_stand_apart(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){0}, REPORT_BEST);
    expect(&page, "<h1 id=\"board1-tasks\">11 tasks: aircraft, caltech101, cifar100, …</h1>");
    expect(&page, "<h1 id=\"board2-tasks\">3 tasks: ");
    expect(&page, "<a href=\"#board2-section-matrix\">Matrix</a>");
    bytes_free(&page);
}

static void an_unfinished_run_is_shown_as_such(void **state)
{
    struct bytes page = page_of(state, (struct query_filter){.suite = "other"}, REPORT_BEST);
    expect(&page, "No run is finished yet.");
    expect(&page, "1 seed, unfinished");
    expect(&page, "<td>stopped</td>");
    bytes_free(&page);
}

/* Names of the database are text wherever they stand, and nothing is loaded from anywhere. */
static void harm_stays_text(void **state)
{
    static const char *const harm[] = {
        "<script>alert", "onload=x `touch harm` %s %d \\'", "\x01", "http:", "https:", "src=", "@import", "url("};
    struct bytes page = page_of(state, (struct query_filter){0}, REPORT_BEST);
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++)
        if (count_of(&page, harm[i]) != 0)
            fail_msg("the page holds %s", harm[i]);
    assert_int_equal(count_of(&page, "<script>"), 1);
    expect(&page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; onload=x");
    expect(&page, "default-src 'none'");
    assert_string_equal((char *)page.data + page.size - 8, "</html>\n");
    bytes_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_section_is_there_and_linked),
        cmocka_unit_test(experts_of_classes_are_counted),
        cmocka_unit_test(patches_have_the_colours_of_their_experts),
        cmocka_unit_test(balance_losses_and_gates_are_drawn),
        cmocka_unit_test(metrics_and_settings_are_tables),
        cmocka_unit_test(rows_have_their_names),
        cmocka_unit_test(classes_are_confused),
        cmocka_unit_test(time_and_memory_are_shown),
        cmocka_unit_test(labels_tell_configurations_apart),
        cmocka_unit_test(the_leaderboard_has_means_and_intervals),
        cmocka_unit_test(policies_are_compared),
        cmocka_unit_test(each_board_has_its_own_comparison),
        cmocka_unit_test(an_unknown_setting_is_an_error),
        cmocka_unit_test(one_seed_has_no_interval),
        cmocka_unit_test(a_name_has_one_colour),
        cmocka_unit_test(what_is_not_finished_is_not_drawn),
        cmocka_unit_test(what_is_not_drawn_is_told),
        cmocka_unit_test(other_tasks_stand_apart),
        cmocka_unit_test(an_unfinished_run_is_shown_as_such),
        cmocka_unit_test(harm_stays_text),
        cmocka_unit_test(two_of_a_policy_take_no_colour_of_another), /* adds runs */
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
