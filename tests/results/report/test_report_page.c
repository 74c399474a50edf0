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

/* The pages of one database, written once. */
enum page { ALL, MINI, NONE, OTHER, ROWS, COLOURS, RANDOM, SEED, BEST, TWO, PAGES };

static const struct {
    struct query_filter filter;
    size_t best;
} requests[PAGES] = {
    [ALL] = {{0}, REPORT_BEST},
    [MINI] = {{.suite = "mini"}, REPORT_BEST},
    [NONE] = {{.suite = "mini", .policy = "none"}, REPORT_BEST},
    [OTHER] = {{.suite = "other"}, REPORT_BEST},
    [ROWS] = {{.suite = "rows"}, REPORT_BEST},
    [COLOURS] = {{.suite = "colours"}, REPORT_BEST},
    [RANDOM] = {{.suite = "colours", .policy = "random"}, REPORT_BEST},
    [SEED] = {{.has_seed = true, .seed = 5}, REPORT_BEST},
    [BEST] = {{.suite = "mini"}, 1},
    [TWO] = {{.suite = "mini"}, 2},
};

static char *pages[PAGES];

static const char *const by[] = {"policy"};

static void write_page(struct store *store, const char *folder, enum page page)
{
    struct report_request request = {
        .filter = requests[page].filter, .folder = folder, .by = by, .by_count = 1, .best = requests[page].best};
    struct report_outcome outcome;
    struct bytes html;
    assert_ok(report_write(store, &request, &outcome, &error));
    char *path = path_format("%s/index.html", folder);
    assert_ok(file_read(path, FILE_LIMIT, &html, &error));
    pages[page] = (char *)html.data;
    free(path);
}

static int create(void **state)
{
    (void)state;
    struct store *store;
    struct report_outcome outcome;
    char *database = sample_path("results.sqlite"), *folder = sample_path("report");
    assert_ok(store_open(&store, database, STORE_WRITE, &error));
    assert_ok(sample_report_write(store, &error));
    for (enum page page = 0; page < PAGES; page++) {
        if (page == ROWS) {
            assert_ok(sample_report_write_rows(store, &error));
            assert_ok(sample_report_write_colours(store, &error));
        }
        write_page(store, folder, page);
    }
    const struct report_request request = {
        .folder = folder, .by = (const char *const[]){"merge.evry"}, .by_count = 1, .best = 1};
    assert_fails(report_write(store, &request, &outcome, &error), ERROR_ARGUMENT, "merge.every");
    store_close(store);
    sample_remove(database);
    sample_remove(folder);
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    for (enum page page = 0; page < PAGES; page++)
        free(pages[page]);
    return 0;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* --- What pages say --- */

enum { SAID = -1 /* at least once */ };

static const struct saying {
    enum page page;
    const char *part;
    int times;
} sayings[] = {
    {MINI, "<p class=\"facts\">11 runs, 11 finished; 3 configurations.", SAID},
    {MINI, "Only suite mini.", SAID},
    /* every configuration is called by what sets it apart, and no more; rows of a suite by their names */
    {MINI, "<th scope=\"row\">most_used · merge.every=20</th>", SAID},
    {MINI, "<th scope=\"row\">most_used · merge.every=50</th>", SAID},
    {MINI, "<th scope=\"row\">none</th>", SAID},
    {MINI, "<th scope=\"row\">merge.every</th><td>20</td><td>20</td><td>50</td>", SAID},
    {NONE, "<th scope=\"row\">moe_adapters · none</th>", SAID},
    {NONE, "section-differences", 0},
    {ROWS, "<th scope=\"row\">Merging</th>", SAID},
    {ROWS, "<th scope=\"row\">No merging</th>", SAID},
    {ROWS, ">Merging</text>", SAID},
    /* a quarter of a second and 64 images per iteration */
    {MINI, "<td>train</td>", SAID},
    {MINI, "<td class=\"n\" data-v=\"250\">250.0</td>", SAID},
    {MINI, "<td class=\"n\" data-v=\"256\">256</td>", SAID},
    {MINI, "<td class=\"n\" data-v=\"300\">300</td>", SAID},
    {MINI, "Training loss over the time that each task was trained", SAID},
    /* each metric is a table, and one of settings has the configurations as rows */
    {MINI, "data-name=\"tasks-transfer\"", 1},
    {MINI, "data-name=\"tasks-forgetting\"", 1},
    {MINI, "data-name=\"tasks-zero_shot\"", 1},
    {MINI, "data-name=\"merge.every\">merge.<wbr>every</th>", SAID},
    {MINI, "Lopez-Paz and Ranzato", SAID},
    /* wrong images are taken for the next class */
    {MINI, "what the images of each class were taken for", SAID},
    {MINI, "<th scope=\"row\">apple</th>", SAID},
    {MINI, "A row per class, by its number", SAID},
    {MINI, "merged experts never chosen, %", SAID},
    {MINI, "use in the next task</text>", SAID}, /* in the picture */
    {MINI, "use in the next task</th>", SAID},
    {MINI, "Which patches go to which expert", SAID},
    {MINI, "id=\"patches-2-0\"", 0}, /* nothing is stored of the second task */
    /* seed by seed "none" has its 6 images of 200 less on each task once learnt: 3 points of Last */
    {MINI, "Differences by policy", SAID},
    {MINI, "most_used − none", SAID},
    {MINI, "Last: most_used is 3.00 points above none", SAID},
    {MINI, "the others are compared with none", SAID},
    {MINI, "<td class=\"n\" data-v=\"0.1875\">0.1875</td>", SAID}, /* 3 · 2/2⁵ */
    {MINI, "they differ in merge.every", SAID},
    {NONE, "section-comparison", 0},
    {ALL, "Differences by policy", 1}, /* the other board has nothing to compare */
    {ALL, "id=\"board1-section-comparison\"", 1},
    {ALL, "id=\"board2-section-comparison\"", 0},
    /* other tasks stand apart */
    {ALL, "<h1 id=\"board1-tasks\">11 tasks: aircraft, caltech101, cifar100, …</h1>", 1},
    {ALL, "<h1 id=\"board2-tasks\">3 tasks: ", 1},
    {ALL, "<a href=\"#board2-section-matrix\">Matrix</a>", 1},
    /* during a sweep what is not finished would be drawn as if it were worse */
    {ALL, "1 configuration without a finished run is not drawn.", SAID},
    {OTHER, "No run is finished yet.", SAID},
    {OTHER, "1 seed, unfinished", SAID},
    {OTHER, "<td>stopped</td>", SAID},
    {OTHER, "is not drawn", 0},
    {BEST, "Drawn is the configuration with the highest Last of 3.", SAID},
    {BEST, "Accuracy on each task, %, after", 1},
    {TWO, "Drawn are the 2 configurations with the highest Last of 3.", SAID},
    {SEED, "<td class=\"n\" data-v=\"\">–</td>", SAID},
    {SEED, "Only seed 5.", SAID},
    /* names of the database are text wherever they stand, and nothing is loaded from anywhere */
    {ALL, "<script nonce=\"", 1}, /* the page's own */
    {ALL, "<script>alert", 0},
    {ALL, "onload=x `touch harm` %s %d \\'", 0},
    {ALL, "\x01", 0},
    {ALL, "http:", 0},
    {ALL, "https:", 0},
    {ALL, "src=", 0},
    {ALL, "@import", 0},
    {ALL, "url(", 0},
    {ALL, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; onload=x", SAID},
    {ALL, "default-src 'none'", 1},
    {ALL, "</body>\n</html>\n", 1},
};

static void pages_say_what_is_there(void **state)
{
    (void)state;
    for (const struct saying *saying = sayings; saying < sayings + sizeof sayings / sizeof *sayings; saying++) {
        int times = count_of(pages[saying->page], saying->part);
        if (saying->times == SAID ? times == 0 : times != saying->times)
            fail_msg("page %d says %d times: %s", (int)saying->page, times, saying->part);
    }
}

static void every_section_is_there_and_linked(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "leaderboard",    "comparison", "tasks",   "matrix",          "forgetting",  "frozen",
        "experts",        "classes",    "patches", "events",          "merges",      "router",
        "class-accuracy", "loss",       "costs",   "hyperparameters", "differences", "runs"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char id[64], link[64];
        snprintf(id, sizeof id, "<h2 id=\"section-%s\">", ids[i]);
        snprintf(link, sizeof link, "<a href=\"#section-%s\">", ids[i]);
        assert_int_equal(count_of(pages[MINI], id), 1);
        assert_int_equal(count_of(pages[MINI], link), 1);
    }
}

/* --- Tables and figures --- */

/* The part of a page from begin to end; the caller frees. */
static char *part_of(enum page page, const char *begin, const char *end)
{
    const char *at = strstr(pages[page], begin), *last = at != NULL ? strstr(at, end) : NULL;
    if (last == NULL)
        fail_msg("page %d has no %s", (int)page, begin);
    return strndup(at, (size_t)(last - at));
}

static char *figure_of(enum page page, const char *name)
{
    char id[64];
    snprintf(id, sizeof id, "id=\"%s\">", name);
    return part_of(page, id, "</figure>");
}

static void expect_in(const char *text, const char *part, bool there)
{
    if ((strstr(text, part) != NULL) != there)
        fail_msg("%s %s in %s", part, there ? "is not" : "is", text);
}

/* Images of a class choose 1, 2, 3 or 4 experts in the blocks, all of them together each of the 12. */
static void experts_of_classes_are_counted(void **state)
{
    (void)state;
    char *table = part_of(MINI, "data-name=\"served\"", "</table>");
    for (int block = 0; block < 4; block++) {
        char name[64], one[32];
        snprintf(name, sizeof name, "<th scope=\"row\">image %d</th>", block);
        snprintf(one, sizeof one, ">%d.0</td></tr>", block + 1);
        const char *row = strstr(table, name), *all = row != NULL ? strstr(row, ">12.0</td>") : NULL,
                   *of_one = all != NULL ? strstr(all, one) : NULL;
        assert_true(of_one != NULL && of_one < strstr(row, "</tr>"));
    }
    free(table);
}

/* In block 0 halves, of one rectangle per row; in block 1 a row per expert, the last of which share a colour. */
static void patches_have_the_colours_of_their_experts(void **state)
{
    (void)state;
    char *halves = figure_of(MINI, "patches-1-0"), *rows = figure_of(MINI, "patches-1-1");
    expect_in(halves, "Experts of patches of aircraft in block 0", true);
    expect_in(halves, "</svg>expert 2</span>", true);
    expect_in(halves, "</svg>expert 7</span>", true);
    expect_in(halves, ">0  zebra 1.png</text>", true);
    expect_in(halves, "100  &lt;script&gt;", true);
    expect_in(halves, "<path class=\"m c0\" shape-rendering=\"crispEdges\" d=\"M0 20H130V52.5H0zM0 52.5H130V85H0z",
              true);
    expect_in(halves, "<path class=\"m c1\" shape-rendering=\"crispEdges\" d=\"M130 20H260V52.5H130z", true);
    expect_in(halves, "class=\"m c2\"", false);
    expect_in(rows, "</svg>expert 4</span>", true);
    expect_in(rows, "</svg>the other 3 experts</span>", true);
    expect_in(rows, "<path class=\"m c5\" shape-rendering=\"crispEdges\" d=\"M0 182.5H260V215H0zM0 215H260", true);
    expect_in(rows, "expert 5", false);
    free(halves);
    free(rows);
}

/* The policy without a balance loss has no curve; gates are three quarters of the shares. */
static void balance_losses_and_gates_are_drawn(void **state)
{
    (void)state;
    char *balance = figure_of(MINI, "balance"), *gates = figure_of(MINI, "gates-1"),
         *tasks = figure_of(MINI, "gates-tasks");
    expect_in(balance, "Balance loss over the iterations of each task", true);
    expect_in(balance, "</svg>none", false); /* the legend */
    expect_in(gates, "Mean gates of each class of aircraft", true);
    expect_in(gates, ">0.75</text>", true); /* the end of the scale */
    expect_in(tasks, "Mean gates of each task&#39;s images", true);
    free(balance);
    free(gates);
    free(tasks);
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
    (void)state;
    double mean = 0, squares = 0;
    for (int64_t seed = 1; seed <= 5; seed++)
        mean += last_of_seed(seed) / 5;
    for (int64_t seed = 1; seed <= 5; seed++)
        squares += pow(last_of_seed(seed) - mean, 2);
    char cells[128];
    snprintf(cells, sizeof cells, "[%.1f, %.1f]", mean - 2.776445 * sqrt(squares / 4 / 5),
             mean + 2.776445 * sqrt(squares / 4 / 5));
    expect_in(pages[MINI], cells, true);
    snprintf(cells, sizeof cells, "<b>%.1f</b>", mean);
    expect_in(pages[MINI], cells, true);
    char *one = figure_of(SEED, "leaderboard"); /* one seed has no interval */
    expect_in(one, "[", false);
    free(one);
    char *unfinished = figure_of(ALL, "board2-leaderboard");
    expect_in(unfinished, "none", false);
    free(unfinished);
}

/* --- Colours --- */

/* The colour of a mark in a figure: that of the first whose title has the word. */
static int colour_of(enum page page, const char *name, const char *word)
{
    char *figure = figure_of(page, name);
    int colour = -1;
    for (const char *at = figure; colour < 0 && (at = strstr(at, "<path class=\"m c")) != NULL;) {
        const char *title = strstr(at, "<title>"), *end = strstr(at, "</title>"), *found = strstr(title, word);
        if (found != NULL && found < end)
            colour = at[strlen("<path class=\"m c")] - '0';
        at = end;
    }
    free(figure);
    return colour;
}

static void expect_apart(enum page page, const char *figure, enum page alone, const char *name)
{
    int colour = colour_of(page, figure, name), first = colour_of(page, figure, "merge.every=20"),
        second = colour_of(page, figure, "merge.every=50");
    assert_true(colour >= 0 && first >= 0 && second >= 0);
    assert_true(colour != first && colour != second && first != second);
    assert_int_equal(colour, colour_of(alone, figure, name));
}

/* Beside others or alone; a second configuration of a policy leaves the colours of others alone. */
static void a_name_has_one_colour(void **state)
{
    (void)state;
    expect_apart(MINI, "leaderboard", NONE, "none");
    expect_apart(MINI, "events", NONE, "none");
    expect_apart(COLOURS, "leaderboard", RANDOM, "random");
    assert_int_equal(colour_of(MINI, "leaderboard", "none"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_say_what_is_there),
        cmocka_unit_test(every_section_is_there_and_linked),
        cmocka_unit_test(experts_of_classes_are_counted),
        cmocka_unit_test(patches_have_the_colours_of_their_experts),
        cmocka_unit_test(balance_losses_and_gates_are_drawn),
        cmocka_unit_test(the_leaderboard_has_means_and_intervals),
        cmocka_unit_test(a_name_has_one_colour),
    };
    return cmocka_run_group_tests(tests, create, destroy);
}
