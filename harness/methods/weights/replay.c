/* Experience replay (Chaudhry et al. 2019, arXiv 1902.10486), over all weights of both towers:
 *
 *     loss = cross-entropy of the batch + cross-entropy of a batch of exemplars of one earlier task, with its prompts
 *
 * Iteration i (from 0) of a task with T tasks before it replays task i mod T: the next exemplars of it in the order of
 * picking, beginning again after the last one, cropped at random and augmented as in training. The first task has no such
 * term. Exemplars are herded and shared out as in icarl.c. The paper draws them at random, from all tasks at once and for one
 * classifier; here every task has the classes of its own prompts, so that a batch is of one task.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"
#include "harness/train/batches.h"
#include "harness/train/exemplars.h"
#include "harness/train/trainer.h"

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "exemplars", 1, 1e9, "10000", "images kept of all earlier tasks together"),
    OPTION_NUMBER(INTEGER, "replayed", 0, 65536, "0", "exemplars per iteration; 0: as many as training images"),
    {0}};

struct state {
    struct exemplars exemplars;
    struct dataset *dataset; /* the exemplars of all iterations of the task, one after the other; NULL: none */
    struct batches *batches;
    struct head_classes *classes; /* of the tasks before */
    int32_t done;                 /* iterations of the task */
};

static status open_memory(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    s->exemplars.capacity = method_whole(run, "exemplars");
    return OK;
}

static void forget_batches(struct state *s)
{
    batches_close(s->batches);
    dataset_close(s->dataset);
    free(s->classes);
    s->batches = NULL;
    s->dataset = NULL;
    s->classes = NULL;
}

static void close_memory(struct method_run *run)
{
    struct state *s = run->state;
    forget_batches(s);
    exemplars_free(&s->exemplars);
}

static size_t batch_of(const struct method_run *run, const struct task *task)
{
    size_t batch = method_whole(run, "replayed");
    return batch > 0 ? batch : task->settings.batch;
}

/* The images of all iterations: an image that comes again has a place, and so a crop, of its own. */
static void list_images(struct method_run *run, const struct task *task)
{
    struct state *s = run->state;
    size_t batch = batch_of(run, task), count = array_size(task->settings.iterations, batch);
    OWNED struct dataset_place *places = xmalloc(array_size(count, sizeof *places));
    for (size_t i = 0; i < count; i++) {
        size_t iteration = i / batch, of = iteration % s->exemplars.tasks,
               next = iteration / s->exemplars.tasks * batch + i % batch;
        places[i].dataset = run->data->tasks[of].dataset;
        places[i].item = s->exemplars.of_task[of].items[next % s->exemplars.of_task[of].count];
    }
    s->dataset = dataset_of_items(places, count);
}

static status prepare_classes(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    struct model *model = run->model;
    s->classes = xcalloc(s->exemplars.tasks, sizeof *s->classes);
    for (size_t t = 0; t < s->exemplars.tasks; t++)
        TRY(model->head->begin_task(model, &run->data->tasks[t], (int32_t)t, run->task_memory, &s->classes[t], error));
    return OK;
}

/* As many tasks as may keep an image each. */
static bool replays(const struct state *s)
{
    return s->exemplars.tasks > 0 && s->exemplars.capacity >= s->exemplars.tasks;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    struct model *model = run->model;
    forget_batches(s);
    if (!resumed) {
        s->done = 0;
        TRY(trained_groups_reset(model, error));
    }
    if (!replays(s) || (size_t)s->done == task->settings.iterations)
        return OK;
    list_images(run, task);
    TRY(prepare_classes(run, error));
    struct loader_settings settings = {.dataset = s->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)model->clip->dimensions.resolution,
                                       .batch = batch_of(run, task),
                                       .augment = true,
                                       .augmentation = task->settings.augmentation,
                                       .seed = model->seed,
                                       .task = (uint32_t)task->index,
                                       .part = model->work.rank,
                                       .parts = model->work.ranks};
    return batches_open(&s->batches, model, run->data, &settings, (size_t)s->done, task->settings.iterations, error);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    struct state *s = run->state;
    struct model *model = run->model;
    struct arena_mark mark = arena_mark(run->step_memory);
    struct head_classes own = model->classes;
    struct batch replayed;
    TRY(classification_loss(run, task, batch, error));
    if (s->batches == NULL)
        return OK;
    size_t of = (size_t)s->done % s->exemplars.tasks;
    arena_release(run->step_memory, mark);
    TRY(batches_take(s->batches, &replayed, error));
    model->classes = s->classes[of];
    status result = classification_loss(run, &run->data->tasks[of], &replayed, error);
    model->classes = own;
    return result;
}

static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct state *s = run->state;
    s->done = (int32_t)iteration;
    if (s->batches != NULL)
        batches_advance(s->batches);
    return OK;
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    forget_batches(s);
    TRY(exemplars_learn(&s->exemplars, run, task, error));
    s->done = 0;
    return OK;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    TRY(serializer_host(serializer, "replay.done", SAFETENSOR_I32, 1, &s->done, error));
    return exemplars_keep(&s->exemplars, serializer, error);
}

const struct method method_replay = {
    .name = "replay",
    .source = "Chaudhry et al. 2019; exemplars as in iCaRL, CVPR 2017",
    .formula = "loss = cross-entropy + cross-entropy of exemplars of one earlier task, each in turn, with its prompts",
    .options = options,
    .state_size = sizeof(struct state),
    .trains = GROUPS_TOWERS,
    .open = open_memory,
    .close = close_memory,
    .begin_task = begin_task,
    .loss = loss,
    .after_step = after_step,
    .end_task = end_task,
    .keep = keep};
