/* What is stored of merges afterwards: against counts and losses of every iteration, after a stop, and without effect on what is
 * trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/checkpoint.h"
#include "harness/train/services/merge_effects.h"
#include "harness/train/trainer.h"
#include "tests/harness/small_run.h"

enum { ITERATIONS = 60, BLOCKS = 2, EXPERTS = 5 };

static const char *const overrides[] = {"training.iterations=60", "merge.every=4", NULL};

/* After each iteration. */
struct seen {
    struct run *e;
    double loss[ITERATIONS + 1];
    int32_t counts[ITERATIONS + 1][TOWERS][BLOCKS][EXPERTS];
};

static bool every_loss(void *context, size_t iteration, size_t iterations)
{
    (void)context;
    (void)iteration;
    (void)iterations;
    return true;
}

static status look(void *context, const struct step_report *report, struct error *failure)
{
    struct seen *seen = context;
    seen->loss[report->iteration] = report->loss;
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < BLOCKS; b++)
            TRY(adapters_read_counts(seen->e->model.adapters, (enum tower)t, b, seen->counts[report->iteration][t][b],
                                     failure));
    return OK;
}

static void train(struct run *e, size_t first, const struct stop *stop, struct seen *seen)
{
    struct training training = {.run = &e->method, .task = &e->data.tasks[0], .first = first, .stop = stop};
    if (seen != NULL) {
        seen->e = e;
        training.wants_loss = every_loss;
        training.after = look;
        training.context = seen;
    }
    assert_int_equal(train_task(&training, &error), stop != NULL ? ERROR_STOPPED : OK);
}

static double mean(const struct seen *seen, size_t first, size_t last)
{
    double sum = 0;
    for (size_t i = first; i <= last; i++)
        sum += seen->loss[i];
    return sum / (double)(last - first + 1);
}

static const struct merge *merge_of(const struct run *e, const struct merge_effect *effect)
{
    size_t left =
        (effect->iteration / 4 - 1) * TOWERS * BLOCKS; /* changes of all blocks after every fourth iteration */
    for (size_t i = left; i < left + TOWERS * BLOCKS; i++) {
        const struct expert_change *change = &e->method.changes.changes[i];
        if (change->kind == CHANGE_MERGE && change->tower == effect->tower && change->merge.block == effect->block)
            return &change->merge;
    }
    fail_msg("there was no merge after iteration %zu", effect->iteration);
    return NULL;
}

static void check_effect(const struct run *e, const struct seen *seen, const struct merge_effect *effect)
{
    size_t at = effect->iteration, end = at + EFFECT_WINDOW < ITERATIONS ? at + EFFECT_WINDOW : ITERATIONS,
           first = at > EFFECT_WINDOW ? at - EFFECT_WINDOW + 1 : 1;
    int target = merge_of(e, effect)->target;
    int64_t choices = 0;
    const int32_t *before = seen->counts[at][effect->tower][effect->block],
                  *after = seen->counts[end][effect->tower][effect->block];
    for (size_t k = 0; k < EXPERTS; k++)
        choices += after[k] - before[k];
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

TEST(effects_are_those_of_counts_and_losses)
{
    static struct seen seen;
    struct small_run run;
    small_run_open(&run, 1, overrides);
    train(run.experiment, 0, NULL, &seen);
    const struct merge_effect_list *list = &run.experiment->method.effects;
    size_t merges = 0, whole = 0;
    for (size_t i = 0; i < run.experiment->method.changes.count; i++)
        merges += run.experiment->method.changes.changes[i].kind == CHANGE_MERGE;
    assert_true(merges > 20);
    assert_int_equal(list->count, merges);
    for (size_t i = 0; i < list->count; i++) {
        check_effect(run.experiment, &seen, &list->effects[i]);
        whole += list->effects[i].iterations == EFFECT_WINDOW;
        assert_int_equal(list->effects[i].position, 0);
    }
    assert_true(whole >= 2 && whole < list->count);
    small_run_close(&run);
}

static void stop_after(struct small_run *run, size_t iteration, const char *const *settings)
{
    struct stop stop = {.signal = 2};
    struct checkpoint_place place;
    bool found;
    for (size_t i = 0; i < iteration; i++)
        train(run->experiment, i, &stop, NULL);
    must(checkpoint_save(run->experiment, NULL, small_run_file(run, "resume"),
                         &(struct checkpoint_place){.iteration = iteration}, &error));
    small_run_reopen(run, 1, settings);
    must(checkpoint_load(run->experiment, NULL, small_run_file(run, "resume"), &place, &found, &error));
    assert_int_equal(place.iteration, iteration);
}

TEST(a_stop_loses_nothing)
{
    struct small_run run;
    small_run_open(&run, 1, overrides);
    train(run.experiment, 0, NULL, NULL);
    size_t count = run.experiment->method.effects.count;
    struct merge_effect *whole = small_run_keep(malloc(count * sizeof *whole));
    memcpy(whole, run.experiment->method.effects.effects, count * sizeof *whole);
    small_run_reopen(&run, 1, overrides);
    stop_after(&run, 55, overrides); /* a window has ended and is not read yet, others are open */
    assert_int_equal(run.experiment->method.effects.count, 0);
    train(run.experiment, 55, NULL, NULL);
    assert_true(run.experiment->method.effects.count > 0);
    size_t earlier = count - run.experiment->method.effects.count; /* those that were known before the stop */
    for (size_t i = earlier; i < count; i++) {
        const struct merge_effect *found = &run.experiment->method.effects.effects[i - earlier];
        assert_int_equal(found->tower, whole[i].tower); /* what follows is without padding */
        assert_memory_equal(&found->block, &whole[i].block, sizeof *whole - offsetof(struct merge_effect, block));
    }
    for (size_t i = 0; i < earlier; i++)
        assert_true(whole[i].known <= 55);
    small_run_close(&run);
}

/* On or off, also from one session to the next. */
TEST(weights_do_not_depend_on_the_analysis)
{
    static const char *const off[] = {"training.iterations=60", "merge.every=4", "merge.analysis=no", NULL};
    struct small_run run;
    small_run_open(&run, 1, off);
    train(run.experiment, 0, NULL, NULL);
    assert_int_equal(run.experiment->method.effects.count, 0);
    size_t n = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters->values_count;
    float *expected = small_run_adapters(&run, TOWER_IMAGE);
    for (size_t i = 0; i < 3; i++) {
        small_run_reopen(&run, 1, i == 2 ? off : overrides);
        if (i == 1)
            stop_after(&run, 30, off);
        if (i == 2)
            stop_after(&run, 30, overrides);
        train(run.experiment, i > 0 ? 30 : 0, NULL, NULL);
        float *found = small_run_adapters(&run, TOWER_IMAGE);
        assert_memory_equal(found, expected, n * sizeof *found);
        assert_true((run.experiment->method.effects.count > 0) == (i != 1));
    }
    small_run_close(&run);
}

/* The losses before the stop are unknown then. */
TEST(an_analysis_that_begins_later_knows_no_earlier_losses)
{
    static const char *const off[] = {"training.iterations=60", "merge.every=4", "merge.analysis=no", NULL};
    static struct seen seen;
    struct small_run run;
    small_run_open(&run, 1, off);
    stop_after(&run, 30, overrides);
    train(run.experiment, 30, NULL, &seen);
    const struct merge_effect_list *list = &run.experiment->method.effects;
    assert_true(list->count > 0);
    for (size_t i = 0; i < list->count; i++)
        assert_true(fabs(list->effects[i].loss_before - mean(&seen, 31, list->effects[i].iteration)) < 1e-9);
    small_run_close(&run);
}
