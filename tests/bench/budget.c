#include "tests/bench/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "models/dispatch.h"

enum { LINES = 256, PARTS = 8, REPLAYS = 10 };

#ifdef COUNTED_ALONE /* the emulated device, whose times are of no interest: nothing has to run */
enum { TIMED = 0 };
#else
enum { TIMED = 1 };
#endif

static struct line {
    const char *part;
    char name[96];
    size_t calls, nodes;
    double bytes, seconds;
} operations[LINES], kernels[LINES];
static const char *part = "", *parts[PARTS];
static const struct backend_ops *own;
static size_t met;  /* nodes of what is being recorded */
static bool inside; /* an operation that calls others */

static struct line *line_of(struct line *lines, const char *name)
{
    struct line *line = lines;
    while (line < &lines[LINES - 1] && line->part != NULL && (line->part != part || strcmp(line->name, name) != 0))
        line++;
    line->part = part;
    snprintf(line->name, sizeof line->name, "%s", name);
    return line;
}

/* Templates are one kernel. */
void graph_node_met(const char *kernel)
{
    char name[sizeof kernels->name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(kernel, "<"), kernel);
    met++;
    if (own != NULL)
        line_of(kernels, name)->nodes++;
}

/* --- Bytes of operands --- */

static double of(struct matrix m)
{
    return m.data != NULL ? (double)m.rows * (double)m.columns * (double)tensor_type_size(m.type) : 0;
}

static double floats(size_t n)
{
    return 4.0 * (double)n;
}

static double choices(const struct dispatch *d) /* a slot for each */
{
    return (double)d->samples * (double)d->top_k;
}

static double typed(enum tensor_type type)
{
    return (double)tensor_type_size(type);
}

static double sample_values(const struct expert_stack_operands *s) /* of x, or y */
{
    return (double)s->dispatch->samples * (double)(s->rows_per_sample * s->width);
}

static double units(const struct expert_stack_operands *s)
{
    return choices(s->dispatch) * (double)(s->rows_per_sample * s->hidden);
}

static size_t weights(const struct expert_stack_operands *s) /* of one layer */
{
    return s->dispatch->experts * s->width * s->hidden;
}

#define BYTES(operation, expression)                                                                                   \
    static double bytes_##operation(const struct operation *o)                                                         \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define UNKNOWN(operation)                                                                                             \
    static double bytes_##operation(const struct operation *o)                                                         \
    {                                                                                                                  \
        (void)o;                                                                                                       \
        return -1;                                                                                                     \
    }
BYTES(gemm, of(o->a) + of(o->b) + of(o->out) * (o->accumulate ? 2 : 1) + of(o->addend) + of(o->before) +
                (o->bias != NULL ? floats(o->out.columns) : 0))
BYTES(grouped_gemm, of(o->a) + of(o->b) + of(o->out) * (o->kind == GROUPED_WEIGHTS ? 2 : 1))
BYTES(layer_norm, of(o->x) + of(o->y) + (o->statistics != NULL ? floats(2 * o->x.rows) : 0))
BYTES(layer_norm_backward, (of(o->x) + of(o->dy)) * (o->dgain != NULL ? 2 : 1) + of(o->addend) + of(o->dx) +
                               of(o->rounded) + floats(2 * o->x.rows))
BYTES(activate, of(o->x) + of(o->out))
BYTES(activate_backward, of(o->x) + of(o->dy) + of(o->dx))
BYTES(dropout, of(o->x) + of(o->addend) + of(o->out))
BYTES(attention, 4 * typed(o->type) * (double)(o->batch * o->positions * o->width))
BYTES(attention_backward, 7 * typed(o->type) * (double)(o->batch * o->positions * o->width))
BYTES(prefix_attention, 3 * typed(o->prefix.type) * (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
BYTES(prefix_attention_backward,
      4 * typed(o->prefix.type) * (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
BYTES(sparse_softmax, of(o->x) + of(o->y))
BYTES(sparse_softmax_backward, of(o->y) + of(o->dy) + of(o->dx))
BYTES(patchify, (double)tensor_bytes(o->images) + floats(o->images->shape[0] * o->per_image * 3 * o->patch * o->patch))
BYTES(assemble_tokens, floats((2 * o->per_image + 1) * o->batch * o->width + (o->per_image + 1) * o->width))
BYTES(embed_tokens, floats((2 * o->batch + 1) * o->positions * o->width))
BYTES(arange, floats(o->count))
BYTES(gather_rows, 2 * of(o->out))
BYTES(scatter_rows, 3 * of(o->x))
BYTES(column_sum, of(o->x) + floats(2 * o->x.columns))
BYTES(weighted_sum, floats((o->count + 1) * o->n))
BYTES(multiply, floats(3 * o->n))
BYTES(normalize, of(o->x) + of(o->y))
BYTES(normalize_backward, of(o->y) + of(o->dy) + 2 * of(o->dx))
BYTES(cross_entropy, of(o->logits) + 2 * of(o->dlogits))
BYTES(route,
      floats(o->batch * o->width + 2 * o->width * o->experts + 2 * o->batch * o->experts) + 24 * choices(o->dispatch))
BYTES(route_backward, floats(3 * o->batch * o->width + 6 * o->width * o->experts + 2 * o->batch * o->experts) +
                          12 * choices(o->dispatch))
BYTES(dispatch_gather,
      (typed(o->x_type) + typed(o->out_type)) * choices(o->dispatch) * (double)(o->rows_per_sample * o->width))
BYTES(dispatch_combine, (typed(o->rows_type) * choices(o->dispatch) + 8.0 * (double)o->dispatch->samples) *
                            (double)(o->rows_per_sample * o->width))
BYTES(dispatch_dropout, 2 * typed(o->type) * choices(o->dispatch) * (double)(o->rows_per_sample * o->width))
BYTES(expert_gate_backward, typed(o->type) * choices(o->dispatch) * (double)o->rows_per_sample *
                                (double)((o->before != NULL ? 5 : 4) * o->hidden + o->width))
BYTES(experts, sample_values(&o->stack) * (typed(o->x_type) + 8) + typed(o->x_type) * units(&o->stack) +
                   floats(2 * weights(&o->stack)))
BYTES(experts_backward, sample_values(&o->stack) * (typed(o->dy_type) + (typed(o->x_type) + typed(o->dy_type)) *
                                                                            (double)o->stack.dispatch->top_k) +
                            4 * typed(o->x_type) * units(&o->stack) + floats(5 * weights(&o->stack)))
BYTES(experts_backward_input, 8 * sample_values(&o->stack) + 2 * units(&o->stack) + floats(weights(&o->stack)))
BYTES(find_not_finite, floats(o->n))
UNKNOWN(skip_step) /* nothing unless the step is held */
BYTES(argmax, of(o->x))
UNKNOWN(assemble_tokens_backward)
UNKNOWN(embed_tokens_backward)
UNKNOWN(spread_positions)
UNKNOWN(mean_positions)
UNKNOWN(mean_positions_backward)
UNKNOWN(average_experts)
UNKNOWN(soft_cross_entropy)
UNKNOWN(penalty)
UNKNOWN(squared_error)
UNKNOWN(balance)
UNKNOWN(route_softmax)
UNKNOWN(route_softmax_backward)
UNKNOWN(balance_softmax)
UNKNOWN(partition)
UNKNOWN(count_pairs)
UNKNOWN(adamw) /* the device alone knows which segments are updated */
UNKNOWN(sgd)
UNKNOWN(lamb)

/* --- One operation --- */

struct call {
    struct backend *backend;
    const void *operands;
};

/* Records it and, on a device, replays it: the times of a CPU are those of its only run. */
static status count(struct backend *backend, const char *name, double bytes, recorded_body run, struct call *call,
                    struct error *error)
{
    struct recording recording = {0};
    float value;
    if (inside)
        return run(call, error);
    struct line *line = line_of(operations, name);
    double start = clock_seconds();
    inside = true;
    met = 0;
    line->calls++;
    line->bytes = bytes < 0 || line->bytes < 0 ? -1 : line->bytes + bytes;
    TRY(own->record(backend, &recording, run, call, error));
    inside = false;
    line->nodes += met;
    if (recording.owner == NULL) {
        line->seconds += clock_seconds() - start;
        return recording.refused.code == OK ? OK : error_set(error, ERROR_DEVICE, "%s", recording.refused.message);
    }
    if (!TIMED)
        return OK;
    TRY(own->download(backend, &value, NULL, 0, error)); /* waits */
    start = clock_seconds();
    for (int i = 0; i < REPLAYS; i++)
        TRY(own->replay(backend, &recording, error));
    own->recording_destroy(backend, &recording); /* waits */
    line->seconds += (clock_seconds() - start) / REPLAYS;
    return OK;
}

#define COUNT(operation)                                                                                               \
    static status run_##operation(void *context, struct error *error)                                                  \
    {                                                                                                                  \
        const struct call *call = context;                                                                             \
        return own->operation(call->backend, call->operands, error);                                                   \
    }                                                                                                                  \
    static status count_##operation(struct backend *backend, const struct operation *o, struct error *error)           \
    {                                                                                                                  \
        return count(backend, #operation, bytes_##operation(o), run_##operation, &(struct call){backend, o}, error);   \
    }
BACKEND_OPERATIONS(COUNT)
#undef COUNT

struct transfer {
    void *to;
    const void *from;
    size_t bytes;
};

static status run_zero(void *context, struct error *error)
{
    const struct call *call = context;
    const struct transfer *t = call->operands;
    return own->zero(call->backend, t->to, t->bytes, error);
}

static status run_copy(void *context, struct error *error)
{
    const struct call *call = context;
    const struct transfer *t = call->operands;
    return own->copy(call->backend, t->to, t->from, t->bytes, error);
}

static status count_zero(struct backend *backend, void *device, size_t bytes, struct error *error)
{
    struct call call = {backend, &(struct transfer){device, NULL, bytes}};
    return count(backend, "zero", (double)bytes, run_zero, &call, error);
}

static status count_copy(struct backend *backend, void *to, const void *from, size_t bytes, struct error *error)
{
    struct call call = {backend, &(struct transfer){to, from, bytes}};
    return count(backend, "copy", 2.0 * (double)bytes, run_copy, &call, error);
}

void budget_begin(struct backend *backend)
{
    static struct backend_ops counted;
    own = backend->ops;
    counted = *own;
#define COUNT(operation) counted.operation = count_##operation;
    BACKEND_OPERATIONS(COUNT)
#undef COUNT
    counted.zero = count_zero;
    counted.copy = count_copy;
    backend->ops = &counted;
}

void budget_part(const char *name)
{
    size_t i = 0;
    while (i < PARTS - 1 && parts[i] != NULL && strcmp(parts[i], name) != 0)
        i++;
    parts[i] = part = name;
}

status budget_nodes(struct backend *backend, recorded_body body, void *context, size_t *nodes, struct error *error)
{
    struct recording recording = {0};
    met = 0;
    TRY(backend->ops->record(backend, &recording, body, context, error));
    *nodes = met;
    return recording.refused.code == OK ? OK : error_set(error, ERROR_DEVICE, "%s", recording.refused.message);
}

size_t budget_counted(void)
{
    size_t nodes = 0;
    for (const struct line *l = operations; l < &operations[LINES] && l->part != NULL; l++)
        nodes += l->nodes;
    return nodes;
}

/* --- The tables --- */

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return y->bytes > x->bytes ? 1 : y->bytes < x->bytes ? -1 : strcmp(x->name, y->name);
}

static void print_part(const char *name)
{
    struct line total = {0};
    for (struct line *l = operations; l < &operations[LINES] && l->part != NULL; l++) {
        if (strcmp(l->part, name) != 0)
            continue;
        total.calls += l->calls;
        total.nodes += l->nodes;
        total.bytes += l->bytes > 0 ? l->bytes : 0;
        total.seconds += l->seconds;
        printf("| %s | `%s` | %zu | %zu |", name, l->name, l->calls, l->nodes);
        printf(l->bytes < 0 ? " – |" : " %.1f |", l->bytes / 1e6);
        printf(l->seconds > 0 ? " %.3f |\n" : " |\n", 1e3 * l->seconds);
    }
    printf("| **%s** | | **%zu** | **%zu** | **%.1f** |", name, total.calls, total.nodes, total.bytes / 1e6);
    printf(total.seconds > 0 ? " **%.3f** |\n" : " |\n", 1e3 * total.seconds);
}

static size_t nodes_of(const char *kernel, const char *name)
{
    size_t nodes = 0;
    for (const struct line *l = kernels; l < &kernels[LINES] && l->part != NULL; l++)
        nodes += strcmp(l->name, kernel) == 0 && strcmp(l->part, name) == 0 ? l->nodes : 0;
    return nodes;
}

static void print_kernels(void)
{
    printf("\n| kernel |");
    for (size_t i = 0; i < PARTS && parts[i] != NULL; i++)
        printf(" %s |", parts[i]);
    printf("\n| --- |");
    for (size_t i = 0; i < PARTS && parts[i] != NULL; i++)
        printf(" ---: |");
    printf("\n");
    for (const struct line *l = kernels; l < &kernels[LINES] && l->part != NULL; l++) {
        bool before = false;
        for (const struct line *k = kernels; k < l; k++)
            before = before || strcmp(k->name, l->name) == 0;
        if (before)
            continue;
        printf("| `%s` |", l->name);
        for (size_t i = 0; i < PARTS && parts[i] != NULL; i++)
            printf(" %zu |", nodes_of(l->name, parts[i]));
        printf("\n");
    }
}

void budget_print(struct backend *backend)
{
    size_t count = 0;
    backend->ops = own;
    while (count < LINES && operations[count].part != NULL)
        count++;
    qsort(operations, count, sizeof *operations, compare_lines);
    printf("| part | operation | calls | nodes | MB | ms |\n| --- | --- | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < PARTS && parts[i] != NULL; i++)
        print_part(parts[i]);
    if (kernels->part != NULL)
        print_kernels();
    own = NULL;
}
