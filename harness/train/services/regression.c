#include "harness/train/services/regression.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/image_pass.h"
#include "models/clip/cost.h"

enum { ROWS = 256 /* at a time */, RIDGES = 17, LEAST_RIDGE = -8 /* powers of 10 to choose from */ };

/* regression_open has refused what is too large for the machine. */
static double *take(size_t rows, size_t columns)
{
    return xmalloc(array_size(array_size(rows, columns), sizeof(double)));
}

/* --- Bases --- */

static void rectify(const void *context, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] > 0 ? values[i] : 0;
}

/* The kernel from the cosine of two unit vectors: ‖x − y‖² = 2 − 2 x·y. */
static void gaussian(const void *context, double *values, size_t count)
{
    const struct regression *r = context;
    for (size_t i = 0; i < count; i++)
        values[i] = exp(-2 * r->gamma * fmax(1 - values[i], 0));
}

/* Whether the form takes features as they are; the others take unit vectors. */
static bool takes_raw(const struct regression *r, bool scoring)
{
    return r->form == REGRESSION_MEANS ? !scoring : r->validated;
}

void regression_draw(struct regression *r, size_t hidden, uint64_t seed)
{
    struct rng rng = rng_make(seed, RNG_DIRECTIONS, 0, 0);
    double bound = 1 / sqrt((double)r->width);
    r->bases = take(hidden, r->width);
    r->basis = hidden;
    for (size_t i = 0; i < hidden * r->width; i++)
        r->bases[i] = r->validated ? (double)rng_normal(&rng, i) : bound * (2 * (double)rng_uniform(&rng, i) - 1);
}

/* A chunk of up to ROWS rows: x [n, width], Φ [n, M]; means: Φ is x. */
struct expansion {
    double *x, *phi;
};

static void expansion_free(struct expansion *e)
{
    if (e->phi != e->x)
        free(e->phi);
    free(e->x);
}

static struct expansion expansion_create(const struct regression *r)
{
    double *x = take(ROWS, r->width);
    return (struct expansion){x, r->form != REGRESSION_MEANS ? take(ROWS, r->basis) : x};
}

static void expand(struct expansion *e, const struct regression *r, const float *features, size_t n, bool scoring)
{
    frozen_rows_widen(features, n, r->width, !takes_raw(r, scoring), e->x);
    if (r->form == REGRESSION_MEANS)
        return;
    linear_multiply(r->pool, &(struct linear_product){.rows = n,
                                                      .columns = r->basis,
                                                      .inner = r->width,
                                                      .a = e->x,
                                                      .b = r->bases,
                                                      .out = e->phi,
                                                      .map = r->form == REGRESSION_PRIMAL ? rectify : gaussian,
                                                      .context = r});
}

/* --- Learning --- */

static void more_classes(struct regression *r, size_t classes)
{
    if (classes <= r->classes)
        return;
    if (r->form != REGRESSION_DUAL) {
        r->products = xrealloc(r->products, array_size(array_size(classes, r->basis), sizeof *r->products));
        memset(r->products + r->classes * r->basis, 0, (classes - r->classes) * r->basis * sizeof *r->products);
    }
    r->classes = classes;
}

/* primal, means */
static void add_sums(struct regression *r, const float *features, const int32_t *labels, size_t n)
{
    SCOPED(expansion_free) struct expansion e = expansion_create(r);
    if (r->form == REGRESSION_PRIMAL && r->gram == NULL)
        r->gram = symmetric_create(r->basis);
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count, false);
        if (r->gram != NULL)
            symmetric_add(r->gram, r->pool, e.phi, count);
        for (size_t i = 0; i < count; i++) {
            double *sum = r->products + (size_t)labels[first + i] * r->basis;
            for (size_t h = 0; h < r->basis; h++)
                sum[h] += e.phi[i * r->basis + h];
        }
    }
}

static void more_rows(struct regression *r, size_t n)
{
    r->bases = xrealloc(r->bases, array_size(array_size(r->basis + n, r->width), sizeof *r->bases));
    r->labels = xrealloc(r->labels, array_size(r->basis + n, sizeof *r->labels));
}

static void add_dual(struct regression *r, const float *features, const int32_t *labels, size_t n)
{
    more_rows(r, n);
    frozen_rows_widen(features, n, r->width, true, r->bases + r->basis * r->width);
    memcpy(r->labels + r->basis, labels, n * sizeof *labels);
    r->basis += n;
}

void regression_add(struct regression *r, const float *features, const int32_t *labels, size_t n, size_t classes)
{
    free(r->coefficients);
    r->coefficients = NULL;
    more_classes(r, classes);
    (r->form == REGRESSION_DUAL ? add_dual : add_sums)(r, features, labels, n);
}

/* The matrix to invert; the right-hand sides are in coefficients. */
static void set_equations(const struct regression *r, struct symmetric *matrix)
{
    if (r->form == REGRESSION_PRIMAL) {
        memcpy(matrix->values, r->gram->values, symmetric_values(r->basis) * sizeof *matrix->values);
        memcpy(r->coefficients, r->products, r->classes * r->basis * sizeof *r->coefficients);
    } else {
        symmetric_products(matrix, r->pool, r->bases, r->width, gaussian, r);
        memset(r->coefficients, 0, r->classes * r->basis * sizeof *r->coefficients);
        for (size_t i = 0; i < r->basis; i++)
            r->coefficients[(size_t)r->labels[i] * r->basis + i] = 1;
    }
    symmetric_shift(matrix, r->ridge);
}

status regression_solve(struct regression *r, struct error *error)
{
    free(r->coefficients);
    r->coefficients = take(r->classes, r->basis);
    if (r->form == REGRESSION_MEANS) {
        memcpy(r->coefficients, r->products, r->classes * r->basis * sizeof *r->coefficients);
        for (size_t c = 0; c < r->classes; c++)
            linear_unit(r->coefficients + c * r->basis, r->basis);
        return OK;
    }
    SCOPED(symmetric_destroy_at) struct symmetric *matrix = symmetric_create(r->basis);
    set_equations(r, matrix);
    TRY(symmetric_factor(matrix, r->pool, error));
    symmetric_solve(matrix, r->pool, r->coefficients, r->classes);
    return threads_check(r->pool, "a regression was solved", error);
}

/* out [rows, columns] = a bᵀ */
static void multiply(const struct regression *r, const double *a, size_t rows, const double *b, size_t columns,
                     size_t inner, double *out)
{
    linear_multiply(r->pool, &(struct linear_product){
                                 .rows = rows, .columns = columns, .inner = inner, .a = a, .b = b, .out = out});
}

void regression_scores(const struct regression *r, const float *features, size_t n, double *scores)
{
    SCOPED(expansion_free) struct expansion e = expansion_create(r);
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count, true);
        multiply(r, e.phi, count, r->coefficients, r->classes, r->basis, scores + first * r->classes);
    }
}

void regression_free(struct regression *r)
{
    symmetric_destroy(r->gram);
    free(r->products);
    free(r->bases);
    free(r->labels);
    free(r->coefficients);
    r->gram = NULL;
    r->products = r->bases = r->coefficients = NULL;
    r->labels = NULL;
    r->classes = r->basis = 0;
}

/* --- The ridge --- */

/* Regressions with every ridge on the first rows of a task, Φ [used, M]. Few rows are solved as Φᵀ (ΦΦᵀ + ridge · I)⁻¹ Y, which is
 * the same. */
struct search {
    struct regression part; /* of these rows; its classes are those of the task */
    double *phi;            /* [used, M]; NULL: not few */
    struct symmetric *matrix;
    double *right;        /* [classes, matrix->n] */
    double *coefficients; /* [RIDGES, classes, matrix->n] */
    double loss[RIDGES];  /* INFINITY: the ridge is too small for double precision */
};

static double ridge_at(size_t e)
{
    return pow(10, LEAST_RIDGE + (int)e);
}

/* ΦΦᵀ and one-hot labels */
static void set_few(struct search *s, const float *features, const int32_t *labels, size_t n)
{
    const struct regression *r = &s->part;
    struct expansion e = expansion_create(r);
    s->phi = take(n, r->basis);
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count, false);
        memcpy(s->phi + first * r->basis, e.phi, count * r->basis * sizeof *e.phi);
    }
    expansion_free(&e);
    s->matrix = symmetric_create(n);
    symmetric_products(s->matrix, r->pool, s->phi, r->basis, NULL, NULL);
    s->right = xcalloc(r->classes, array_size(n, sizeof *s->right));
    for (size_t i = 0; i < n; i++)
        s->right[(size_t)labels[i] * n + i] = 1;
}

static void set_many(struct search *s, const float *features, const int32_t *labels, size_t n)
{
    add_sums(&s->part, features, labels, n);
    s->matrix = s->part.gram;
    s->right = s->part.products;
}

/* ΦᵀΦ has the eigenvalues of ΦΦᵀ and zeros, beside which a ridge is lost that rounding of the former exceeds. */
static status solve_ridges(struct search *s, struct error *error)
{
    struct threads *pool = s->part.pool;
    size_t n = s->matrix->n, each = s->part.classes * n;
    double least = s->phi != NULL ? DBL_EPSILON * symmetric_trace(s->matrix) : 0;
    SCOPED(symmetric_destroy_at) struct symmetric *matrix = symmetric_create(n);
    s->coefficients = xcalloc(RIDGES, array_size(each, sizeof *s->coefficients));
    for (size_t e = 0; e < RIDGES; e++) {
        double *own = s->coefficients + e * each;
        memcpy(matrix->values, s->matrix->values, symmetric_values(n) * sizeof *matrix->values);
        symmetric_shift(matrix, ridge_at(e));
        bool fit = ridge_at(e) > least && symmetric_factor(matrix, pool, error) == OK;
        s->loss[e] = fit ? 0 : INFINITY;
        if (!fit)
            continue;
        memcpy(own, s->right, each * sizeof *own);
        symmetric_solve(matrix, pool, own, s->part.classes);
    }
    return threads_check(pool, "a ridge was chosen", error);
}

static void add_losses(struct search *s, const int32_t *labels, const double *scores, size_t n)
{
    size_t classes = s->part.classes, columns = RIDGES * classes;
    for (size_t i = 0; i < n * columns; i++) {
        double gap = scores[i] - ((size_t)labels[i / columns] == i % classes);
        s->loss[i % columns / classes] += gap * gap;
    }
}

/* The squared errors on rows that were not used. */
static void measure(struct search *s, const float *features, const int32_t *labels, size_t n)
{
    const struct regression *r = &s->part;
    SCOPED(expansion_free) struct expansion e = expansion_create(r);
    size_t columns = RIDGES * r->classes;
    OWNED double *kernel = take(ROWS, s->matrix->n), *scores = take(ROWS, columns);
    for (size_t first = 0; first < n; first += ROWS) {
        size_t count = n - first < ROWS ? n - first : ROWS;
        expand(&e, r, features + first * r->width, count, true);
        if (s->phi != NULL)
            multiply(r, e.phi, count, s->phi, s->matrix->n, r->basis, kernel);
        multiply(r, s->phi != NULL ? kernel : e.phi, count, s->coefficients, columns, s->matrix->n, scores);
        add_losses(s, labels + first, scores, count);
    }
}

static status choose_ridge(struct search *s, const float *features, const int32_t *labels, size_t n, double *ridge,
                           struct error *error)
{
    size_t used = n * 4 / 5, best = 0;
    (2 * used <= s->part.basis ? set_few : set_many)(s, features, labels, used);
    TRY(solve_ridges(s, error));
    measure(s, features + used * s->part.width, labels + used, n - used);
    for (size_t e = 1; e < RIDGES; e++)
        best = s->loss[e] < s->loss[best] ? e : best;
    *ridge = ridge_at(best);
    return threads_check(s->part.pool, "a ridge was chosen", error);
}

static void search_free(struct search *s)
{
    if (s->phi != NULL) {
        symmetric_destroy(s->matrix);
        free(s->right);
    }
    free(s->phi);
    free(s->coefficients);
    s->part.bases = NULL; /* of the whole regression */
    regression_free(&s->part);
}

/* The sums of the rows used in the search are there. */
static void add_rest(struct regression *r, const struct search *s, const float *features, const int32_t *labels,
                     size_t n, size_t first)
{
    size_t used = n * 4 / 5;
    if (s->part.gram == NULL) {
        add_sums(r, features, labels, n);
        return;
    }
    add_sums(r, features + used * r->width, labels + used, n - used);
    for (size_t i = 0; i < symmetric_values(r->basis); i++)
        r->gram->values[i] += s->part.gram->values[i];
    for (size_t i = 0; i < s->part.classes * r->basis; i++)
        r->products[first * r->basis + i] += s->part.products[i];
}

status regression_learn_validated(struct regression *r, const float *features, const int32_t *labels, size_t n,
                                  size_t first, size_t classes, struct error *error)
{
    int32_t *own = xmalloc(array_size(n, sizeof *own));
    struct search s = {.part = {.form = r->form,
                                .width = r->width,
                                .validated = true,
                                .pool = r->pool,
                                .basis = r->basis,
                                .bases = r->bases}};
    for (size_t i = 0; i < n; i++)
        own[i] = labels[i] - (int32_t)first;
    more_classes(&s.part, classes - first);
    more_classes(r, classes);
    r->ridge = ridge_at(0);
    status result = n > 1 ? choose_ridge(&s, features, own, n, &r->ridge, error) : OK;
    if (result == OK)
        add_rest(r, &s, features, labels, n, first);
    search_free(&s);
    free(own);
    NEXT(result, regression_solve(r, error));
    for (; result == ERROR_FORMAT && r->ridge < ridge_at(RIDGES - 1); result = regression_solve(r, error))
        r->ridge *= 10;
    return result;
}

/* --- Beside zero-shot CLIP --- */

/* Returns the best column, the first of equal ones. */
static size_t softmax(float *row, size_t n)
{
    size_t best = 0;
    double sum = 0;
    for (size_t c = 1; c < n; c++)
        best = row[c] > row[best] ? c : best;
    double highest = (double)row[best];
    for (size_t c = 0; c < n; c++)
        sum += exp((double)row[c] - highest);
    for (size_t c = 0; c < n; c++)
        row[c] = (float)(exp((double)row[c] - highest) / sum);
    return best;
}

struct adapted {
    size_t count, *items;
    float *features;
    double *scores; /* [count, classes learned] */
};

/* known: the number of columns that are learned */
static void mix(const struct regression *r, struct adapted *a, size_t first, size_t known, size_t columns,
                float *scores)
{
    regression_scores(r, a->features, a->count, a->scores);
    for (size_t i = 0; i < a->count; i++) {
        float *row = scores + a->items[i] * columns;
        const double *own = a->scores + i * r->classes + first;
        for (size_t c = 0; c < columns; c++)
            row[c] = (float)((1 - r->fusion) * (double)row[c] + r->fusion * (c < known ? own[c] : r->others));
    }
}

void regression_fuse(const struct regression *r, size_t first, const float *features, size_t n, size_t columns,
                     float *scores, bool *adapted)
{
    size_t known = r->classes > first ? r->classes - first : 0;
    known = known < columns ? known : columns;
    struct adapted a = {.items = xmalloc(array_size(n, sizeof *a.items)),
                        .features = xmalloc(array_size(n, r->width * sizeof *a.features)),
                        .scores = xmalloc(array_size(n, (r->classes + 1) * sizeof *a.scores))};
    for (size_t i = 0; i < n; i++) {
        bool is = softmax(scores + i * columns, columns) < known;
        if (adapted != NULL)
            adapted[i] = is;
        if (!is)
            continue;
        memcpy(a.features + a.count * r->width, features + i * r->width, r->width * sizeof *a.features);
        a.items[a.count++] = i;
    }
    mix(r, &a, first, known, columns, scores);
    free(a.items);
    free(a.features);
    free(a.scores);
}

/* --- State --- */

static status keep_sums(struct regression *r, const struct serializer *serializer, size_t classes, struct error *error)
{
    if (r->form == REGRESSION_PRIMAL) {
        if (!serializer->saving && r->gram == NULL)
            r->gram = symmetric_create(r->basis);
        TRY(serializer_host(serializer, "regression.gram", SAFETENSOR_F64, symmetric_values(r->basis), r->gram->values,
                            error));
    }
    more_classes(r, classes);
    return serializer_host(serializer, "regression.products", SAFETENSOR_F64, classes * r->basis, r->products, error);
}

static status keep_dual(struct regression *r, const struct serializer *serializer, size_t classes, struct error *error)
{
    int64_t rows = (int64_t)r->basis;
    TRY(serializer_host(serializer, "regression.rows", SAFETENSOR_I64, 1, &rows, error));
    if (!serializer->saving) {
        r->basis = 0;
        more_rows(r, (size_t)rows);
        r->basis = (size_t)rows;
        r->classes = classes;
    }
    TRY(serializer_host(serializer, "regression.features", SAFETENSOR_F64, r->basis * r->width, r->bases, error));
    return serializer_host(serializer, "regression.labels", SAFETENSOR_I32, r->basis, r->labels, error);
}

status regression_hook_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct regression *r = run->state;
    int32_t classes = (int32_t)r->classes;
    TRY(serializer_host(serializer, "regression.classes", SAFETENSOR_I32, 1, &classes, error));
    if (!serializer->saving) {
        free(r->coefficients);
        r->coefficients = NULL;
    }
    if (classes == 0)
        return OK;
    TRY(serializer_host(serializer, "regression.ridge", SAFETENSOR_F64, 1, &r->ridge, error));
    return (r->form == REGRESSION_DUAL ? keep_dual : keep_sums)(r, serializer, (size_t)classes, error);
}

/* The cost of choosing a ridge for every task, of tasks of equal size. */
static struct regression_cost search_cost(const struct regression *r, double rows, double classes, double tasks)
{
    double used = 0.8 * rows / tasks, basis = (double)r->basis, columns = RIDGES * classes / tasks;
    bool few = 2 * used <= basis;
    double n = few ? used : basis;
    return (struct regression_cost){.most = 8 * (n * n + columns * n + columns * ROWS + (few ? n * basis : 0)),
                                    .operations = tasks * (RIDGES * n * n * n / 3 + 2 * columns * n * (n + used / 4) +
                                                           (few ? (n + used / 2) * n * basis : 0))};
}

struct regression_cost regression_cost(const struct regression *r, size_t rows, size_t classes, size_t tasks)
{
    bool primal = r->form == REGRESSION_PRIMAL;
    double basis = (double)(r->form == REGRESSION_DUAL ? rows : r->basis), n = (double)rows, c = (double)classes,
           d = (double)r->width, matrix = 8 * (double)symmetric_values((size_t)basis), pairs = basis * basis,
           /* the dual basis grows from task to task: a third of its squares and a quarter of its cubes */
        squares = (double)tasks * pairs * (primal ? 1 : 1.0 / 3),
           cubes = (double)tasks * pairs * basis * (primal ? 1 : 0.25),
           kept = primal ? matrix + 8 * c * basis : (8 * d + 4) * n;
    if (r->form == REGRESSION_MEANS)
        return (struct regression_cost){.kept = 8 * c * d, .most = 16 * c * d, .operations = 2 * n * d};
    struct regression_cost search = {0};
    if (r->validated)
        search = search_cost(r, n, c, (double)tasks);
    return (struct regression_cost){
        .kept = kept,
        .most = kept + fmax(matrix, search.most) + 8 * basis * (c + ROWS) + (primal ? 8 * basis * d : 0),
        .operations =
            search.operations + cubes / 3 + 2 * squares * c + (primal ? n * (pairs + 2 * basis * d) : squares * d)};
}

/* --- Hooks --- */

static struct regression_cost cost_of(const struct method_run *run)
{
    return regression_cost(run->state, frozen_classes_images(run->data), run->data->class_count, run->data->task_count);
}

static status check_memory(const struct method_run *run, struct error *error)
{
    const struct regression *r = run->state;
    double gigabyte = 1 << 30, needed = cost_of(run).most,
           machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed < machine)
        return OK;
    if (r->form == REGRESSION_PRIMAL)
        return error_set(error, ERROR_MEMORY,
                         "method.hidden: %zu random features and %zu classes take %.1f GiB of memory, but this machine "
                         "has %.1f; lower it",
                         r->basis, run->data->class_count, needed / gigabyte, machine / gigabyte);
    return error_set(error, ERROR_MEMORY,
                     "method.name: the memory of rail_dual grows with the square of the number of training images: "
                     "%.1f GiB for %zu, but this machine has %.1f; use fewer images (data.shots), or rail_primal, "
                     "whose memory does not depend on their number",
                     needed / gigabyte, frozen_classes_images(run->data), machine / gigabyte);
}

status regression_open(struct method_run *run, size_t hidden, struct error *error)
{
    const struct model *model = run->model;
    struct regression *r = run->state;
    r->width = model->clip->dimensions.embed;
    r->basis = r->form == REGRESSION_MEANS ? r->width : hidden;
    TRY(check_memory(run, error));
    TRY(threads_create(&r->pool, model->settings.threads, error));
    if (r->form == REGRESSION_PRIMAL)
        regression_draw(r, hidden, model->seed);
    return OK;
}

void regression_hook_close(struct method_run *run)
{
    struct regression *r = run->state;
    regression_free(r);
    threads_destroy(r->pool);
}

void regression_hook_cost(const struct method_run *run, struct method_cost *cost)
{
    struct regression_cost own = cost_of(run);
    *cost = (struct method_cost){
        .operations = own.operations + cost_images(&run->model->clip->dimensions, frozen_classes_images(run->data)),
        .memory = own.most,
        .kept = own.kept};
}

status regression_hook_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct regression *r = run->state;
    SCOPED(frozen_rows_free) struct frozen_rows rows = {0};
    threads_obey(r->pool, run->model->stop);
    TRY(frozen_rows_read(&rows, run, task, error));
    if (r->validated)
        frozen_rows_shuffle(&rows, rng_make(run->model->seed, RNG_HELD_OUT, (uint32_t)task->index, 0));
    if (!r->validated)
        regression_add(r, rows.features, rows.labels, rows.n, rows.classes);
    return r->validated
               ? regression_learn_validated(r, rows.features, rows.labels, rows.n, rows.first, rows.classes, error)
               : regression_solve(r, error);
}

status regression_hook_scores(struct method_run *run, const struct task *task, const float *features, size_t n,
                              size_t classes, float *scores, struct error *error)
{
    struct regression *r = run->state;
    threads_obey(r->pool, run->model->stop);
    if (r->coefficients == NULL && r->classes > 0) /* restored */
        TRY(regression_solve(r, error));
    regression_fuse(r, frozen_classes_column(run, task), features, n, classes, scores, NULL);
    return threads_check(r->pool, "a regression scored images", error);
}
