#include "harness/methods/guided.h"

#include "harness/heads/trained.h"
#include "harness/train/replicas.h"
#include "harness/train/services/distillation.h"
#include "harness/train/trainer.h"

status guided_open(struct method_run *run, const char *folder, struct error *error)
{
    struct guided *g = run->state;
    TRY(reference_images_open(&g->images, folder, error));
    return teacher_open(&g->teacher, run->model->clip, run->memory, error);
}

status guided_open_following(struct method_run *run, struct error *error)
{
    struct guided *g = run->state;
    g->follows = true;
    return guided_open(run, NULL, error);
}

void guided_close(struct method_run *run)
{
    struct guided *g = run->state;
    reference_images_close(&g->images);
    teacher_close(&g->teacher);
}

void guided_cost(const struct method_run *run, struct method_cost *cost)
{
    (void)run;
    cost->teachers = 1;
}

status guided_begin_task(struct method_run *run, const struct task *task, bool resumed, const int32_t *tokens,
                         size_t count, struct error *error)
{
    struct guided *g = run->state;
    struct model *model = run->model;
    size_t batch = (size_t)options_integer(run->options, "reference_batch");
    if (!resumed) {
        g->done = 0;
        TRY(trained_groups_reset(model, error));
        if (g->follows)
            TRY(teacher_copy(&g->teacher, model->clip, error));
    }
    TRY(tensor_take(&g->texts, run->task_memory, TENSOR_F32, "the teacher's text features", 2,
                    (size_t[]){count, model->clip->dimensions.embed}, error));
    TRY(teacher_texts(&g->teacher, tokens, &g->texts, run->step_memory, error));
    return reference_images_begin(&g->images, run, task, batch > 0 ? batch : task->settings.batch, (size_t)g->done,
                                  run->task_memory, error);
}

/* The two passes run one after the other in the same memory. */
status guided_loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    struct guided *g = run->state;
    struct model *model = run->model;
    float weight = replicas_weight(model);
    struct tensor images;
    struct arena_mark mark = arena_mark(run->step_memory);
    TRY(classification_loss(run, task, batch, error));
    arena_release(run->step_memory, mark);
    TRY(teacher_images(&g->teacher, &g->images.batch, run->step_memory, &images, error));
    return distillation_add(
        &(struct distillation){.student = model->clip,
                               .images = &g->images.batch,
                               .teacher_images = &images,
                               .teacher_texts = &g->texts,
                               .scale = model->logit_scale,
                               .temperature = (float)options_real(run->options, "temperature"),
                               .image_weight = weight * (float)options_real(run->options, "image_weight"),
                               .text_weight = weight * (float)options_real(run->options, "text_weight"),
                               .loss = model->loss},
        run->step_memory, error);
}

status guided_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct guided *g = run->state;
    (void)task;
    g->done = (int32_t)iteration;
    return reference_images_next(&g->images, error);
}

status guided_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct guided *g = run->state;
    (void)task;
    (void)error;
    g->done = 0;
    return OK;
}

status guided_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct guided *g = run->state;
    TRY(serializer_host(serializer, "guided.done", SAFETENSOR_I32, 1, &g->done, error));
    if (!g->follows || g->done == 0)
        return OK;
    return serializer_weights(serializer, "guided.teacher", g->teacher.clip->parameters, error);
}
