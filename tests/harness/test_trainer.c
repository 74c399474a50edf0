#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/trainer.h"
#include "models/schedule.h"
#include "tests/harness/small_run.h"

/* What the trainer reported after each iteration, and what changed by then. */
struct record {
    struct small_run *run;
    size_t count, images, every; /* every: a loss is wanted each so many iterations */
    double loss[64], rate[64];
    size_t merged_at[64], merges; /* iterations with changes of experts */
    struct stop *stop;
    size_t stop_at;
};

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    const struct record *record = context;
    (void)iterations;
    return iteration % record->every == 0;
}

static status after(void *context, const struct step_report *report, struct error *failure)
{
    struct record *record = context;
    struct expert_changes *changes = &record->run->experiment->changes;
    (void)failure;
    assert_int_equal(report->iteration, record->count + 1);
    record->loss[record->count] = report->loss;
    record->rate[record->count++] = report->rate;
    record->images = report->images;
    if (changes->count > 0)
        record->merged_at[record->merges++] = report->iteration;
    expert_changes_clear(changes);
    if (record->stop != NULL && report->iteration == record->stop_at)
        record->stop->signal = 2;
    return OK;
}

static status train(struct small_run *run, size_t task, struct record *record)
{
    record->run = run;
    record->every = record->every > 0 ? record->every : 1;
    struct training training = {.experiment = run->experiment,
                                .task = &run->experiment->tasks[task],
                                .stop = record->stop,
                                .first = record->count,
                                .wants_loss = wants_loss,
                                .after = after,
                                .context = record};
    return train_task(&training, &error);
}

static double mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

static void loss_falls(const char *method)
{
    struct small_run run;
    struct record record = {0};
    small_run_open(&run, 1,
                   (const char *const[]){method, "training.iterations=40", "training.label_smoothing=0",
                                         "training.batch=16", "method.train=adapters", NULL});
    must(train(&run, 1, &record));
    assert_int_equal(record.count, 40);
    if (!(mean(record.loss + 35, 5) < 0.7 * mean(record.loss, 5)))
        fail_msg("%s: the loss was %g and is %g", method, mean(record.loss, 5), mean(record.loss + 35, 5));
    small_run_close(&run);
}

static void the_loss_of_adapters_falls(void **state)
{
    (void)state;
    loss_falls("method.name=finetune");
}

static void the_loss_of_all_weights_falls_and_logit_scale_stays(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {0};
    float before, after_training;
    small_run_open(&run, 1,
                   (const char *const[]){"method.name=continual_ft", "training.iterations=30",
                                         "training.learning_rate=1e-3", "training.weight_decay=0.1",
                                         "training.label_smoothing=0", NULL});
    must(clip_logit_scale(run.experiment->clip, &before, &error));
    must(train(&run, 1, &record));
    must(clip_logit_scale(run.experiment->clip, &after_training, &error));
    assert_true(mean(record.loss + 25, 5) < 0.7 * mean(record.loss, 5));
    assert_true(before == after_training);
    small_run_close(&run);
}

static void merges_happen_every_m_iterations_from_one(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {0};
    small_run_open(&run, 1, (const char *const[]){"training.iterations=10", NULL}); /* merge.every is 3 */
    must(train(&run, 0, &record));
    assert_int_equal(record.merges, 3);
    for (size_t i = 0; i < record.merges; i++)
        assert_int_equal(record.merged_at[i], 3 * (i + 1));
    /* end_task freezes: one change per block and tower, after the last iteration */
    assert_int_equal(run.experiment->changes.count, 4);
    assert_int_equal(run.experiment->changes.changes[0].kind, CHANGE_FREEZE);
    small_run_close(&run);
}

static void no_policy_no_merge(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {0};
    small_run_open(&run, 1, (const char *const[]){"merge.policy=none", NULL});
    must(train(&run, 0, &record));
    assert_int_equal(record.merges, 0);
    small_run_close(&run);
}

/* Expert e of every tensor of a block, before and after. */
static bool expert_moved(const struct small_run *run, enum tower tower, size_t block, size_t expert,
                         const float *before, const float *now)
{
    const struct adapter_tower *t = &run->experiment->adapters->towers[tower];
    const size_t tensors[] = {t->banks[block].down_weight, t->banks[block].down_bias, t->banks[block].up_weight,
                              t->banks[block].up_bias};
    for (size_t i = 0; i < 4; i++) {
        const struct parameter *p = &t->parameters->list[tensors[i]];
        size_t n = p->size / p->shape[0], first = p->offset + expert * n;
        if (memcmp(before + first, now + first, n * sizeof *now) != 0)
            return true;
    }
    return false;
}

static void frozen_experts_stay_where_they_are(void **state)
{
    (void)state;
    struct small_run run;
    struct record first = {0}, second = {0};
    size_t moved = 0, frozen_experts = 0;
    small_run_open(&run, 1, (const char *const[]){"training.iterations=12", NULL});
    struct experiment *e = run.experiment;
    must(train(&run, 0, &first));
    expert_changes_clear(&e->changes);
    float *before[TOWERS], *now[TOWERS];
    for (int t = 0; t < TOWERS; t++)
        before[t] = small_run_adapters(&run, (enum tower)t);
    int32_t frozen[TOWERS][2][5];
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < 2; b++)
            must(adapters_read_frozen(e->adapters, (enum tower)t, b, frozen[t][b], &error));
    must(train(&run, 1, &second));
    for (int t = 0; t < TOWERS; t++) {
        now[t] = small_run_adapters(&run, (enum tower)t);
        for (size_t b = 0; b < 2; b++)
            for (size_t k = 0; k < 5; k++) {
                bool changed = expert_moved(&run, (enum tower)t, b, k, before[t], now[t]);
                assert_false(frozen[t][b][k] != 0 && changed);
                moved += changed;
                frozen_experts += frozen[t][b][k] != 0;
            }
        free(before[t]);
        free(now[t]);
    }
    assert_int_equal(frozen_experts, 2 * 4); /* freeze_top_k of every block of both towers */
    assert_true(moved > 0);
    small_run_close(&run);
}

/* Only the task's own router and noise matrix learn. */
static void other_routers_stay_zero(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {0};
    small_run_open(&run, 1, NULL);
    must(train(&run, 1, &record));
    float *values = small_run_adapters(&run, TOWER_IMAGE);
    const struct adapter_tower *tower = &run.experiment->adapters->towers[TOWER_IMAGE];
    const struct parameter *routers = &tower->parameters->list[tower->banks[0].routers];
    size_t each = routers->size / SMALL_RUN_TASKS, touched[SMALL_RUN_TASKS] = {0};
    for (size_t i = 0; i < routers->size; i++)
        touched[i / each] += values[routers->offset + i] != 0;
    assert_int_equal(touched[0], 0);
    assert_true(touched[1] > 0);
    assert_int_equal(touched[2], 0);
    free(values);
    small_run_close(&run);
}

static void learning_rate_and_epochs(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {.every = 4};
    /* the second task has 18 images: batches of 8, 8 and 2 */
    small_run_open(&run, 1, (const char *const[]){"training.reference_iterations=yes", NULL});
    must(train(&run, 1, &record));
    assert_int_equal(record.count, 7); /* 6 and the reference's one more */
    assert_int_equal(record.images, 18 + 18 + 8);
    struct schedule schedule = {5e-3, 2, 6};
    for (size_t i = 0; i < 7; i++) {
        assert_true(record.rate[i] == schedule_rate(&schedule, i));
        assert_true(isnan(record.loss[i]) == ((i + 1) % 4 != 0)); /* read only when asked for */
    }
    assert_true(record.rate[6] == 0 && record.rate[5] > 0);
    small_run_close(&run);
}

/* Without adapters' file or clock: two runs of a seed agree bit for bit, another seed does not. */
static void same_seed_same_bits(void **state)
{
    (void)state;
    struct small_run run;
    float *values[3];
    const uint64_t seeds[] = {1, 1, 2};
    const char *const threads[] = {"run.threads=2", "run.threads=1", "run.threads=2"};
    size_t n = 0;
    small_run_open(&run, 1, NULL);
    for (int i = 0; i < 3; i++) {
        struct record record = {0};
        small_run_reopen(&run, seeds[i], (const char *const[]){threads[i], NULL});
        must(train(&run, 2, &record));
        values[i] = small_run_adapters(&run, TOWER_IMAGE);
        n = run.experiment->adapters->towers[TOWER_IMAGE].parameters->values_count;
    }
    assert_memory_equal(values[0], values[1], n * sizeof **values);
    assert_memory_not_equal(values[0], values[2], n * sizeof **values);
    for (int i = 0; i < 3; i++)
        free(values[i]);
    small_run_close(&run);
}

static void stops_between_two_iterations(void **state)
{
    (void)state;
    struct small_run run;
    struct stop stop = {0};
    struct record record = {.stop = &stop, .stop_at = 4};
    small_run_open(&run, 1, NULL);
    assert_int_equal(train(&run, 0, &record), ERROR_STOPPED);
    error_tells((const char *const[]){"first", "iteration 4 of 6", NULL});
    assert_int_equal(record.count, 4);
    assert_int_equal(run.experiment->changes.count, 0); /* end_task did not run */
    small_run_close(&run);
}

static void a_loss_that_overflows_is_told(void **state)
{
    (void)state;
    struct small_run run;
    struct record record = {0};
    small_run_open(&run, 1,
                   (const char *const[]){"method.name=continual_ft", "training.learning_rate=100",
                                         "training.weight_decay=10", "training.warmup=0", "training.iterations=60",
                                         NULL});
    assert_int_equal(train(&run, 0, &record), ERROR_ARGUMENT);
    error_tells((const char *const[]){"first", "loss", "learning_rate", NULL});
    small_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_of_adapters_falls),
        cmocka_unit_test(the_loss_of_all_weights_falls_and_logit_scale_stays),
        cmocka_unit_test(merges_happen_every_m_iterations_from_one),
        cmocka_unit_test(no_policy_no_merge),
        cmocka_unit_test(frozen_experts_stay_where_they_are),
        cmocka_unit_test(other_routers_stay_zero),
        cmocka_unit_test(learning_rate_and_epochs),
        cmocka_unit_test(same_seed_same_bits),
        cmocka_unit_test(stops_between_two_iterations),
        cmocka_unit_test(a_loss_that_overflows_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
