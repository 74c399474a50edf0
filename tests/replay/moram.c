/* fixtures/rivals/moram: a linear layer with rank-one experts, forward, backward and in evaluation, task by task. */
#include "adapters/deltas.h"
#include "tests/replay/replay.h"

#define OUTPUTS 1e-5
#define GRADIENTS 1e-4 /* of the tensor's largest entry */

struct moram {
    struct replay *r;
    size_t rank;
    float *da, *db;       /* device: gradients of the experts of a task */
    struct deltas deltas; /* of which the gate reads its numbers */
    struct delta_entry entry;
    struct delta delta;
    struct linear linear;
};

static struct matrix upload(struct moram *m, const struct safetensor *tensor)
{
    size_t n = safetensor_elements(tensor), columns = tensor->shape[tensor->rank - 1];
    return matrix_rows(replay_upload(m->r, &m->r->arena, tensor->data, n * sizeof(float)), n / columns, columns);
}

static float *take(struct moram *m, size_t rows, size_t columns)
{
    return replay_upload(m->r, &m->r->arena, NULL, rows * columns * sizeof(float));
}

/* The rows that columns are. */
static float *transposed(struct replay *r, const float *from, size_t rows, size_t columns)
{
    float *to = replay_take(r, rows * columns, sizeof *to);
    for (size_t i = 0; i < rows * columns; i++)
        to[i % columns * rows + i / columns] = from[i];
    return to;
}

/* The task's experts join those of the tasks before. */
static void add_experts(struct moram *m, size_t task)
{
    struct backend *backend = m->r->backend;
    size_t in = m->linear.in, out = m->linear.out, keys = m->rank * in, values = m->rank * out;
    const float *a = recorded_floats(m->r->data, keys, "task%zu.A", task);
    float *b = transposed(m->r, recorded_floats(m->r->data, values, "task%zu.B", task), out, m->rank);
    m->delta.rows += m->rank;
    must(backend->ops->upload(backend, m->delta.a + task * keys, a, keys * sizeof(float), &error));
    must(backend->ops->upload(backend, m->delta.b + task * values, b, values * sizeof(float), &error));
}

static void forward(struct moram *m, size_t task, bool training, struct matrix x)
{
    const char *name = training ? "y" : "y_eval";
    struct matrix y = matrix_rows(take(m, x.rows, m->linear.out), x.rows, m->linear.out);
    must(linear_forward(m->r->backend, &m->linear,
                        &(struct linear_forward){.x = x, .y = y, .arena = &m->r->arena, .training = training}, &error));
    replay_compare(m->r, name, y.data, recorded(m->r->data, "task%zu.%s", task, name), OUTPUTS);
}

static void backward(struct moram *m, size_t task, struct matrix x)
{
    struct replay *r = m->r;
    size_t in = m->linear.in, out = m->linear.out;
    struct matrix dy = upload(m, recorded(r->data, "task%zu.dy", task)),
                  dx = matrix_rows(take(m, x.rows, in), x.rows, in);
    const struct safetensor *expected[] = {recorded(r->data, "task%zu.dx", task), recorded(r->data, "task%zu.dA", task),
                                           recorded(r->data, "task%zu.dB", task)};
    must(r->backend->ops->zero(r->backend, m->da, m->rank * in * sizeof *m->da, &error));
    must(r->backend->ops->zero(r->backend, m->db, m->rank * out * sizeof *m->db, &error));
    must(linear_backward(r->backend, &m->linear,
                         &(struct linear_backward){.x = x, .dy = dy, .dx = dx, .arena = &r->arena}, &error));
    replay_compare(r, "dx", dx.data, expected[0], GRADIENTS * recorded_largest(expected[0]));
    replay_compare(r, "dA", m->da, expected[1], GRADIENTS * recorded_largest(expected[1]));
    const float *rows = replay_download(r, m->db, m->rank * out * sizeof *rows);
    replay_floats(r, "dB", transposed(r, rows, m->rank, out), expected[2], GRADIENTS * recorded_largest(expected[2]));
}

static void make_layer(struct moram *m)
{
    const json_t *config = m->r->config;
    struct matrix w = upload(m, recorded(m->r->data, "weight")), b = upload(m, recorded(m->r->data, "bias"));
    float *numbers = m->deltas.settings.gate_numbers, top_k = (float)recorded_number(config, "top_k");
    size_t in = w.columns, out = w.rows, all = recorded_size(config, "tasks") * m->rank;
    numbers[RANK_ONE_TOP_K] = top_k < 2 ? 2 : top_k; /* as the public code */
    numbers[RANK_ONE_TEMPERATURE] = (float)recorded_number(config, "temperature");
    numbers[RANK_ONE_THRESHOLD] = (float)recorded_number(config, "threshold");
    m->da = take(m, m->rank, in);
    m->db = take(m, m->rank, out);
    m->entry.deltas = &m->deltas;
    m->delta = (struct delta){.a = take(m, all, in),
                              .b = take(m, all, out),
                              .da = m->da,
                              .db = m->db,
                              .trained = m->rank,
                              .out = out,
                              .scale = 1,
                              .trains = true,
                              .gate = &gate_rank_one,
                              .state = &m->entry};
    m->linear = (struct linear){
        .weight.value = w.data, .bias.value = b.data, .out = out, .in = in, .deltas = &m->delta, .delta_count = 1};
}

void replay_moram(struct replay *r)
{
    struct moram m = {.r = r, .rank = recorded_size(r->config, "rank")};
    make_layer(&m);
    for (size_t t = 0; t < recorded_size(r->config, "tasks"); t++) {
        struct arena_mark mark = arena_mark(&r->arena);
        add_experts(&m, t);
        struct matrix x = upload(&m, recorded(r->data, "task%zu.x", t));
        forward(&m, t, true, x);
        backward(&m, t, x);
        forward(&m, t, false, x);
        arena_release(&r->arena, mark);
    }
}
