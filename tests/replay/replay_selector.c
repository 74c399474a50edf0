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

static void load_coder(struct fixture *f, const struct safetensors *file, const char *prefix, enum parameters_mode mode,
                       struct autoencoder **coder)
{
    const struct safetensor *encoder = recorded(file, "%sencoder.0.weight", prefix);
    must(autoencoder_create(coder, f->backend, &f->model, encoder->shape[1], encoder->shape[0], mode, &error));
    for (size_t i = 0; i < (*coder)->parameters->count; i++) {
        const struct parameter *p = &(*coder)->parameters->list[i];
        const struct safetensor *values = recorded(file, "%s%s", prefix, p->name);
        must(parameters_upload((*coder)->parameters, p, values->data, &error));
    }
}

static void tensor_from(struct fixture *f, const float *values, size_t rows, size_t columns, struct tensor *tensor)
{
    must(tensor_take(tensor, &f->step, TENSOR_F32, "selector input", 2, (size_t[]){rows, columns}, &error));
    must(f->backend->ops->upload(f->backend, tensor->data, values, tensor_bytes(tensor), &error));
}

/* Coder 0 is of unrelated images: its win, like an error over the threshold, means the original CLIP; coder k ≥ 1 is
 * router k − 1. */
static int router_choice(const float *errors, const float *thresholds, size_t coders)
{
    int winner = autoencoder_choice(errors, thresholds, coders);
    return winner <= 0 ? -1 : winner - 1;
}

static void compare_choices(struct fixture *f, const struct safetensors *file, const float *errors, size_t images,
                            size_t coders)
{
    const struct safetensor *mse_image = recorded(file, "mse.image"), *mse_batch = recorded(file, "mse.batch"),
                            *choice_image = recorded(file, "choice.image"),
                            *choice_batch = recorded(file, "choice.batch");
    const json_t *config = json_object_get(f->config, "selector");
    size_t batch = (size_t)recorded_number(config, "batch");
    double tolerance = fixture_tolerance(f, "selector_mse");
    float thresholds[MOST_CODERS];
    for (size_t k = 0; k < coders; k++)
        thresholds[k] = (float)recorded_number(config, "threshold");
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
}

static void replay_choices(struct fixture *f, const struct safetensors *file)
{
    const struct safetensor *x, *mse;
    struct tensor features;
    x = recorded(file, "x");
    mse = recorded(file, "mse.image");
    size_t images = x->shape[0], coders = mse->shape[1];
    arena_reset(&f->step);
    tensor_from(f, x->data, images, x->shape[1], &features);
    float *errors = calloc(images * coders, sizeof *errors), *column = calloc(images, sizeof *column);
    must(coders <= MOST_CODERS ? OK : error_set(&error, ERROR_FORMAT, "selector: %zu autoencoders", coders));
    for (size_t k = 0; k < coders; k++) {
        struct autoencoder *coder = NULL;
        char prefix[24];
        snprintf(prefix, sizeof prefix, "ae.%zu.", k);
        load_coder(f, file, prefix, PARAMETERS_FROZEN, &coder);
        must(autoencoder_errors(coder, &f->step, &features, column, &error));
        for (size_t i = 0; i < images; i++)
            errors[i * coders + k] = column[i];
        autoencoder_destroy(coder);
    }
    compare_choices(f, file, errors, images, coders);
    free(errors);
    free(column);
}

static void replay_coder_training(struct fixture *f, const struct safetensors *file)
{
    const struct safetensor *x, *losses;
    struct autoencoder *coder;
    const json_t *config = json_object_get(f->config, "selector"), *betas = json_object_get(config, "betas");
    x = recorded(file, "train.x");
    losses = recorded(file, "train.losses");
    load_coder(f, file, "train.init.", PARAMETERS_TRAINED, &coder);
    struct update_rule rule = {.beta1 = json_number_value(json_array_get(betas, 0)),
                               .beta2 = json_number_value(json_array_get(betas, 1)),
                               .epsilon = recorded_number(config, "eps"),
                               .l2 = recorded_number(config, "l2")};
    struct step_state state = {.learning_rate = (float)recorded_number(config, "lr")};
    must(f->backend->ops->upload(f->backend, f->state, &state, sizeof state, &error));
    for (size_t s = 0; s < x->shape[0]; s++) {
        struct tensor features;
        float loss;
        arena_reset(&f->step);
        tensor_from(f, (const float *)x->data + s * x->shape[1] * x->shape[2], x->shape[1], x->shape[2], &features);
        must(autoencoder_train_step(coder, &f->step, &features, f->state, &rule, &loss, &error));
        report_value(f->report, "selector training losses", (double)loss, (double)((const float *)losses->data)[s],
                     fixture_tolerance(f, "selector_mse"));
    }
    for (size_t i = 0; i < coder->parameters->count; i++) {
        const struct parameter *p = &coder->parameters->list[i];
        const struct safetensor *expected;
        float *values = malloc(array_size(p->size, sizeof *values));
        expected = recorded(file, "train.after.%s", p->name);
        must(parameters_download(coder->parameters, p, values, &error));
        report_values(f->report, "selector parameters", values, expected->data, p->size,
                      fixture_tolerance(f, "selector_params"));
        free(values);
    }
    autoencoder_destroy(coder);
}

void replay_selector(struct fixture *f)
{
    struct safetensors *file;
    file = recorded_open(f->folder, "selector.safetensors");
    replay_choices(f, file);
    replay_coder_training(f, file);
    safetensors_close(file);
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
                     recorded_number(json_object_get(entry, "mean"), metric_names[m]), 1e-9);
    }
    free(accuracy);
}

/* One task's accuracies after each of the 11 tasks: the other columns of the matrix do not matter. */
static void compare_column(struct fixture *f, const json_t *entry)
{
    const json_t *column = json_object_get(entry, "column"), *printed = json_object_get(entry, "printed");
    size_t tasks = json_array_size(column), j = (size_t)recorded_number(entry, "j");
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

void replay_metrics(struct fixture *f)
{
    json_t *metrics = recorded_json(f->folder, "metrics.json");
    const json_t *matrices = json_object_get(metrics, "matrices"),
                 *columns = json_object_get(json_object_get(metrics, "published"), "columns");
    for (size_t i = 0; i < json_array_size(matrices); i++)
        compare_matrix(f, json_array_get(matrices, i));
    for (size_t i = 0; i < json_array_size(columns); i++)
        compare_column(f, json_array_get(columns, i));
    json_decref(metrics);
}
