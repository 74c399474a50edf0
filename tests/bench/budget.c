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

enum operation {
#define OPERATION(name) OPERATION_##name,
    BACKEND_OPERATIONS(OPERATION) OPERATION(zero) OPERATION(copy)
#undef OPERATION
};

static const char *const names[] = {
#define NAME(name) #name,
    BACKEND_OPERATIONS(NAME) NAME(zero) NAME(copy)
#undef NAME
};

/* Of zero and copy. */
struct moved {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
};

struct call {
    struct backend *backend;
    enum operation operation;
    const void *operands; /* the structure of the operation's name */
    recorded_body run;    /* with the call as its context */
};

static struct line {
    const char *part; /* NULL: not used yet */
    char name[96];
    size_t calls, nodes;
    double bytes, seconds, multiplications;
} operations[LINES], kernels[LINES];
static const char *part = "", *parts[PARTS];
static const struct backend_ops *own;
static const void *byte;                                       /* on the device; to read it is to wait */
static status (*look)(struct call *call, struct error *error); /* at each call */
static double started;
static size_t met;  /* nodes of what is being recorded */
static bool inside; /* an operation that calls others */

static struct line *line_of(struct line *lines, const char *of, const char *name)
{
    struct line *line = lines;
    while (line < &lines[LINES - 1] && line->part != NULL && (line->part != of || strcmp(line->name, name) != 0))
        line++;
    line->part = of;
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
        line_of(kernels, part, name)->nodes++;
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

static double attended(const struct attention_operands *o) /* bytes of the output */
{
    return typed(o->type) * (double)(o->batch * o->positions * o->width);
}

/* −1: not known. The device alone knows which segments an optimizer updates, and whether a step is skipped. */
static double bytes_of(enum operation operation, const void *operands)
{
#define BYTES(name, expression)                                                                                        \
    case OPERATION_##name: {                                                                                           \
        const struct name *o = operands;                                                                               \
        return expression;                                                                                             \
    }
    switch (operation) {
        BYTES(gemm, of(o->a) + of(o->b) + of(o->out) * (o->accumulate ? 2 : 1) + of(o->addend) + of(o->before) +
                        (o->bias != NULL ? floats(o->out.columns) : 0))
        BYTES(grouped_gemm, of(o->a) + of(o->b) + of(o->out) * (o->kind == GROUPED_WEIGHTS ? 2 : 1))
        BYTES(layer_norm, of(o->x) + of(o->y) + (o->statistics != NULL ? floats(2 * o->x.rows) : 0))
        BYTES(layer_norm_backward, (of(o->x) + of(o->dy)) * (o->dgain != NULL ? 2 : 1) + of(o->addend) + of(o->dx) +
                                       of(o->rounded) + floats(2 * o->x.rows))
        BYTES(activate, of(o->x) + of(o->out))
        BYTES(activate_backward, of(o->x) + of(o->dy) + of(o->dx))
        BYTES(dropout, of(o->x) + of(o->addend) + of(o->out))
        BYTES(attention, 4 * attended(&o->operands))
        BYTES(attention_backward, 7 * attended(&o->operands))
        BYTES(prefix_attention,
              3 * typed(o->prefix.type) * (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
        BYTES(prefix_attention_backward,
              4 * typed(o->prefix.type) * (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
        BYTES(gated_prefix, (2 * typed(o->prefix.type) + floats(1)) *
                                (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
        BYTES(gated_prefix_backward, (2 * typed(o->prefix.type) + 2 * floats(1)) *
                                         (double)(o->prefix.batch * o->prefix.positions * o->prefix.width))
        BYTES(sparse_softmax, of(o->x) + of(o->y))
        BYTES(sparse_softmax_backward, of(o->y) + of(o->dy) + of(o->dx))
        BYTES(patchify,
              (double)tensor_bytes(o->images) + floats(o->images->shape[0] * o->per_image * 3 * o->patch * o->patch))
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
        BYTES(route, floats(o->batch * o->width + 2 * o->width * o->experts + 2 * o->batch * o->experts) +
                         24 * choices(o->dispatch))
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
        BYTES(argmax, of(o->x))
    case OPERATION_zero:
        return (double)((const struct moved *)operands)->bytes;
    case OPERATION_copy:
        return 2.0 * (double)((const struct moved *)operands)->bytes;
    default:
        return -1;
    }
#undef BYTES
}

/* --- One operation --- */

/* Records it and, on a device, replays it: the times of a CPU are those of its only run. */
static status count_call(struct call *call, struct error *error)
{
    struct recording recording = {0};
    double bytes = bytes_of(call->operation, call->operands);
    char read;
    if (inside)
        return call->run(call, error);
    struct line *line = line_of(operations, part, names[call->operation]);
    double start = clock_seconds();
    inside = true;
    met = 0;
    line->calls++;
    line->bytes = bytes < 0 || line->bytes < 0 ? -1 : line->bytes + bytes;
    TRY(own->record(call->backend, &recording, call->run, call, error));
    inside = false;
    line->nodes += met;
    if (recording.owner == NULL) {
        line->seconds += clock_seconds() - start;
        return recording.refused.code == OK ? OK : error_set(error, ERROR_DEVICE, "%s", recording.refused.message);
    }
    if (!TIMED)
        return OK;
    TRY(own->download(call->backend, &read, byte, sizeof read, error));
    start = clock_seconds();
    for (int i = 0; i < REPLAYS; i++)
        TRY(own->replay(call->backend, &recording, error));
    own->recording_destroy(call->backend, &recording); /* waits */
    line->seconds += (clock_seconds() - start) / REPLAYS;
    return OK;
}

/* Products by shape and by what is fused with them; *multiplications: of one that is dense. */
static void describe(const struct call *call, char name[sizeof operations->name], double *multiplications)
{
    const struct gemm *o = call->operands;
    const struct grouped_gemm *grouped = call->operands;
    bool rows = call->operation == OPERATION_grouped_gemm && grouped->kind == GROUPED_ROWS;
    if (call->operation == OPERATION_gemm) {
        size_t depth = o->transpose_a ? o->a.rows : o->a.columns;
        *multiplications = (double)o->out.rows * (double)o->out.columns * (double)depth;
        snprintf(name, sizeof operations->name, "gemm %zu x %zu x %zu%s%s", o->out.rows, o->out.columns, depth,
                 o->transpose_a ? ", of gradients" : "",
                 o->activation == ACTIVATION_NONE ? ""
                 : o->backward                    ? ", activation's gradient"
                                                  : ", activation");
    } else if (call->operation == OPERATION_grouped_gemm) {
        snprintf(name, sizeof operations->name, "grouped_gemm of %s, %zu x %zu", rows ? "rows" : "weights",
                 grouped->a.columns, rows ? grouped->out.columns : grouped->b.columns);
    } else {
        snprintf(name, sizeof operations->name, "%s", names[call->operation]);
    }
}

/* An operation that is a composition of others takes what they do not. */
static status time_call(struct call *call, struct error *error)
{
    static double within; /* what the operations inside took */
    char name[sizeof operations->name];
    double multiplications = 0, before = within, start = clock_seconds();
    within = 0;
    status result = call->run(call, error);
    double seconds = clock_seconds() - start;
    describe(call, name, &multiplications);
    struct line *line = line_of(operations, "", name);
    line->calls++;
    line->seconds += seconds - within;
    line->multiplications += multiplications;
    within = before + seconds;
    return result;
}

#define LOOK(name)                                                                                                     \
    static status run_##name(void *context, struct error *error)                                                       \
    {                                                                                                                  \
        const struct call *call = context;                                                                             \
        return own->name(call->backend, call->operands, error);                                                        \
    }                                                                                                                  \
    static status look_##name(struct backend *backend, const struct name *o, struct error *error)                      \
    {                                                                                                                  \
        return look(&(struct call){backend, OPERATION_##name, o, run_##name}, error);                                  \
    }
BACKEND_OPERATIONS(LOOK)
#undef LOOK

static status run_transfer(void *context, struct error *error)
{
    const struct call *call = context;
    const struct moved *o = call->operands;
    return o->from == NULL ? own->zero(call->backend, o->to, o->bytes, error)
                           : own->copy(call->backend, o->to, o->from, o->bytes, error);
}

static status look_zero(struct backend *backend, void *device, size_t bytes, struct error *error)
{
    return look(&(struct call){backend, OPERATION_zero, &(struct moved){device, NULL, bytes}, run_transfer}, error);
}

static status look_copy(struct backend *backend, void *to, const void *from, size_t bytes, struct error *error)
{
    return look(&(struct call){backend, OPERATION_copy, &(struct moved){to, from, bytes}, run_transfer}, error);
}

/* From here on the backend's table is this one. */
static struct backend_ops *begin(struct backend *backend, status (*with)(struct call *call, struct error *error))
{
    static struct backend_ops looked;
    own = backend->ops;
    look = with;
    looked = *own;
#define LOOK(name) looked.name = look_##name;
    BACKEND_OPERATIONS(LOOK)
#undef LOOK
    memset(operations, 0, sizeof operations);
    backend->ops = &looked;
    return &looked;
}

void budget_begin(struct backend *backend, const void *of_device)
{
    byte = of_device;
    struct backend_ops *ops = begin(backend, count_call);
    ops->zero = look_zero;
    ops->copy = look_copy;
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

/* --- Times --- */

void timed_begin(struct backend *backend)
{
    begin(backend, time_call);
    started = clock_seconds();
}

static int compare_seconds(const void *a, const void *b)
{
    double x = ((const struct line *)a)->seconds, y = ((const struct line *)b)->seconds;
    return (x < y) - (x > y);
}

void timed_print(struct backend *backend, size_t steps)
{
    double total = clock_seconds() - started, between = total;
    backend->ops = own;
    qsort(operations, LINES, sizeof *operations, compare_seconds);
    for (struct line *l = operations; l < &operations[LINES] && l->calls > 0; l++) {
        between -= l->seconds;
        if (l->seconds < 0.002 * total)
            continue;
        printf("  %-52s %9.2f ms %5.1f%%", l->name, 1e3 * l->seconds / (double)steps, 100 * l->seconds / total);
        if (l->multiplications > 0)
            printf("  %6.0f GFLOP/s", 2e-9 * l->multiplications / l->seconds);
        printf("\n");
    }
    printf("  %-52s %9.2f ms %5.1f%%\n", "between operations", 1e3 * between / (double)steps, 100 * between / total);
}
