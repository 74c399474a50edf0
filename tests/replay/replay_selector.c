/* The selector's autoencoders and the metrics. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/autoencoder.h"
#include "core/file.h"
#include "tests/replay/fixture.h"
#include "tests/results/reference.h"

enum { MOST_CODERS = 16 };

static status load_coder(struct fixture *f, const struct safetensors *file, const char *prefix,
                         enum parameters_mode mode, struct autoencoder **coder, struct error *error)
{
    const struct safetensor *encoder;
    TRY(fixture_find(file, &encoder, error, "%sencoder.0.weight", prefix));
    TRY(autoencoder_create(coder, f->backend, &f->model, encoder->shape[1], encoder->shape[0], mode, error));
    for (size_t i = 0; i < (*coder)->parameters->count; i++) {
        const struct parameter *p = &(*coder)->parameters->list[i];
        const struct safetensor *values;
        TRY(fixture_find(file, &values, error, "%s%s", prefix, p->name));
        TRY(parameters_upload((*coder)->parameters, p, values->data, error));
    }
    return OK;
}

static status tensor_from(struct fixture *f, const float *values, size_t rows, size_t columns, struct tensor *tensor,
                          struct error *error)
{
    TRY(tensor_take(tensor, &f->step, TENSOR_F32, "selector input", 2, (size_t[]){rows, columns}, error));
    return f->backend->ops->upload(f->backend, tensor->data, values, tensor_bytes(tensor), error);
}

/* Coder 0 is of unrelated images: its win, like an error over the threshold, means the original CLIP; coder k ≥ 1 is
 * router k − 1. */
static int router_choice(const float *errors, const float *thresholds, size_t coders)
{
    int winner = autoencoder_choice(errors, thresholds, coders);
    return winner <= 0 ? -1 : winner - 1;
}

static status compare_choices(struct fixture *f, const struct safetensors *file, const float *errors, size_t images,
                              size_t coders, struct error *error)
{
    const struct safetensor *mse_image, *mse_batch, *choice_image, *choice_batch;
    TRY(fixture_find(file, &mse_image, error, "mse.image"));
    TRY(fixture_find(file, &mse_batch, error, "mse.batch"));
    TRY(fixture_find(file, &choice_image, error, "choice.image"));
    TRY(fixture_find(file, &choice_batch, error, "choice.batch"));
    const json_t *config = json_object_get(f->config, "selector");
    size_t batch = (size_t)fixture_number(config, "batch");
    double tolerance = fixture_tolerance(f, "selector_mse");
    float thresholds[MOST_CODERS];
    for (size_t k = 0; k < coders; k++)
        thresholds[k] = (float)fixture_number(config, "threshold");
    report_values(f->report, "selector errors", errors, mse_image->data, images * coders, tolerance);
    for (size_t i = 0; i < images; i++)
        report_exact(f->report, "selector choices",
                     router_choice(errors + i * coders, thresholds, coders) == ((const int32_t *)choice_image->data)[i],
                     "image %zu", i);
    for (size_t g = 0; g < images / batch; g++) {
        float mean[MOST_CODERS];
        for (size_t k = 0; k < coders; k++) {
            double total = 0;
            for (size_t i = g * batch; i < (g + 1) * batch; i++)
                total += (double)errors[i * coders + k];
            mean[k] = (float)(total / (double)batch);
        }
        report_values(f->report, "selector errors", mean, (const float *)mse_batch->data + g * coders, coders,
                      tolerance);
        report_exact(f->report, "selector choices",
                     router_choice(mean, thresholds, coders) == ((const int32_t *)choice_batch->data)[g], "batch %zu",
                     g);
    }
    return OK;
}

static status replay_choices(struct fixture *f, const struct safetensors *file, struct error *error)
{
    const struct safetensor *x, *mse;
    struct tensor features;
    TRY(fixture_find(file, &x, error, "x"));
    TRY(fixture_find(file, &mse, error, "mse.image"));
    size_t images = x->shape[0], coders = mse->shape[1];
    arena_reset(&f->step);
    TRY(tensor_from(f, x->data, images, x->shape[1], &features, error));
    float *errors = calloc(images * coders, sizeof *errors), *column = calloc(images, sizeof *column);
    status result = coders <= MOST_CODERS ? OK : error_set(error, ERROR_FORMAT, "selector: %zu autoencoders", coders);
    for (size_t k = 0; result == OK && k < coders; k++) {
        struct autoencoder *coder = NULL;
        char prefix[24];
        snprintf(prefix, sizeof prefix, "ae.%zu.", k);
        result = load_coder(f, file, prefix, PARAMETERS_FROZEN, &coder, error);
        if (result == OK)
            result = autoencoder_errors(coder, &f->step, &features, column, error);
        for (size_t i = 0; i < images; i++)
            errors[i * coders + k] = column[i];
        autoencoder_destroy(coder);
    }
    if (result == OK)
        result = compare_choices(f, file, errors, images, coders, error);
    free(errors);
    free(column);
    return result;
}

static status replay_coder_training(struct fixture *f, const struct safetensors *file, struct error *error)
{
    const struct safetensor *x, *losses;
    struct autoencoder *coder;
    const json_t *config = json_object_get(f->config, "selector"), *betas = json_object_get(config, "betas");
    TRY(fixture_find(file, &x, error, "train.x"));
    TRY(fixture_find(file, &losses, error, "train.losses"));
    TRY(load_coder(f, file, "train.init.", PARAMETERS_TRAINED, &coder, error));
    struct update_rule rule = {.beta1 = json_number_value(json_array_get(betas, 0)),
                               .beta2 = json_number_value(json_array_get(betas, 1)),
                               .epsilon = fixture_number(config, "eps"),
                               .l2 = fixture_number(config, "l2")};
    struct step_state state = {.learning_rate = (float)fixture_number(config, "lr")};
    TRY(f->backend->ops->upload(f->backend, f->state, &state, sizeof state, error));
    for (size_t s = 0; s < x->shape[0]; s++) {
        struct tensor features;
        float loss;
        arena_reset(&f->step);
        TRY(tensor_from(f, (const float *)x->data + s * x->shape[1] * x->shape[2], x->shape[1], x->shape[2], &features,
                        error));
        TRY(autoencoder_train_step(coder, &f->step, &features, f->state, &rule, &loss, error));
        report_value(f->report, "selector training losses", (double)loss, (double)((const float *)losses->data)[s],
                     fixture_tolerance(f, "selector_mse"));
    }
    for (size_t i = 0; i < coder->parameters->count; i++) {
        const struct parameter *p = &coder->parameters->list[i];
        const struct safetensor *expected;
        float *values = malloc(array_size(p->size, sizeof *values));
        TRY(fixture_find(file, &expected, error, "train.after.%s", p->name));
        TRY(parameters_download(coder->parameters, p, values, error));
        report_values(f->report, "selector parameters", values, expected->data, p->size,
                      fixture_tolerance(f, "selector_params"));
        free(values);
    }
    autoencoder_destroy(coder);
    return OK;
}

status replay_selector(struct fixture *f, struct error *error)
{
    struct safetensors *file;
    TRY(fixture_tensors(f, "selector.safetensors", &file, error));
    status result = replay_choices(f, file, error);
    if (result == OK)
        result = replay_coder_training(f, file, error);
    safetensors_close(file);
    return result;
}

static const char *const metric_names[] = {"transfer", "average", "last"};
enum { METRICS = 3 };

static void compare_matrix(struct fixture *f, const json_t *entry)
{
    const json_t *rows = json_object_get(entry, "A");
    size_t tasks = json_array_size(rows);
    double *accuracy = calloc(tasks * tasks, sizeof *accuracy);
    for (size_t i = 0; i < tasks * tasks; i++)
        accuracy[i] = json_number_value(json_array_get(json_array_get(rows, i / tasks), i % tasks));
    struct accuracy_matrix matrix = {.tasks = tasks, .accuracy = accuracy};
    for (size_t m = 0; m < METRICS; m++) {
        const struct metric *metric = metric_find(metric_names[m]);
        const json_t *per_task = json_object_get(entry, metric_names[m]);
        for (size_t j = 0; j < tasks; j++) {
            const json_t *want = json_array_get(per_task, j);
            double got = metric_of_task(metric, &matrix, j);
            if (json_is_number(want))
                report_value(f->report, "metrics", got, json_number_value(want), 1e-9);
            else
                report_exact(f->report, "metrics undefined", isnan(got), "%s of task %zu", metric_names[m], j);
        }
        report_value(f->report, "metrics", metric_mean(metric, &matrix),
                     fixture_number(json_object_get(entry, "mean"), metric_names[m]), 1e-9);
    }
    free(accuracy);
}

/* One task's accuracies after each of the 11 tasks: the other columns of the matrix do not matter. */
static void compare_column(struct fixture *f, const json_t *entry)
{
    const json_t *column = json_object_get(entry, "column"), *printed = json_object_get(entry, "printed");
    size_t tasks = json_array_size(column), j = (size_t)fixture_number(entry, "j");
    double *accuracy = calloc(tasks * tasks, sizeof *accuracy);
    for (size_t i = 0; i < tasks; i++)
        accuracy[i * tasks + j] = json_number_value(json_array_get(column, i));
    struct accuracy_matrix matrix = {.tasks = tasks, .accuracy = accuracy};
    for (size_t m = 0; m < METRICS; m++) {
        double got = metric_of_task(metric_find(metric_names[m]), &matrix, j);
        const json_t *want = json_object_get(entry, metric_names[m]),
                     *print = json_object_get(printed, metric_names[m]);
        if (json_is_number(want))
            report_value(f->report, "published metrics", got, json_number_value(want), 1e-9);
        if (json_is_number(print) && !isnan(got))
            report_value(f->report, "published metrics as printed", got, json_number_value(print), 0.11);
    }
    free(accuracy);
}

status replay_metrics(struct fixture *f, struct error *error)
{
    json_error_t where;
    char *path = path_format("%s/metrics.json", f->folder);
    json_t *metrics = json_load_file(path, 0, &where);
    free(path);
    if (metrics == NULL)
        return error_set(error, ERROR_FORMAT, "%s/metrics.json:%d: %s", f->folder, where.line, where.text);
    const json_t *matrices = json_object_get(metrics, "matrices"),
                 *columns = json_object_get(json_object_get(metrics, "published"), "columns");
    for (size_t i = 0; i < json_array_size(matrices); i++)
        compare_matrix(f, json_array_get(matrices, i));
    for (size_t i = 0; i < json_array_size(columns); i++)
        compare_column(f, json_array_get(columns, i));
    json_decref(metrics);
    return OK;
}
