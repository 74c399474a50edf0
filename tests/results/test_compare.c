/* Expected numbers: SciPy and statsmodels on the same formula (tests/results/compare_sample.h). */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/compare.h"
#include "results/metrics.h"
#include "tests/results/compare_sample.h"
#include "tests/results/sample.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ADD(first, last, ...) add_runs(f, (struct compare_sample){__VA_ARGS__}, first, last)
#define WORDS(...) ((const char *const[]){__VA_ARGS__}), COUNT(((const char *const[]){__VA_ARGS__}))

enum { PARTS = COMPARE_NOTES + 1 };

struct fixture {
    char *path;
    struct store *store;
    struct comparison_request request;
    struct comparison comparison;
    struct table part[PARTS]; /* the answer to the last question */
    struct text csv[PARTS];
};

static const char *const by_policy[] = {"policy"}, *const three_metrics[] = {"transfer", "average", "last"};

static bool says_how(const char *key, const char *value)
{
    return strncmp(key, "run.", 4) == 0 && strcmp(value, "99") != 0;
}

static struct comparison_request make_request(void)
{
    return (struct comparison_request){.by = by_policy,
                                       .by_count = 1,
                                       .metrics = three_metrics,
                                       .metric_count = 3,
                                       .seed = 1,
                                       .filter.incidental = says_how};
}

static int create(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->path = sample_path("results.sqlite");
    f->request = make_request();
    assert_ok(store_open(&f->store, f->path, STORE_WRITE, &error));
    *state = f;
    return 0;
}

static void forget(struct fixture *f)
{
    comparison_free(&f->comparison);
    for (size_t i = 0; i < PARTS; i++) {
        table_free(&f->part[i]);
        text_free(&f->csv[i]);
    }
}

static int destroy(void **state)
{
    struct fixture *f = *state;
    forget(f);
    store_close(f->store);
    sample_remove(f->path);
    free(f);
    return 0;
}

static void add_runs(struct fixture *f, struct compare_sample sample, int64_t first, int64_t last)
{
    for (sample.seed = first; sample.seed <= last; sample.seed++)
        compare_sample_add(f->store, &sample);
}

static void add_two_policies(struct fixture *f, int64_t seeds, enum per_image_kind kept)
{
    ADD(1, seeds, .policy = "none", .every = 50, .kept = kept, .threads = 2);
    ADD(1, seeds, .policy = "most_used", .every = 50, .lift = 4, .kept = kept);
}

static void ask(struct fixture *f)
{
    forget(f);
    assert_ok(compare_runs(f->store, &f->request, &f->comparison, &error));
    for (unsigned i = 0; i < PARTS; i++) {
        assert_ok(compare_table(&f->comparison, i, &f->part[i], &error));
        assert_ok(table_render(&f->part[i], TABLE_CSV, false, &f->csv[i], &error));
    }
}

static void ask_by(struct fixture *f, const char *const *by, size_t count)
{
    f->request.by = by;
    f->request.by_count = count;
    ask(f);
}

static void expect(const struct fixture *f, enum comparison_part part, const char *words)
{
    if (!f->csv[part].data || !strstr(f->csv[part].data, words))
        fail_msg("expected \"%s\", found:\n%s", words, f->csv[part].data);
}

static void expect_none(const struct fixture *f, enum comparison_part part, const char *words)
{
    if (f->csv[part].data && strstr(f->csv[part].data, words))
        fail_msg("did not expect \"%s\", found:\n%s", words, f->csv[part].data);
}

static void expect_rows(const struct fixture *f, enum comparison_part part, size_t rows)
{
    assert_int_equal(table_rows(&f->part[part]), rows);
}

static void expect_refusal(struct fixture *f, const char *words)
{
    struct comparison none;
    assert_fails(compare_runs(f->store, &f->request, &none, &error), ERROR_ARGUMENT, words);
}

/* NAN for an empty cell. */
static double number(const struct fixture *f, enum comparison_part part, size_t row, const char *title)
{
    const struct table *table = &f->part[part];
    for (size_t i = 0; i < table->columns; i++) {
        const struct table_cell *cell = table_cell_at(table, row, i);
        if (strcmp(table->column[i].title, title) == 0)
            return cell->kind == CELL_INTEGER ? (double)cell->integer
                   : cell->kind == CELL_REAL  ? cell->real
                                              : (double)NAN;
    }
    fail_msg("there is no column %s", title);
    return 0;
}

static void expect_numbers(const struct fixture *f, enum comparison_part part, size_t row, const char *const *titles,
                           const double *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double found = number(f, part, row, titles[i]);
        if (!(fabs(found - expected[i]) <= 1e-9 * fabs(expected[i])))
            fail_msg("row %zu, %s: found %.17g, expected %.17g", row, titles[i], found, expected[i]);
    }
}

static void seeds_are_paired(void **state)
{
    static const char *const of_group[] = {"seeds", "mean", "sd", "low", "high"}, *const of_pair[] = {
                                                                                      "seeds",      "difference",
                                                                                      "sd",         "low",
                                                                                      "high",       "p_t",
                                                                                      "p",          "p_holm",
                                                                                      "p_wilcoxon", "seeds_needed"};
    static const double groups[][5] = {
        {8, 54.8125, 0.8788181999545917, 54.077789598529, 55.547210401471},
        {8, 57.298611111111114, 0.34109676305070447, 57.013447080900555, 57.583775141321674},
        {8, 59.02083333333333, 0.5303300858899105, 58.577466286159684, 59.46420038050697}};
    static const double pairs[][10] = {{8, 2.5, 0.2988071523335984, 2.2501909691165154, 2.7498090308834846,
                                        6.114070672505844e-08, 0.0078125, 0.0234375, 0.0078125, 14},
                                       {8, 2.6388888888888884, 0.10706934573993541, 2.5493766757850973,
                                        2.7284011019926795, 3.2864247402421726e-11, 0.0078125, 0.0234375, 0.0078125, 6},
                                       {8, 2.75, 0.1992047682223987, 2.5834606460776772, 2.9165393539223228,
                                        1.8816542898403805e-09, 0.0078125, 0.0234375, 0.0078125, 8}};
    struct fixture *f = *state;
    add_two_policies(f, 8, PER_IMAGE_NONE);
    f->request.baseline = "none";
    f->request.detect = 0.25;
    ask(f);
    expect_rows(f, COMPARE_NOTES, 0); /* threads differ, which does not matter */
    for (size_t i = 0; i < 3; i++) {
        expect_numbers(f, COMPARE_GROUPS, 2 * i + 1, of_group, groups[i], 5);
        expect_numbers(f, COMPARE_PAIRS, i, of_pair, pairs[i], 10);
    }
    expect(f, COMPARE_WORDS,
           "Last: most_used is 2.75 points above none (95% interval +2.58 to +2.92) over 8 common seeds");
    expect(f, COMPARE_WORDS, "Supported: exact p 0.0078, after Holm's correction for 3 tests 0.0234.");
    expect(f, COMPARE_WORDS, "To detect 0.25 points with 80% power takes 14 seeds");
    f->request.detail = COMPARE_DATASETS;
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3 + 2 + 3 + 3); /* the first task has no transfer */
    expect(f, COMPARE_PAIRS, "none,most_used,last,dtd,8,2.75,");
    f->request.filter.dataset = "aircraft";
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 2);
    expect(f, COMPARE_NOTES, "transfer is not defined for any of these runs");
}

static void few_seeds_cannot_say_much(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 3, PER_IMAGE_NONE);
    ask(f);
    expect(f, COMPARE_WORDS,
           "With 3 seeds no p below 0.25 is possible; 6 are needed for 0.05, 7 after Holm's correction "
           "for 3 tests; if differences are normally distributed, p is 0.003 ");
    f->request.filter = (struct query_filter){.has_seed = true, .seed = 2, .incidental = says_how};
    ask(f);
    expect(f, COMPARE_WORDS, "over 1 common seed. With 1 seed no p below 1 is possible");
    assert_true(isnan(number(f, COMPARE_PAIRS, 0, "low")) && isnan(number(f, COMPARE_GROUPS, 0, "sd")));
}

/* Student's p of differences that are all the same is 0: no evidence, so no word of it. */
static void differences_without_spread_say_nothing(void **state)
{
    struct fixture *f = *state;
    for (int64_t seed = 1; seed <= 45; seed += 44) { /* the sample has the same accuracies for both */
        ADD(seed, seed, .policy = "none", .every = 50);
        ADD(seed, seed, .policy = "most_used", .every = 50, .lift = 4);
    }
    ask(f);
    expect(f, COMPARE_WORDS, "With 2 seeds no p below 0.5 is possible");
    expect_none(f, COMPARE_WORDS, "normally distributed");
    assert_true(number(f, COMPARE_PAIRS, 2, "sd") < 1e-9);
}

static void other_seeds_are_no_pairs(void **state)
{
    struct fixture *f = *state;
    ADD(1, 4, .policy = "none", .every = 50);
    ADD(3, 7, .policy = "most_used", .every = 50, .lift = 4);
    ADD(8, 9, .policy = "random", .every = 50, .lift = 4);
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 2 * 3);
    expect(f, COMPARE_NOTES, "the others are compared with none; mtil compare --baseline chooses another");
    f->request.baseline = COMPARE_ALL_PAIRS;
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3 * 3);
    expect(f, COMPARE_PAIRS, "most_used,none,transfer,2,"); /* 3 and 4 */
    expect(f, COMPARE_PAIRS, "none,random,last,0,,,,,,,,,,\r\n");
    expect(f, COMPARE_WORDS, "none and random have no seed in common");
    f->request.only = (const char *const[]){"most_used", "none"}; /* so that few planned tests are corrected for few */
    f->request.only_count = 2;
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3);
    f->request.only = (const char *const[]){"none", "most"};
    expect_refusal(f, "unknown group \"most\"");
}

static void settings_that_differ_are_not_pooled(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 2, PER_IMAGE_NONE);
    ADD(1, 2, .policy = "most_used", .every = 100, .lift = 4);
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3);
    expect(f, COMPARE_CONTEXTS, "1,merge.every = 50\r\n2,merge.every = 100\r\n");
    expect(f, COMPARE_NOTES, "most_used is not compared with none: they differ in merge.every (100 here, 50 there)");
    ask_by(f, WORDS("policy", "merge.every")); /* named, both may differ */
    expect_rows(f, COMPARE_PAIRS, 3 * 3);
    expect(f, COMPARE_GROUPS, "\"policy = most_used, merge.every = 50\"");
    ask_by(f, WORDS("suite"));
    expect(f, COMPARE_GROUPS, "\"sample (merge.every = 50, merge.policy = most_used)\"");
    ask_by(f, WORDS("merge.every")); /* 50 with none alone, 50 against 100 with most_used */
    assert_int_equal(f->comparison.contexts, 2);
    expect(f, COMPARE_PAIRS, ",50,100,transfer");
    ADD(1, 2, .policy = "random", .every = 100, .lift = 4);
    f->request.baseline = "none";
    ask_by(f, by_policy, 1);
    expect_rows(f, COMPARE_PAIRS, 3);
    expect(f, COMPARE_NOTES, "in 1 of 2 contexts none is absent, so that nothing is compared there");
}

/* X-TAIL is a setting for its label space, not for its shots. */
static void a_word_may_stand_for_several_keys(void **state)
{
    struct fixture *f = *state;
    ADD(1, 2, .policy = "none", .every = 50, .own = "evaluation:\n  label_space: task\n");
    ADD(1, 2, .policy = "none", .every = 50, .own = "evaluation:\n  label_space: all\n");
    ask(f);
    assert_int_equal(f->comparison.contexts, 2);
    ask_by(f, WORDS("setting"));
    assert_int_equal(f->comparison.contexts, 1);
    expect(f, COMPARE_GROUPS, "full_shot (evaluation.label_space = all)");
}

/* Policies on one file of weights, a copy of it, and on what was at the same path later; on other images. */
static void other_contents_are_not_pooled(void **state)
{
    struct fixture *f = *state;
    ADD(1, 4, .policy = "none", .every = 50, .weights = "aa", .training = "t", .tests = "u");
    ADD(1, 4, .policy = "most_used", .every = 50, .weights = "aa", .training = "t", .tests = "u", .path = "copy");
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3);
    ADD(1, 4, .policy = "most_used", .every = 50, .weights = "bb", .training = "t", .tests = "u");
    ADD(1, 4, .policy = "late", .every = 50, .weights = "aa", .training = "t", .tests = "v");
    ADD(1, 4, .policy = "random", .every = 50, .weights = "aa", .training = "mended", .tests = "u");
    ADD(1, 4, .policy = "old", .every = 50);
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3);
    expect(f, COMPARE_NOTES, "they differ in test images");
    expect(f, COMPARE_NOTES, "not recorded");
    f->request.filter.policy = "most_used";
    ask_by(f, WORDS("model.weights"));
    expect_rows(f, COMPARE_PAIRS, 3);
    f->request.filter.policy = NULL;
    ask_by(f, WORDS("policy", "data.root"));
    assert_int_equal(f->comparison.contexts, 4);
}

static void a_key_that_matters_with_some_values(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 2, PER_IMAGE_NONE); /* threads: 2 and 0 */
    ADD(1, 2, .policy = "random", .every = 50, .threads = 99);
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3);
    expect(f, COMPARE_NOTES, "random is not compared with most_used: they differ in run.threads (99 here, 0 there)");
    ask_by(f, WORDS("policy", "run.threads"));
    assert_int_equal(f->comparison.contexts, 1);
}

/* What comes with a policy does not keep it from being compared; two values of it are two groups. */
static void a_policys_own_keys_belong_to_it(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 2, PER_IMAGE_NONE);
    ADD(1, 2, .policy = "fading", .every = 50, .lift = 2, .own = "  decay: 0.5\n");
    ADD(1, 2, .policy = "fading", .every = 50, .lift = 2, .own = "  decay: 0.9\n");
    ask(f);
    assert_int_equal(f->comparison.contexts, 1);
    assert_int_equal(f->comparison.groups, 4);
    expect(f, COMPARE_GROUPS, "fading (merge.decay = 0.5)");
    f->request.filter.policy = "fading"; /* among these alone it is a setting like others */
    ask(f);
    assert_int_equal(f->comparison.contexts, 2);
    expect(f, COMPARE_NOTES, "every run has policy = fading");
}

/* The sections that a method does not have are no other settings, and what no task trains is the same after each. */
static void methods_stand_beside_zero_shot(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 2, PER_IMAGE_NONE);
    ADD(1, 2, .policy = "none", .untrained = true);
    f->request.metrics = (const char *const[]){"last", "forgetting", "gain"};
    ask_by(f, WORDS("method"));
    expect(f, COMPARE_GROUPS, "adapters (merge.policy = none)");
    expect(f, COMPARE_GROUPS, "zero_shot,forgetting,2,0,0,0,0");
    expect(f, COMPARE_GROUPS, "zero_shot,gain,2,0,0,0,0");
    expect(f, COMPARE_NOTES, "the others are compared with zero_shot;");
    expect_rows(f, COMPARE_PAIRS, 2 * 3);
    assert_int_equal(f->part[COMPARE_GROUPS].column[3].best, BEST_NONE); /* forgetting alone: the lowest */
    assert_int_equal(f->part[COMPARE_GROUPS].blocks, 2);
}

static void what_is_left_out_is_told(void **state)
{
    struct fixture *f = *state;
    add_two_policies(f, 2, PER_IMAGE_NONE);
    ADD(3, 3, .policy = "none", .every = 50, .stopped = true);
    ADD(4, 4, .policy = "none", .every = 50, .holes = true);
    ADD(5, 5, .policy = "none", .every = 50, .more_images = 100);
    ADD(6, 6, .policy = "none", .every = 50, .version = "0.2.0");
    ADD(1, 2, .policy = "late", .every = 50, .more_images = 50);
    ask(f);
    expect(f, COMPARE_NOTES, "1 run that did not finish is left out");
    expect(f, COMPARE_NOTES, "run 6 is left out: its accuracy matrix has holes");
    expect(f, COMPARE_NOTES, "run 7 is left out: it was tested on other images than run 1 of the same settings");
    expect(f, COMPARE_NOTES, "versions of the program stand side by side: 0.1.0,0.2.0");
    expect(f, COMPARE_NOTES, "late is not compared with most_used: they differ in their test images");
    expect(f, COMPARE_CONTEXTS, "2,test images aircraft 250 dtd 250 mnist 250");
    expect(f, COMPARE_GROUPS, "1,none,last,3,");
}

static void images_one_by_one(void **state)
{
    static const char *const errors[] = {"router_errors_baseline", "router_errors", "class_errors_baseline",
                                         "class_errors"};
    static const double of_aircraft[] = {31.5 / 3, 30.0 / 3, 98.5 / 3, 93.0 / 3};
    struct fixture *f = *state;
    add_two_policies(f, 3, PER_IMAGE_PREDICTIONS);
    f->request.detail = COMPARE_IMAGES;
    f->request.baseline = "none";
    ask(f);
    expect_rows(f, COMPARE_DISCORDANCE, 3 * 3);
    expect(f, COMPARE_DISCORDANCE, "none,most_used,dtd,2,200,8,12,0.50344467163086");
    expect_rows(f, COMPARE_PER_IMAGE, 1 + 3);
    expect(f, COMPARE_PER_IMAGE, "none,most_used,mean,3,600,2.6666666666666665,");
    expect(f, COMPARE_PER_IMAGE, "none,most_used,aircraft,3,200,2.3333333333333335,");
    expect_numbers(f, COMPARE_PER_IMAGE, 1, errors, of_aircraft, 4);
    ADD(4, 4, .policy = "none", .every = 50, .kept = PER_IMAGE_BITS);
    ADD(4, 4, .policy = "most_used", .every = 50, .lift = 4);
    ask(f);
    expect_rows(f, COMPARE_DISCORDANCE, 3 * 3);
    expect(f, COMPARE_NOTES, "none and most_used: of 4 common seeds 3 have the test images of both");
}

static void contexts_at_a_glance(void **state)
{
    static const char *const counts[] = {"contexts", "above", "supported_above", "below", "supported_below"};
    struct fixture *f = *state;
    add_two_policies(f, 10, PER_IMAGE_NONE); /* merge.every = 50 */
    ADD(1, 3, .policy = "none", .every = 100, .lift = 7);
    ADD(1, 3, .policy = "most_used", .every = 100);
    ADD(1, 10, .policy = "none", .every = 200);
    ADD(1, 10, .policy = "most_used", .every = 200, .lift = 8);
    ADD(1, 2, .policy = "random", .every = 200);
    f->request.baseline = "none";
    ask(f);
    expect_rows(f, COMPARE_PAIRS, 3 * 3 + 3);
    expect_rows(f, COMPARE_OVERVIEW, 3);                                                /* random has one context */
    expect_numbers(f, COMPARE_OVERVIEW, 2, counts, (const double[]){3, 2, 2, 1, 0}, 5); /* three seeds cannot */
    assert_true(number(f, COMPARE_OVERVIEW, 2, "least") < 0 && number(f, COMPARE_OVERVIEW, 2, "most") > 4);
    f->request.filter.dataset = "dtd"; /* of it alone */
    ask(f);
    expect_rows(f, COMPARE_OVERVIEW, 3);
}

static void too_many_pairs_are_not_tested(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct metric *metrics = metric_list(&count);
    const char *names[16];
    for (int64_t every = 1; every <= 130; every++)
        ADD(1, 1, .policy = "none", .every = every);
    for (size_t i = 0; i < count; i++)
        names[i] = metrics[i].name;
    f->request.metrics = names;
    f->request.metric_count = count;
    f->request.detail = COMPARE_DATASETS;
    ask_by(f, WORDS("merge.every"));
    assert_int_equal(f->comparison.groups, 130);
    expect_rows(f, COMPARE_PAIRS, 0);
    expect(f, COMPARE_NOTES, "8385 pairs of groups would take 268320 tests, more than 200000");
    f->request.baseline = "70";
    ask(f);
    assert_true(table_rows(&f->part[COMPARE_PAIRS]) > 129 * count);
    f->request.baseline = "700";
    expect_refusal(f, "did you mean \"100\"?); expected one of 130 groups, from \"1\" to \"99\"");
    f->request.baseline = NULL;
    f->request.metric_count = 1;
    f->request.detail = COMPARE_MEANS;
    ask_by(f, by_policy, 1); /* each alone in its context, and of one name */
    expect(f, COMPARE_NOTES, "every run has policy = none");
    ADD(1, 1, .policy = "random", .every = 999);
    ask(f);
    expect(f, COMPARE_NOTES, "119 more groups stand alone in their settings");
}

static void mistakes_are_told(void **state)
{
    static const struct {
        const char *by[2], *metrics[2], *baseline, *policy, *status, *words;
    } cases[] = {{.baseline = "nne", .words = "did you mean \"none\"?"},
                 {.by = {"merge.evry"}, .words = "did you mean \"merge.every\"?"},
                 {.by = {"run.threads"}, .words = "how a run is computed"},
                 {.by = {"policy", "policy"}, .words = "\"policy\" is named twice"},
                 {.metrics = {"last", "last"}, .words = "\"last\" is named twice"},
                 {.metrics = {"lst"}, .words = "did you mean \"last\"?"},
                 {.policy = "most_usd", .words = "did you mean \"most_used\"?"},
                 {.policy = "none", .status = "failed", .words = "no run to compare"},
                 {.policy = "late", .words = "2 fit, but none is finished"}};
    struct fixture *f = *state;
    expect_refusal(f, "no run to compare");
    add_two_policies(f, 2, PER_IMAGE_NONE);
    ADD(1, 2, .policy = "late", .every = 50, .stopped = true);
    for (size_t i = 0; i < COUNT(cases); i++) {
        f->request = make_request();
        f->request.baseline = cases[i].baseline;
        f->request.filter.policy = cases[i].policy;
        f->request.filter.status = cases[i].status;
        if (cases[i].by[0]) {
            f->request.by = cases[i].by;
            f->request.by_count = cases[i].by[1] ? 2 : 1;
        }
        if (cases[i].metrics[0]) {
            f->request.metrics = cases[i].metrics;
            f->request.metric_count = cases[i].metrics[1] ? 2 : 1;
        }
        expect_refusal(f, cases[i].words);
    }
    f->request = make_request(); /* nothing is left open by those before */
    ask(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(seeds_are_paired),
        TEST(few_seeds_cannot_say_much),
        TEST(differences_without_spread_say_nothing),
        TEST(other_seeds_are_no_pairs),
        TEST(settings_that_differ_are_not_pooled),
        TEST(a_word_may_stand_for_several_keys),
        TEST(other_contents_are_not_pooled),
        TEST(a_key_that_matters_with_some_values),
        TEST(a_policys_own_keys_belong_to_it),
        TEST(methods_stand_beside_zero_shot),
        TEST(what_is_left_out_is_told),
        TEST(images_one_by_one),
        TEST(contexts_at_a_glance),
        TEST(too_many_pairs_are_not_tested),
        TEST(mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
