#include "harness/methods/weights/guided.h"

#include "harness/model/model.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"

/* --- The teacher --- */

/* Both declare the same tensors, so values lie at the same places. */
static status teacher_copy(struct teacher *teacher, const struct clip *student, struct error *error)
{
    struct parameters *to = teacher->clip->parameters;
    const struct parameters *from = student->parameters;
    return student->backend->ops->copy(student->backend, parameters_write_all(to), from->values,
                                       from->values_count * sizeof(float), error);
}

status teacher_open(struct teacher *teacher, const struct clip *student, struct arena *arena, struct error *error)
{
    TRY(clip_create(&teacher->clip, student->backend, arena, &student->dimensions, PARAMETERS_FROZEN,
                    student->activation, error));
    return teacher_copy(teacher, student, error);
}

void teacher_close(struct teacher *teacher)
{
    clip_destroy(teacher->clip);
    teacher->clip = NULL;
}

static status to_units(const struct teacher *teacher, const struct tensor *features, struct matrix normal,
                       struct error *error)
{
    struct backend *backend = teacher->clip->backend;
    return backend->ops->normalize(backend, &(struct normalize){.x = matrix_of(features), .y = normal}, error);
}

status teacher_texts(const struct teacher *teacher, const int32_t *tokens, const struct tensor *features,
                     struct arena *scratch, struct error *error)
{
    enum { AT_A_TIME = 256 };
    size_t context = teacher->clip->dimensions.context, embed = teacher->clip->dimensions.embed,
           total = features->shape[0];
    struct arena_mark mark = arena_mark(scratch);
    for (size_t first = 0; first < total; first += AT_A_TIME) {
        size_t count = total - first < AT_A_TIME ? total - first : AT_A_TIME;
        struct encoding encoding = {.arena = scratch};
        struct tower_pass pass;
        struct texts texts;
        struct tensor raw;
        arena_release(scratch, mark);
        TRY(texts_create(&texts, teacher->clip, scratch, tokens + first * context, count, error));
        TRY(clip_encode_texts(teacher->clip, &encoding, &texts, &pass, &raw, error));
        TRY(to_units(teacher, &raw, matrix_rows((float *)features->data + first * embed, count, embed), error));
    }
    arena_release(scratch, mark);
    return OK;
}

/* Normalised features [B, embed] of images as of clip_encode_images; features and activations are taken from the
 * arena. */
static status teacher_images(const struct teacher *teacher, const struct tensor *images, struct arena *arena,
                             struct tensor *features, struct error *error)
{
    struct encoding encoding = {.arena = arena};
    struct tower_pass pass;
    struct tensor raw;
    TRY(tensor_take(features, arena, TENSOR_F32, "the teacher's image features", 2,
                    (size_t[]){images->shape[0], teacher->clip->dimensions.embed}, error));
    struct arena_mark mark = arena_mark(arena);
    TRY(clip_encode_images(teacher->clip, &encoding, images, &pass, &raw, error));
    TRY(to_units(teacher, &raw, matrix_of(features), error));
    arena_release(arena, mark);
    return OK;
}

/* --- Distillation ---
 *
 * Of the teacher's image-text similarities (Zheng et al. 2023, ZSCL, arXiv 2303.06628, after Hinton et al. 2015, arXiv
 * 1503.02531). With ā and b̄ the teacher's features of reference images and texts, a the student's features of the
 * images, all normalised, and e = exp(logit_scale): t = e · ā · b̄ᵀ, s = e · a · b̄ᵀ, both [B, S];
 *
 *     D(t, s) = T² · mean over rows of −Σ_j softmax(t / T)_j · log softmax(s / T)_j
 *     loss += image_weight · D(t, s) + text_weight · D(tᵀ, sᵀ)
 *
 * A cross-entropy, so it is not 0 for s = t. Its gradient reaches the student's image tower only, because the text
 * features are the teacher's. */

struct pass {
    struct model *student;
    struct backend *backend;
    struct arena *arena;
    float temperature;
    const struct tensor *texts;                     /* the teacher's, normalised, [S, embed] */
    struct tensor images;                           /* likewise, of the reference images, [B, embed] */
    struct tensor features, normal, norms, dnormal; /* the student's, of these images */
};

static status take(struct tensor *tensor, const struct pass *p, const char *name, size_t rows, size_t columns,
                   struct error *error)
{
    return tensor_take(tensor, p->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

static status take_zero(struct tensor *tensor, const struct pass *p, const char *name, size_t rows, size_t columns,
                        struct error *error)
{
    TRY(take(tensor, p, name, rows, columns, error));
    return p->backend->ops->zero(p->backend, tensor->data, tensor_bytes(tensor), error);
}

/* out = e · images · textsᵀ, or its transpose */
static status similarities(const struct pass *p, const struct tensor *images, bool transposed, struct tensor *out,
                           struct error *error)
{
    const struct tensor *rows = transposed ? p->texts : images, *columns = transposed ? images : p->texts;
    TRY(take(out, p, "similarities", rows->shape[0], columns->shape[0], error));
    return p->backend->ops->gemm(p->backend,
                                 &(struct gemm){.a = matrix_of(rows),
                                                .b = matrix_of(columns),
                                                .transpose_b = true,
                                                .exact = true,
                                                .scale = p->student->logit_scale,
                                                .out = matrix_of(out)},
                                 error);
}

/* dnormal += the gradient of weight · D over rows of images or, transposed, over rows of texts. */
static status add_direction(const struct pass *p, bool transposed, float weight, struct error *error)
{
    struct arena_mark mark = arena_mark(p->arena);
    struct tensor targets, logits, dlogits;
    TRY(similarities(p, &p->images, transposed, &targets, error));
    TRY(similarities(p, &p->normal, transposed, &logits, error));
    TRY(take_zero(&dlogits, p, "gradient of the similarities", logits.shape[0], logits.shape[1], error));
    TRY(p->backend->ops->soft_cross_entropy(
        p->backend,
        &(struct soft_cross_entropy){.logits = matrix_of(&logits),
                                     .targets = matrix_of(&targets),
                                     .dlogits = matrix_of(&dlogits),
                                     .temperature = p->temperature,
                                     .weight = weight * p->temperature * p->temperature,
                                     .loss = p->student->loss},
        error));
    TRY(p->backend->ops->gemm(p->backend,
                              &(struct gemm){.a = matrix_of(&dlogits),
                                             .transpose_a = transposed,
                                             .b = matrix_of(p->texts),
                                             .exact = true,
                                             .scale = p->student->logit_scale,
                                             .accumulate = true,
                                             .out = matrix_of(&p->dnormal)},
                              error));
    arena_release(p->arena, mark);
    return OK;
}

static status normalize(struct pass *p, struct error *error)
{
    size_t images = p->features.shape[0], embed = p->features.shape[1];
    TRY(take(&p->normal, p, "normalised features", images, embed, error));
    TRY(take(&p->norms, p, "their norms", images, 1, error));
    TRY(take_zero(&p->dnormal, p, "gradient of the normalised features", images, embed, error));
    return p->backend->ops->normalize(
        p->backend,
        &(struct normalize){.x = matrix_of(&p->features), .y = matrix_of(&p->normal), .norms = p->norms.data}, error);
}

static status normalize_backward(const struct pass *p, struct tensor *dfeatures, struct error *error)
{
    TRY(take_zero(dfeatures, p, "gradient of the features", p->features.shape[0], p->features.shape[1], error));
    return p->backend->ops->normalize_backward(p->backend,
                                               &(struct normalize_backward){.y = matrix_of(&p->normal),
                                                                            .dy = matrix_of(&p->dnormal),
                                                                            .dx = matrix_of(dfeatures),
                                                                            .norms = p->norms.data},
                                               error);
}

/* weight: of this rank's loss. Releases everything it takes from the step's memory but the teacher's features. */
static status distill(struct method_run *run, float weight, struct error *error)
{
    struct guided *g = run->state;
    struct pass p = {.student = run->model,
                     .backend = run->model->backend,
                     .arena = run->step_memory,
                     .temperature = (float)options_real(run->options, "temperature"),
                     .texts = &g->texts};
    TRY(teacher_images(&g->teacher, &g->images.batch, p.arena, &p.images, error));
    struct arena_mark mark = arena_mark(p.arena);
    struct encoding encoding = {.arena = p.arena, .training = true};
    struct tower_pass tower;
    struct tensor dfeatures;
    TRY(clip_encode_images(run->model->clip, &encoding, &g->images.batch, &tower, &p.features, error));
    TRY(normalize(&p, error));
    TRY(add_direction(&p, false, weight * (float)options_real(run->options, "image_weight"), error));
    TRY(add_direction(&p, true, weight * (float)options_real(run->options, "text_weight"), error));
    TRY(normalize_backward(&p, &dfeatures, error));
    TRY(clip_encode_backward(run->model->clip, &encoding, &tower, &dfeatures, error));
    arena_release(p.arena, mark);
    return OK;
}

/* --- Hooks --- */

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
    cost->teachers = 1;
}

status guided_begin_task(struct method_run *run, const struct task *task, bool resumed, const int32_t *tokens,
                         size_t count, struct error *error)
{
    struct guided *g = run->state;
    struct model *model = run->model;
    size_t batch = method_whole(run, "reference_batch");
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
    struct arena_mark mark = arena_mark(run->step_memory);
    TRY(classification_loss(run, task, batch, error));
    arena_release(run->step_memory, mark);
    return distill(run, replicas_weight(run->model), error);
}

status guided_after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct guided *g = run->state;
    g->done = (int32_t)iteration;
    return reference_images_next(&g->images, error);
}

status guided_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct guided *g = run->state;
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
