/* The selector's autoencoders and the metrics. */
#include <math.h>

#include "adapters/autoencoder.h"
#include "tests/replay/model.h"
#include "tests/results/reference.h"

enum { MOST_CODERS = 16 };

static struct autoencoder *load_coder(struct model *m, const struct safetensors *file, const char *prefix,
                                      enum parameters_mode mode)
{
    const struct safetensor *encoder = recorded(file, "%sencoder.0.weight", prefix);
    struct autoencoder *coder;
    must(autoencoder_create(&coder, m->r->backend, &m->r->arena, encoder->shape[1], encoder->shape[0], mode, &error));
    for (size_t i = 0; i < coder->parameters->count; i++) {
        const struct parameter *p = &coder->parameters->list[i];
        must(parameters_upload(coder->parameters, p, recorded(file, "%s%s", prefix, p->name)->data, &error));
    }
    return coder;
}

static struct tensor tensor_from(struct model *m, const float *values, size_t rows, size_t columns)
{
    return (struct tensor){.data = replay_upload(m->r, &m->step, values, rows * columns * sizeof *values),
                           .type = TENSOR_F32,
                           .rank = 2,
                           .shape = {rows, columns}};
}

/* Coder 0 is of unrelated images: its win, like an error over the threshold, means the original CLIP; coder k ≥ 1 is
 * router k − 1. */
static int router_choice(const float *errors, const float *thresholds, size_t coders)
{
    int winner = autoencoder_choice(errors, thresholds, coders);
    return winner <= 0 ? -1 : winner - 1;
}

/* errors [rows, coders] */
static void compare_choices(struct model *m, const struct safetensors *file, const char *kind, const float *errors)
{
    const struct safetensor *expected = recorded(file, "mse.%s", kind);
    const int32_t *choices = recorded_integers(file, "choice.%s", kind);
    float thresholds[MOST_CODERS];
    for (size_t k = 0; k < MOST_CODERS; k++)
        thresholds[k] = (float)recorded_number(json_object_get(m->r->config, "selector"), "threshold");
    replay_floats(m->r, "selector errors", errors, expected, model_tolerance(m, "selector_mse"));
    for (size_t i = 0; i < expected->shape[0]; i++)
        report_exact(&m->r->report, "selector choices",
                     router_choice(errors + i * expected->shape[1], thresholds, expected->shape[1]) == choices[i],
                     "%s %zu", kind, i);
}

/* Each coder's mean error over the images of each batch. */
static void mean_errors(const float *errors, size_t batches, size_t batch, size_t coders, float *means)
{
    for (size_t i = 0; i < batches * coders; i++) {
        double total = 0;
        for (size_t b = 0; b < batch; b++)
            total += (double)errors[(i / coders * batch + b) * coders + i % coders];
        means[i] = (float)(total / (double)batch);
    }
}

static void replay_choices(struct model *m, const struct safetensors *file)
{
    const struct safetensor *x = recorded(file, "x"), *mse = recorded(file, "mse.image");
    size_t images = x->shape[0], coders = mse->shape[1],
           batch = recorded_size(json_object_get(m->r->config, "selector"), "batch");
    arena_reset(&m->step);
    struct tensor features = tensor_from(m, x->data, images, x->shape[1]);
    float *errors = replay_take(m->r, images * coders, sizeof *errors),
          *column = replay_take(m->r, images * coders, sizeof *column);
    must(coders <= MOST_CODERS ? OK : error_set(&error, ERROR_FORMAT, "selector: %zu autoencoders", coders));
    for (size_t k = 0; k < coders; k++) {
        struct autoencoder *coder = load_coder(m, file, replay_text(m->r, "ae.%zu.", k), PARAMETERS_FROZEN);
        must(autoencoder_errors(coder, &m->step, &features, column, &error));
        for (size_t i = 0; i < images; i++)
            errors[i * coders + k] = column[i];
        autoencoder_destroy(coder);
    }
    compare_choices(m, file, "image", errors);
    mean_errors(errors, images / batch, batch, coders, column);
    compare_choices(m, file, "batch", column);
}

static void replay_coder_training(struct model *m, const struct safetensors *file)
{
    const struct safetensor *x = recorded(file, "train.x"), *losses = recorded(file, "train.losses");
    const json_t *config = json_object_get(m->r->config, "selector"), *betas = json_object_get(config, "betas");
    struct autoencoder *coder = load_coder(m, file, "train.init.", PARAMETERS_TRAINED);
    struct update_rule rule = {.beta1 = json_number_value(json_array_get(betas, 0)),
                               .beta2 = json_number_value(json_array_get(betas, 1)),
                               .epsilon = recorded_number(config, "eps"),
                               .l2 = recorded_number(config, "l2")};
    struct step_state state = {.learning_rate = (float)recorded_number(config, "lr")};
    must(m->r->backend->ops->upload(m->r->backend, m->state, &state, sizeof state, &error));
    for (size_t s = 0; s < x->shape[0]; s++) {
        float loss;
        arena_reset(&m->step);
        struct tensor features =
            tensor_from(m, (const float *)x->data + s * x->shape[1] * x->shape[2], x->shape[1], x->shape[2]);
        must(autoencoder_train_step(coder, &m->step, &features, m->state, &rule, &loss, &error));
        report_value(&m->r->report, "selector training losses", (double)loss, recorded_value(losses, s),
                     model_tolerance(m, "selector_mse"));
    }
    for (size_t i = 0; i < coder->parameters->count; i++) {
        const struct parameter *p = &coder->parameters->list[i];
        replay_compare(m->r, "selector parameters", coder->parameters->values + p->offset,
                       recorded(file, "train.after.%s", p->name), model_tolerance(m, "selector_params"));
    }
    autoencoder_destroy(coder);
}

void model_selector(struct model *m)
{
    struct safetensors *file = recorded_open(m->r, "selector.safetensors");
    replay_choices(m, file);
    replay_coder_training(m, file);
    safetensors_close(file);
}

static const char *const metric_names[] = {"transfer", "average", "last"};
enum { METRICS = 3 };

static void compare_matrix(struct model *m, const json_t *entry)
{
    const json_t *rows = json_object_get(entry, "A");
    size_t tasks = json_array_size(rows);
    double *accuracy = replay_take(m->r, tasks * tasks, sizeof *accuracy);
    for (size_t i = 0; i < tasks * tasks; i++)
        accuracy[i] = json_number_value(json_array_get(json_array_get(rows, i / tasks), i % tasks));
    struct accuracy_matrix matrix = {.tasks = tasks, .accuracy = accuracy};
    for (size_t k = 0; k < METRICS; k++) {
        const struct metric *metric = metric_find(metric_names[k]);
        const json_t *per_task = json_object_get(entry, metric_names[k]);
        for (size_t j = 0; j < tasks; j++) {
            const json_t *want = json_array_get(per_task, j);
            double got = metric_of_task(metric, &matrix, j);
            if (json_is_number(want))
                report_value(&m->r->report, "metrics", got, json_number_value(want), 1e-9);
            else
                report_exact(&m->r->report, "metrics undefined", isnan(got), "%s of task %zu", metric_names[k], j);
        }
        report_value(&m->r->report, "metrics", metric_mean(metric, &matrix),
                     recorded_number(json_object_get(entry, "mean"), metric_names[k]), 1e-9);
    }
}

/* One task's accuracies after each of the 11 tasks: the other columns of the matrix do not matter. */
static void compare_column(struct model *m, const json_t *entry)
{
    const json_t *column = json_object_get(entry, "column"), *printed = json_object_get(entry, "printed");
    size_t tasks = json_array_size(column), j = recorded_size(entry, "j");
    double *accuracy = replay_take(m->r, tasks * tasks, sizeof *accuracy);
    for (size_t i = 0; i < tasks; i++)
        accuracy[i * tasks + j] = json_number_value(json_array_get(column, i));
    struct accuracy_matrix matrix = {.tasks = tasks, .accuracy = accuracy};
    for (size_t k = 0; k < METRICS; k++) {
        double got = metric_of_task(metric_find(metric_names[k]), &matrix, j);
        const json_t *want = json_object_get(entry, metric_names[k]),
                     *print = json_object_get(printed, metric_names[k]);
        if (json_is_number(want))
            report_value(&m->r->report, "published metrics", got, json_number_value(want), 1e-9);
        if (json_is_number(print) && !isnan(got))
            report_value(&m->r->report, "published metrics as printed", got, json_number_value(print), 0.11);
    }
}

void model_metrics(struct model *m)
{
    json_t *metrics = recorded_json(m->r, "metrics.json");
    const json_t *matrices = json_object_get(metrics, "matrices"),
                 *columns = json_object_get(json_object_get(metrics, "published"), "columns");
    for (size_t i = 0; i < json_array_size(matrices); i++)
        compare_matrix(m, json_array_get(matrices, i));
    for (size_t i = 0; i < json_array_size(columns); i++)
        compare_column(m, json_array_get(columns, i));
    json_decref(metrics);
}
