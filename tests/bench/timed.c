#include "tests/bench/timed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

enum { LINES = 256 };

static struct line {
    char name[64];
    size_t calls;
    double seconds, multiplications;
} lines[LINES];
static const struct backend_ops *own;
static double started;

static void count(const char *name, double seconds, double multiplications)
{
    struct line *line = lines;
    while (line->calls > 0 && strcmp(line->name, name) != 0 && line < &lines[LINES - 1])
        line++;
    snprintf(line->name, sizeof line->name, "%s", name);
    line->calls++;
    line->seconds += seconds;
    line->multiplications += multiplications;
}

/* An operation that is a composition of others takes what they do not. */
static double within;

struct call {
    double start, before;
};

static struct call begin_call(void)
{
    struct call call = {clock_seconds(), within};
    within = 0;
    return call;
}

static void end_call(struct call call, const char *name, double multiplications)
{
    double seconds = clock_seconds() - call.start;
    count(name, seconds - within, multiplications);
    within = call.before + seconds;
}

#define TIME(operation)                                                                                                \
    static status time_##operation(struct backend *backend, const struct operation *o, struct error *error)            \
    {                                                                                                                  \
        struct call call = begin_call();                                                                               \
        status result = own->operation(backend, o, error);                                                             \
        end_call(call, #operation, 0);                                                                                 \
        return result;                                                                                                 \
    }
BACKEND_OPERATIONS(TIME)
#undef TIME

static status time_products(struct backend *backend, const struct gemm *o, struct error *error)
{
    char name[64];
    size_t depth = o->transpose_a ? o->a.rows : o->a.columns;
    snprintf(name, sizeof name, "gemm %zu x %zu x %zu%s%s", o->out.rows, o->out.columns, depth,
             o->transpose_a ? ", of gradients" : "",
             o->activation == ACTIVATION_NONE ? ""
             : o->backward                    ? ", activation's gradient"
                                              : ", activation");
    struct call call = begin_call();
    status result = own->gemm(backend, o, error);
    end_call(call, name, (double)o->out.rows * (double)o->out.columns * (double)depth);
    return result;
}

static status time_grouped_products(struct backend *backend, const struct grouped_gemm *o, struct error *error)
{
    char name[64];
    snprintf(name, sizeof name, "grouped_gemm of %s, %zu x %zu", o->kind == GROUPED_ROWS ? "rows" : "weights",
             o->a.columns, o->kind == GROUPED_ROWS ? o->out.columns : o->b.columns);
    struct call call = begin_call();
    status result = own->grouped_gemm(backend, o, error);
    end_call(call, name, 0);
    return result;
}

void timed_begin(struct backend *backend)
{
    static struct backend_ops timed;
    own = backend->ops;
    timed = *own;
#define TIME(operation) timed.operation = time_##operation;
    BACKEND_OPERATIONS(TIME)
#undef TIME
    timed.gemm = time_products;
    timed.grouped_gemm = time_grouped_products;
    memset(lines, 0, sizeof lines);
    backend->ops = &timed;
    started = clock_seconds();
}

static int compare_lines(const void *a, const void *b)
{
    double x = ((const struct line *)a)->seconds, y = ((const struct line *)b)->seconds;
    return (x < y) - (x > y);
}

void timed_print(struct backend *backend, size_t steps)
{
    double total = clock_seconds() - started, between = total;
    backend->ops = own;
    qsort(lines, LINES, sizeof *lines, compare_lines);
    for (struct line *l = lines; l < &lines[LINES] && l->calls > 0; l++) {
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
