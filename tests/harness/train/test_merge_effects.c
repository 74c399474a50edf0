/* What is stored of merges afterwards: against counts and losses of every iteration, after a stop, and without effect on what is
 * trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/train/services/merging.h"
#include "tests/harness/small_run.h"

enum { ITERATIONS = 60, BLOCKS = 2, EXPERTS = 5 };

#define ON "training.iterations=60", "merge.every=4"
#define OFF ON, "merge.analysis=no"

/* After each iteration. */
struct seen {
    struct small_training training;
    int32_t counts[ITERATIONS + 1][TOWERS][BLOCKS][EXPERTS];
};

static void look(struct small_training *training)
{
    struct seen *seen = (struct seen *)training;
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < BLOCKS; b++)
            must(adapters_read_counts(training->run->experiment->model.adapters, (enum tower)t, b,
                                      seen->counts[training->count][t][b], &error));
}

static double mean(const struct seen *seen, size_t first, size_t last)
{
    double sum = 0;
    for (size_t i = first; i <= last; i++)
        sum += seen->training.loss[i - 1];
    return sum / (double)(last - first + 1);
}

static void check_effect(const struct seen *seen, const struct merge_effect *effect, const struct expert_change *change)
{
    size_t at = effect->iteration, end = at + EFFECT_WINDOW < ITERATIONS ? at + EFFECT_WINDOW : ITERATIONS,
           first = at > EFFECT_WINDOW ? at - EFFECT_WINDOW + 1 : 1;
    int target = change->merge.target;
    int64_t choices = 0;
    const int32_t *before = seen->counts[at][effect->tower][effect->block],
                  *after = seen->counts[end][effect->tower][effect->block];
    for (size_t k = 0; k < EXPERTS; k++)
        choices += after[k] - before[k];
    assert_true(effect->tower == change->tower && effect->block == change->merge.block);
    assert_int_equal(effect->iterations, end - at);
    assert_int_equal(effect->chosen, after[target] - before[target]);
    assert_int_equal(effect->choices, choices);
    assert_true(fabs(effect->loss_before - mean(seen, first, at)) < 1e-9);
    assert_true(at == ITERATIONS ? isnan(effect->loss_after)
                                 : fabs(effect->loss_after - mean(seen, at + 1, end)) < 1e-9);
    assert_true(effect->distance > 0 && effect->distance <= 1);
    /* whole windows are read at the next merge, which here follows at most 4 iterations later */
    size_t read = (end + 3) / 4 * 4;
    assert_int_equal(effect->known, at + EFFECT_WINDOW <= ITERATIONS && read <= ITERATIONS ? read : ITERATIONS + 1);
}

RUN_TEST(effects_are_those_of_counts_and_losses, ON, NULL)
{
    static struct seen seen = {.training.look = look};
    const struct method_run *method = &run->experiment->method;
    const struct merge_effect_list *list = &method->effects;
    size_t merges = 0, whole = 0;
    must(small_run_train(run, 0, &seen.training));
    for (size_t i = 0; i < method->changes.count;
         i++) /* of all blocks after every fourth iteration, then the freezes */
        if (method->changes.changes[i].kind == CHANGE_MERGE) {
            const struct merge_effect *effect = &list->effects[merges++];
            assert_true(merges <= list->count);
            assert_int_equal(effect->iteration, (i / (TOWERS * BLOCKS) + 1) * 4);
            assert_int_equal(effect->position, 0);
            check_effect(&seen, effect, &method->changes.changes[i]);
            whole += effect->iterations == EFFECT_WINDOW;
        }
    assert_true(merges > 20 && merges == list->count);
    assert_true(whole >= 2 && whole < list->count);
}

/* Trains until that iteration, and leaves an experiment with these overrides that goes on from there. */
static void stop_after(struct small_run *run, size_t iteration, const char *const *overrides,
                       struct small_training *training)
{
    *training = (struct small_training){.every = SIZE_MAX, .stop_at = iteration};
    assert_int_equal(small_run_train(run, 0, training), ERROR_STOPPED);
    small_run_resume(run, 0, iteration, overrides);
}

RUN_TEST(a_stop_loses_nothing, ON, NULL)
{
    struct small_training part;
    must(small_run_train(run, 0, NULL));
    size_t count = run->experiment->method.effects.count;
    struct merge_effect *whole = small_run_keep(malloc(count * sizeof *whole));
    memcpy(whole, run->experiment->method.effects.effects, count * sizeof *whole);
    small_run_reopen(run, 1, WORDS(ON));
    stop_after(run, 55, WORDS(ON), &part); /* a window has ended and is not read yet, others are open */
    const struct merge_effect_list *list = &run->experiment->method.effects;
    assert_int_equal(list->count, 0);
    must(small_run_train(run, 0, &part));
    assert_true(list->count > 0);
    size_t earlier = count - list->count; /* those that were known before the stop */
    for (size_t i = earlier; i < count; i++) {
        const struct merge_effect *found = &list->effects[i - earlier];
        assert_int_equal(found->tower, whole[i].tower); /* what follows is without padding */
        assert_memory_equal(&found->block, &whole[i].block, sizeof *whole - offsetof(struct merge_effect, block));
    }
    for (size_t i = 0; i < earlier; i++)
        assert_true(whole[i].known <= 55);
}

/* On or off, also from one session to the next. */
RUN_TEST(weights_do_not_depend_on_the_analysis, OFF, NULL)
{
    must(small_run_train(run, 0, NULL));
    assert_int_equal(run->experiment->method.effects.count, 0);
    size_t n = run->experiment->model.adapters->towers[TOWER_IMAGE].parameters->values_count;
    float *expected = small_run_adapters(run, TOWER_IMAGE);
    for (size_t i = 0; i < 3; i++) {
        struct small_training part = {.every = SIZE_MAX};
        small_run_reopen(run, 1, i == 2 ? WORDS(OFF) : WORDS(ON));
        if (i > 0)
            stop_after(run, 30, i == 1 ? WORDS(OFF) : WORDS(ON), &part);
        must(small_run_train(run, 0, &part));
        assert_memory_equal(small_run_adapters(run, TOWER_IMAGE), expected, n * sizeof *expected);
        assert_true((run->experiment->method.effects.count > 0) == (i != 1));
    }
}

/* The losses before the stop are unknown then. */
RUN_TEST(an_analysis_that_begins_later_knows_no_earlier_losses, OFF, NULL)
{
    static struct seen seen;
    stop_after(run, 30, WORDS(ON), &seen.training);
    seen.training.every = 0;
    must(small_run_train(run, 0, &seen.training));
    const struct merge_effect_list *list = &run->experiment->method.effects;
    assert_true(list->count > 0);
    for (size_t i = 0; i < list->count; i++)
        assert_true(fabs(list->effects[i].loss_before - mean(&seen, 31, list->effects[i].iteration)) < 1e-9);
}
