/* The hooks of a method: what each finds, on which GPUs it is called, and that what it keeps survives stops. The method here
 * pulls the weights towards those that the task began with, which takes a state, a loss and an anchor of its own. */
#include <stdlib.h>
#include <string.h>

#include "harness/heads/trained.h"
#include "harness/run/checkpoint.h"
#include "harness/train/method.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "tests/harness/whole_run.h"

enum { ITERATIONS = 6, MEMBERS = 3 };

struct state {
    float *anchor; /* device, like the weights */
    int32_t updates, steps;
    bool swapped;
};

static struct {
    size_t opened, closed, begun, resumed, ended, evaluated;
} calls;

static struct parameters *weights(const struct method_run *run)
{
    return run->model->clip->parameters;
}

static status copy(const struct method_run *run, float *to, const float *from, struct error *failure)
{
    struct backend *backend = run->model->backend;
    return backend->ops->copy(backend, to, from, weights(run)->values_count * sizeof(float), failure);
}

static status open_anchored(struct method_run *run, struct error *failure)
{
    struct state *state = run->state;
    struct tensor memory;
    calls.opened++;
    TRY(tensor_take(&memory, run->memory, TENSOR_F32, "anchor", 1, (size_t[]){weights(run)->values_count}, failure));
    state->anchor = memory.data;
    return OK;
}

static void close_anchored(struct method_run *run)
{
    (void)run;
    calls.closed++;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *failure)
{
    struct state *state = run->state;
    struct tensor scratch;
    (void)task;
    if (run->model->work.rank == 0) {
        calls.begun++;
        calls.resumed += resumed;
    }
    /* what a task takes must not be overwritten by what the trainer takes afterwards */
    TRY(tensor_take(&scratch, run->task_memory, TENSOR_F32, "scratch", 1, (size_t[]){64}, failure));
    if (resumed)
        return OK;
    state->updates = state->steps = 0;
    TRY(trained_groups_reset(run->model, failure));
    return copy(run, state->anchor, weights(run)->values, failure);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *failure)
{
    struct model *model = run->model;
    TRY(classification_loss(run, task, batch, failure));
    float ranks = (float)(model->work.ranks > 0 ? model->work.ranks : 1);
    return model->backend->ops->penalty(model->backend,
                                        &(struct penalty){.n = weights(run)->values_count,
                                                          .strength = 0.5f / ranks,
                                                          .values = weights(run)->values,
                                                          .anchor = ((struct state *)run->state)->anchor,
                                                          .gradients = weights(run)->gradients,
                                                          .loss = model->loss},
                                        failure);
}

static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    struct state *state = run->state;
    (void)task;
    (void)failure;
    assert_int_equal(++state->updates, iteration);
    return OK;
}

static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    struct state *state = run->state;
    (void)task;
    (void)failure;
    assert_int_equal(++state->steps, iteration);
    return OK;
}

static status end_task(struct method_run *run, const struct task *task, struct error *failure)
{
    const struct state *state = run->state;
    (void)failure;
    calls.ended++;
    assert_int_equal(run->model->work.rank, 0);
    assert_int_equal(state->steps, task->settings.iterations);
    return OK;
}

/* Evaluates what the task began with. */
static status swap(struct method_run *run, struct error *failure)
{
    struct state *state = run->state;
    struct tensor kept;
    arena_reset(run->step_memory);
    TRY(tensor_take(&kept, run->step_memory, TENSOR_F32, "kept", 1, (size_t[]){weights(run)->values_count}, failure));
    TRY(copy(run, kept.data, weights(run)->values, failure));
    TRY(copy(run, parameters_write_all(weights(run)), state->anchor, failure));
    TRY(copy(run, state->anchor, kept.data, failure));
    state->swapped = !state->swapped;
    calls.evaluated += !state->swapped;
    return OK;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *failure)
{
    struct state *state = run->state;
    TRY(serializer_host(serializer, "anchored.updates", SAFETENSOR_I32, 1, &state->updates, failure));
    TRY(serializer_host(serializer, "anchored.steps", SAFETENSOR_I32, 1, &state->steps, failure));
    return serializer_device(serializer, "anchored.anchor", SAFETENSOR_F32, weights(run)->values_count, state->anchor,
                             failure);
}

static const struct method anchored = {.name = "anchored",
                                       .source = "a test",
                                       .loss_repeats = true,
                                       .state_size = sizeof(struct state),
                                       .trains = GROUPS_TOWERS,
                                       .open = open_anchored,
                                       .close = close_anchored,
                                       .begin_task = begin_task,
                                       .loss = loss,
                                       .before_update = before_update,
                                       .after_step = after_step,
                                       .end_task = end_task,
                                       .evaluation_begin = swap,
                                       .evaluation_end = swap,
                                       .keep = keep};

static void adopt(struct method_run *run)
{
    struct model *model = run->model;
    struct data *data = run->data;
    method_close(run);
    model->settings.method = &anchored;
    must(method_open(run, model, data, &error));
}

static void reopen(struct small_run *run, size_t gpus)
{
    small_run_reopen(
        run, 1,
        WORDS("method.name=continual_ft", "training.learning_rate=2e-4", small_run_format("run.gpus=%zu", gpus)));
    for (size_t i = 1; gpus > 1 && i < gpus; i++)
        adopt(replicas_at(run->experiment->model.work.replicas, i));
    adopt(&run->experiment->method);
}

/* The second task, from where it was stopped on. */
static status train(struct small_run *run, struct small_training *training)
{
    training->every = SIZE_MAX;
    return small_run_train(run, 1, training);
}

static float *values_of(const struct small_run *run)
{
    return small_run_group(run->experiment->model.clip->parameters);
}

RUN_TEST(stops_change_nothing, NULL)
{
    reopen(run, 1);
    memset(&calls, 0, sizeof calls);
    must(train(run, &(struct small_training){0}));
    assert_true(calls.begun == 1 && calls.resumed == 0 && calls.ended == 1);
    size_t bytes = run->experiment->model.clip->parameters->values_count * sizeof(float);
    float *whole = values_of(run);
    for (size_t at = 1; at < ITERATIONS; at++) {
        struct checkpoint_place place = {.task = 1, .iteration = at}, found;
        struct small_training part = {.stop_at = at};
        bool there;
        reopen(run, 1);
        assert_int_equal(train(run, &part), ERROR_STOPPED);
        must(checkpoint_save(run->experiment, NULL, small_run_file(run, "resume.safetensors"), &place, &error));
        reopen(run, 1);
        must(checkpoint_load(run->experiment, NULL, small_run_file(run, "resume.safetensors"), &found, &there, &error));
        assert_true(there && found.iteration == at);
        must(train(run, &part));
        assert_memory_equal(values_of(run), whole, bytes);
    }
    assert_int_equal(calls.resumed, ITERATIONS - 1);
}

/* 18 images in batches of 8, 8 and 2, of which the third rank has 2, 2 and none; going on with a state that the others
 * have from the leader. */
TEST(several_gpus_share_any_loss)
{
    if (strcmp(test_backend_name(), "cpu") != 0)
        skip();
    struct small_run run;
    struct small_training part = {.stop_at = 3};
    small_run_open(&run, 1, NULL);
    reopen(&run, 1);
    must(train(&run, &(struct small_training){0}));
    size_t n = run.experiment->model.clip->parameters->values_count;
    float *alone = values_of(&run);
    memset(&calls, 0, sizeof calls);
    reopen(&run, MEMBERS);
    assert_int_equal(calls.opened, MEMBERS);
    assert_int_equal(train(&run, &part), ERROR_STOPPED);
    ((struct state *)replicas_at(run.experiment->model.work.replicas, 1)->state)->steps = 77;
    must(train(&run, &part));
    assert_true(calls.ended == 1 && calls.begun == 2 && calls.resumed == 1);
    float *together = values_of(&run);
    double squares = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        squares += ((double)together[i] - (double)alone[i]) * ((double)together[i] - (double)alone[i]);
        size += (double)alone[i] * (double)alone[i];
    }
    assert_true(squares <= 1e-6 * size);
    for (size_t i = 1; i < MEMBERS; i++) {
        const struct model *model = replicas_at(run.experiment->model.work.replicas, i)->model;
        assert_memory_equal(small_run_group(model->clip->parameters), together, n * sizeof *together);
    }
    size_t closed = calls.closed;
    small_run_close(&run);
    assert_int_equal(calls.closed - closed, MEMBERS);
}

/* Evaluating what a task began with makes the first row the zero-shot one; training goes on from what was trained. */
RUN_TEST(weights_are_swapped_for_evaluation, NULL)
{
    reopen(run, 1);
    memset(&calls, 0, sizeof calls);
    must(whole_run(run, "results.db", NULL));
    assert_int_equal(calls.evaluated, SMALL_RUN_TASKS);
    const struct state *state = run->experiment->method.state;
    assert_false(state->swapped);
    expect_number(run, "results.db",
                  "SELECT count(*) FROM evaluations AS a JOIN evaluations AS b USING (task, correct) "
                  "WHERE a.after_task = 0 AND b.after_task = -1",
                  SMALL_RUN_TASKS);
    size_t n = run->experiment->model.clip->parameters->values_count;
    assert_memory_not_equal(values_of(run), small_run_values(run, state->anchor, n), n * sizeof(float));
}

static unsigned groups_image_tower(const struct options *options)
{
    (void)options;
    return GROUP_IMAGE_TOWER;
}

/* The other tower's weights stay, and so does logit_scale; what is trained is counted. */
RUN_TEST(a_tower_is_trained_alone, NULL)
{
    static struct method method; /* the run outlives this function */
    method = anchored;
    method.groups = groups_image_tower;
    method.loss = NULL;
    reopen(run, 1);
    struct run *e = run->experiment;
    e->model.settings.method = &method;
    must(run_reopen(e, GROUP_IMAGE_TOWER, WITH_METHOD, &error));
    float *before = values_of(run);
    must(train(run, &(struct small_training){0}));
    float *after = values_of(run);
    size_t trained = 0;
    for (size_t i = 0; i < e->model.clip->parameters->count; i++) {
        const struct parameter *p = &e->model.clip->parameters->list[i];
        bool image = strncmp(p->name, "visual.", 7) == 0;
        trained += image ? p->size : 0;
        assert_true((memcmp(before + p->offset, after + p->offset, p->size * sizeof *after) != 0) == image);
    }
    assert_int_equal(trained_values(&e->model), trained);
}
