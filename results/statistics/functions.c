#include "results/statistics/statistics.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/json.h"
#include "core/text.h"
#include "results/statistics/axes.h"
#include "results/statistics/bootstrap.h"
#include "results/statistics/permutation.h"

enum { NUMBERS_MOST = 3, ARGUMENTS_MOST = 5 };

/* --- Aggregates over numbers --- */

/* The rows of an aggregate: up to three numbers each, what they are sorted by first; and what follows them, which is the
 * same in all rows. */
struct sample {
    double (*value)[NUMBERS_MOST];
    size_t count;
    double parameter;
};

struct columns {
    const double *x, *y, *z;
    size_t n;
    double parameter; /* 1: none was given */
};

/* One value twice, or both ends of an interval. */
typedef struct interval statistic(const struct columns *of);

struct aggregate {
    const char *name;
    int numbers, parameters; /* arguments of both kinds */
    bool ordered;            /* rows by the numbers behind the first one; else by all of them */
    statistic *compute;
    bool high;                                 /* the upper end */
    double (*of_x)(const double *x, size_t n); /* where compute is NULL */
};

static struct interval one(double value)
{
    return (struct interval){value, value};
}

static const struct interval none = {(double)NAN, (double)NAN};

static void add_row(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const struct aggregate *aggregate = sqlite3_user_data(context);
    struct sample *sample = sqlite3_aggregate_context(context, sizeof *sample);
    for (int i = 0; i < aggregate->numbers; i++)
        if (sqlite3_value_numeric_type(argument[i]) != SQLITE_INTEGER &&
            sqlite3_value_numeric_type(argument[i]) != SQLITE_FLOAT)
            return; /* null, or no number */
    if (sample == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    GROW(sample->value, sample->count);
    double *value = sample->value[sample->count++];
    for (int i = 0; i < NUMBERS_MOST; i++)
        value[aggregate->ordered ? (i + NUMBERS_MOST - 1) % NUMBERS_MOST : i] =
            i < aggregate->numbers ? sqlite3_value_double(argument[i]) : 0;
    sample->parameter = count > aggregate->numbers ? sqlite3_value_double(argument[aggregate->numbers]) : 1;
}

static int compare_rows(const void *a, const void *b)
{
    const double *left = a, *right = b;
    size_t i = 0;
    while (i < NUMBERS_MOST - 1 && left[i] == right[i])
        i++;
    return (left[i] > right[i]) - (left[i] < right[i]);
}

/* SQLite makes NAN null. */
static void give(sqlite3_context *context, struct interval found, bool high)
{
    sqlite3_result_double(context, high ? found.high : found.low);
}

static void finish(sqlite3_context *context)
{
    const struct aggregate *aggregate = sqlite3_user_data(context);
    struct sample *sample = sqlite3_aggregate_context(context, 0);
    if (sample == NULL || sample->count == 0)
        return; /* the result is null */
    size_t n = sample->count, shift = aggregate->ordered ? NUMBERS_MOST - 1 : 0;
    OWNED double *apart = xmalloc(NUMBERS_MOST * n * sizeof *apart);
    size_t sorted = 1;
    while (sorted < n && compare_rows(sample->value[sorted - 1], sample->value[sorted]) <= 0)
        sorted++;
    if (sorted < n)
        qsort(sample->value, n, sizeof *sample->value, compare_rows);
    for (size_t column = 0; column < NUMBERS_MOST; column++)
        for (size_t i = 0; i < n; i++)
            apart[column * n + i] = sample->value[i][(column + shift) % NUMBERS_MOST];
    const struct columns of = {apart, apart + n, apart + 2 * n, n, sample->parameter};
    give(context, aggregate->compute ? aggregate->compute(&of) : one(aggregate->of_x(of.x, n)), aggregate->high);
    free(sample->value);
    sample->value = NULL;
}

static struct interval of_half_width(const struct columns *of)
{
    return one(statistics_mean_interval(0, statistics_sd(of->x, of->n), of->n, 0.95).high);
}

static struct interval of_permutation(const struct columns *of)
{
    return one(permutation_sign_flips(of->x, of->n, (uint64_t)of->parameter));
}

static struct interval of_labels(const struct columns *of)
{
    return one(permutation_labels(of->x, of->y, of->z, of->n, (uint64_t)of->parameter));
}

/* Two one-sided t-tests: the larger p, of a mean at or beyond either margin. */
static struct interval of_equivalence(const struct columns *of)
{
    if (of->n < 2)
        return none;
    double mean = statistics_mean(of->x, of->n), error = statistics_sd(of->x, of->n) / sqrt((double)of->n);
    double distance = fabs(of->parameter) - fabs(mean); /* to the nearer margin, which has the larger p */
    if (error == 0)
        return one(distance > 0 ? 0 : 1);
    double tail = statistics_t_two_sided(distance / error, (double)of->n - 1) / 2;
    return one(distance > 0 ? tail : 1 - tail);
}

static struct interval of_correlation(const struct columns *of)
{
    return one(statistics_correlation(of->x, of->y, of->n));
}

/* The entropy of shares in bits, from their counts: log2 N − Σ c log2 c / N. */
static double entropy(const double *count, size_t n)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        total += count[i];
        sum += count[i] > 0 ? count[i] * log2(count[i]) : 0;
    }
    return total > 0 ? log2(total) - sum / total : (double)NAN;
}

/* The number of rows of each seed, y, which has the same z in each; 0: they are not the same. */
static size_t rows_of_seed(const struct columns *of)
{
    size_t rows = 1;
    while (rows < of->n && of->y[rows] == of->y[0])
        rows++;
    for (size_t i = 0; i < of->n; i++)
        if (of->n % rows != 0 || of->y[i] != of->y[i / rows * rows] || of->z[i] != of->z[i % rows])
            return 0;
    return rows;
}

/* x: differences of −1, 0, 1; y: their seeds; z: their images. */
static struct interval over_images(const struct columns *of)
{
    const struct bootstrap_plan plan = {.seed = (uint64_t)of->parameter};
    struct bootstrap_interval interval[2];
    size_t images = rows_of_seed(of), i = 0;
    OWNED int8_t *difference = xmalloc(of->n);
    for (; i < of->n && fabs(of->x[i]) <= 1; i++)
        difference[i] = (int8_t)of->x[i];
    bool whole = images > 0 && i == of->n;
    if (whole)
        bootstrap_seeds_and_images(&(struct bootstrap_task){images, difference}, 1, of->n / images, &plan, interval);
    return whole ? (struct interval){interval[0].low, interval[0].high} : none;
}

/* x: values of seeds y on tasks z. */
static struct interval over_tasks(const struct columns *of)
{
    const struct bootstrap_plan plan = {.seed = (uint64_t)of->parameter};
    size_t tasks = rows_of_seed(of);
    if (tasks == 0)
        return none;
    struct bootstrap_interval interval = bootstrap_seeds_and_tasks(of->x, of->n / tasks, tasks, &plan);
    return (struct interval){interval.low, interval.high};
}

static const struct aggregate aggregates[] = {
    {"mean", 1, 0, false, .of_x = statistics_mean},
    {"mean", 2, 0, true, .of_x = statistics_mean},
    {"sd", 1, 0, false, .of_x = statistics_sd},
    {"sd", 2, 0, true, .of_x = statistics_sd},
    {"half_width", 1, 0, false, .compute = of_half_width},
    {"half_width", 2, 0, true, .compute = of_half_width},
    {"permutation_p", 1, 0, false, .compute = of_permutation},
    {"permutation_p", 2, 1, true, .compute = of_permutation},
    {"unpaired_p", 3, 1, true, .compute = of_labels},
    {"wilcoxon_p", 1, 0, false, .of_x = permutation_signed_ranks},
    {"paired_t_p", 1, 0, false, .of_x = statistics_paired_t_p},
    {"paired_t_p", 2, 0, true, .of_x = statistics_paired_t_p},
    {"hedges_g", 1, 0, false, .of_x = statistics_hedges},
    {"hedges_g", 2, 0, true, .of_x = statistics_hedges},
    {"hodges_lehmann", 1, 0, false, .of_x = statistics_hodges_lehmann},
    {"equivalence_p", 1, 1, false, .compute = of_equivalence},
    {"correlation", 2, 0, false, .compute = of_correlation},
    {"entropy", 1, 0, false, .of_x = entropy},
    {"bootstrap_low", 3, 0, true, .compute = over_images},
    {"bootstrap_high", 3, 0, true, .compute = over_images, .high = true},
    {"bootstrap_tasks_low", 3, 1, true, .compute = over_tasks},
    {"bootstrap_tasks_high", 3, 1, true, .compute = over_tasks, .high = true},
};

/* --- Functions of single values --- */

typedef struct interval scalar(const double *argument); /* as statistic */

static struct interval fisher(const double *a)
{
    return statistics_correlation_interval(a[0], (size_t)a[1], (size_t)a[2], 0.95);
}

static struct interval mcnemar_p(const double *a)
{
    return one(statistics_mcnemar((uint64_t)a[0], (uint64_t)a[1]));
}

static struct interval least_seeds(const double *a)
{
    return one((double)statistics_least_seeds(0.05 / a[0], (size_t)a[1], a[2] != 0));
}

static struct interval seeds_needed(const double *a)
{
    const struct permutation_plan plan = {a[0], a[1], (size_t)a[2], (size_t)a[3], a[4] != 0};
    size_t needed = a[1] > 0 && a[2] > 0 && a[3] > 0 ? permutation_seeds_needed(&plan) : 0;
    return one(needed == 0 ? (double)NAN : (double)needed);
}

static struct interval sd_interval(const double *a)
{
    return statistics_sd_interval(a[0], a[1], 0.95);
}

static const struct scalar_function {
    const char *name;
    int arguments;
    int first_count; /* arguments from this one on are counts */
    scalar *compute;
    bool high;                /* the upper end */
    double (*of_1)(double x); /* where compute is NULL, by the number of arguments */
    double (*of_2)(double x, double y);
} scalars[] = {
    {"fisher_low", 3, 1, .compute = fisher},
    {"fisher_high", 3, 1, .compute = fisher, .high = true},
    {"mcnemar_p", 2, 0, .compute = mcnemar_p},
    {"least_p", 1, 0, .of_1 = statistics_least_p},
    {"log2_choices", 2, 0, .of_2 = statistics_log2_choices},
    {"least_seeds", 3, 0, .compute = least_seeds},
    {"seeds_needed", 5, 1, .compute = seeds_needed},
    {"sd_low", 2, 2, .compute = sd_interval},
    {"sd_high", 2, 2, .compute = sd_interval, .high = true},
    {"t_p", 2, 2, .of_2 = statistics_t_two_sided},
    {"t_quantile", 2, 2, .of_2 = statistics_t_quantile},
    {"cos", 1, 1, .of_1 = cos}, /* SQLite's own is not in every build */
};

/* The arguments as numbers; false where one is null, and then so is the result. */
static bool read_numbers(int count, sqlite3_value **argument, double value[ARGUMENTS_MOST])
{
    for (int i = 0; i < count; i++) {
        if (sqlite3_value_type(argument[i]) == SQLITE_NULL)
            return false;
        value[i] = sqlite3_value_double(argument[i]);
    }
    return true;
}

static void call_scalar(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const struct scalar_function *function = sqlite3_user_data(context);
    double value[ARGUMENTS_MOST];
    if (!read_numbers(count, argument, value))
        return;
    for (int i = function->first_count; i < count; i++)
        if (!(value[i] >= 0 && value[i] < 9e15)) {
            sqlite3_result_error(context, "expected a count", -1);
            return;
        }
    give(context,
         function->compute ? function->compute(value)
         : count == 1      ? one(function->of_1(value[0]))
                           : one(function->of_2(value[0], value[1])),
         function->high);
}

/* --- Texts --- */

static void give_text(sqlite3_context *context, struct text *text)
{
    sqlite3_result_text(context, text->data, -1, SQLITE_TRANSIENT);
    text_free(text);
}

/* holm(p, family): what Holm's correction of a JSON array of p-values makes of p, which is one of them. */
static void call_holm(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const char *text = (const char *)sqlite3_value_text(argument[1]);
    if (sqlite3_value_type(argument[0]) == SQLITE_NULL || text == NULL)
        return;
    SCOPED(json_decref_at) json_t *family = json_loads(text, 0, NULL);
    json_t *item;
    size_t tests = 0, i;
    OWNED double *values = xcalloc(json_array_size(family) + 1, sizeof *values);
    json_array_foreach(family, i, item) if (json_is_number(item)) values[tests++] = json_number_value(item);
    sqlite3_result_double(context, statistics_holm(sqlite3_value_double(argument[0]), values, tests));
}

/* shortest(value): a real number in the shortest digits that read back as it; anything else as it is. */
static void call_shortest(sqlite3_context *context, int count, sqlite3_value **argument)
{
    struct text digits = {0};
    if (sqlite3_value_type(argument[0]) != SQLITE_FLOAT) {
        sqlite3_result_value(context, argument[0]);
        return;
    }
    text_add_real(&digits, sqlite3_value_double(argument[0]));
    give_text(context, &digits);
}

/* fixed(value, decimals), and with a third argument with its sign: as printf of C rounds, which has all digits of a double where
 * SQLite's format has 16. */
static void call_fixed(sqlite3_context *context, int count, sqlite3_value **argument)
{
    struct text digits = {0};
    int decimals = sqlite3_value_int(argument[1]);
    if (sqlite3_value_type(argument[0]) == SQLITE_NULL || decimals < 0 || decimals > 17)
        return;
    text_add(&digits, count == 3 ? "%+.*f" : "%.*f", decimals, sqlite3_value_double(argument[0]));
    give_text(context, &digits);
}

/* plus_minus(mean, half, least, most): half or, where mean ± half leaves what can be, the interval as text, cut. */
static void call_plus_minus(sqlite3_context *context, int count, sqlite3_value **argument)
{
    double value[ARGUMENTS_MOST];
    struct text interval = {0};
    if (!read_numbers(count, argument, value))
        return;
    double low = fmax(value[0] - value[1], value[2]), high = fmin(value[0] + value[1], value[3]);
    if (low == value[0] - value[1] && high == value[0] + value[1]) {
        sqlite3_result_double(context, value[1]);
        return;
    }
    text_add(&interval, "[%.1f, %.1f]", low, high);
    give_text(context, &interval);
}

/* digest(line): SHA-256 of all lines in their order, each with its end. */
static void add_line(sqlite3_context *context, int count, sqlite3_value **argument)
{
    bool first = sqlite3_aggregate_context(context, 0) == NULL;
    struct digest *digest = sqlite3_aggregate_context(context, sizeof *digest);
    const unsigned char *line = sqlite3_value_text(argument[0]);
    if (digest == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (first)
        *digest = digest_begin();
    if (line != NULL)
        digest_add(digest, line, (size_t)sqlite3_value_bytes(argument[0]));
    digest_add(digest, "\n", 1);
}

static void finish_lines(sqlite3_context *context)
{
    struct digest *digest = sqlite3_aggregate_context(context, 0), empty = digest_begin();
    char hash[DIGEST_SIZE];
    digest_end(digest != NULL ? digest : &empty, hash);
    sqlite3_result_text(context, hash, -1, SQLITE_TRANSIENT);
}

/* --- Points: blobs of floats --- */

struct points {
    float *values;
    size_t count, width;
};

/* main_axes(point): the mean and the two main directions of all points of a size, for the functions below. */
static void add_point(sqlite3_context *context, int count, sqlite3_value **argument)
{
    struct points *points = sqlite3_aggregate_context(context, sizeof *points);
    const void *point = sqlite3_value_blob(argument[0]);
    size_t bytes = (size_t)sqlite3_value_bytes(argument[0]), width = bytes / sizeof(float);
    if (points == NULL || point == NULL || width == 0)
        return;
    points->width = points->count == 0 ? width : points->width;
    if (points->width * sizeof(float) != bytes) {
        sqlite3_result_error(context, "expected blobs of floats, all of one size", -1);
        return;
    }
    points->values = xrealloc(points->values, array_size(points->count + 1, bytes));
    memcpy(points->values + points->count++ * width, point, bytes);
}

static void finish_points(sqlite3_context *context)
{
    struct points *points = sqlite3_aggregate_context(context, 0);
    if (points == NULL || points->count == 0)
        return;
    size_t size = AXES_SIZE(points->width) * sizeof(double);
    OWNED double *axes = xmalloc(size);
    if (axes_find(points->values, points->count, points->width, axes))
        sqlite3_result_blob(context, axes, (int)size, SQLITE_TRANSIENT);
    free(points->values);
    points->values = NULL;
}

/* A copy, since SQLite's may lie anywhere; NULL: none. The caller frees. */
static void *copy_blob(sqlite3_value *value)
{
    size_t bytes = (size_t)sqlite3_value_bytes(value);
    const void *blob = sqlite3_value_blob(value);
    return blob != NULL ? memcpy(xmalloc(bytes), blob, bytes) : NULL;
}

/* along(point, axes, 1 or 2): its coordinate; axis_share(axes, 1 or 2): the axis's share of the variance. */
static void call_along(sqlite3_context *context, int count, sqlite3_value **argument)
{
    size_t size = (size_t)sqlite3_value_bytes(argument[count - 2]), width = (size / sizeof(double) - 2) / 3;
    int axis = sqlite3_value_int(argument[count - 1]);
    bool of_point = count == 3, fits = size > 2 * sizeof(double) && size == AXES_SIZE(width) * sizeof(double);
    fits = fits && (axis == 1 || axis == 2);
    OWNED double *axes = copy_blob(argument[count - 2]);
    OWNED float *point = of_point ? copy_blob(argument[0]) : NULL;
    if (of_point)
        fits = fits && (size_t)sqlite3_value_bytes(argument[0]) == width * sizeof *point;
    if (axes != NULL && (point != NULL || !of_point) && !fits)
        sqlite3_result_error(context, "expected a point, what main_axes made of such points, and 1 or 2", -1);
    else if (axes != NULL && (point != NULL || !of_point))
        sqlite3_result_double(context, of_point ? axes_along(axes, width, (size_t)axis - 1, point)
                                                : axes[3 * width + (size_t)axis - 1]);
}

/* --- An order --- */

/* Numbers by size, words by letters, "task10" behind "task9". */
static int compare_numeric(void *context, int size_a, const void *a, int size_b, const void *b)
{
    double x, y;
    OWNED char *left = xstrndup(a, (size_t)size_a), *right = xstrndup(b, (size_t)size_b);
    return parse_real(left, &x) && parse_real(right, &y) && x != y ? (x < y ? -1 : 1) : strverscmp(left, right);
}

typedef void call(sqlite3_context *context, int count, sqlite3_value **argument);

static const struct text_function {
    const char *name;
    int arguments;
    call *compute, *add; /* of a function; of an aggregate, with finish */
    void (*finish)(sqlite3_context *context);
} texts[] = {
    {"holm", 2, call_holm, NULL, NULL},
    {"shortest", 1, call_shortest, NULL, NULL},
    {"fixed", 2, call_fixed, NULL, NULL},
    {"fixed", 3, call_fixed, NULL, NULL},
    {"plus_minus", 4, call_plus_minus, NULL, NULL},
    {"digest", 1, NULL, add_line, finish_lines},
    {"main_axes", 1, NULL, add_point, finish_points},
    {"along", 3, call_along, NULL, NULL},
    {"axis_share", 2, call_along, NULL, NULL},
};

static int create(struct sqlite3 *connection, const struct text_function *function, const void *data)
{
    return sqlite3_create_function_v2(connection, function->name, function->arguments,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, (void *)data,
                                      function->compute, function->add, function->finish, NULL);
}

int functions_register(struct sqlite3 *connection)
{
    int code = sqlite3_create_collation(connection, "numeric", SQLITE_UTF8, NULL, compare_numeric);
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates && code == SQLITE_OK; i++)
        code = create(connection,
                      &(struct text_function){aggregates[i].name, aggregates[i].numbers + aggregates[i].parameters,
                                              NULL, add_row, finish},
                      &aggregates[i]);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && code == SQLITE_OK; i++)
        code =
            create(connection, &(struct text_function){scalars[i].name, scalars[i].arguments, call_scalar, NULL, NULL},
                   &scalars[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && code == SQLITE_OK; i++)
        code = create(connection, &texts[i], NULL);
    return code;
}
