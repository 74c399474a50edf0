/* Expected numbers: SciPy and statsmodels on the same formula (tests/results/compare_sample.h). */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/compare.h"
#include "tests/results/compare_sample.h"
#include "tests/results/sample.h"

struct fixture {
    char *path;
    struct store *store;
};

static int create(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->path = sample_path("results.sqlite");
    assert_ok(store_open(&fixture->store, fixture->path, STORE_WRITE, &error));
    *state = fixture;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    sample_remove(fixture->path);
    free(fixture);
    return 0;
}

static void add_runs(void **state, struct compare_sample sample, int64_t first, int64_t last)
{
    for (sample.seed = first; sample.seed <= last; sample.seed++)
        compare_sample_add(((struct fixture *)*state)->store, &sample);
}

static void add_two_policies(void **state, int64_t seeds, enum per_image_kind kept)
{
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .kept = kept, .threads = 2}, 1, seeds);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 50, .lift = 4, .kept = kept}, 1, seeds);
}

static bool says_how(const char *key, const char *value)
{
    return strncmp(key, "run.", 4) == 0 && strcmp(value, "99") != 0;
}

static const char *const by_policy[] = {"policy"}, *const three_metrics[] = {"transfer", "average", "last"};

static struct comparison_request make_request(void)
{
    return (struct comparison_request){
        .by = by_policy, .by_count = 1, .metrics = three_metrics, .metric_count = 3, .seed = 1, .incidental = says_how};
}

static struct comparison compare(void **state, const struct comparison_request *request)
{
    struct comparison comparison = {0};
    assert_ok(compare_runs(((struct fixture *)*state)->store, request, &comparison, &error));
    return comparison;
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static const struct comparison_pair *find_pair(const struct comparison *comparison, const char *metric,
                                               const char *dataset)
{
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const struct comparison_pair *pair = &comparison->pair[i];
        bool place = dataset ? pair->dataset && strcmp(pair->dataset, dataset) == 0 : !pair->dataset;
        if (place && strcmp(pair->metric->name, metric) == 0)
            return pair;
    }
    fail_msg("there is no pair for %s", metric);
    return NULL;
}

static bool noted(const struct comparison *comparison, const char *words)
{
    for (size_t i = 0; i < comparison->note_count; i++)
        if (strstr(comparison->note[i], words))
            return true;
    return false;
}

static void seeds_are_paired(void **state)
{
    static const struct {
        const char *metric;
        double mean, sd, low, high, difference, deviation, from, to, p_t;
        size_t seeds_needed;
    } known[] = {{"transfer", 54.8125, 0.8788181999545917, 54.077789598529, 55.547210401471, 2.5, 0.2988071523335984,
                  2.2501909691165154, 2.7498090308834846, 6.114070672505844e-08, 14},
                 {"average", 57.298611111111114, 0.34109676305070447, 57.013447080900555, 57.583775141321674,
                  2.6388888888888884, 0.10706934573993541, 2.5493766757850973, 2.7284011019926795,
                  3.2864247402421726e-11, 6},
                 {"last", 59.02083333333333, 0.5303300858899105, 58.577466286159684, 59.46420038050697, 2.75,
                  0.1992047682223987, 2.5834606460776772, 2.9165393539223228, 1.8816542898403805e-09, 8}};
    add_two_policies(state, 8, PER_IMAGE_NONE);
    struct comparison_request request = make_request();
    request.baseline = "none";
    request.detect = 0.25;
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.group_count, 2);
    assert_int_equal(comparison.pair_count, 3);
    assert_int_equal(comparison.note_count, 0); /* threads differ, which does not matter */
    assert_string_equal(comparison.group[1].name, "none");
    for (size_t i = 0; i < 3; i++) {
        const struct comparison_sample *sample = &comparison.sample[2 * i + 1];
        const struct comparison_pair *pair = find_pair(&comparison, known[i].metric, NULL);
        assert_string_equal(sample->metric->name, known[i].metric);
        assert_near(sample->mean, known[i].mean);
        assert_near(sample->sd, known[i].sd);
        assert_near(sample->low, known[i].low);
        assert_near(sample->high, known[i].high);
        assert_int_equal(pair->baseline, 1);
        assert_int_equal(pair->n, 8);
        assert_near(pair->difference, known[i].difference);
        assert_near(pair->sd, known[i].deviation);
        assert_near(pair->low, known[i].from);
        assert_near(pair->high, known[i].to);
        assert_near(pair->p_t, known[i].p_t);
        assert_near(pair->p_permutation, 0.0078125);
        assert_near(pair->p_wilcoxon, 0.0078125);
        assert_near(pair->p_holm, 0.0234375);
        assert_int_equal(pair->seeds_needed, known[i].seeds_needed);
        assert_non_null(strstr(pair->words, "most_used is 2."));
        assert_non_null(strstr(pair->words, "points above none"));
        assert_non_null(strstr(pair->words, "Supported: exact p 0.0078, after Holm's correction for 3 tests 0.0234."));
        assert_non_null(strstr(pair->words, "To detect 0.25 points with 80% power takes"));
    }
    comparison_free(&comparison);
}

static void few_seeds_cannot_say_much(void **state)
{
    add_two_policies(state, 3, PER_IMAGE_NONE);
    struct comparison_request request = make_request();
    request.metric_count = 1;
    struct comparison comparison = compare(state, &request);
    assert_non_null(
        strstr(comparison.pair[0].words, "With 3 seeds no p below 0.25 is possible; 6 are needed for 0.05"));
    comparison_free(&comparison);
    request.metric_count = 3;
    comparison = compare(state, &request);
    assert_non_null(strstr(comparison.pair[0].words, "6 are needed for 0.05, 7 after Holm's correction for 3 tests"));
    comparison_free(&comparison);
    request.filter = (struct query_filter){.has_seed = true, .seed = 2};
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair[0].n, 1);
    assert_true(isnan(comparison.pair[0].low) && isnan(comparison.sample[0].sd));
    assert_non_null(strstr(comparison.pair[0].words, "over 1 common seed. With 1 seed no p below 1 is possible"));
    comparison_free(&comparison);
}

/* Student's p of differences that are all the same is 0: no evidence, so no word of it. */
static void differences_without_spread_say_nothing(void **state)
{
    for (int64_t seed = 1; seed <= 45; seed += 44) { /* the sample has the same accuracies for both */
        add_runs(state, (struct compare_sample){.policy = "none", .every = 50}, seed, seed);
        add_runs(state, (struct compare_sample){.policy = "most_used", .every = 50, .lift = 4}, seed, seed);
    }
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3);
    for (size_t i = 0; i < comparison.pair_count; i++) {
        assert_true(comparison.pair[i].n == 2 && comparison.pair[i].sd < 1e-9 && comparison.pair[i].difference > 1);
        assert_non_null(strstr(comparison.pair[i].words, "With 2 seeds no p below 0.5 is possible"));
        assert_null(strstr(comparison.pair[i].words, "normally distributed"));
    }
    comparison_free(&comparison);
}

static void other_seeds_are_no_pairs(void **state)
{
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50}, 1, 4);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 50, .lift = 4}, 3, 7);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 50, .lift = 4}, 8, 9);
    struct comparison_request request = make_request();
    request.baseline = COMPARE_ALL_PAIRS;
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3 * 3);
    assert_int_equal(comparison.sample[0].n, 5);
    assert_int_equal(comparison.pair[0].n, 2); /* most_used and none: 3 and 4 */
    assert_int_equal(comparison.pair[8].n, 0);
    assert_true(isnan(comparison.pair[8].p_permutation) && isnan(comparison.pair[8].p_holm));
    assert_non_null(strstr(comparison.pair[8].words, "none and random have no seed in common"));
    comparison_free(&comparison);
}

/* "none" is what others are compared with where every context has it, and it is said. */
static void none_is_the_baseline_of_its_own_accord(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 50, .lift = 4}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 2 * 3);
    for (size_t i = 0; i < comparison.pair_count; i++)
        assert_string_equal(comparison.group[comparison.pair[i].baseline].name, "none");
    assert_true(noted(&comparison, "the others are compared with none; mtil compare --baseline chooses another"));
    comparison_free(&comparison);
    request.only = (const char *const[]){"most_used", "random"};
    request.only_count = 2;
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3);
    assert_false(noted(&comparison, "the others are compared with"));
    comparison_free(&comparison);
    request.only_count = 0;
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 100}, 1, 2);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 100}, 1, 2);
    comparison = compare(state, &request); /* one context has none, the other has not */
    assert_int_equal(comparison.pair_count, (3 + 1) * 3);
    assert_false(noted(&comparison, "the others are compared with"));
    comparison_free(&comparison);
}

static void settings_that_differ_are_not_pooled(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 100, .lift = 4}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    assert_int_equal(comparison.group_count, 3);
    assert_string_equal(comparison.context[0].name, "merge.every = 50");
    assert_string_equal(comparison.context[1].name, "merge.every = 100");
    assert_int_equal(comparison.pair_count, 3);
    assert_true(
        noted(&comparison, "most_used is not compared with none: they differ in merge.every (100 here, 50 there)"));
    comparison_free(&comparison);
    request.by = (const char *const[]){"policy", "merge.every"}; /* named, both may differ */
    request.by_count = 2;
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.pair_count, 3 * 3);
    assert_string_equal(comparison.group[0].name, "policy = most_used, merge.every = 50");
    comparison_free(&comparison);
    request.by = (const char *const[]){"suite"};
    request.by_count = 1;
    comparison = compare(state, &request);
    assert_string_equal(comparison.group[0].name, "sample (merge.every = 50, merge.policy = most_used)");
    comparison_free(&comparison);
    request.by = (const char *const[]){"merge.every"}; /* 50 with none alone, 50 against 100 with most_used */
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    assert_int_equal(comparison.pair_count, 3);
    assert_string_equal(comparison.group[comparison.pair[0].baseline].name, "50");
    assert_string_equal(comparison.group[comparison.pair[0].other].name, "100");
    comparison_free(&comparison);
}

/* X-TAIL is a setting for its label space, not for its shots. */
static void a_word_may_stand_for_several_keys(void **state)
{
    static const char *const spaces[] = {"evaluation:\n  label_space: task\n", "evaluation:\n  label_space: all\n"};
    for (size_t i = 0; i < 2; i++)
        add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .own = spaces[i]}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    comparison_free(&comparison);
    request.by = (const char *const[]){"setting"};
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_string_equal(comparison.group[0].name, "full_shot (evaluation.label_space = all)");
    assert_int_equal(comparison.pair_count, 3);
    comparison_free(&comparison);
}

/* As run.precision does: auto and f32 are the same, bf16 is something else. */
static bool has_group(const struct comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->group_count; i++)
        if (strcmp(comparison->group[i].name, name) == 0)
            return true;
    return false;
}

/* Policies on one file of weights, a copy of it, and on what was at the same path later. */
static void other_weights_are_not_pooled(void **state)
{
    struct compare_sample none = {.policy = "none", .every = 50, .weights = "aa", .training = "t", .tests = "u"},
                          most_used = none;
    most_used.policy = "most_used";
    most_used.lift = 4;
    most_used.path = "copy";
    add_runs(state, none, 1, 4);
    add_runs(state, most_used, 1, 4);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.pair_count, 3);
    comparison_free(&comparison);
    most_used.weights = "bb";
    most_used.path = "w";
    add_runs(state, most_used, 1, 4);
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    assert_int_equal(comparison.group_count, 3);
    assert_true(strcmp(comparison.context[0].name, "model.weights = w") == 0 ||
                strcmp(comparison.context[1].name, "model.weights = w") == 0 ||
                strcmp(comparison.context[0].name, "model.weights = copy") == 0);
    comparison_free(&comparison);
    request.by = (const char *const[]){"model.weights"};
    request.filter.policy = "most_used";
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.group_count, 2);
    assert_true(has_group(&comparison, "w") || has_group(&comparison, "copy"));
    assert_int_equal(comparison.pair_count, 3);
    comparison_free(&comparison);
}

static void other_images_are_not_pooled(void **state)
{
    struct compare_sample none = {.policy = "none", .every = 50, .weights = "aa", .training = "t", .tests = "u"},
                          most_used = none;
    most_used.policy = "most_used";
    most_used.tests = "v";
    add_runs(state, none, 1, 4);
    add_runs(state, most_used, 1, 4);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 0);
    assert_true(noted(&comparison, "they differ in test images"));
    comparison_free(&comparison);
    most_used.tests = "u";
    most_used.training = "mended";
    add_runs(state, most_used, 1, 4);
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 0);
    request.by = (const char *const[]){"policy", "data.root"};
    request.by_count = 2;
    comparison_free(&comparison);
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3);
    comparison_free(&comparison);
}

/* Nothing is known of what runs of older programs read. */
static void contents_that_were_not_recorded_are_others(void **state)
{
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50}, 1, 4);
    add_runs(
        state,
        (struct compare_sample){.policy = "most_used", .every = 50, .weights = "aa", .training = "t", .tests = "u"}, 1,
        4);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 0);
    assert_true(noted(&comparison, "not recorded"));
    comparison_free(&comparison);
}

static void a_key_that_matters_with_some_values(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE); /* threads: 2 and 0 */
    add_runs(state, (struct compare_sample){.policy = "random", .every = 50, .threads = 99}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    assert_int_equal(comparison.pair_count, 3);
    assert_true(
        noted(&comparison, "random is not compared with most_used: they differ in run.threads (99 here, 0 there)"));
    comparison_free(&comparison);
    request.by = (const char *const[]){"policy", "run.threads"};
    request.by_count = 2;
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    comparison_free(&comparison);
}

/* What comes with a policy does not keep it from being compared; two values of it are two groups. */
static void a_policys_own_keys_belong_to_it(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "fading", .every = 50, .lift = 2, .own = "  decay: 0.5\n"}, 1, 2);
    add_runs(state, (struct compare_sample){.policy = "fading", .every = 50, .lift = 2, .own = "  decay: 0.9\n"}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.group_count, 4);
    assert_string_equal(comparison.group[0].name, "fading (merge.decay = 0.5)");
    assert_string_equal(comparison.group[1].name, "fading (merge.decay = 0.9)");
    comparison_free(&comparison);
    request.filter.policy = "fading"; /* among these alone it is a setting like others */
    comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 2);
    assert_true(noted(&comparison, "every run has policy = fading"));
    comparison_free(&comparison);
}

/* The sections that a method does not have are no other settings, and what no task trains is the same after each. */
static void methods_stand_beside_zero_shot(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    const struct compare_sample zero_shot = {.policy = "none", .untrained = true};
    add_runs(state, zero_shot, 1, 2);
    struct comparison_request request = make_request();
    request.by = (const char *const[]){"method"};
    request.metrics = (const char *const[]){"transfer", "average", "last", "forgetting", "gain"};
    request.metric_count = 5;
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 1);
    assert_int_equal(comparison.group_count, 3);
    assert_string_equal(comparison.group[0].name, "adapters (merge.policy = most_used)");
    assert_string_equal(comparison.group[1].name, "adapters (merge.policy = none)");
    assert_string_equal(comparison.group[2].name, "zero_shot");
    assert_true(noted(&comparison, "the others are compared with zero_shot;"));
    assert_int_equal(comparison.pair_count, 2 * 5);
    double accuracy[COMPARE_SAMPLE_TASKS] = {0};
    for (int64_t task = 0; task < COMPARE_SAMPLE_TASKS; task++)
        for (int64_t seed = 1; seed <= 2; seed++)
            accuracy[task] +=
                50.0 *
                (double)compare_sample_correct(&(struct compare_sample){.seed = seed, .untrained = true}, -1, task) /
                COMPARE_SAMPLE_IMAGES;
    for (const struct comparison_sample *at = comparison.sample; at < comparison.sample + comparison.sample_count; at++)
        if (at->group == 2)
            assert_near(at->mean, strcmp(at->metric->name, "transfer") == 0 ? (accuracy[1] + accuracy[2]) / 2
                                  : strcmp(at->metric->name, "average") == 0 || strcmp(at->metric->name, "last") == 0
                                      ? (accuracy[0] + accuracy[1] + accuracy[2]) / 3
                                      : 0);
    comparison_free(&comparison);
}

static void what_is_left_out_is_told(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .stopped = true}, 3, 3);
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .holes = true}, 4, 4);
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .more_images = 100}, 5, 5);
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .version = "0.2.0"}, 6, 6);
    add_runs(state, (struct compare_sample){.policy = "late", .every = 50, .more_images = 50}, 1, 2);
    struct comparison_request request = make_request();
    struct comparison comparison = compare(state, &request);
    assert_true(noted(&comparison, "1 run that did not finish"));
    assert_true(noted(&comparison, "run 6 is left out: its accuracy matrix has holes"));
    assert_true(noted(&comparison, "run 7 is left out: it was tested on other images"));
    assert_true(noted(&comparison, "versions of the program stand side by side: 0.1.0,0.2.0"));
    assert_true(noted(&comparison, "late is not compared with most_used: they differ in their test images"));
    assert_int_equal(comparison.context_count, 2);
    assert_string_equal(comparison.context[1].name, "test images aircraft 250 dtd 250 mnist 250");
    for (size_t i = 0; i < comparison.group_count; i++)
        if (strcmp(comparison.group[i].name, "none") == 0)
            assert_int_equal(comparison.group[i].runs, 3);
    comparison_free(&comparison);
}

static void datasets_by_themselves(void **state)
{
    add_two_policies(state, 4, PER_IMAGE_NONE);
    struct comparison_request request = make_request();
    request.detail = COMPARE_DATASETS;
    request.baseline = "none";
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3 + 2 + 3 + 3); /* the first task has no transfer */
    const struct comparison_pair *pair = find_pair(&comparison, "last", "dtd");
    double sum = 0;
    for (int64_t seed = 1; seed <= 4; seed++)
        sum += 0.5 * (double)(4 + (3 * seed + 2) % 4);
    assert_near(pair->difference, sum / 4);
    assert_near(pair->p_holm, 1); /* 0.125 in a family of 8 */
    assert_near(find_pair(&comparison, "last", NULL)->p_holm, 0.375);
    comparison_free(&comparison);
    request.filter.dataset = "dtd";
    request.detail = COMPARE_MEANS;
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3);
    assert_string_equal(comparison.pair[0].dataset, "dtd");
    comparison_free(&comparison);
    request.filter.dataset = "aircraft";
    comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 2);
    assert_true(noted(&comparison, "transfer is not defined for any of these runs"));
    comparison_free(&comparison);
}

static const struct comparison_images *find_images(const struct comparison *comparison, const char *dataset)
{
    for (size_t i = 0; i < comparison->images_count; i++) {
        const char *own = comparison->images[i].dataset;
        if (dataset ? own && strcmp(own, dataset) == 0 : !own)
            return &comparison->images[i];
    }
    fail_msg("there is no row for %s", dataset ? dataset : "the mean");
    return NULL;
}

static void images_one_by_one(void **state)
{
    add_two_policies(state, 3, PER_IMAGE_PREDICTIONS);
    struct comparison_request request = make_request();
    request.detail = COMPARE_IMAGES;
    request.baseline = "none";
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.images_count, 1 + 3);
    assert_int_equal(comparison.discordance_count, 3 * 3);
    const struct comparison_discordance *row = &comparison.discordance[4]; /* dtd, seed 2 */
    assert_string_equal(row->dataset, "dtd");
    assert_int_equal(row->seed, 2);
    assert_int_equal(row->only_baseline, 8);
    assert_int_equal(row->only_other, 12);
    assert_near(row->p, 0.5034446716308594);
    const struct comparison_images *aircraft = find_images(&comparison, "aircraft"),
                                   *mean = find_images(&comparison, NULL);
    assert_int_equal(aircraft->seeds, 3);
    assert_int_equal(aircraft->images, 200);
    assert_int_equal(mean->images, 600);
    assert_near(aircraft->difference, (2.0 + 3 + 2) / 3);
    assert_true(aircraft->low < aircraft->difference && aircraft->difference < aircraft->high);
    assert_near(mean->difference, find_pair(&comparison, "last", NULL)->difference);
    assert_true(mean->high - mean->low < aircraft->high - aircraft->low);
    assert_near(aircraft->errors[0].router, (11 + 10 + 10.5) / 3);
    assert_near(aircraft->errors[0].class, (34 + 31.5 + 33) / 3);
    assert_near(aircraft->errors[1].router, (10.5 + 9.5 + 10) / 3);
    assert_near(aircraft->errors[1].class, (32.5 + 29 + 31.5) / 3);
    comparison_free(&comparison);
}

static void images_that_were_not_kept(void **state)
{
    add_runs(state, (struct compare_sample){.policy = "none", .every = 50, .kept = PER_IMAGE_BITS}, 1, 3);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 50, .lift = 4, .kept = PER_IMAGE_BITS}, 1,
             2);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 50, .lift = 4}, 3, 3);
    struct comparison_request request = make_request();
    request.detail = COMPARE_IMAGES;
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.discordance_count, 2 * 3);
    assert_true(noted(&comparison, "of 3 common seeds 2 have the test images of both"));
    assert_int_equal(comparison.images[0].seeds, 2);
    assert_true(isnan(comparison.images[0].errors[0].router) && isnan(comparison.images[0].errors[1].class));
    comparison_free(&comparison);
}

static void tables_have_every_row(void **state)
{
    add_two_policies(state, 3, PER_IMAGE_BITS);
    struct comparison_request request = make_request();
    request.detail = COMPARE_IMAGES;
    struct comparison comparison = compare(state, &request);
    static const enum comparison_part parts[] = {COMPARE_CONTEXTS,  COMPARE_GROUPS,      COMPARE_PAIRS,
                                                 COMPARE_PER_IMAGE, COMPARE_DISCORDANCE, COMPARE_WORDS,
                                                 COMPARE_OVERVIEW,  COMPARE_NOTES};
    const size_t rows[] = {0,
                           comparison.sample_count,
                           comparison.pair_count,
                           comparison.images_count,
                           comparison.discordance_count,
                           comparison.pair_count,
                           comparison.overview_count,
                           comparison.note_count};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct table table = {0};
        assert_ok(compare_table(&comparison, parts[i], &table, &error));
        assert_int_equal(table_rows(&table), rows[i]);
        assert_int_equal(table.count, table.columns * rows[i]);
        table_free(&table);
    }
    comparison_free(&comparison);
}

static void best_stands_out(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    struct comparison_request request = make_request();
    const struct {
        const char *const *metrics;
        size_t count;
        enum table_best best;
    } cases[] = {{three_metrics, 3, BEST_HIGHEST},
                 {(const char *const[]){"forgetting"}, 1, BEST_LOWEST},
                 {(const char *const[]){"last", "forgetting"}, 2, BEST_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        request.metrics = cases[i].metrics;
        request.metric_count = cases[i].count;
        struct comparison comparison = compare(state, &request);
        struct table table = {0};
        assert_ok(compare_table(&comparison, COMPARE_GROUPS, &table, &error));
        assert_string_equal(table.column[3].title, "mean");
        assert_int_equal(table.column[3].best, cases[i].best);
        assert_int_equal(table.blocks, cases[i].count - 1); /* of one metric each */
        table_free(&table);
        comparison_free(&comparison);
    }
}

static void contexts_at_a_glance(void **state)
{
    add_two_policies(state, 10, PER_IMAGE_NONE); /* merge.every = 50 */
    add_runs(state, (struct compare_sample){.policy = "none", .every = 100, .lift = 7}, 1, 3);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 100}, 1, 3);
    add_runs(state, (struct compare_sample){.policy = "none", .every = 200}, 1, 10);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 200, .lift = 8}, 1, 10);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 200}, 1, 2);
    struct comparison_request request = make_request();
    request.baseline = "none";
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.context_count, 3);
    assert_int_equal(comparison.pair_count, 3 * 3 + 3);
    assert_int_equal(comparison.overview_count, 3); /* random has one context */
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < comparison.pair_count; i++) {
        const struct comparison_pair *pair = &comparison.pair[i];
        if (strcmp(pair->metric->name, "last") != 0 || strcmp(comparison.group[pair->other].name, "most_used") != 0)
            continue;
        sum += pair->difference;
        least = fmin(least, pair->difference);
        most = fmax(most, pair->difference);
    }
    const struct comparison_overview *last = &comparison.overview[2];
    assert_string_equal(last->metric->name, "last");
    assert_string_equal(comparison.group[last->other].name, "most_used");
    assert_int_equal(last->contexts, 3);
    assert_int_equal(last->above, 2);
    assert_int_equal(last->supported_above, 2);
    assert_int_equal(last->below, 1);
    assert_int_equal(last->supported_below, 0); /* three seeds cannot */
    assert_near(last->difference, sum / 3);
    assert_near(last->least, least);
    assert_near(last->most, most);
    assert_true(least < 0 && most > 4);
    comparison_free(&comparison);
    request.filter.dataset = "dtd"; /* of it alone */
    comparison = compare(state, &request);
    assert_int_equal(comparison.overview_count, 3);
    comparison_free(&comparison);
}

static void a_baseline_that_some_contexts_lack(void **state)
{
    add_two_policies(state, 2, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "most_used", .every = 100, .lift = 4}, 1, 2);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 100, .lift = 4}, 1, 2);
    struct comparison_request request = make_request();
    request.baseline = "none";
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.pair_count, 3);
    assert_true(noted(&comparison, "in 1 of 2 contexts none is absent, so that nothing is compared there"));
    comparison_free(&comparison);
}

/* Groups that are not asked for are in no test, so that few planned ones are corrected for few. */
static void planned_comparisons_are_a_family_of_their_own(void **state)
{
    static const char *const only[] = {"none", "most_used"}, *const unknown[] = {"none", "most"};
    struct comparison_request request = make_request();
    add_two_policies(state, 7, PER_IMAGE_NONE);
    add_runs(state, (struct compare_sample){.policy = "random", .every = 50, .lift = 2}, 1, 7);
    request.baseline = COMPARE_ALL_PAIRS;
    struct comparison all = compare(state, &request);
    request.only = only;
    request.only_count = 2;
    struct comparison planned = compare(state, &request);
    assert_int_equal(all.pair_count, 3 * 3);
    assert_int_equal(planned.pair_count, 3);
    assert_int_equal(planned.group_count, 2);
    for (size_t i = 0; i < planned.pair_count; i++)
        assert_true(planned.pair[i].p_holm <= 3 * planned.pair[i].p_permutation + 1e-12);
    comparison_free(&all);
    comparison_free(&planned);
    request.only = unknown;
    assert_fails(compare_runs(((struct fixture *)*state)->store, &request, &planned, &error), ERROR_ARGUMENT,
                 "unknown group \"most\"");
}

static void too_many_pairs_are_not_tested(void **state)
{
    for (int64_t every = 1; every <= 130; every++)
        add_runs(state, (struct compare_sample){.policy = "none", .every = every}, 1, 1);
    size_t count;
    const struct metric *metrics = metric_list(&count);
    const char *names[16], *const by[] = {"merge.every"};
    for (size_t i = 0; i < count; i++)
        names[i] = metrics[i].name;
    struct comparison_request request = make_request();
    request.by = by;
    request.metrics = names;
    request.metric_count = count;
    request.detail = COMPARE_DATASETS;
    struct comparison comparison = compare(state, &request);
    assert_int_equal(comparison.group_count, 130);
    assert_string_equal(comparison.group[129].name, "130");
    assert_true(comparison.sample_count > 130 * count);
    assert_int_equal(comparison.pair_count, 0);
    assert_true(noted(&comparison, "8385 pairs of groups would take 268320 tests, more than 200000"));
    comparison_free(&comparison);
    request.baseline = "70";
    comparison = compare(state, &request);
    assert_true(comparison.pair_count > 129 * count);
    comparison_free(&comparison);
    request.baseline = "700";
    assert_fails(compare_runs(((struct fixture *)*state)->store, &request, &comparison, &error), ERROR_ARGUMENT,
                 "did you mean \"100\"?); expected one of 130 groups, from \"1\" to \"99\"");
}

static void mistakes_are_told(void **state)
{
    struct store *store = ((struct fixture *)*state)->store;
    struct comparison_request request = make_request();
    struct comparison comparison;
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "no run to compare");
    add_two_policies(state, 2, PER_IMAGE_NONE);
    request.baseline = "nne";
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "did you mean \"none\"?");
    request.baseline = NULL;
    request.by = (const char *const[]){"merge.evry"};
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "did you mean \"merge.every\"?");
    request.by = (const char *const[]){"run.threads"};
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "how a run is computed");
    request.by = (const char *const[]){"policy", "policy"};
    request.by_count = 2;
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "\"policy\" is named twice");
    request.by = by_policy;
    request.by_count = 1;
    request.metrics = (const char *const[]){"last", "average", "last"};
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "\"last\" is named twice");
    request.metrics = (const char *const[]){"lst"};
    request.metric_count = 1;
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "did you mean \"last\"?");
    request.metrics = three_metrics;
    request.filter.policy = "most_usd";
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "did you mean \"most_used\"?");
    request.filter = (struct query_filter){.policy = "none", .status = "failed"};
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "no run to compare");
    add_runs(state, (struct compare_sample){.policy = "late", .every = 50, .stopped = true}, 1, 2);
    request.filter = (struct query_filter){.policy = "late"};
    assert_fails(compare_runs(store, &request, &comparison, &error), ERROR_ARGUMENT, "2 fit, but none is finished");
    request.filter = (struct query_filter){0}; /* nothing is left open by those before */
    comparison = compare(state, &request);
    comparison_free(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(seeds_are_paired, create, destroy),
        cmocka_unit_test_setup_teardown(few_seeds_cannot_say_much, create, destroy),
        cmocka_unit_test_setup_teardown(differences_without_spread_say_nothing, create, destroy),
        cmocka_unit_test_setup_teardown(other_seeds_are_no_pairs, create, destroy),
        cmocka_unit_test_setup_teardown(none_is_the_baseline_of_its_own_accord, create, destroy),
        cmocka_unit_test_setup_teardown(settings_that_differ_are_not_pooled, create, destroy),
        cmocka_unit_test_setup_teardown(other_weights_are_not_pooled, create, destroy),
        cmocka_unit_test_setup_teardown(other_images_are_not_pooled, create, destroy),
        cmocka_unit_test_setup_teardown(contents_that_were_not_recorded_are_others, create, destroy),
        cmocka_unit_test_setup_teardown(a_word_may_stand_for_several_keys, create, destroy),
        cmocka_unit_test_setup_teardown(a_key_that_matters_with_some_values, create, destroy),
        cmocka_unit_test_setup_teardown(a_policys_own_keys_belong_to_it, create, destroy),
        cmocka_unit_test_setup_teardown(methods_stand_beside_zero_shot, create, destroy),
        cmocka_unit_test_setup_teardown(what_is_left_out_is_told, create, destroy),
        cmocka_unit_test_setup_teardown(datasets_by_themselves, create, destroy),
        cmocka_unit_test_setup_teardown(images_one_by_one, create, destroy),
        cmocka_unit_test_setup_teardown(images_that_were_not_kept, create, destroy),
        cmocka_unit_test_setup_teardown(tables_have_every_row, create, destroy),
        cmocka_unit_test_setup_teardown(best_stands_out, create, destroy),
        cmocka_unit_test_setup_teardown(contexts_at_a_glance, create, destroy),
        cmocka_unit_test_setup_teardown(a_baseline_that_some_contexts_lack, create, destroy),
        cmocka_unit_test_setup_teardown(planned_comparisons_are_a_family_of_their_own, create, destroy),
        cmocka_unit_test_setup_teardown(too_many_pairs_are_not_tested, create, destroy),
        cmocka_unit_test_setup_teardown(mistakes_are_told, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
