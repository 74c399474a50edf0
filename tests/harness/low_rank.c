/* The arithmetic of o_lora, inf_lora and sd_lora on tensors of a file, for check_low_rank.py: low_rank IN OUT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/deltas.h"
#include "core/linear.h"
#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"
#include "models/files/safetensors.h"
#include "tests/models/small.h"

enum { MOST = 64, TEXT = 32 };
static struct {
    struct safetensor list[MOST];
    char names[MOST][TEXT];
    size_t count;
} out;

static void keep(const char *name, size_t task, enum safetensor_type type, size_t rows, size_t columns,
                 const void *data)
{
    snprintf(out.names[out.count], TEXT, "%s.%zu", name, task);
    out.list[out.count] = (struct safetensor){
        .name = out.names[out.count], .type = type, .rank = 2, .shape = {rows, columns}, .data = data};
    out.count++;
}

static const struct safetensor *find(const struct safetensors *file, const char *name, size_t task)
{
    char full[TEXT];
    snprintf(full, sizeof full, "%s.%zu", name, task);
    return safetensors_find(file, full);
}

/* covariance.t and after.t [n, n], shares [tasks], rank of A: U Uᵀ of the space, Aᵀ A. */
static void inf_lora(const struct safetensors *file)
{
    const double *shares = safetensors_find(file, "shares")->data;
    size_t rank = safetensors_find(file, "sd.a.0")->shape[0];
    struct subspace space = {0};
    for (size_t t = 0; find(file, "covariance", t) != NULL; t++) {
        const struct safetensor *c = find(file, "covariance", t);
        size_t n = c->shape[0];
        double *rest = malloc(n * n * sizeof *rest), *a = calloc(n * n, sizeof *a),
               *projector = calloc(n * n, sizeof *a);
        struct svd f;
        memcpy(rest, c->data, n * n * sizeof *rest);
        space.n = n;
        subspace_remove(&space, rest, n);
        must(svd_create(&f, rest, n, n, &error));
        must(subspace_extend(&space, find(file, "after", t)->data, n, n, shares[t], &error));
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                for (size_t r = 0; r < rank; r++)
                    a[i * n + j] += f.u[i * n + r] * f.u[j * n + r] / 3;
                for (size_t r = 0; r < (size_t)space.rank; r++)
                    projector[i * n + j] += space.basis[r * n + i] * space.basis[r * n + j];
            }
        keep("inf.a", t, SAFETENSOR_F64, n, n, a);
        keep("inf.projector", t, SAFETENSOR_F64, n, n, projector);
    }
}

/* Tasks of sd.a.t [rank, n] and sd.b.t [rank, n] of the query of a layer with weight sd.weight [3 n, n], x sd.x [samples, n]; magnitudes
 * sd.m [tasks]. The gate's output, and o_lora's loss and gradient for the same A. */
static void deltas(const struct safetensors *file)
{
    const struct safetensor *x = safetensors_find(file, "sd.x"), *m = safetensors_find(file, "sd.m"),
                            *a = find(file, "sd.a", 0);
    size_t n = x->shape[1], samples = x->shape[0], rank = a->shape[0], tasks = m->shape[0];
    struct clip_dimensions dimensions = small_dimensions;
    struct device device;
    static struct model model;
    struct method_run run = {.model = &model};
    struct task task = {.index = tasks - 1};
    model.settings.delta = (struct delta_settings){.rank = rank,
                                                   .tasks = tasks,
                                                   .scale = 1,
                                                   .matrices = 1U << DELTA_QUERY,
                                                   .gate = &gate_magnitude,
                                                   .place.towers = ADAPT_IMAGE};
    dimensions.image_width = n;
    device_open(&device, 1);
    model.backend = device.backend;
    must(model.backend->ops->arena_create(model.backend, &model.memory, 0, "model", &error));
    must(model.backend->ops->arena_create(model.backend, &model.step_memory, 0, "step", &error));
    run.step_memory = &model.step_memory;
    must(clip_create(&model.clip, model.backend, &model.memory, &dimensions, PARAMETERS_FROZEN, ACTIVATION_GELU,
                     &error));
    must(deltas_create(&model.deltas, model.clip, &model.memory, &model.settings.delta, PARAMETERS_TRAINED, &error));
    struct delta_entry *e = &model.deltas->list[0];
    memcpy(parameters_write_all(model.clip->parameters) + (e->linear->weight.value - model.clip->parameters->values),
           safetensors_find(file, "sd.weight")->data, 3 * n * n * sizeof(float)); /* a CPU's memory is the host's */
    for (size_t t = 0; t < tasks; t++) {
        must(deltas_write(model.deltas, e, DELTA_A, t, find(file, "sd.a", t)->data, &error));
        must(deltas_write(model.deltas, e, DELTA_B, t, find(file, "sd.b", t)->data, &error));
        must(deltas_write(model.deltas, e, DELTA_MAGNITUDE, t, (const float *)m->data + t, &error));
    }
    must(deltas_begin_task(model.deltas, tasks - 1, 0, DELTA_A | DELTA_B | DELTA_MAGNITUDE, &error));
    float *y = malloc(samples * 3 * n * sizeof *y), *loss = calloc(1, sizeof *loss);
    must(linear_forward(model.backend, e->linear,
                        &(struct linear_forward){.x = matrix_rows((void *)(uintptr_t)x->data, samples, n),
                                                 .y = matrix_rows(y, samples, 3 * n),
                                                 .arena = &model.step_memory},
                        &error));
    keep("sd.y", 0, SAFETENSOR_F32, samples, 3 * n, y);
    must(deltas_begin_task(model.deltas, tasks - 1, tasks - 1, DELTA_A | DELTA_B, &error));
    struct options *chosen;
    must(options_create(&chosen, method_o_lora.options, &error));
    run.options = chosen;
    model.loss = loss;
    must(method_o_lora.before_update(&run, &task, 1, &error));
    keep("o.loss", 0, SAFETENSOR_F32, 1, 1, loss);
    keep("o.gradient", 0, SAFETENSOR_F32, rank, n, e->delta->da);
}

int main(int count, char **words)
{
    struct safetensors *file;
    if (count != 3)
        return 2;
    must(safetensors_open(&file, words[1], WEIGHTS_WHOLE, &error));
    inf_lora(file);
    deltas(file);
    must(safetensors_write(words[2], out.list, out.count, NULL, 0, &error));
    return 0;
}
