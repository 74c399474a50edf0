/* The hooks of a method: what each finds, on which GPUs it is called, and that a tower is trained alone. The method here is
 * continual_ft with a state, which answers with the weights that the run began with. */
#include <string.h>

#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/model.h"
#include "harness/train/method.h"
#include "harness/train/replicas.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/whole_run.h"

enum { MEMBERS = 3 };

struct state {
    int32_t updates, steps;
};

static struct {
    size_t opened, closed, begun, resumed, ended, evaluated;
    float *initial, *trained; /* weights of the leader */
} calls;

static status open_counted(struct method_run *run, struct error *failure)
{
    calls.opened++;
    return OK;
}

static void close_counted(struct method_run *run)
{
    calls.closed++;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *failure)
{
    if (run->model->work.rank == 0) {
        calls.begun++;
        calls.resumed += resumed;
    }
    if (!resumed)
        *(struct state *)run->state = (struct state){0};
    return method_continual_ft.begin_task(run, task, resumed, failure);
}

static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    assert_int_equal(++((struct state *)run->state)->updates, iteration);
    return OK;
}

static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    assert_int_equal(++((struct state *)run->state)->steps, iteration);
    return OK;
}

static status end_task(struct method_run *run, const struct task *task, struct error *failure)
{
    calls.ended++;
    assert_int_equal(run->model->work.rank, 0);
    assert_int_equal(((struct state *)run->state)->steps, task->settings.iterations);
    return OK;
}

static status set_weights(struct method_run *run, const float *values, struct error *failure)
{
    struct parameters *group = run->model->clip->parameters;
    return group->backend->ops->upload(group->backend, parameters_write_all(group), values,
                                       group->values_count * sizeof *values, failure);
}

static status evaluate_initial(struct method_run *run, struct error *failure)
{
    calls.trained = small_run_group(run->model->clip->parameters);
    return set_weights(run, calls.initial, failure);
}

static status evaluate_no_more(struct method_run *run, struct error *failure)
{
    calls.evaluated++;
    return set_weights(run, calls.trained, failure);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *failure)
{
    return serializer_host(serializer, "counted", SAFETENSOR_I32, 2, run->state, failure);
}

static const struct method counted = {.name = "counted",
                                      .source = "a test",
                                      .state_size = sizeof(struct state),
                                      .trains = GROUPS_TOWERS,
                                      .open = open_counted,
                                      .close = close_counted,
                                      .begin_task = begin_task,
                                      .before_update = before_update,
                                      .after_step = after_step,
                                      .end_task = end_task,
                                      .evaluation_begin = evaluate_initial,
                                      .evaluation_end = evaluate_no_more,
                                      .keep = keep};

static void adopt(struct method_run *run)
{
    const struct method_run own = *run;
    method_close(run);
    own.model->settings.method = &counted;
    must(method_open(run, own.model, own.data, &error));
}

static void reopen(struct small_run *run, size_t gpus)
{
    memset(&calls, 0, sizeof calls);
    small_run_reopen(run, 1, WORDS("method.name=continual_ft", small_run_format("run.gpus=%zu", gpus)));
    for (size_t i = 1; i < gpus; i++)
        adopt(replicas_at(run->experiment->model.work.replicas, i));
    adopt(&run->experiment->method);
    calls.initial = small_run_group(run->experiment->model.clip->parameters);
}

/* The second task's 18 images are batches of 8, 8 and 2, of which the third rank has 2, 2 and none; the others go on with the
 * leader's state. */
RUN_TEST(hooks_are_called_on_their_ranks, NULL)
{
    struct small_training part = {.stop_at = 3};
    size_t gpus = strcmp(test_backend_name(), "cpu") == 0 ? MEMBERS : 1;
    reopen(run, gpus);
    assert_int_equal(calls.opened, gpus);
    assert_int_equal(small_run_train(run, 1, &part), ERROR_STOPPED);
    for (size_t i = 1; i < gpus; i++)
        ((struct state *)replicas_at(run->experiment->model.work.replicas, i)->state)->steps = 77;
    must(small_run_train(run, 1, &part));
    assert_true(calls.ended == 1 && calls.begun == 2 && calls.resumed == 1);
    small_run_reopen(run, 1, NULL);
    assert_int_equal(calls.closed, gpus);
}

/* Every row is that of the initial weights; training goes on from what was trained. */
RUN_TEST(weights_are_swapped_for_evaluation, NULL)
{
    reopen(run, 1);
    must(whole_run(run, "results.db", NULL));
    assert_int_equal(calls.evaluated, SMALL_RUN_TASKS);
    expect_number(run, "results.db",
                  "SELECT count(*) FROM evaluations AS a JOIN evaluations AS b USING (task, correct) "
                  "WHERE a.after_task >= 0 AND b.after_task = -1",
                  SMALL_RUN_TASKS * SMALL_RUN_TASKS);
    const struct parameters *group = run->experiment->model.clip->parameters;
    assert_memory_not_equal(small_run_group(group), calls.initial, group->values_count * sizeof(float));
}

static unsigned groups_image_tower(const struct options *options)
{
    return GROUP_IMAGE_TOWER;
}

/* The other tower's weights stay, and so does logit_scale; what is trained is counted. */
RUN_TEST(a_tower_is_trained_alone, NULL)
{
    const struct method *before_change;
    reopen(run, 1);
    struct run *e = run->experiment;
    change_method(run, &before_change)->groups = groups_image_tower;
    must(run_reopen(e, GROUP_IMAGE_TOWER, WITH_METHOD, &error));
    const struct parameters *group = e->model.clip->parameters;
    float *before = small_run_group(group);
    must(small_run_train(run, 1, NULL));
    float *after = small_run_group(group);
    size_t trained = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        bool image = strncmp(p->name, "visual.", 7) == 0;
        trained += image ? p->size : 0;
        assert_true((memcmp(before + p->offset, after + p->offset, p->size * sizeof *after) != 0) == image);
    }
    assert_int_equal(trained_values(&e->model), trained);
}

/* What trains nothing is never stepped, and learns, if at all, when a task ends; whatever is trained starts a task with a fresh optimizer. */
TEST(hooks_fit_what_is_trained)
{
    for (size_t i = 0; method_at(i) != NULL; i++) {
        const struct method *method = method_at(i);
        struct options *values;
        if (method->source == NULL || method->formula == NULL || strchr(method->formula, '\n') != NULL)
            fail_msg("%s: expected a source, and a formula in one line", method->name);
        must(options_create(&values, method->options, &error));
        unsigned groups = method_groups(method, values);
        if (groups == GROUPS_NONE)
            assert_true(method->begin_task == NULL && method->after_step == NULL &&
                        (method->end_task == NULL) == (method->scores == NULL));
        else
            assert_non_null(method->begin_task);
        assert_false(groups & GROUP_ADAPTERS && groups & GROUPS_TOWERS);
        assert_true(method_uses(method, values, "adapter") == ((groups & GROUP_ADAPTERS) != 0));
        if (method_uses(method, values, "selector"))
            assert_true(groups == GROUP_ADAPTERS || groups == GROUP_PREFIXES);
        if (method_uses(method, values, "merge"))
            assert_int_equal(groups, GROUP_ADAPTERS);
        assert_true(method_uses(method, values, "training") == (groups != GROUPS_NONE));
        const struct head *head;
        must(head_find(&head, method->head != NULL ? method->head : "text", &error));
        assert_true((groups & GROUP_HEAD) == 0 || head->parameters != NULL);
        options_destroy(values);
    }
}
