#include "results/statistics/functions.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "results/statistics/distribution.h"
#include "results/statistics/permutation.h"
#include "results/statistics/statistics.h"

enum { ARGUMENTS_MOST = 3 };

/* --- Aggregates over numbers --- */

/* The rows of an aggregate: up to two numbers each, and what follows them, which is the same in all rows. */
struct sample {
    double *value; /* [count, 2] */
    size_t count, capacity;
    double parameter;
};

typedef double statistic(const double *x, const double *y, size_t n, double parameter);

struct aggregate {
    const char *name;
    int numbers, parameters; /* arguments of both kinds */
    statistic *compute;
};

static void refuse_memory(sqlite3_context *context)
{
    sqlite3_result_error_nomem(context);
}

static void add_row(sqlite3_context *context, int count, sqlite3_value **argument)
{
    const struct aggregate *aggregate = sqlite3_user_data(context);
    struct sample *sample = sqlite3_aggregate_context(context, sizeof *sample);
    for (int i = 0; i < aggregate->numbers; i++)
        if (sqlite3_value_numeric_type(argument[i]) != SQLITE_INTEGER &&
            sqlite3_value_numeric_type(argument[i]) != SQLITE_FLOAT)
            return; /* null, or no number */
    if (sample == NULL) {
        refuse_memory(context);
        return;
    }
    if (sample->count == sample->capacity) {
        size_t capacity = sample->capacity > 0 ? 2 * sample->capacity : 16;
        double *larger = realloc(sample->value, 2 * capacity * sizeof *larger);
        if (larger == NULL) {
            refuse_memory(context);
            return;
        }
        sample->value = larger;
        sample->capacity = capacity;
    }
    double *value = sample->value + 2 * sample->count++;
    value[0] = sqlite3_value_double(argument[0]);
    value[1] = aggregate->numbers > 1 ? sqlite3_value_double(argument[1]) : 0;
    sample->parameter = count > aggregate->numbers ? sqlite3_value_double(argument[aggregate->numbers]) : 0;
}

static int compare_rows(const void *a, const void *b)
{
    const double *left = a, *right = b;
    if (left[0] != right[0])
        return left[0] < right[0] ? -1 : 1;
    return (left[1] > right[1]) - (left[1] < right[1]);
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
    if (sample == NULL || sample->count == 0) {
        sqlite3_result_null(context);
        return;
    }
    double *apart = malloc(2 * sample->count * sizeof *apart), *x = apart, *y = apart + sample->count;
    if (apart == NULL) {
        refuse_memory(context);
    } else {
        qsort(sample->value, sample->count, 2 * sizeof *sample->value, compare_rows);
        for (size_t i = 0; i < sample->count; i++) {
            x[i] = sample->value[2 * i];
            y[i] = sample->value[2 * i + 1];
        }
        give_real(context, aggregate->compute(x, y, sample->count, sample->parameter));
    }
    free(apart);
    free(sample->value);
    sample->value = NULL;
}

static double of_mean(const double *x, const double *y, size_t n, double parameter)
{
    (void)y, (void)parameter;
    return statistics_mean(x, n);
}

static double of_sd(const double *x, const double *y, size_t n, double parameter)
{
    (void)y, (void)parameter;
    return statistics_sd(x, n);
}

static double of_half_width(const double *x, const double *y, size_t n, double parameter)
{
    (void)y, (void)parameter;
    return n < 2 ? (double)NAN : statistics_mean_interval(0, statistics_sd(x, n), n, 0.95).high;
}

static double of_permutation(const double *x, const double *y, size_t n, double parameter)
{
    struct sign_flip_test test;
    (void)y, (void)parameter;
    return permutation_sign_flips(x, n, 1, &test, NULL) == OK ? test.p : (double)NAN;
}

static double of_signed_ranks(const double *x, const double *y, size_t n, double parameter)
{
    struct signed_rank_test test;
    (void)y, (void)parameter;
    return permutation_signed_ranks(x, n, &test, NULL) == OK ? test.p : (double)NAN;
}

static double of_paired_t(const double *x, const double *y, size_t n, double parameter)
{
    (void)y, (void)parameter;
    return statistics_paired_t(x, n, 0.95).p;
}

static double of_hodges_lehmann(const double *x, const double *y, size_t n, double parameter)
{
    double median;
    (void)y, (void)parameter;
    return statistics_hodges_lehmann(x, n, &median, NULL) == OK ? median : (double)NAN;
}

/* Two one-sided t-tests: the larger p, of a mean at or beyond either margin. */
static double of_equivalence(const double *x, const double *y, size_t n, double margin)
{
    (void)y;
    if (n < 2)
        return (double)NAN;
    double mean = statistics_mean(x, n), error = statistics_sd(x, n) / sqrt((double)n);
    double distance = fabs(margin) - fabs(mean); /* to the nearer margin, which has the larger p */
    if (error == 0)
        return distance > 0 ? 0 : 1;
    double tail = distribution_t_two_sided(distance / error, (double)n - 1) / 2;
    return distance > 0 ? tail : 1 - tail;
}

static double of_correlation(const double *x, const double *y, size_t n, double parameter)
{
    (void)parameter;
    return statistics_correlation(x, y, n);
}

/* Of shares in bits, from counts: log2 N − Σ c log2 c / N. */
static double of_entropy(const double *x, const double *y, size_t n, double parameter)
{
    double total = 0, sum = 0;
    (void)y, (void)parameter;
    for (size_t i = 0; i < n; i++) {
        total += x[i];
        sum += x[i] > 0 ? x[i] * log2(x[i]) : 0;
    }
    return total > 0 ? log2(total) - sum / total : (double)NAN;
}

static const struct aggregate aggregates[] = {
    {"mean", 1, 0, of_mean},
    {"sd", 1, 0, of_sd},
    {"half_width", 1, 0, of_half_width},
    {"permutation_p", 1, 0, of_permutation},
    {"wilcoxon_p", 1, 0, of_signed_ranks},
    {"paired_t_p", 1, 0, of_paired_t},
    {"hodges_lehmann", 1, 0, of_hodges_lehmann},
    {"equivalence_p", 1, 1, of_equivalence},
    {"correlation", 2, 0, of_correlation},
    {"entropy", 1, 0, of_entropy},
};

/* --- Functions of single values --- */

typedef double scalar(const double *argument);

static double wilson_low(const double *a)
{
    return statistics_wilson((uint64_t)a[0], (uint64_t)a[1], 0.95).low;
}

static double wilson_high(const double *a)
{
    return statistics_wilson((uint64_t)a[0], (uint64_t)a[1], 0.95).high;
}

static double fisher_low(const double *a)
{
    return statistics_correlation_interval(a[0], (size_t)a[1], (size_t)a[2], 0.95).low;
}

static double fisher_high(const double *a)
{
    return statistics_correlation_interval(a[0], (size_t)a[1], (size_t)a[2], 0.95).high;
}

static double mcnemar_p(const double *a)
{
    return statistics_mcnemar((uint64_t)a[0], (uint64_t)a[1]);
}

static double cosine(const double *x) /* SQLite's own is not in every build */
{
    return cos(x[0]);
}

static double least_p(const double *a)
{
    return statistics_least_p((size_t)a[0]);
}

static const struct scalar_function {
    const char *name;
    int arguments;
    int first_count; /* arguments from this one on are counts */
    double least;    /* of the last argument: null below */
    scalar *compute;
} scalars[] = {
    {"wilson_low", 2, 0, 1, wilson_low},   {"wilson_high", 2, 0, 1, wilson_high}, {"fisher_low", 3, 1, 0, fisher_low},
    {"fisher_high", 3, 1, 0, fisher_high}, {"mcnemar_p", 2, 0, 0, mcnemar_p},     {"least_p", 1, 0, 0, least_p},
    {"cos", 1, 1, -INFINITY, cosine},
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
    give_real(context, function->compute(value));
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
    double *values = calloc(most, 2 * sizeof *values), *adjusted = values + most;
    size_t tests = values != NULL ? read_numbers(family, values, most) : 0;
    if (values == NULL || statistics_holm(values, tests, adjusted, NULL) != OK) {
        refuse_memory(context);
    } else if (tests > 0) { /* JSON has 15 digits, so p itself need not be among them */
        for (size_t i = 1; i < tests; i++)
            nearest = fabs(values[i] - p) < fabs(values[nearest] - p) ? i : nearest;
        give_real(context, adjusted[nearest]);
    }
    free(values);
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
        refuse_memory(context);
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

int functions_register(struct sqlite3 *connection)
{
    enum { PURE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };
    int code = SQLITE_OK;
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
        code = sqlite3_create_function_v2(connection, "digest", 1, PURE, NULL, NULL, add_line, finish_lines, NULL);
    return code;
}
