/* A linear layer with weights of its own on the features of an image tower that was drawn (model.weights: scratch) or read from
 * a file: the classifier of Dosovitskiy et al. (ICLR 2021). Its weights begin at zero, or as the file has them. It knows the
 * classes of one dataset; they have no texts, so there is no answer before it is trained. */
#include <stdlib.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/head.h"
#include "harness/model/image_tower.h"
#include "harness/model/model.h"
#include "harness/model/weights.h"
#include "models/vit.h"

static const struct option options[] = {
    OPTION_ONE_OF("pool", "class_token|mean_patches", "class_token",
                  "pooling of an image's tokens: the class token, or the mean of the patches"),
    {0}};

static status check(const struct settings *s, struct error *error)
{
    if (s->own_classes && s->split.cut == CUT_BY_LABELS)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.split_by: labels cuts by features of class names, which head.name: linear has "
                         "not; set data.split_by=order");
    if (s->own_classes)
        return OK;
    if (s->split.cut != CUT_NONE)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: data.split_by cuts a dataset into %zu tasks, but head.name: linear takes a whole "
                         "dataset; set data.split_by=none, or use head.name=text",
                         s->task_count);
    if (s->task_count != 1)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: head.name: linear takes one dataset, found %zu tasks; name one in data.order, or use "
                         "mtil classify, which trains one classifier for each",
                         s->task_count);
    if (s->label_space != LABEL_SPACE_TASK)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: evaluation.label_space: head.name: linear has the classes of one dataset only; set "
                         "evaluation.label_space=task");
    return OK;
}

static enum pool pool_of(const struct settings *s)
{
    return options_choice(s->head_options, "pool") == 0 ? POOL_CLASS_TOKEN : POOL_MEAN_PATCHES;
}

static struct linear_head *head_of(const struct model *model)
{
    return model->head_state;
}

/* --- Weights --- */

static status load(struct model *model, enum parameters_mode mode, struct error *error)
{
    bool suite = model->settings.head_options != NULL;
    return suite ? image_tower_load(model, pool_of(&model->settings), mode, error) : image_tower_open(model, error);
}

/* Of the file of weights, if it has a head for as many classes and the layer is not of a task; otherwise zero. */
static status open_head(struct model *model, size_t classes, enum parameters_mode mode, struct error *error)
{
    struct linear_head *head;
    bool there;
    TRY(image_tower_has_head(model, classes, &there, error));
    if (there && !model->settings.own_classes) {
        OWNED char *path = weights_path(model->settings.weights);
        TRY(vit_load_head(&head, model->backend, &model->memory, path, mode, error));
    } else if (model->groups == GROUPS_NONE) {
        return error_set(error, ERROR_ARGUMENT, "%s: expected a head for %zu classes, found another one or none",
                         model->settings.weights, classes);
    } else {
        TRY(linear_head_create(&head, model->backend, &model->memory, model_feature_width(model), classes, mode,
                               error));
    }
    model->head_state = head;
    return OK;
}

static void close_head(struct model *model)
{
    linear_head_destroy(head_of(model));
}

static struct parameters *parameters(const struct model *model)
{
    return head_of(model)->parameters;
}

/* Saves the tower, the layer and the names of its classes. A layer of one task is left out. */
static status save(const struct model *model, const struct data *data, const char *path, struct error *error)
{
    SCOPED(adapter_metadata_free) struct adapter_metadata metadata = {0};
    adapter_metadata_create(&metadata, 1);
    task_describe(&metadata.tasks[0], &data->tasks[0], true);
    return classifier_save(model->clip, model->settings.own_classes ? NULL : head_of(model), model->adapters, &metadata,
                           path, error);
}

/* --- Training --- */

static status begin_task(struct model *model, const struct task *task, int32_t router, struct arena *arena,
                         struct head_classes *classes, struct error *error)
{
    if (model->settings.own_classes)
        head_of(model)->linear.out = dataset_classes(task->dataset);
    *classes = (struct head_classes){0};
    return OK;
}

static status loss(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                   struct error *error)
{
    struct linear_pass pass;
    TRY(linear_head_logits(head_of(model), &model->step_memory, batch->features, &pass, error));
    pass.right = model->loss + LOSS_RIGHT;
    TRY(linear_head_loss(head_of(model), &pass, batch->labels, batch->smoothing, batch->weight, model->loss, error));
    return linear_head_backward(head_of(model), &model->step_memory, &pass, &batch->dfeatures, error);
}

/* --- Evaluation: a class is its row of weights, then its bias --- */

static size_t width(const struct model *model)
{
    return head_of(model)->linear.in + 1;
}

static status download_rows(const struct model *model, float *rows, struct error *error)
{
    const struct linear *linear = &head_of(model)->linear;
    const struct backend_ops *ops = model->backend->ops;
    size_t columns = linear->in + 1;
    OWNED float *weights = xmalloc(array_size(linear->out, columns * sizeof *weights));
    float *biases;
    biases = weights + linear->out * linear->in;
    TRY(ops->download(model->backend, weights, linear->weight.value, linear->out * linear->in * sizeof *weights,
                      error));
    TRY(ops->download(model->backend, biases, linear->bias.value, linear->out * sizeof *biases, error));
    for (size_t c = 0; c < linear->out; c++) {
        memcpy(rows + c * columns, weights + c * linear->in, linear->in * sizeof *rows);
        rows[c * columns + linear->in] = biases[c];
    }
    return OK;
}

static status classes(struct model *model, const struct task *task, int router, struct arena *arena, int32_t *chosen,
                      struct tensor *result, struct error *error)
{
    size_t shape[] = {dataset_classes(task->dataset), width(model)};
    TRY(tensor_take(result, arena, TENSOR_F32, "classes", 2, shape, error));
    if (model->settings.own_classes)
        return model->backend->ops->zero(model->backend, result->data, tensor_bytes(result), error);
    OWNED float *rows = xmalloc(tensor_bytes(result));
    TRY(download_rows(model, rows, error));
    return model->backend->ops->upload(model->backend, result->data, rows, tensor_bytes(result), error);
}

static size_t encoded(const struct task *task)
{
    return 0;
}

/* The biases are a column; a product with 1 makes them a row. */
static status take_biases(struct model *model, struct matrix column, struct tensor *biases, struct error *error)
{
    static const float one = 1;
    struct tensor unit;
    TRY(tensor_take(&unit, &model->step_memory, TENSOR_F32, "one", 2, (size_t[]){1, 1}, error));
    TRY(tensor_take(biases, &model->step_memory, TENSOR_F32, "biases", 2, (size_t[]){1, column.rows}, error));
    TRY(model->backend->ops->upload(model->backend, unit.data, &one, sizeof one, error));
    return model->backend->ops->gemm(
        model->backend,
        &(struct gemm){
            .a = matrix_of(&unit), .b = column, .transpose_b = true, .exact = true, .out = matrix_of(biases)},
        error);
}

static status scores(struct model *model, const struct tensor *features, const struct tensor *rows,
                     struct tensor *result, struct error *error)
{
    size_t shape[] = {features->shape[0], rows->shape[0]}, in = rows->shape[1] - 1;
    struct tensor biases;
    TRY(take_biases(model, matrix_columns(matrix_of(rows), in, 1), &biases, error));
    TRY(tensor_take(result, &model->step_memory, TENSOR_F32, "scores", 2, shape, error));
    return model->backend->ops->gemm(model->backend,
                                     &(struct gemm){.a = matrix_of(features),
                                                    .b = matrix_columns(matrix_of(rows), 0, in),
                                                    .transpose_b = true,
                                                    .exact = true,
                                                    .bias = biases.data,
                                                    .out = matrix_of(result)},
                                     error);
}

static void no_texts(const struct model *model, const struct task *task, size_t *count, size_t *positions)
{
    *count = *positions = 0;
}

const struct head head_linear = {.name = "linear",
                                 .what = "weights of its own",
                                 .source = "ViT, ICLR 2021",
                                 .formula = "scores = W · features + b, W and b from 0; features by pool",
                                 .options = options,
                                 .check = check,
                                 .load = load,
                                 .load_experts = image_tower_load_experts,
                                 .open = open_head,
                                 .close = close_head,
                                 .parameters = parameters,
                                 .save = save,
                                 .begin_task = begin_task,
                                 .loss = loss,
                                 .width = width,
                                 .classes = classes,
                                 .encoded = encoded,
                                 .scores = scores,
                                 .texts = no_texts};
