/* Groups image by image after the last task: which images one alone has right, what went wrong where predictions were
 * kept, and the bootstrap over seeds and images. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "results/compare/internal.h"
#include "results/statistics/bootstrap.h"

/* Two groups' seeds and tasks; the columns of the other's run follow the baseline's. */
#define ROWS                                                                                                           \
    "SELECT two, dataset, seed, images, count(*) OVER (PARTITION BY two, dataset), run_a, task_a, after_a, routed_a, " \
    "run_b, task_b, after_b, routed_b FROM both JOIN both_seed USING (two) WHERE kept ORDER BY two, dataset, seed"

enum { TWO, DATASET, SEED, IMAGES, SEEDS, SIDE, RUN = 0, TASK, AFTER_TASK, ROUTED, SIDE_COLUMNS };

struct looking {
    const struct compare *c;
    struct statement *rows, *looked, *bounds;
    int64_t two;
    size_t tasks, seeds, seed; /* of the two: tasks and seeds, and seeds of the last task so far */
    struct looked_task {
        int64_t dataset;
        size_t images;
        int8_t *difference; /* [seeds, images] */
    } * task;
};

/* The causes of errors, in percent; null where predictions were not kept, or there is no selector. */
static void find_errors(const struct per_image *images, bool routed, int64_t task, struct value errors[2])
{
    size_t count[2] = {0, 0}; /* wrong router; right router but wrong class */
    bool known = routed && images->kind == PER_IMAGE_PREDICTIONS;
    for (size_t i = 0; known && i < images->images; i++)
        count[images->router[i] == task] += !images->right[i];
    for (size_t i = 0; i < 2; i++)
        errors[i] = known ? value_real(100.0 * (double)count[i] / (double)images->images) : value_null();
}

static status read_side(const struct looking *l, size_t side, struct per_image *images, struct value errors[2],
                        struct error *error)
{
    size_t first = SIDE + side * SIDE_COLUMNS, expected = (size_t)statement_integer(l->rows, IMAGES);
    int64_t run = statement_integer(l->rows, first + RUN), task = statement_integer(l->rows, first + TASK);
    TRY(store_read_per_image(l->c->store, run, statement_integer(l->rows, first + AFTER_TASK), task, images, error));
    if (images->images != expected)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 ", task %" PRId64 ": expected the results of %zu test images, found %zu",
                         store_path(l->c->store), run, task, expected, images->images);
    find_errors(images, statement_integer(l->rows, first + ROUTED), task, errors);
    return OK;
}

/* One seed of a task: both sides are read before anything is as large as the file says that they are. */
static status read_seed(struct looking *l, int64_t dataset, struct per_image side[2], struct error *error)
{
    struct value errors[2][2];
    int64_t only[2] = {0, 0};
    TRY(read_side(l, 0, &side[0], errors[0], error));
    TRY(read_side(l, 1, &side[1], errors[1], error));
    size_t images = side[0].images;
    if (l->tasks == 0 || l->task[l->tasks - 1].dataset != dataset) {
        GROW(l->task, l->tasks);
        l->seeds = (size_t)statement_integer(l->rows, SEEDS);
        l->seed = 0;
        l->task[l->tasks++] = (struct looked_task){dataset, images, xcalloc(l->seeds, images)};
    }
    int8_t *difference = l->task[l->tasks - 1].difference + l->seed++ * images;
    for (size_t i = 0; i < images; i++) {
        difference[i] = (int8_t)(side[1].right[i] - side[0].right[i]);
        only[difference[i] > 0] += difference[i] != 0;
    }
    return statement_run(l->looked,
                         VALUES(value_integer(l->two), value_integer(dataset), statement_value(l->rows, SEED),
                                value_integer((int64_t)images), value_integer(only[0]), value_integer(only[1]),
                                errors[0][0], errors[1][0], errors[0][1], errors[1][1]),
                         error);
}

/* Draws for the two whose rows end, if there are any. */
static status end_two(struct looking *l, struct error *error)
{
    const struct comparison_request *request = l->c->request;
    struct bootstrap_task *task = xcalloc(l->tasks, sizeof *task);
    struct bootstrap_interval *interval = xcalloc(l->tasks + 1, sizeof *interval);
    status result = OK;
    for (size_t i = 0; i < l->tasks; i++)
        task[i] = (struct bootstrap_task){l->task[i].images, l->task[i].difference};
    if (l->tasks > 0)
        bootstrap_seeds_and_images(task, l->tasks, l->seeds,
                                   &(struct bootstrap_plan){.seed = request->seed, .draws = request->draws}, interval);
    for (size_t i = 0; l->tasks > 0 && i <= l->tasks; i++)
        NEXT(result, statement_run(l->bounds,
                                   VALUES(value_integer(l->two), value_integer(i < l->tasks ? l->task[i].dataset : 0),
                                          value_real(interval[i].estimate), value_real(interval[i].low),
                                          value_real(interval[i].high)),
                                   error));
    free(task);
    free(interval);
    return result;
}

static void forget(struct looking *l)
{
    for (size_t i = 0; i < l->tasks; i++)
        free(l->task[i].difference);
    free(l->task);
    l->task = NULL;
    l->tasks = 0;
}

static status look(void *context, struct statement *row, struct error *error)
{
    struct looking *l = context;
    struct per_image side[2] = {{.kind = PER_IMAGE_NONE}, {.kind = PER_IMAGE_NONE}};
    l->rows = row;
    if (statement_integer(row, TWO) != l->two) {
        TRY(end_two(l, error));
        forget(l);
    }
    l->two = statement_integer(row, TWO);
    status result = read_seed(l, statement_integer(row, DATASET), side, error);
    per_image_free(&side[0]);
    per_image_free(&side[1]);
    return result;
}

status compare_images(const struct compare *c, struct error *error)
{
    struct database *database = c->store->database;
    struct looking l = {.c = c};
    status result = statement_open(&l.looked, database,
                                   "INSERT INTO looked VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", error);
    NEXT(result, statement_open(&l.bounds, database, "INSERT INTO bounds VALUES (?1, ?2, ?3, ?4, ?5)", error));
    NEXT(result, database_each(database, ROWS, NO_VALUES, look, &l, error));
    NEXT(result, end_two(&l, error));
    forget(&l);
    statement_close(l.looked);
    statement_close(l.bounds);
    return result;
}
