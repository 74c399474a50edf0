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

static void upload(struct recorded_moram *r, const struct safetensor *tensor, struct matrix *matrix)
{
    struct tensor room;
    size_t n = safetensor_elements(tensor), columns = tensor->shape[tensor->rank - 1];
    must(tensor_take(&room, &r->arena, TENSOR_F32, tensor->name, 2, (size_t[]){n / columns, columns}, &error));
    *matrix = matrix_of(&room);
    must(r->backend->ops->upload(r->backend, room.data, tensor->data, n * sizeof(float), &error));
}

/* got [expected's elements] on the host */
static void compare(const struct recorded_moram *r, size_t task, const char *part, const float *got, bool relative)
{
    const struct safetensor *expected;
    int rank = part[1] == 'A' || part[1] == 'B' ? 2 : 3;
    expected = rival_tensor(r->f, rank, "task%zu.%s", task, part);
    double largest = 0;
    for (size_t i = 0; i < safetensor_elements(expected); i++)
        largest = fmax(largest, fabs((double)((const float *)expected->data)[i]));
    report_values(r->f->report, part, got, expected->data, safetensor_elements(expected),
                  relative ? GRADIENTS * largest : OUTPUTS);
}

static void compare_device(struct recorded_moram *r, size_t task, const char *part, struct matrix got, bool relative)
{
    float *values = xmalloc(got.rows * got.columns * sizeof *values);
    must(r->backend->ops->download(r->backend, values, got.data, got.rows * got.columns * sizeof *values, &error));
    compare(r, task, part, values, relative);
    free(values);
}

/* to [columns, rows] = from [rows, columns] */
static void transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows * columns; i++)
        to[i % columns * rows + i / columns] = from[i];
}

/* The task's experts join those of the tasks before. */
static void add_experts(struct recorded_moram *r, size_t task)
{
    const struct safetensor *a, *b;
    size_t in = r->linear.in, out = r->linear.out, keys = r->rank * in, values = r->rank * out;
    a = rival_tensor(r->f, 2, "task%zu.A", task);
    b = rival_tensor(r->f, 2, "task%zu.B", task);
    if (a->shape[0] != r->rank || a->shape[1] != in || b->shape[0] != out || b->shape[1] != r->rank)
        must(error_set(&error, ERROR_FORMAT, "%s: task %zu: expected A [%zu, %zu] and B [%zu, %zu]", r->f->folder, task,
                       r->rank, in, out, r->rank));
    float *turned = xmalloc(values * sizeof *turned);
    transpose(turned, b->data, out, r->rank);
    r->delta.rows += r->rank;
    must(r->backend->ops->upload(r->backend, r->delta.a + task * keys, a->data, keys * sizeof(float), &error));
    must(r->backend->ops->upload(r->backend, r->delta.b + task * values, turned, values * sizeof(float), &error));
    free(turned);
}

static void forward(struct recorded_moram *r, size_t task, bool training, struct matrix x)
{
    struct tensor y;
    must(tensor_take(&y, &r->arena, TENSOR_F32, "y", 2, (size_t[]){x.rows, r->linear.out}, &error));
    must(linear_forward(r->backend, &r->linear,
                        &(struct linear_forward){.x = x, .y = matrix_of(&y), .arena = &r->arena, .training = training},
                        &error));
    compare_device(r, task, training ? "y" : "y_eval", matrix_of(&y), false);
}

/* The gradients of the task's experts. */
static void compare_experts(struct recorded_moram *r, size_t task)
{
    size_t out = r->linear.out, bytes = tensor_bytes(&r->db);
    float *rows = xmalloc(bytes), *turned = xmalloc(bytes);
    must(r->backend->ops->download(r->backend, rows, r->db.data, bytes, &error));
    transpose(turned, rows, r->rank, out);
    compare(r, task, "dB", turned, true);
    compare_device(r, task, "dA", matrix_of(&r->da), true);
    free(rows);
    free(turned);
}

static void backward(struct recorded_moram *r, size_t task, struct matrix x)
{
    const struct safetensor *recorded;
    struct matrix dy;
    struct tensor dx;
    recorded = rival_tensor(r->f, 3, "task%zu.dy", task);
    upload(r, recorded, &dy);
    must(tensor_take(&dx, &r->arena, TENSOR_F32, "dx", 2, (size_t[]){x.rows, x.columns}, &error));
    must(r->backend->ops->zero(r->backend, r->da.data, tensor_bytes(&r->da), &error));
    must(r->backend->ops->zero(r->backend, r->db.data, tensor_bytes(&r->db), &error));
    must(linear_backward(r->backend, &r->linear,
                         &(struct linear_backward){.x = x, .dy = dy, .dx = matrix_of(&dx), .arena = &r->arena},
                         &error));
    compare_device(r, task, "dx", matrix_of(&dx), true);
    compare_experts(r, task);
}

static void replay_task(struct recorded_moram *r, size_t task)
{
    const struct safetensor *recorded;
    struct arena_mark mark = arena_mark(&r->arena);
    struct matrix x;
    add_experts(r, task);
    recorded = rival_tensor(r->f, 3, "task%zu.x", task);
    upload(r, recorded, &x);
    forward(r, task, true, x);
    backward(r, task, x);
    forward(r, task, false, x);
    arena_release(&r->arena, mark);
}

static void make_layer(struct recorded_moram *r)
{
    const struct safetensor *weight, *bias;
    struct matrix w, b;
    double temperature, threshold, top_k;
    float *numbers = r->deltas.settings.gate_numbers;
    r->rank = rival_size(r->f, "rank");
    r->tasks = rival_size(r->f, "tasks");
    top_k = rival_number(r->f, "top_k");
    temperature = rival_number(r->f, "temperature");
    threshold = rival_number(r->f, "threshold");
    weight = rival_tensor(r->f, 2, "weight");
    bias = rival_tensor(r->f, 1, "bias");
    upload(r, weight, &w);
    upload(r, bias, &b);
    numbers[RANK_ONE_TOP_K] = top_k < 2 ? 2 : (float)top_k; /* as the public code */
    numbers[RANK_ONE_TEMPERATURE] = (float)temperature;
    numbers[RANK_ONE_THRESHOLD] = (float)threshold;
    size_t in = w.columns, out = w.rows, all = r->tasks * r->rank;
    must(tensor_take(&r->a, &r->arena, TENSOR_F32, "A", 2, (size_t[]){all, in}, &error));
    must(tensor_take(&r->b, &r->arena, TENSOR_F32, "B", 2, (size_t[]){all, out}, &error));
    must(tensor_take(&r->da, &r->arena, TENSOR_F32, "dA", 2, (size_t[]){r->rank, in}, &error));
    must(tensor_take(&r->db, &r->arena, TENSOR_F32, "dB", 2, (size_t[]){r->rank, out}, &error));
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
}

void replay_moram(struct rival_fixture *fixture)
{
    struct recorded_moram r = {.f = fixture};
    must(backend_open(&r.backend, fixture->backend, &error));
    must(r.backend->ops->arena_create(r.backend, &r.arena, 0, "replay", &error));
    make_layer(&r);
    for (size_t t = 0; t < r.tasks; t++)
        replay_task(&r, t);
    r.backend->ops->arena_destroy(r.backend, &r.arena);
    backend_close(r.backend);
}
