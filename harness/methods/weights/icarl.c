/* iCaRL (Rebuffi et al., CVPR 2017, arXiv 1611.07725) in ZSCL's form for CLIP:
 *
 *     loss = cross-entropy + D(t, s) + D(tᵀ, sᵀ)       D: guided.c
 *
 * The teacher is the model before the task; the references are exemplars of earlier tasks in the evaluation transform,
 * oldest task first, each in the order of picking, beginning again after the last one, and the prompts of the current task.
 * The first task has no distillation. After task t (from 0) every task keeps ⌊exemplars / (t + 1)⌋ images: the new one is
 * herded, as one pool, on normalised features of the model just trained, earlier ones keep their first picks.
 *
 * Unlike the paper, images are classified by their prompts, not by the nearest mean of exemplars, and exemplars are not
 * trained on. README.md says what ZSCL's code does otherwise.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/weights/guided.h"
#include "harness/model/model.h"
#include "harness/train/exemplars.h"
#include "harness/train/trainer.h"

static const struct option options[] = {
    GUIDED_OPTIONS,
    OPTION_NUMBER(INTEGER, "exemplars", 1, 1e9, "10000", "images kept of all earlier tasks together"),
    {0}};

struct state {
    struct guided guided;
    struct exemplars exemplars;
};

static status open_teacher(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    s->exemplars.capacity = method_whole(run, "exemplars");
    return guided_open_following(run, error);
}

static void close_teacher(struct method_run *run)
{
    struct state *s = run->state;
    exemplars_free(&s->exemplars);
    guided_close(run);
}

/* The exemplars as reference images. */
static void show_exemplars(struct method_run *run)
{
    struct state *s = run->state;
    struct reference_images *images = &s->guided.images;
    size_t count = exemplars_count(&s->exemplars);
    OWNED struct dataset_place *places = xmalloc(array_size(count, sizeof *places));
    for (size_t i = 0; i < count; i++) {
        size_t task;
        exemplars_at(&s->exemplars, i, &task, &places[i].item);
        places[i].dataset = run->data->tasks[task].dataset;
    }
    reference_images_close(images);
    images->in_order = true;
    images->dataset = dataset_of_items(places, count);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    if (exemplars_count(&s->exemplars) == 0)
        return resumed ? OK : trained_groups_reset(run->model, error);
    show_exemplars(run);
    return guided_begin_task(run, task, resumed, task->prompts, dataset_classes(task->dataset), error);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    const struct state *s = run->state;
    return exemplars_count(&s->exemplars) > 0 ? guided_loss(run, task, batch, error)
                                              : classification_loss(run, task, batch, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    TRY(exemplars_learn(&s->exemplars, run, task, error));
    return guided_end_task(run, task, error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    TRY(exemplars_keep(&s->exemplars, serializer, error));
    return guided_keep(run, serializer, error);
}

const struct method method_icarl = {.name = "icarl",
                                    .source = "Rebuffi et al., CVPR 2017; as in ZSCL, ICCV 2023",
                                    .formula =
                                        "as lwf, with exemplars of earlier tasks in place of the task's images, chosen "
                                        "by herding: each brings their mean feature closest to the task's",
                                    .options = options,
                                    .state_size = sizeof(struct state),
                                    .open = open_teacher,
                                    .close = close_teacher,
                                    .begin_task = begin_task,
                                    .loss = loss,
                                    .end_task = end_task,
                                    .keep = keep,
                                    GUIDED_HOOKS};
