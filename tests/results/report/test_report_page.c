/* What a page says, read as text. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/report.h"
#include "results/report/html.h"
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
    [SEED] = {{.seed = "5"}, REPORT_BEST},
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

/* --- What pages say --- */

enum { SAID = -1 /* at least once */ };

#define CURVE(colour) "<path class=\"line c" #colour "\" d=\"M1 5h20\"/>\n</svg>"

static const struct saying {
    enum page page;
    const char *within; /* from there to the end of the figure or table; "": the page */
    const char *part;
    int times;
} sayings[] = {
    {MINI, "", "<p class=\"facts\">11 runs, 11 finished; 3 configurations.", SAID},
    {MINI, "", "Only suite mini.", SAID},
    /* every configuration is called by what sets it apart, and no more; rows of a suite by their names */
    {MINI, "", "<th scope=\"row\">moe_adapters, most_used, merge.every=20</th>", SAID},
    {MINI, "", "<th scope=\"row\">moe_adapters, most_used, merge.every=50</th>", SAID},
    {MINI, "", "<th scope=\"row\">none</th>", SAID},
    {NONE, "", "<th scope=\"row\">moe_adapters</th>", SAID},
    {NONE, "", "section-hyperparameters", 0},
    {ROWS, "", "<th scope=\"row\">Merging</th>", SAID},
    {ROWS, "", "<th scope=\"row\">No merging</th>", SAID},
    {ROWS, "", ">Merging</text>", SAID},
    /* a quarter of a second and 64 images per iteration */
    {MINI, "", "<td>train</td>", SAID},
    {MINI, "", "<td class=\"n\" data-v=\"250\">250.0</td>", SAID},
    {MINI, "", "<td class=\"n\" data-v=\"256\">256</td>", SAID},
    {MINI, "", "<td class=\"n\" data-v=\"300\">300</td>", SAID},
    {MINI, "", "Training loss over the time that each task was trained", SAID},
    /* each metric is a table, and one of settings has the configurations as rows */
    {MINI, "", "data-name=\"tasks-transfer\"", 1},
    {MINI, "", "data-name=\"tasks-forgetting\"", 1},
    {MINI, "", "data-name=\"tasks-zero_shot\"", 1},
    {MINI, "", "data-name=\"merge.every\">merge.<wbr>every</th>", SAID},
    {MINI, "", "Lopez-Paz and Ranzato", SAID},
    /* wrong images are taken for the next class */
    {MINI, "", "what the images of each class were taken for", SAID},
    {MINI, "", "<th scope=\"row\">apple</th>", SAID},
    {MINI, "", "A row per class, by its number", SAID},
    {MINI, "", "merged experts never chosen, %", SAID},
    {MINI, "", "use in the next task</text>", SAID}, /* in the picture */
    {MINI, "", "use in the next task</th>", SAID},
    {MINI, "", "Which patches go to which expert", SAID},
    {MINI, "", "id=\"patches-2-0\"", 0}, /* nothing is stored of the second task */
    /* in block 0 halves, of one rectangle per row; in block 1 a row per expert, the last of which share a colour */
    {MINI, "id=\"patches-1-0\"", "Experts of patches of aircraft in block 0", SAID},
    {MINI, "id=\"patches-1-0\"", "</svg>expert 2</span>", SAID},
    {MINI, "id=\"patches-1-0\"", ">0  zebra 1.png</text>", SAID},
    {MINI, "id=\"patches-1-0\"", "100  &lt;script&gt;", SAID},
    {MINI, "id=\"patches-1-0\"", "class=\"m c0\" shape-rendering=\"crispEdges\" d=\"M0 20H130V52.5H0zM0 52.5H130V85H0z",
     SAID},
    {MINI, "id=\"patches-1-0\"", "class=\"m c1\" shape-rendering=\"crispEdges\" d=\"M130 20H260V52.5H130z", SAID},
    {MINI, "id=\"patches-1-0\"", "class=\"m c2\"", 0},
    {MINI, "id=\"patches-1-1\"", "</svg>the other 3 experts</span>", SAID},
    {MINI, "id=\"patches-1-1\"", "class=\"m c5\" shape-rendering=\"crispEdges\" d=\"M0 182.5H260V215H0zM0 215H260",
     SAID},
    {MINI, "id=\"patches-1-1\"", "expert 5", 0},
    /* images of a class choose 1, 2, 3 or 4 experts in the blocks, all of them together each of the 12 */
    {MINI, "data-name=\"served\"",
     ">image 0</th><td class=\"n\" data-v=\"11.990316084839357\">12.0</td><td class=\"n\" data-v=\"1\"", 1},
    {MINI, "data-name=\"served\"", ">12.0</td><td class=\"n\" data-v=\"4\">4.0</td></tr>\n</tbody>", 1},
    /* the policy without a balance loss has no curve; gates are three quarters of the shares */
    {MINI, "id=\"balance\"", "Balance loss over the iterations of each task", SAID},
    {MINI, "id=\"balance\"", "</svg>none", 0},
    {MINI, "id=\"gates-1\"", "Mean gates of each class of aircraft", SAID},
    {MINI, "id=\"gates-1\"", ">0.75</text>", SAID}, /* the end of the scale */
    {MINI, "id=\"gates-tasks\"", "Mean gates of each task of all tasks", SAID},
    /* means over seeds, the best in bold, where two read the same both, with Student's intervals, which one seed has not; a
     * column's digits are all there */
    {MINI, "id=\"leaderboard\"", ">66.8 [66.3, 67.2]<", 1},
    {MINI, "data-name=\"leaderboard\"", " data-v=\"66.76363636363637\"><b>66.8</b>", 1},
    {MINI, "data-name=\"leaderboard\"", "<b>42.0</b>", 3},
    {MINI, "data-name=\"leaderboard\"", ">55.7</b></td><td class=\"n\" data-v=\"0.07421121861258", 1},
    {MINI, "data-name=\"leaderboard\"", "data-name=\"Last ±\">±</th>", 1},
    {MINI, "data-name=\"matrix-1\"", "<td class=\"n h5 framed\"", SAID},
    {SEED, "id=\"leaderboard\"", "[", 0},
    {ALL, "id=\"board2-leaderboard\"", "none", 0},
    /* a name has its colour beside others and alone; a second configuration of a policy leaves the colours of others alone */
    {MINI, "id=\"loss\"", CURVE(0) "moe_adapters</span>", 1},
    {NONE, "id=\"leaderboard\"", "<path class=\"m c0\"", SAID},
    {MINI, "id=\"loss\"", CURVE(1) "moe_adapters, most_used, merge.every=20</span>", 1},
    {MINI, "id=\"loss\"", CURVE(2) "moe_adapters, most_used, merge.every=50</span>", 1},
    {COLOURS, "id=\"loss\"", CURVE(2) "moe_adapters, random</span>", 1},
    {COLOURS, "id=\"loss\"", CURVE(4) "moe_adapters, coactivated, merge.every=20</span>", 1},
    {COLOURS, "id=\"loss\"", CURVE(0) "moe_adapters, coactivated, merge.every=50</span>", 1},
    {RANDOM, "id=\"leaderboard\"", "<path class=\"m c2\"", SAID},
    /* seed by seed "none" has its 6 images of 200 less on each task once learnt: 3 points of Last */
    {MINI, "", "Differences by policy", SAID},
    {MINI, "", "most_used − none", SAID},
    {MINI, "", "Last: most_used is 3.00 points above none", SAID},
    {MINI, "", "the others are compared with none", SAID},
    {MINI, "", "<td class=\"n\" data-v=\"0.1875\">0.1875</td>", SAID}, /* 3 · 2/2⁵ */
    {MINI, "", "they differ in merge.every", SAID},
    {NONE, "", "section-comparison", 0},
    {ALL, "", "Differences by policy", 1}, /* the other board has nothing to compare */
    {ALL, "", "id=\"board1-section-comparison\"", 1},
    {ALL, "", "id=\"board2-section-comparison\"", 0},
    /* other tasks stand apart */
    {ALL, "", "<h1 id=\"board1-tasks\">11 tasks: aircraft, caltech101, cifar100, …</h1>", 1},
    {ALL, "", "<h1 id=\"board2-tasks\">3 tasks: ", 1},
    {ALL, "", "<a href=\"#board2-section-matrix\">Matrix</a>", 1},
    /* during a sweep what is not finished would be drawn as if it were worse */
    {ALL, "", "1 configuration without a finished run is not drawn.", SAID},
    {OTHER, "", "No run is finished yet.", SAID},
    {OTHER, "", "1 seed, unfinished", SAID},
    {OTHER, "", "<td>stopped</td>", SAID},
    {OTHER, "", "is not drawn", 0},
    {BEST, "", "Drawn is the configuration with the highest Last of 3.", SAID},
    {BEST, "", "Accuracy on each task, %, after", 1},
    {TWO, "", "Drawn are the 2 configurations with the highest Last of 3.", SAID},
    {SEED, "", "<td class=\"n\" data-v=\"\">–</td>", SAID},
    {SEED, "", "Only seed 5.", SAID},
    /* names of the database are text wherever they stand, and nothing is loaded from anywhere */
    {ALL, "", "<script nonce=\"", 1}, /* the page's own */
    {ALL, "", "<script>alert", 0},
    {ALL, "", "onload=x `touch harm` %s %d \\'", 0},
    {ALL, "", "\x01", 0},
    {ALL, "", "http:", 0},
    {ALL, "", "https:", 0},
    {ALL, "", "src=", 0},
    {ALL, "", "@import", 0},
    {ALL, "", "url(", 0},
    {ALL, "", "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39; onload=x", SAID},
    {ALL, "", "system(&#39;touch harm&#39;) # \\x01\\xff&amp;amp;", SAID},
    {ALL, "", "default-src 'none'", 1},
    {ALL, "", "</body>\n</html>\n", 1},
};

static int count_of(const char *text, const char *end, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL && at < end; at++)
        count++;
    return count;
}

TEST(pages_say_what_is_there)
{
    for (const struct saying *saying = sayings; saying < sayings + sizeof sayings / sizeof *sayings; saying++) {
        const char *page = pages[saying->page], *begin = strstr(page, saying->within),
                   *end = *saying->within != 0 && begin != NULL ? strstr(begin, "</figure>") : page + strlen(page);
        int times = begin != NULL ? count_of(begin, end, saying->part) : -1;
        if (saying->times == SAID ? times <= 0 : times != saying->times)
            fail_msg("page %d says %d times %s: %s", (int)saying->page, times, saying->within, saying->part);
    }
}

TEST(every_section_is_there_and_linked)
{
    static const char *const ids[] = {"leaderboard",     "comparison", "tasks",          "matrix",  "forgetting",
                                      "frozen",          "experts",    "classes",        "patches", "events",
                                      "merges",          "router",     "class-accuracy", "loss",    "costs",
                                      "hyperparameters", "runs"};
    const char *page = pages[MINI], *end = page + strlen(page);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char id[64], link[64];
        snprintf(id, sizeof id, "<h2 id=\"section-%s\">", ids[i]);
        snprintf(link, sizeof link, "<a href=\"#section-%s\">", ids[i]);
        assert_int_equal(count_of(page, end, id), 1);
        assert_int_equal(count_of(page, end, link), 1);
    }
}

/* --- Texts and numbers --- */

TEST(nothing_of_a_text_is_markup)
{
    static const char *const texts[][2] = {
        {"plain · text", "plain · text"},
        {"<b a=\"1\" c='2'>&amp;", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"},
        {"two\nlines\tand\x01 control\x7f", "two\\nlines\\tand\\x01 control\\x7f"},
        {"\xff\xc3(\xed\xa0\x80", "\\xff\\xc3(\\xed\\xa0\\x80"},
        {"turned\xe2\x80\xae", "turned\\u202e"}, /* the direction of writing */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct text html = {0};
        html_escape(&html, texts[i][0]);
        assert_string_equal(html.data, texts[i][1]);
        text_free(&html);
    }
}

TEST(numbers_are_for_people)
{
    static const struct {
        double value;
        int decimals;
        const char *shown;
    } numbers[] = {{-3.5, 1, "−3.5"}, {-0.01, 1, "0.0"}, {1e-4, DECIMALS_ALL, "0.0001"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct text html = {0};
        html_number(&html, numbers[i].value, numbers[i].decimals);
        assert_string_equal(html.data, numbers[i].shown);
        text_free(&html);
    }
}

TEST_GROUP(create, destroy)
