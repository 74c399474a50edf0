/* fixtures/rivals/moram: a linear layer with rank-one experts, forward, backward and in evaluation, task by task. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/deltas.h"
#include "adapters/gates/gate.h"
#include "adapters/gates/rank_one.h"
#include "core/alloc.h"
#include "tests/replay/replay_rivals.h"

#define OUTPUTS 1e-5
#define GRADIENTS 1e-4 /* of the tensor's largest entry */

struct recorded_moram {
    struct rival_fixture *f;
    struct backend *backend;
    struct arena arena;
    size_t rank, tasks;
    struct tensor a, b, da, db; /* rows of all tasks; gradients of those of one */
    struct deltas deltas;       /* of which the gate reads its numbers */
    struct delta_entry entry;
    struct delta delta;
    struct linear linear;
};

static status upload(struct recorded_moram *r, const struct safetensor *tensor, struct matrix *matrix,
                     struct error *error)
{
    struct tensor room;
    size_t n = safetensor_elements(tensor), columns = tensor->shape[tensor->rank - 1];
    TRY(tensor_take(&room, &r->arena, TENSOR_F32, tensor->name, 2, (size_t[]){n / columns, columns}, error));
    *matrix = matrix_of(&room);
    return r->backend->ops->upload(r->backend, room.data, tensor->data, n * sizeof(float), error);
}

/* got [expected's elements] on the host */
static status compare(const struct recorded_moram *r, size_t task, const char *part, const float *got, bool relative,
                      struct error *error)
{
    const struct safetensor *expected;
    int rank = part[1] == 'A' || part[1] == 'B' ? 2 : 3;
    TRY(rival_tensor(r->f, rank, &expected, error, "task%zu.%s", task, part));
    double largest = 0;
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        largest = fmax(largest, fabs((double)((const float *)expected->data)[i]));
    report_values(r->f->report, part, got, expected->data, safetensor_elements(expected),
                  relative ? GRADIENTS * largest : OUTPUTS);
    return OK;
}

static status compare_device(struct recorded_moram *r, size_t task, const char *part, struct matrix got, bool relative,
                             struct error *error)
{
    float *values = xmalloc(got.rows * got.columns * sizeof *values);
    status result =
        r->backend->ops->download(r->backend, values, got.data, got.rows * got.columns * sizeof *values, error);
    NEXT(result, compare(r, task, part, values, relative, error));
    free(values);
    return result;
}

/* to [columns, rows] = from [rows, columns] */
static void transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows * columns; i++)
        to[i % columns * rows + i / columns] = from[i];
}

/* The task's experts join those of the tasks before. */
static status add_experts(struct recorded_moram *r, size_t task, struct error *error)
{
    const struct safetensor *a, *b;
    size_t in = r->linear.in, out = r->linear.out, keys = r->rank * in, values = r->rank * out;
    TRY(rival_tensor(r->f, 2, &a, error, "task%zu.A", task));
    TRY(rival_tensor(r->f, 2, &b, error, "task%zu.B", task));
    if (a->shape[0] != r->rank || a->shape[1] != in || b->shape[0] != out || b->shape[1] != r->rank)
        return error_set(error, ERROR_FORMAT, "%s: task %zu: expected A [%zu, %zu] and B [%zu, %zu]", r->f->folder,
                         task, r->rank, in, out, r->rank);
    float *turned = xmalloc(values * sizeof *turned);
    transpose(turned, b->data, out, r->rank);
    r->delta.rows += r->rank;
    status result = r->backend->ops->upload(r->backend, r->delta.a + task * keys, a->data, keys * sizeof(float), error);
    NEXT(result,
         r->backend->ops->upload(r->backend, r->delta.b + task * values, turned, values * sizeof(float), error));
    free(turned);
    return result;
}

static status forward(struct recorded_moram *r, size_t task, bool training, struct matrix x, struct error *error)
{
    struct tensor y;
    TRY(tensor_take(&y, &r->arena, TENSOR_F32, "y", 2, (size_t[]){x.rows, r->linear.out}, error));
    TRY(linear_forward(r->backend, &r->linear,
                       &(struct linear_forward){.x = x, .y = matrix_of(&y), .arena = &r->arena, .training = training},
                       error));
    return compare_device(r, task, training ? "y" : "y_eval", matrix_of(&y), false, error);
}

/* The gradients of the task's experts. */
static status compare_experts(struct recorded_moram *r, size_t task, struct error *error)
{
    size_t out = r->linear.out, bytes = tensor_bytes(&r->db);
    float *rows = xmalloc(bytes), *turned = xmalloc(bytes);
    status result = r->backend->ops->download(r->backend, rows, r->db.data, bytes, error);
    transpose(turned, rows, r->rank, out);
    NEXT(result, compare(r, task, "dB", turned, true, error));
    NEXT(result, compare_device(r, task, "dA", matrix_of(&r->da), true, error));
    free(rows);
    free(turned);
    return result;
}

static status backward(struct recorded_moram *r, size_t task, struct matrix x, struct error *error)
{
    const struct safetensor *recorded;
    struct matrix dy;
    struct tensor dx;
    TRY(rival_tensor(r->f, 3, &recorded, error, "task%zu.dy", task));
    TRY(upload(r, recorded, &dy, error));
    TRY(tensor_take(&dx, &r->arena, TENSOR_F32, "dx", 2, (size_t[]){x.rows, x.columns}, error));
    TRY(r->backend->ops->zero(r->backend, r->da.data, tensor_bytes(&r->da), error));
    TRY(r->backend->ops->zero(r->backend, r->db.data, tensor_bytes(&r->db), error));
    TRY(linear_backward(r->backend, &r->linear,
                        &(struct linear_backward){.x = x, .dy = dy, .dx = matrix_of(&dx), .arena = &r->arena}, error));
    TRY(compare_device(r, task, "dx", matrix_of(&dx), true, error));
    return compare_experts(r, task, error);
}

static status replay_task(struct recorded_moram *r, size_t task, struct error *error)
{
    const struct safetensor *recorded;
    struct arena_mark mark = arena_mark(&r->arena);
    struct matrix x;
    TRY(add_experts(r, task, error));
    TRY(rival_tensor(r->f, 3, &recorded, error, "task%zu.x", task));
    TRY(upload(r, recorded, &x, error));
    TRY(forward(r, task, true, x, error));
    TRY(backward(r, task, x, error));
    TRY(forward(r, task, false, x, error));
    arena_release(&r->arena, mark);
    return OK;
}

static status make_layer(struct recorded_moram *r, struct error *error)
{
    const struct safetensor *weight, *bias;
    struct matrix w, b;
    double temperature, threshold, top_k;
    float *numbers = r->deltas.settings.gate_numbers;
    TRY(rival_size(r->f, "rank", &r->rank, error));
    TRY(rival_size(r->f, "tasks", &r->tasks, error));
    TRY(rival_number(r->f, "top_k", &top_k, error));
    TRY(rival_number(r->f, "temperature", &temperature, error));
    TRY(rival_number(r->f, "threshold", &threshold, error));
    TRY(rival_tensor(r->f, 2, &weight, error, "weight"));
    TRY(rival_tensor(r->f, 1, &bias, error, "bias"));
    TRY(upload(r, weight, &w, error));
    TRY(upload(r, bias, &b, error));
    numbers[RANK_ONE_TOP_K] = top_k < 2 ? 2 : (float)top_k; /* as the public code */
    numbers[RANK_ONE_TEMPERATURE] = (float)temperature;
    numbers[RANK_ONE_THRESHOLD] = (float)threshold;
    size_t in = w.columns, out = w.rows, all = r->tasks * r->rank;
    TRY(tensor_take(&r->a, &r->arena, TENSOR_F32, "A", 2, (size_t[]){all, in}, error));
    TRY(tensor_take(&r->b, &r->arena, TENSOR_F32, "B", 2, (size_t[]){all, out}, error));
    TRY(tensor_take(&r->da, &r->arena, TENSOR_F32, "dA", 2, (size_t[]){r->rank, in}, error));
    TRY(tensor_take(&r->db, &r->arena, TENSOR_F32, "dB", 2, (size_t[]){r->rank, out}, error));
    r->entry.deltas = &r->deltas;
    r->delta = (struct delta){.a = r->a.data,
                              .b = r->b.data,
                              .da = r->da.data,
                              .db = r->db.data,
                              .trained = r->rank,
                              .out = out,
                              .scale = 1,
                              .trains = true,
                              .gate = &gate_rank_one,
                              .state = &r->entry};
    r->linear = (struct linear){
        .weight.value = w.data, .bias.value = b.data, .out = out, .in = in, .deltas = &r->delta, .delta_count = 1};
    return OK;
}

status replay_moram(struct rival_fixture *fixture, struct error *error)
{
    struct recorded_moram r = {.f = fixture};
    TRY(backend_open(&r.backend, fixture->backend, error));
    status result = r.backend->ops->arena_create(r.backend, &r.arena, 0, "replay", error);
    if (result == OK) {
        result = make_layer(&r, error);
        for (size_t t = 0; result == OK && t < r.tasks; t++)
            result = replay_task(&r, t, error);
        r.backend->ops->arena_destroy(r.backend, &r.arena);
    }
    backend_close(r.backend);
    return result;
}
