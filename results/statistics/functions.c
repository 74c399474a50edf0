#include "results/statistics/functions.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "core/digest.h"
#include "core/text.h"
#include "results/statistics/bootstrap.h"
#include "results/statistics/distribution.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

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

typedef double statistic(const struct columns *of);

struct aggregate {
    const char *name;
    int numbers, parameters; /* arguments of both kinds */
    bool ordered;            /* rows by the numbers behind the first one; else by all of them */
    statistic *compute;
    double (*of_x)(const double *x, size_t n); /* where compute is NULL */
};

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

static void give_real(sqlite3_context *context, double value)
{
    if (isnan(value))
        sqlite3_result_null(context);
    else
        sqlite3_result_double(context, value);
}

static void finish(sqlite3_context *context)
{
    const struct aggregate *aggregate = sqlite3_user_data(context);
    struct sample *sample = sqlite3_aggregate_context(context, 0);
    if (sample == NULL || sample->count == 0)
        return; /* the result is null */
    size_t n = sample->count, shift = aggregate->ordered ? NUMBERS_MOST - 1 : 0;
    double *apart = xmalloc(NUMBERS_MOST * n * sizeof *apart);
    size_t sorted = 1;
    while (sorted < n && compare_rows(sample->value[sorted - 1], sample->value[sorted]) <= 0)
        sorted++;
    if (sorted < n)
        qsort(sample->value, n, sizeof *sample->value, compare_rows);
    for (size_t column = 0; column < NUMBERS_MOST; column++)
        for (size_t i = 0; i < n; i++)
            apart[column * n + i] = sample->value[i][(column + shift) % NUMBERS_MOST];
    const struct columns of = {apart, apart + n, apart + 2 * n, n, sample->parameter};
    give_real(context, aggregate->compute ? aggregate->compute(&of) : aggregate->of_x(of.x, n));
    free(apart);
    free(sample->value);
    sample->value = NULL;
}

static double of_half_width(const struct columns *of)
{
    return statistics_mean_interval(0, statistics_sd(of->x, of->n), of->n, 0.95).high;
}

/* Ends of Student's interval of a mean that cannot be below, or above, the parameter. */
static double of_mean_low(const struct columns *of)
{
    double low = statistics_mean(of->x, of->n) - of_half_width(of);
    return low < of->parameter ? of->parameter : low;
}

static double of_mean_high(const struct columns *of)
{
    double high = statistics_mean(of->x, of->n) + of_half_width(of);
    return high > of->parameter ? of->parameter : high;
}

static double of_permutation(const struct columns *of)
{
    return permutation_sign_flips(of->x, of->n, (uint64_t)of->parameter).p;
}

static double of_labels(const struct columns *of)
{
    return permutation_labels(of->x, of->y, of->z, of->n, (uint64_t)of->parameter).p;
}

static double of_signed_ranks(const struct columns *of)
{
    return permutation_signed_ranks(of->x, of->n).p;
}

/* Two one-sided t-tests: the larger p, of a mean at or beyond either margin. */
static double of_equivalence(const struct columns *of)
{
    if (of->n < 2)
        return (double)NAN;
    double mean = statistics_mean(of->x, of->n), error = statistics_sd(of->x, of->n) / sqrt((double)of->n);
    double distance = fabs(of->parameter) - fabs(mean); /* to the nearer margin, which has the larger p */
    if (error == 0)
        return distance > 0 ? 0 : 1;
    double tail = distribution_t_two_sided(distance / error, (double)of->n - 1) / 2;
    return distance > 0 ? tail : 1 - tail;
}

static double of_correlation(const struct columns *of)
{
    return statistics_correlation(of->x, of->y, of->n);
}

/* Of shares in bits, from counts: log2 N − Σ c log2 c / N. */
static double of_entropy(const struct columns *of)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < of->n; i++) {
        total += of->x[i];
        sum += of->x[i] > 0 ? of->x[i] * log2(of->x[i]) : 0;
    }
    return total > 0 ? log2(total) - sum / total : (double)NAN;
}

/* x: differences of −1, 0, 1; y: their seeds; z: their images, the same ones for each seed. */
static struct bootstrap_interval bootstrap(const struct columns *of)
{
    struct bootstrap_interval none = {(double)NAN, (double)NAN, (double)NAN}, interval[2];
    size_t images = 1;
    while (images < of->n && of->y[images] == of->y[0])
        images++;
    int8_t *difference = xmalloc(of->n);
    bool whole = of->n % images == 0;
    for (size_t i = 0; whole && i < of->n; i++) {
        whole = of->y[i] == of->y[i / images * images] && of->z[i] == of->z[i % images] && fabs(of->x[i]) <= 1;
        difference[i] = (int8_t)of->x[i];
    }
    if (whole)
        bootstrap_seeds_and_images(&(struct bootstrap_task){images, difference}, 1, of->n / images,
                                   &(struct bootstrap_plan){.seed = (uint64_t)of->parameter}, interval);
    free(difference);
    return whole ? interval[0] : none;
}

static double bootstrap_low(const struct columns *of)
{
    return bootstrap(of).low;
}

static double bootstrap_high(const struct columns *of)
{
    return bootstrap(of).high;
}

/* x: values of seeds y on tasks z, the same ones for each seed. */
static struct bootstrap_interval bootstrap_tasks(const struct columns *of)
{
    size_t tasks = 1;
    while (tasks < of->n && of->y[tasks] == of->y[0])
        tasks++;
    bool whole = of->n % tasks == 0;
    for (size_t i = 0; whole && i < of->n; i++)
        whole = of->y[i] == of->y[i / tasks * tasks] && of->z[i] == of->z[i % tasks];
    return whole ? bootstrap_seeds_and_tasks(of->x, of->n / tasks, tasks,
                                             &(struct bootstrap_plan){.seed = (uint64_t)of->parameter})
                 : (struct bootstrap_interval){(double)NAN, (double)NAN, (double)NAN};
}

static double bootstrap_tasks_low(const struct columns *of)
{
    return bootstrap_tasks(of).low;
}

static double bootstrap_tasks_high(const struct columns *of)
{
    return bootstrap_tasks(of).high;
}

static const struct aggregate aggregates[] = {
    {"mean", 1, 0, false, NULL, statistics_mean},
    {"mean", 2, 0, true, NULL, statistics_mean},
    {"sd", 1, 0, false, NULL, statistics_sd},
    {"sd", 2, 0, true, NULL, statistics_sd},
    {"half_width", 1, 0, false, of_half_width, NULL},
    {"half_width", 2, 0, true, of_half_width, NULL},
    {"mean_low", 1, 1, false, of_mean_low, NULL},
    {"mean_high", 1, 1, false, of_mean_high, NULL},
    {"permutation_p", 1, 0, false, of_permutation, NULL},
    {"permutation_p", 2, 1, true, of_permutation, NULL},
    {"unpaired_p", 3, 1, true, of_labels, NULL},
    {"wilcoxon_p", 1, 0, false, of_signed_ranks, NULL},
    {"paired_t_p", 1, 0, false, NULL, statistics_paired_t_p},
    {"paired_t_p", 2, 0, true, NULL, statistics_paired_t_p},
    {"hedges_g", 1, 0, false, NULL, statistics_hedges},
    {"hedges_g", 2, 0, true, NULL, statistics_hedges},
    {"hodges_lehmann", 1, 0, false, NULL, statistics_hodges_lehmann},
    {"equivalence_p", 1, 1, false, of_equivalence, NULL},
    {"correlation", 2, 0, false, of_correlation, NULL},
    {"entropy", 1, 0, false, of_entropy, NULL},
    {"bootstrap_low", 3, 0, true, bootstrap_low, NULL},
    {"bootstrap_high", 3, 0, true, bootstrap_high, NULL},
    {"bootstrap_tasks_low", 3, 1, true, bootstrap_tasks_low, NULL},
    {"bootstrap_tasks_high", 3, 1, true, bootstrap_tasks_high, NULL},
};

/* --- Functions of single values --- */

/* One value, or both ends of an interval. */
typedef struct interval scalar(const double *argument);

static struct interval one(double value)
{
    return (struct interval){value, value};
}

static struct interval wilson(const double *a)
{
    return statistics_wilson((uint64_t)a[0], (uint64_t)a[1], 0.95);
}

static struct interval fisher(const double *a)
{
    return statistics_correlation_interval(a[0], (size_t)a[1], (size_t)a[2], 0.95);
}

static struct interval mcnemar_p(const double *a)
{
    return one(statistics_mcnemar((uint64_t)a[0], (uint64_t)a[1]));
}

static struct interval cosine(const double *x) /* SQLite's own is not in every build */
{
    return one(cos(x[0]));
}

static struct interval least_p(const double *a)
{
    return one(statistics_least_p(a[0]));
}

static struct interval log2_choices(const double *a)
{
    return one(statistics_log2_choices((size_t)a[0], (size_t)a[1]));
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

static struct interval t_p(const double *a)
{
    return one(distribution_t_two_sided(a[0], a[1]));
}

static struct interval t_quantile(const double *a)
{
    return one(distribution_t_quantile(a[0], a[1]));
}

static const struct scalar_function {
    const char *name;
    int arguments;
    int first_count; /* arguments from this one on are counts */
    double least;    /* of the last argument: null below */
    scalar *compute;
    bool high; /* the upper end */
} scalars[] = {
    {"wilson_low", 2, 0, 1, wilson, false},         {"wilson_high", 2, 0, 1, wilson, true},
    {"fisher_low", 3, 1, 0, fisher, false},         {"fisher_high", 3, 1, 0, fisher, true},
    {"mcnemar_p", 2, 0, 0, mcnemar_p, false},       {"least_p", 1, 0, 0, least_p, false},
    {"log2_choices", 2, 0, 0, log2_choices, false}, {"least_seeds", 3, 0, 0, least_seeds, false},
    {"seeds_needed", 5, 1, 0, seeds_needed, false}, {"sd_low", 2, 2, 0, sd_interval, false},
    {"sd_high", 2, 2, 0, sd_interval, true},        {"t_p", 2, 2, 0, t_p, false},
    {"t_quantile", 2, 2, 0, t_quantile, false},     {"cos", 1, 1, -INFINITY, cosine, false},
};

static void call_scalar(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const struct scalar_function *function = sqlite3_user_data(context);
    double value[ARGUMENTS_MOST];
    for (int i = 0; i < count; i++) {
        if (sqlite3_value_type(argument[i]) == SQLITE_NULL)
            return; /* the result is null */
        value[i] = sqlite3_value_double(argument[i]);
        if (i >= function->first_count && !(value[i] >= 0 && value[i] < 9e15)) {
            sqlite3_result_error(context, "expected a count", -1);
            return;
        }
    }
    if (value[count - 1] < function->least)
        return;
    struct interval found = function->compute(value);
    give_real(context, function->high ? found.high : found.low);
}

/* --- Texts --- */

/* Numbers of a JSON array, up to most; nulls are left out. */
static size_t read_numbers(const char *json, double *number, size_t most)
{
    size_t count = 0;
    while (*json != 0 && count < most) {
        char *end;
        double value = strncmp(json, "nul", 3) == 0 ? NAN : strtod(json, &end);
        if (isnan(value) || end == json) {
            json++;
            continue;
        }
        number[count++] = value;
        json = end;
    }
    return count;
}

/* holm(p, family): what Holm's correction of a JSON array of p-values makes of p, which is one of them. */
static void call_holm(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const char *family = (const char *)sqlite3_value_text(argument[1]);
    double p = sqlite3_value_double(argument[0]);
    size_t most = 1, nearest = 0;
    (void)count;
    if (sqlite3_value_type(argument[0]) == SQLITE_NULL || family == NULL)
        return;
    for (const char *at = family; *at != 0; at++)
        most += *at == ',';
    double *values = xcalloc(most, 2 * sizeof *values), *adjusted = values + most;
    size_t tests = read_numbers(family, values, most);
    statistics_holm(values, tests, adjusted);
    for (size_t i = 1; i < tests; i++) /* JSON has 15 digits, so p itself need not be among them */
        nearest = fabs(values[i] - p) < fabs(values[nearest] - p) ? i : nearest;
    if (tests > 0)
        give_real(context, adjusted[nearest]);
    free(values);
}

/* shortest(value): a real number in the shortest digits that read back as it; anything else as it is. */
static void call_shortest(sqlite3_context *context, int count, sqlite3_value **argument)
{
    struct text digits = {0};
    (void)count;
    if (sqlite3_value_type(argument[0]) != SQLITE_FLOAT) {
        sqlite3_result_value(context, argument[0]);
        return;
    }
    text_add_real(&digits, sqlite3_value_double(argument[0]));
    sqlite3_result_text(context, digits.data, -1, SQLITE_TRANSIENT);
    text_free(&digits);
}

/* plus_minus(mean, half, least, most): half or, where mean ± half leaves what can be, the interval as text, cut. */
static void call_plus_minus(sqlite3_context *context, int count, sqlite3_value **argument)
{
    double value[4];
    for (int i = 0; i < count; i++) {
        if (sqlite3_value_type(argument[i]) == SQLITE_NULL)
            return; /* the result is null */
        value[i] = sqlite3_value_double(argument[i]);
    }
    double low = fmax(value[0] - value[1], value[2]), high = fmin(value[0] + value[1], value[3]);
    if (low == value[0] - value[1] && high == value[0] + value[1]) {
        sqlite3_result_double(context, value[1]);
        return;
    }
    struct text interval = {0};
    text_add(&interval, "[%.1f, %.1f]", low, high);
    sqlite3_result_text(context, interval.data, -1, SQLITE_TRANSIENT);
    text_free(&interval);
}

struct lines {
    bool begun;
    struct digest digest;
};

/* digest(line): SHA-256 of all lines in their order, each with its end. */
static void add_line(sqlite3_context *context, int count, sqlite3_value **argument)
{
    struct lines *lines = sqlite3_aggregate_context(context, sizeof *lines);
    const unsigned char *line = sqlite3_value_text(argument[0]);
    (void)count;
    if (lines == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!lines->begun)
        lines->digest = digest_begin();
    lines->begun = true;
    if (line != NULL)
        digest_add(&lines->digest, line, (size_t)sqlite3_value_bytes(argument[0]));
    digest_add(&lines->digest, "\n", 1);
}

static void finish_lines(sqlite3_context *context)
{
    struct lines *lines = sqlite3_aggregate_context(context, 0), none = {.digest = digest_begin()};
    char hash[DIGEST_SIZE];
    digest_end(lines != NULL ? &lines->digest : &none.digest, hash);
    sqlite3_result_text(context, hash, -1, SQLITE_TRANSIENT);
}

/* --- An order --- */

/* Numbers by size, words by letters, "task10" behind "task9". */
static int compare_numeric(void *context, int size_a, const void *a, int size_b, const void *b)
{
    double x, y;
    char *left = xstrndup(a, (size_t)size_a), *right = xstrndup(b, (size_t)size_b);
    (void)context;
    int order = parse_real(left, &x) && parse_real(right, &y) && x != y ? (x < y ? -1 : 1) : strverscmp(left, right);
    free(left);
    free(right);
    return order;
}

int functions_register(struct sqlite3 *connection)
{
    enum { PURE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };
    int code = sqlite3_create_collation(connection, "numeric", SQLITE_UTF8, NULL, compare_numeric);
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates && code == SQLITE_OK; i++)
        code =
            sqlite3_create_function_v2(connection, aggregates[i].name, aggregates[i].numbers + aggregates[i].parameters,
                                       PURE, (void *)&aggregates[i], NULL, add_row, finish, NULL);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && code == SQLITE_OK; i++)
        code = sqlite3_create_function_v2(connection, scalars[i].name, scalars[i].arguments, PURE, (void *)&scalars[i],
                                          call_scalar, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(connection, "holm", 2, PURE, NULL, call_holm, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(connection, "shortest", 1, PURE, NULL, call_shortest, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(connection, "plus_minus", 4, PURE, NULL, call_plus_minus, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(connection, "digest", 1, PURE, NULL, NULL, add_line, finish_lines, NULL);
    return code;
}
