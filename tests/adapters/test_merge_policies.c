/* What policies plan to merge, which experts of a block, and what they replace; and when, within a task. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "tests/adapters/small_adapters.h"

enum { EXPERTS = 4, TARGETS = 6, MOST = 8 };

/* "1: 0+3>2" for block 1, whose experts 0 and 3 replace expert 2; with why not, if not; in the order of the plan. */
static const char *planned(const struct merge_policy *policy, const struct options *options,
                           const struct merge_view *view, uint32_t iteration)
{
    static char text[256];
    const struct merge_call call = {.options = options, .rng = rng_make(1, RNG_POLICY, 0, iteration)};
    struct merge_list list = {0};
    size_t used = 0;
    text[0] = 0;
    policy->plan(view, &call, &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct merge *m = &list.merges[i];
        assert_int_equal(m->sources, 2);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu: %d+%d>%d%s%s", i > 0 ? ", " : "", m->block,
                                 m->source[0], m->source[1], m->target, m->skip != MERGE_DONE ? " " : "",
                                 merge_skip_name(m->skip));
    }
    free(list.merges);
    return text;
}

/* The view, by block; what a policy does not look at is left out, and an option is last. */
static const struct {
    const char *policy, *view, *expected;
} cases[] = {
    {"most_used", "counts=4,9,1,7,2", "0: 1+3>2"},
    {"most_used", "counts=4,9,1,7,2 frozen=0,0,1", "0: 1+3>4"},     /* the least used one is frozen */
    {"most_used", "counts=4,9,1,7,2 frozen=0,1,0,1", "0: 1+3>2"},   /* frozen ones may be sources */
    {"most_used", "counts=3,3,3,3,3", "0: 0+1>0 target_is_source"}, /* ties: the lowest index, everywhere */
    {"most_used", "counts=3,3,3,3,3 frozen=1", "0: 0+1>1 target_is_source"},
    {"most_used", "counts=3,3,3,3,3 frozen=1,1", "0: 0+1>2"},
    {"most_used", "counts=0,5,0,5,0", "0: 1+3>0"},
    {"most_used", "counts=4,9,1,7,2 frozen=1,1,1,1,1", "0: 1+3>-1 no_free_expert"},
    {"most_used", "counts=4,9,1,7,2 frozen=1,0,1,1,1", "0: 1+3>1 target_is_source"}, /* the best alone is free */
    {"most_used", "counts=5", ""},
    {"most_used", "counts=9,7,0,1,9,7,3,1 frozen=0,0,1,0,1,1,1,1 blocks=2", "0: 0+1>3, 1: 0+1>-1 no_free_expert"},
    /* the least used expert, also where it is frozen; in a block of frozen experts, too */
    {"most_used", "counts=9,7,0,1,9,7,3,1 frozen=0,0,1,0,1,1,1,1 blocks=2 target=least_used_any", "0: 0+1>2, 1: 0+1>3"},
    /* 1 and 3 were chosen together, although 0 is used most */
    {"coactivated", "counts=90,50,4,40 pairs=90,1,2,3,1,50,2,6,2,2,4,4,3,6,4,40", "0: 1+3>2"},
    /* 2 is used least, but frozen */
    {"coactivated", "counts=9,50,4,40 frozen=0,0,1 pairs=9,1,2,3,1,50,2,6,2,2,4,4,3,6,4,40", "0: 1+3>0"},
    {"coactivated", "counts=9,9,7,7 pairs=9,5,1,1,5,9,1,1,1,1,7,5,1,1,5,7", "0: 0+1>2"}, /* a tie */
    {"coactivated", "counts=9,8,9,8 pairs=9,1,5,1,1,9,1,5,5,1,9,1,1,5,1,9", "0: 0+2>1"},
    {"coactivated", "counts=9,8,9,8 pairs=9,1,5,5,1,9,1,1,5,1,9,1,5,1,1,9", "0: 0+2>1"},
    {"coactivated", "counts=3,5,9,9 pairs=0,5,0,0,5", "0: 0+1>0 target_is_source"},
    {"coactivated", "counts=5,5,0,0 frozen=1,1,1,1 pairs=0,5,0,0,5", "0: 0+1>-1 no_free_expert"},
    /* every block has its own pair */
    {"coactivated",
     "counts=9,9,0,9,9,0,9,9 pairs=0,4,0,0,4,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,4,0,0,4 blocks=2",
     "0: 0+1>2, 1: 2+3>1"},
    {"coactivated", "counts=9,8,7,6 pairs=9,0,0,0,0,8,0,0,0,0,7,0,0,0,0,6", ""},
    {"coactivated", "counts=9 pairs=9", ""},
    {"coactivated", "counts=9,8 pairs=3,3,3,3", "0: 0+1>1 target_is_source"}, /* no third one to replace */
    /* 1 and 3 have the same followers, 0 and 2 more often another one; nothing of the last block, which has no next one */
    {"downstream", "counts=9,5,1,7,0,0,0,0 next=90,90,10,0,0,1,0,2,90,10,90,0,1,2,0,4 blocks=2", "0: 1+3>2"},
    {"downstream", "counts=3,5,1,7,0,0,0,0 frozen=0,0,1 next=90,90,10,0,0,1,0,2,90,10,90,0,1,2,0,4 blocks=2",
     "0: 1+3>0"},
    /* 1 and 2 alike, but for a factor; so are 0 and 3: the lowest first one */
    {"downstream", "counts=8,5,6,7,0,0,0,0 next=1,1,0,0,0,0,1,2,0,0,3,6,7,7,0,0 blocks=2", "0: 0+3>1"},
    {"downstream", "counts=8,9,6,7,0,0,0,0 next=1,1,0,0,3,3,0,0,5,5,0,0,7,7,0,0 blocks=2", "0: 0+1>2"},
    {"downstream", "counts=8,9,6,7,0,0,0,0 frozen=0,0,1 next=1,1,0,0,3,3,0,0,5,5,0,0,7,7,0,0 blocks=2", "0: 0+1>3"},
    {"downstream", "counts=8,9,6,7,0,0,0,0 frozen=1,1,1,1 next=1,1,0,0,3,3,0,0,5,5,0,0,7,7,0,0 blocks=2",
     "0: 0+1>-1 no_free_expert"},
    {"downstream", "counts=9,8,7,6,0,0,0,0 next=9,0,0,0,0,8,0,0,0,0,7,0,0,0,0,6 blocks=2", ""}, /* no common follower */
    {"downstream", "counts=9,0 next=9 blocks=2", ""},
    {"downstream", "counts=9,8,0,0 next=3,3,3,3 blocks=2", "0: 0+1>1 target_is_source"},
    {"downstream", "counts=9,8 next=3,3,3,3", ""},
};

/* How many numbers follow the key. */
static size_t read_numbers(const char *view, const char *key, int32_t *numbers)
{
    const char *found = strstr(view, key);
    size_t count = 0, skipped = strlen(key);
    for (char *rest; found != NULL && (count == 0 || *found == ','); found = rest, skipped = 1)
        numbers[count++] = (int32_t)strtol(found + skipped, &rest, 10);
    return count;
}

TEST(policies_plan_what_they_say)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t counts[MOST], frozen[MOST] = {0}, pairs[2 * EXPERTS * EXPERTS] = {0}, next[2 * EXPERTS * EXPERTS] = {0};
        const char *words = cases[i].view, *option = strstr(words, "target=");
        const struct merge_policy *policy;
        must(merge_policy_find(&policy, cases[i].policy, &error));
        struct options *options = small_options(policy->options, option != NULL ? option : "");
        size_t blocks = strstr(words, "blocks=2") != NULL ? 2 : 1;
        const struct merge_view view = {.blocks = blocks,
                                        .experts = read_numbers(words, "counts=", counts) / blocks,
                                        .counts = counts,
                                        .frozen = frozen,
                                        .pairs = pairs,
                                        .next = next};
        read_numbers(words, "frozen=", frozen);
        read_numbers(words, "pairs=", pairs);
        read_numbers(words, "next=", next);
        const char *found = planned(policy, options, &view, 0);
        if (strcmp(found, cases[i].expected) != 0)
            fail_msg("%s, %s: expected '%s', found '%s'", cases[i].policy, words, cases[i].expected, found);
        options_destroy(options);
    }
}

static void expect_line(const char *name, const char *what, const char *text)
{
    if (text == NULL || *text == 0 || strchr(text, '\n') != NULL)
        fail_msg("%s: expected a %s in one line", name, what);
}

TEST(policies_are_found_by_name)
{
    const struct merge_policy *policy, *found;
    const struct merge_combiner *combiner;
    must_refuse(merge_policy_find(&policy, "most_usd", &error), ERROR_ARGUMENT, "did you mean \"most_used\"");
    for (size_t i = 0; (policy = merge_policy_at(i)) != NULL; i++) {
        must(merge_policy_find(&found, policy->name, &error));
        assert_ptr_equal(found, policy);
        expect_line(policy->name, "source", policy->source);
        expect_line(policy->name, "formula", policy->formula);
    }
    for (size_t i = 0; (combiner = merge_combiner_at(i)) != NULL; i++) {
        expect_line(combiner->name, "source", combiner->source);
        expect_line(combiner->name, "formula", combiner->formula);
    }
    assert_true(policy_none.plan == NULL && policy_none.after_step == NULL);
}

/* Two blocks whose highest pair is 0 and 1 for every policy; in the second one all but the sources are frozen. */
static const int32_t target_counts[2 * TARGETS] = {9, 8, 1, 2, 3, 4, 9, 8, 1, 2, 3, 4},
                                       target_frozen[2 * TARGETS] = {0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                                       target_pairs[2 * TARGETS * TARGETS] =
                                           {[1] = 5, [TARGETS] = 5, [37] = 5, [42] = 5},
                                       target_next[2 * TARGETS * TARGETS] = {[0] = 5, [TARGETS] = 5};
static const float target_similarity[2 * TARGETS * TARGETS] = {[1] = 1, [TARGETS] = 1, [37] = 1, [42] = 1};

static const struct merge_view target_view = {.blocks = 2,
                                              .experts = TARGETS,
                                              .counts = target_counts,
                                              .frozen = target_frozen,
                                              .pairs = target_pairs,
                                              .next = target_next,
                                              .similarity = target_similarity};

TEST(random_targets_are_neither_source_nor_frozen)
{
    static const char *const names[] = {"most_used", "similar", "coactivated", "downstream"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct merge_policy *policy;
        size_t drawn[TARGETS] = {0};
        must(merge_policy_find(&policy, names[i], &error));
        struct options *options = small_options(policy->options, "target=random_free");
        for (uint32_t iteration = 0; iteration < 400; iteration++) {
            size_t target;
            const char *found = planned(policy, options, &target_view, iteration), *rest = strchr(found, ',');
            assert_int_equal(sscanf(found, "0: 0+1>%zu", &target), 1);
            assert_between(target, 0, TARGETS - 1);
            assert_int_equal(found[8], rest != NULL ? ',' : 0); /* nothing hinders the merge */
            assert_true(rest == NULL || strcmp(rest, ", 1: 0+1>-1 no_free_expert") == 0);
            drawn[target]++;
        }
        for (size_t e = 0; e < TARGETS; e++)
            if (e < 3)
                assert_int_equal(drawn[e], 0); /* sources, and a frozen one */
            else
                assert_between(drawn[e], 100, 170); /* 400 draws of 3 */
        options_destroy(options);
    }
}

/* The sources and the target of the control are three experts. */
TEST(random_draws_three_experts)
{
    size_t sources[TARGETS] = {0};
    struct options *options = small_options(policy_random.options, "");
    for (uint32_t iteration = 0; iteration < 400; iteration++) {
        size_t a, b, target;
        const char *found = planned(&policy_random, options, &target_view, iteration);
        assert_int_equal(sscanf(found, "0: %zu+%zu>%zu, 1: ", &a, &b, &target), 3);
        assert_true(a != b && a != target && b != target && target != 2);
        sources[a]++;
        sources[b]++;
    }
    for (size_t e = 0; e < TARGETS; e++)
        assert_between(sources[e], 100, 170); /* 800 draws of 6; frozen ones may be sources */
    options_destroy(options);
}

/* No merge is left out for its target, so that doses are equal whichever target it is. */
TEST(random_sources_replace_the_least_used)
{
    size_t sources[TARGETS] = {0};
    struct options *options = small_options(policy_random.options, "target=least_used");
    for (uint32_t iteration = 0; iteration < 400; iteration++) {
        size_t a, b;
        const char *found = planned(&policy_random, options, &target_view, iteration);
        assert_int_equal(sscanf(found, "0: %zu+%zu>", &a, &b), 2);
        assert_memory_equal(found + 6, ">3, 1: ", 7); /* the least used that is not frozen */
        assert_true(a != b && a != 3 && b != 3);
        sources[a]++;
        sources[b]++;
    }
    for (size_t e = 0; e < TARGETS; e++)
        if (e != 3)
            assert_between(sources[e], 120, 200); /* 800 draws of 5 */
    options_destroy(options);
}

/* repair: hidden units of the mean get the statistics of their sources', and the second layer stays the mean. */
enum { WIDTH = 6, HIDDEN = 5, PROBES_HERE = 40, SIZE = 2 * WIDTH * HIDDEN + WIDTH + HIDDEN };

static void unit_moments(const float *expert, const float *probes, size_t unit, double *mean, double *deviation)
{
    const struct expert_shape linear = {WIDTH, HIDDEN, ACTIVATION_NONE};
    double sum = 0, squares = 0;
    for (size_t p = 0; p < PROBES_HERE; p++) {
        float hidden[HIDDEN];
        expert_forward(linear, expert, 1, probes + p * WIDTH, hidden, NULL);
        sum += (double)hidden[unit];
        squares += (double)hidden[unit] * (double)hidden[unit];
    }
    *mean = sum / PROBES_HERE;
    *deviation = sqrt(fmax(squares / PROBES_HERE - *mean * *mean, 0));
}

TEST(repair_gives_the_statistics_of_the_sources)
{
    enum { SOURCES = 3, CONSTANT = 2 };
    static float experts[SOURCES][SIZE], probes[PROBES_HERE * WIDTH], merged[SIZE];
    const struct rng rng = rng_make(7, RNG_POLICY, 0, 0);
    struct merge_sources sources = {
        .count = SOURCES, .shape = {WIDTH, HIDDEN, ACTIVATION_RELU}, .probe_count = PROBES_HERE, .probes = probes};
    for (size_t i = 0; i < PROBES_HERE * WIDTH; i++)
        probes[i] = 1 + (float)rng_normal(&rng, i);
    for (size_t k = 0; k < SOURCES; k++) {
        for (size_t i = 0; i < SIZE; i++)
            experts[k][i] = (float)rng_normal(&rng, 1000 * (k + 1) + i);
        memset(experts[k] + CONSTANT * WIDTH, 0, WIDTH * sizeof(float)); /* a unit without weights is its bias */
        sources.expert[k] = experts[k];
    }
    must(combine_repair.combine(&sources, NULL, merged, &error));
    for (size_t unit = 0; unit < HIDDEN; unit++) {
        double mean = 0, deviation = 0, m, d;
        for (size_t k = 0; k < SOURCES; k++) {
            unit_moments(experts[k], probes, unit, &m, &d);
            mean += m / SOURCES;
            deviation += d / SOURCES;
        }
        unit_moments(merged, probes, unit, &m, &d);
        assert_true(fabs(m - mean) < 1e-5 && fabs(d - deviation) < 1e-3);
        assert_true((deviation < 1e-3) == (unit == CONSTANT));
    }
    for (size_t i = WIDTH * HIDDEN + HIDDEN; i < SIZE; i++)
        assert_true(fabsf(merged[i] - (experts[0][i] + experts[1][i] + experts[2][i]) / SOURCES) < 1e-6f);
    sources.expert[1] = sources.expert[2] = experts[0]; /* of equal experts it is that expert */
    must(combine_repair.combine(&sources, NULL, merged, &error));
    for (size_t i = 0; i < SIZE; i++)
        assert_true(fabsf(merged[i] - experts[0][i]) < 1e-5f);
}

/* ---- schedules ---- */

/* The iterations of a task of n after which a schedule without a look at the loss merges. */
static size_t due_iterations(const struct merge_schedule *schedule, size_t n, size_t every, size_t *due)
{
    size_t count = 0;
    for (size_t i = 1; schedule->due != NULL && i <= n; i++)
        if (schedule->due(&(struct schedule_call){.iteration = i, .iterations = n, .every = every}))
            due[count++] = i;
    return count;
}

static void expect_due(const struct merge_schedule *schedule, size_t n, size_t every, const size_t *expected,
                       size_t count)
{
    size_t due[1024];
    assert_int_equal(due_iterations(schedule, n, every, due), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(due[i], expected[i]);
}

TEST(fixed_schedules)
{
    expect_due(&schedule_every, 10, 3, (const size_t[]){3, 6, 9}, 3);
    expect_due(&schedule_once, 10, 3, (const size_t[]){3}, 1);
    expect_due(&schedule_once, 10, 11, NULL, 0);
    expect_due(&schedule_end_of_task, 10, 3, NULL, 0);
    assert_true(schedule_end_of_task.after_task);
}

/* 10 merges in 1000 iterations: the k-th when 10 · F(i / 1000) reaches k, F the triangle's integral. */
TEST(warmup_decay_is_densest_in_the_middle)
{
    size_t due[1024], every[1024], count = due_iterations(&schedule_warmup_decay, 1000, 100, due);
    assert_int_equal(count, 10);
    for (size_t k = 1; k <= 10; k++) {
        double part = (double)k / 10, x = part <= 0.5 ? sqrt(part / 2) : 1 - sqrt((1 - part) / 2);
        assert_true(fabs((double)due[k - 1] - 1000 * x) <= 1);
    }
    assert_int_equal(due[9], 1000);
    assert_int_equal(due_iterations(&schedule_every, 1000, 100, every), 10);
    assert_true(due[0] > every[0] && due[5] - due[4] < 60 && due[9] - due[8] > 200);
    assert_int_equal(due_iterations(&schedule_warmup_decay, 99, 100, due), 0); /* as with every */
    assert_int_equal(due_iterations(&schedule_warmup_decay, 6, 2, due), 3);
    size_t many = due_iterations(&schedule_warmup_decay, 100, 1, due);
    assert_between(many, 50, 100); /* several at once are one */
}

/* Mean losses of one window after another, and whether a merge follows. */
TEST(plateau_waits_for_a_loss_that_does_not_fall)
{
    static const struct {
        double loss;
        bool due;
    } windows[] = {{4, false},           {3, false},   {2.98, true}, {2.9502, false}, {2.95, true}, {3.5, true},
                   {(double)NAN, false}, {3.4, false}, {3.4, true},  {0, false},      {0, false}};
    struct schedule_state memory = {0};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct schedule_call call = {.iteration = (i + 1) * 5,
                                     .iterations = 1000,
                                     .every = 5,
                                     .least_fall = 0.01,
                                     .loss = windows[i].loss,
                                     .state = &memory};
        if (schedule_plateau.due(&call) != windows[i].due)
            fail_msg("window %zu", i);
    }
}
