#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/train/guard.h"
#include "harness/train/trainer.h"
#include "models/schedule.h"
#include "tests/adapters/adapters.h"
#include "tests/harness/small_run.h"

static size_t merged_at[64], merges; /* iterations with changes of experts */

static void note_merges(struct small_training *training)
{
    struct expert_changes *changes = &training->run->experiment->method.changes;
    if (changes->count > 0)
        merged_at[merges++] = training->count;
    expert_changes_clear(changes);
}

static double mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

static void loss_falls(const char *method, const char *optimizer, const char *rate)
{
    struct small_run run;
    struct small_training record = {0};
    small_run_open(&run, 1,
                   WORDS(method, "training.iterations=40", "training.label_smoothing=0", "training.batch=16",
                         "method.train=adapters", optimizer, rate));
    must(small_run_train(&run, 1, &record));
    assert_int_equal(record.count, 40);
    if (!(mean(record.loss + 35, 5) < 0.7 * mean(record.loss, 5)))
        fail_msg("%s: the loss was %g and is %g", optimizer, mean(record.loss, 5), mean(record.loss + 35, 5));
    small_run_close(&run);
}

/* Of one image and its prompt there is nothing to tell apart, however many classes the task has. */
TEST(the_contrastive_loss_is_over_pairs)
{
    static const char *const losses[] = {"training.loss=contrastive", "training.loss=cross_entropy"};
    for (size_t i = 0; i < 2; i++) {
        struct small_run run;
        struct small_training record = {0};
        small_run_open(&run, 1,
                       WORDS("method.name=finetune", "method.train=adapters", "training.iterations=3",
                             "training.batch=1", "training.label_smoothing=0", losses[i]));
        must(small_run_train(&run, 1, &record));
        for (size_t k = 0; k < record.count; k++)
            assert_true(i == 0 ? record.loss[k] == 0 : record.loss[k] > 0);
        small_run_close(&run);
    }
    loss_falls("method.name=finetune", "training.loss=contrastive", "training.learning_rate=1e-2");
}

TEST(the_loss_of_adapters_falls)
{
    loss_falls("method.name=finetune", "training.optimizer=adamw", "training.learning_rate=1e-2");
    loss_falls("method.name=finetune", "training.optimizer=sgd", "training.learning_rate=0.5");
    loss_falls("method.name=finetune", "training.optimizer=lamb", "training.learning_rate=0.1");
}

RUN_TEST(the_loss_of_all_weights_falls_and_logit_scale_stays, "method.name=continual_ft", "training.iterations=30",
         "training.learning_rate=1e-3", "training.weight_decay=0.1", "training.label_smoothing=0", NULL)
{
    struct small_training record = {0};
    float before, after_training;
    must(clip_logit_scale(run->experiment->model.clip, &before, &error));
    must(small_run_train(run, 1, &record));
    must(clip_logit_scale(run->experiment->model.clip, &after_training, &error));
    assert_true(mean(record.loss + 25, 5) < 0.7 * mean(record.loss, 5));
    assert_true(before == after_training);
}

RUN_TEST(merges_happen_every_m_iterations_from_one, "training.iterations=10", NULL) /* merge.every is 3 */
{
    merges = 0;
    must(small_run_train(run, 0, &(struct small_training){.look = note_merges}));
    assert_int_equal(merges, 3);
    for (size_t i = 0; i < merges; i++)
        assert_int_equal(merged_at[i], 3 * (i + 1));
    /* end_task freezes: one change per block and tower, after the last iteration */
    assert_int_equal(run->experiment->method.changes.count, 4);
    assert_int_equal(run->experiment->method.changes.changes[0].kind, CHANGE_FREEZE);
    small_run_reopen(run, 1, WORDS("merge.policy=none"));
    must(small_run_train(run, 0, &(struct small_training){.look = note_merges}));
    assert_int_equal(merges, 3);
}

/* Expert e of every tensor of a block, before and after. */
static bool expert_moved(const struct small_run *run, enum tower tower, size_t block, size_t expert,
                         const float *before, const float *now)
{
    const struct adapter_tower *t = &run->experiment->model.adapters->towers[tower];
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

RUN_TEST(frozen_experts_stay_where_they_are, "training.iterations=12", NULL)
{
    size_t moved = 0, frozen_experts = 0;
    struct run *e = run->experiment;
    must(small_run_train(run, 0, NULL));
    expert_changes_clear(&e->method.changes);
    float *before[TOWERS], *now[TOWERS];
    for (int t = 0; t < TOWERS; t++)
        before[t] = small_run_adapters(run, (enum tower)t);
    int32_t frozen[TOWERS][2][5];
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < 2; b++)
            must(adapters_read_frozen(e->model.adapters, (enum tower)t, b, frozen[t][b], &error));
    must(small_run_train(run, 1, NULL));
    for (int t = 0; t < TOWERS; t++) {
        now[t] = small_run_adapters(run, (enum tower)t);
        for (size_t b = 0; b < 2; b++)
            for (size_t k = 0; k < 5; k++) {
                bool changed = expert_moved(run, (enum tower)t, b, k, before[t], now[t]);
                assert_false(frozen[t][b][k] != 0 && changed);
                moved += changed;
                frozen_experts += frozen[t][b][k] != 0;
            }
    }
    assert_int_equal(frozen_experts, 2 * 4); /* freeze_top_k of every block of both towers */
    assert_true(moved > 0);
}

/* Only the task's own router and noise matrix learn. */
RUN_TEST(other_routers_stay_zero, NULL)
{
    must(small_run_train(run, 1, NULL));
    float *values = small_run_adapters(run, TOWER_IMAGE);
    const struct adapter_tower *tower = &run->experiment->model.adapters->towers[TOWER_IMAGE];
    const struct parameter *routers = &tower->parameters->list[tower->banks[0].routers];
    size_t each = routers->size / SMALL_RUN_TASKS, touched[SMALL_RUN_TASKS] = {0};
    for (size_t i = 0; i < routers->size; i++)
        touched[i / each] += values[routers->offset + i] != 0;
    assert_int_equal(touched[0], 0);
    assert_true(touched[1] > 0);
    assert_int_equal(touched[2], 0);
}

RUN_TEST(learning_rate_and_epochs, "training.reference_iterations=yes", NULL)
{
    struct small_training record = {.every = 4};
    /* the second task has 18 images: batches of 8, 8 and 2 */
    must(small_run_train(run, 1, &record));
    assert_int_equal(record.count, 7); /* 6 and the reference's one more */
    assert_int_equal(record.images, 18 + 18 + 8);
    struct schedule schedule = {5e-3, 2, 6};
    for (size_t i = 0; i < 7; i++) {
        assert_true(record.rate[i] == schedule_rate(&schedule, i));
        assert_true(isnan(record.loss[i]) == ((i + 1) % 4 != 0)); /* read only when asked for */
    }
    assert_true(record.rate[6] == 0 && record.rate[5] > 0);
}

/* Without adapters' file or clock: two runs of a seed agree bit for bit, another seed does not. */
RUN_TEST(same_seed_same_bits, NULL)
{
    float *values[3];
    const uint64_t seeds[] = {1, 1, 2};
    const char *const threads[] = {"run.threads=2", "run.threads=1", "run.threads=2"};
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        small_run_reopen(run, seeds[i], WORDS(threads[i]));
        must(small_run_train(run, 2, NULL));
        values[i] = small_run_adapters(run, TOWER_IMAGE);
        n = run->experiment->model.adapters->towers[TOWER_IMAGE].parameters->values_count;
    }
    assert_memory_equal(values[0], values[1], n * sizeof **values);
    assert_memory_not_equal(values[0], values[2], n * sizeof **values);
}

RUN_TEST(stops_between_two_iterations, NULL)
{
    struct small_training record = {.stop_at = 4, .look = note_merges};
    must_refuse(small_run_train(run, 0, &record), ERROR_STOPPED, "first", "iteration 4 of 6");
    assert_int_equal(record.count, 4);
    assert_int_equal(run->experiment->method.changes.count, 0); /* end_task did not run */
}

RUN_TEST(a_loss_that_overflows_is_told, "method.name=continual_ft", "training.learning_rate=100",
         "training.weight_decay=10", "training.warmup=0", "training.iterations=60", NULL)
{
    must_refuse(small_run_train(run, 0, NULL), ERROR_FORMAT, "first", "iteration", "loss", "gradient of",
                "learning_rate", "on_nan");
}

/* Makes the loss, or a gradient, of one step a NaN before the step is looked at. */
static struct {
    const struct backend_ops *real;
    struct backend_ops ops;
    size_t at, looks; /* the call of find_not_finite to disturb, counted from 1 */
} disturbed;

static status disturb(struct backend *backend, const struct find_not_finite *arguments, struct error *failure)
{
    static const float bad = NAN;
    if (++disturbed.looks == disturbed.at)
        must(disturbed.real->upload(backend, (float *)arguments->values + arguments->n / 2, &bad, sizeof bad, failure));
    return disturbed.real->find_not_finite(backend, arguments, failure);
}

static void disturb_backend(struct small_run *run, size_t at)
{
    struct backend *backend = run->experiment->model.backend;
    disturbed.real = backend->ops;
    disturbed.ops = *backend->ops;
    disturbed.ops.find_not_finite = disturb;
    disturbed.at = at;
    disturbed.looks = 0;
    backend->ops = &disturbed.ops;
}

enum { LOOKS = 1 + TOWERS, DISTURBED = 4, STEPS = 6 }; /* at a step: its loss, and the gradients of each tower */

/* All that a step may change. */
struct state {
    struct small_run *run;
    size_t count, n;
    float *values[STEPS], *moments[STEPS];
    int32_t counts[STEPS][2], steps[STEPS][4];
};

static status keep_state(void *context, const struct step_report *report, struct error *failure)
{
    struct state *s = context;
    const struct adapter_tower *tower = &s->run->experiment->model.adapters->towers[TOWER_IMAGE];
    struct backend *backend = s->run->experiment->model.backend;
    assert_int_equal(report->iteration, s->count + 1);
    s->n = tower->parameters->values_count;
    s->values[s->count] = small_run_values(s->run, tower->parameters->values, s->n);
    s->moments[s->count] = small_run_values(s->run, tower->parameters->first_moment, s->n);
    must(backend->ops->download(backend, s->counts[s->count], tower->banks[1].counts, sizeof s->counts[0], failure));
    must(backend->ops->download(backend, s->steps[s->count], tower->parameters->steps, sizeof s->steps[0], failure));
    s->count++;
    return OK;
}

static status train_disturbed(struct small_run *run, const char *on_nan, const char *optimizer, size_t look,
                              struct state *s)
{
    small_run_reopen(run, 1, WORDS(on_nan, optimizer, "merge.every=100", "training.iterations=6"));
    *s = (struct state){.run = run};
    disturb_backend(run, LOOKS * (DISTURBED - 1) + 1 + look);
    status result = train_task(&(struct training){.run = &run->experiment->method,
                                                  .task = &run->experiment->data.tasks[1],
                                                  .after = keep_state,
                                                  .context = s},
                               &error);
    run->experiment->model.backend->ops = disturbed.real;
    return result;
}

static bool same_state(const struct state *s, size_t a, size_t b)
{
    return memcmp(s->values[a], s->values[b], s->n * sizeof(float)) == 0 &&
           memcmp(s->moments[a], s->moments[b], s->n * sizeof(float)) == 0 &&
           memcmp(s->counts[a], s->counts[b], sizeof s->counts[a]) == 0 &&
           memcmp(s->steps[a], s->steps[b], sizeof s->steps[a]) == 0;
}

/* Weights, moments, step counts and selection counts are as before; the steps after it are like any other. */
RUN_TEST(a_step_that_is_skipped_changes_nothing, NULL)
{
    static const char *const optimizers[LOOKS] = {"training.optimizer=adamw", "training.optimizer=sgd",
                                                  "training.optimizer=lamb"};
    struct state s;
    for (size_t look = 0; look < LOOKS; look++) {
        size_t skipped, first;
        must(train_disturbed(run, "training.on_nan=skip", optimizers[look], look, &s));
        assert_int_equal(s.count, STEPS);
        for (size_t i = 1; i < STEPS; i++)
            assert_int_equal(same_state(&s, i - 1, i), i + 1 == DISTURBED);
        must(guard_skipped(&run->experiment->model, &skipped, &first, &error));
        assert_true(skipped == 1 && first == DISTURBED);
    }
}

/* And it says so before anything else is done with it: at once, where that costs nothing. */
RUN_TEST(a_step_that_is_not_finite_stops_the_training, NULL)
{
    static const char *const names[LOOKS] = {"(the loss)", "gradient of visual.transformer.resblocks.",
                                             "gradient of transformer.resblocks."};
    struct state s;
    for (size_t look = 0; look < LOOKS; look++) {
        must_refuse(train_disturbed(run, "training.on_nan=stop", "training.optimizer=adamw", look, &s), ERROR_FORMAT,
                    "second", "iteration 4", names[look], "learning_rate");
        for (size_t i = DISTURBED - 1; i < s.count; i++)
            assert_true(memcmp(s.values[i], s.values[DISTURBED - 2], s.n * sizeof(float)) == 0);
        float *values = small_run_adapters(run, TOWER_IMAGE);
        assert_memory_equal(values, s.values[DISTURBED - 2], s.n * sizeof(float));
    }
}

/* The last step's gradients are finite, the weights that it makes are not. */
RUN_TEST(weights_that_overflow_are_told, NULL)
{
    const float huge = 3e38f, bad = INFINITY;
    struct run *e = run->experiment;
    const struct parameters *group = e->model.adapters->towers[TOWER_TEXT].parameters;
    const float *moment = group->second_moment + group->list[2].offset;
    must(e->model.backend->ops->upload(e->model.backend, (float *)moment, &huge, sizeof huge, &error));
    must(guard_check(&e->model, &e->data.tasks[2], 6, &error));
    must(e->model.backend->ops->upload(e->model.backend, (float *)moment, &bad, sizeof bad, &error));
    must_refuse(guard_check(&e->model, &e->data.tasks[2], 6, &error), ERROR_FORMAT, "third", "after iteration 6",
                "second moment of transformer.resblocks.0.adaptmlp_list.0.up");
}

/* A run whose optimizers have one moment takes no memory for a second one, and its overflow is told, too. */
RUN_TEST(one_moment_is_all_that_sgd_has, "tasks.third.optimizer=sgd", "training.iterations=5", NULL)
{
    const float bad = INFINITY;
    size_t both, one;
    both = run->experiment->model.memory.used;
    must(small_run_train(run, 2, NULL)); /* the other tasks need both */
    assert_non_null(run->experiment->model.adapters->towers[TOWER_TEXT].parameters->second_moment);
    small_run_reopen(run, 1, WORDS("training.optimizer=sgd"));
    struct run *e = run->experiment;
    const struct parameters *group = e->model.adapters->towers[TOWER_TEXT].parameters;
    one = e->model.memory.used;
    for (int t = 0; t < TOWERS; t++)
        one += e->model.adapters->towers[t].parameters->values_count * sizeof(float);
    assert_null(group->second_moment);
    assert_true(one <= both && both - one < 4096); /* but for what aligns tensors */
    must(guard_check(&e->model, &e->data.tasks[2], 6, &error));
    must(e->model.backend->ops->upload(e->model.backend, group->first_moment + group->list[2].offset, &bad, sizeof bad,
                                       &error));
    must_refuse(guard_check(&e->model, &e->data.tasks[2], 6, &error), ERROR_FORMAT,
                "first moment of transformer.resblocks.0.adaptmlp_list.0.up");
}

/* What the keys say is what is computed: with a momentum of 0 sgd's moment is the last gradient. */
RUN_TEST(the_momentum_is_the_suites, NULL)
{
    static const char *const momenta[] = {"training.momentum=0", "training.momentum=0.9", "tasks.first.momentum=0"};
    float *values[3];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        small_run_reopen(run, 1, WORDS("training.optimizer=sgd", momenta[i]));
        must(small_run_train(run, 0, NULL));
        n = run->experiment->model.adapters->towers[TOWER_IMAGE].parameters->values_count;
        values[i] = small_run_adapters(run, TOWER_IMAGE);
    }
    assert_memory_equal(values[0], values[2], n * sizeof(float));
    assert_memory_not_equal(values[0], values[1], n * sizeof(float));
}
