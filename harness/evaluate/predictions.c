#include "harness/evaluate/predictions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"

/* Column of the highest score, the first of equal ones; −1 if a score is not finite. */
static int32_t best_of(const float *scores, size_t classes)
{
    size_t best = 0;
    for (size_t c = 0; c < classes; c++) {
        if (!isfinite(scores[c]))
            return -1;
        best = scores[c] > scores[best] ? c : best;
    }
    return (int32_t)best;
}

/* Predicts by other scores than the head's: of the method, or the sums so far. features: of the same images on the
 * host; items: theirs. Classes that compete without the learned ones, as with label_space: open, have the head's. */
static status predict_scored(struct model *model, const struct scoring *by, const struct task *task,
                             const float *features, const uint32_t *items, const struct tensor *images,
                             const struct tensor *classes, struct class_range range, int32_t *best, struct error *error)
{
    struct tensor cosines;
    size_t n = images->shape[0], columns = classes->shape[0];
    TRY(model->head->scores(model, images, classes, &cosines, error));
    OWNED float *scores = xmalloc(tensor_bytes(&cosines));
    TRY(model->backend->ops->download(model->backend, scores, cosines.data, tensor_bytes(&cosines), error));
    if (by->method != NULL && range.count == columns)
        TRY(model->settings.method->scores(by->method, task, features, n, columns, scores, error));
    for (size_t i = 0; i < n; i++) {
        float *row = scores + i * columns, *total = by->totals != NULL ? by->totals + items[i] * columns : row;
        for (size_t c = 0; total != row && c < columns; c++)
            total[c] += row[c];
        best[i] = best_of(total + range.first, range.count);
    }
    return OK;
}

static status predict(struct model *model, const struct tensor *images, const struct tensor *classes,
                      struct class_range range, int32_t *best, struct error *error)
{
    struct tensor scores, predicted;
    TRY(model->head->scores(model, images, classes, &scores, error));
    TRY(tensor_take(&predicted, &model->step_memory, TENSOR_I32, "predictions", 1, images->shape, error));
    struct matrix competing = matrix_columns(matrix_of(&scores), range.first, range.count);
    TRY(model->backend->ops->argmax(model->backend, &(struct argmax){.x = competing, .out = predicted.data}, error));
    return model->backend->ops->download(model->backend, best, predicted.data, tensor_bytes(&predicted), error);
}

/* best [count] of items (NULL: from first on); −1 if a logit is not finite. */
static status keep_predictions(struct test_set *set, const int32_t *best, const uint32_t *items, size_t first,
                               size_t count, uint16_t *predicted, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        size_t item = items != NULL ? items[first + i] : first + i;
        if (best[i] < 0) {
            OWNED char *name = dataset_item_name(set->task->dataset, SPLIT_TEST, item);
            error_set(
                error, ERROR_FORMAT,
                "%s: image %s: its similarities to the classes are not finite, so it has no answer; are these the "
                "right weights?",
                set->task->settings.name, name != NULL ? name : "?");
            return ERROR_FORMAT;
        }
        predicted[item] = (uint16_t)best[i];
    }
    return OK;
}

static status predict_among(const struct evaluator *evaluator, struct test_set *set, const float *features,
                            const uint32_t *items, size_t n, const struct tensor *classes, const struct scoring *by,
                            uint16_t *predicted, struct error *error)
{
    enum { ROWS = 1024 };
    struct model *model = evaluator->model;
    const struct class_range range = label_space_range(&evaluator->labels, set->task->index, classes->shape[0]);
    size_t embed = model_feature_width(model);
    int32_t best[ROWS];
    OWNED float *rows = xmalloc(array_size(ROWS, embed * sizeof *rows));
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        struct tensor images;
        for (size_t i = 0; i < count; i++)
            memcpy(rows + i * embed, features + (items != NULL ? items[first + i] : first + i) * embed,
                   embed * sizeof *rows);
        arena_reset(&model->step_memory);
        TRY(tensor_take(&images, &model->step_memory, TENSOR_F32, "features", 2, (size_t[]){count, embed}, error));
        TRY(model->backend->ops->upload(model->backend, images.data, rows, tensor_bytes(&images), error));
        TRY(by->method == NULL && by->totals == NULL
                ? predict(model, &images, classes, range, best, error)
                : predict_scored(model, by, set->task, rows, items != NULL ? items + first : NULL, &images, classes,
                                 range, best, error));
        for (size_t i = 0; i < count; i++)
            best[i] += best[i] < 0 ? 0 : (int32_t)range.first;
        TRY(keep_predictions(set, best, items, first, count, predicted, error));
    }
    return OK;
}

status predict_features(struct evaluator *evaluator, struct test_set *set, const float *features, const uint32_t *items,
                        size_t n, int router, const struct scoring *by, uint16_t *predicted, struct error *error)
{
    struct arena *memory = &evaluator->model->task_memory;
    struct arena_mark mark = arena_mark(memory);
    struct tensor classes;
    status result = label_space_features(&evaluator->labels, set->task->index, router, memory, &classes, error);
    NEXT(result, predict_among(evaluator, set, features, items, n, &classes, by, predicted, error));
    arena_release(memory, mark);
    return result;
}
