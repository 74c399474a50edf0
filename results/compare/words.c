/* What the numbers of two groups allow to be said, for people who do not read p-values every day. */
#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "results/compare/internal.h"
#include "results/statistics/statistics.h"

#define PAIRS                                                                                                          \
    "SELECT pair.place, title, dataset.name, a.name, b.name, n, difference, sd, low, high, p, p_holm, p_t, "           \
    "seeds_needed, family FROM pair JOIN metric ON metric.place = metric LEFT JOIN dataset ON dataset.place = "        \
    "dataset "                                                                                                         \
    "JOIN configuration AS a ON a.grp = baseline JOIN configuration AS b ON b.grp = other"

/* A row of it; strings are borrowed from the statement. */
struct pair {
    int64_t place;
    const char *title, *dataset, *baseline, *other; /* dataset "": the mean over tasks */
    size_t n, seeds_needed, family;                 /* family: tests that are corrected together */
    double difference, sd, low, high, p, p_holm, p_t;
};

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* A p-value with the digits that matter. */
static void add_p(struct text *text, double p)
{
    if (p >= 0.0001)
        text_add(text, "%.4g", round(p * 1e4) / 1e4);
    else
        text_add(text, "%.1e", p);
}

static void add_measure(struct text *text, const struct pair *pair)
{
    text_add(text, "%s%s%s: ", pair->title, *pair->dataset ? " on " : "", pair->dataset);
}

static void add_difference(struct text *text, const struct pair *pair)
{
    add_measure(text, pair);
    if (pair->difference == 0)
        text_add(text, "%s equals %s on average", pair->other, pair->baseline);
    else
        text_add(text, "%s is %.2f points %s %s", pair->other, fabs(pair->difference),
                 pair->difference > 0 ? "above" : "below", pair->baseline);
    if (pair->n > 1)
        text_add(text, " (95%% interval %+.2f to %+.2f)", pair->low, pair->high);
    text_add(text, " over %zu common seed%s. ", pair->n, plural(pair->n));
}

/* Whether more seeds are needed before any result could count. */
static bool add_limit(struct text *text, const struct pair *pair)
{
    double least = statistics_least_p(pair->n);
    bool alone = least > COMPARE_LEVEL, together = least * (double)pair->family > COMPARE_LEVEL;
    if (alone) {
        text_add(text, "With %zu seed%s no p below %.4g is possible; %zu are needed for %.2f", pair->n, plural(pair->n),
                 least, statistics_least_pairs(COMPARE_LEVEL, 1), COMPARE_LEVEL);
    } else if (together) {
        text_add(text, "By itself exact p ");
        add_p(text, pair->p);
        text_add(text,
                 "; with %zu seeds and Holm's correction for %zu tests no p below %.4g is possible, %zu are needed",
                 pair->n, pair->family, fmin(1, least * (double)pair->family),
                 statistics_least_pairs(COMPARE_LEVEL, pair->family));
    }
    if (alone && pair->family > 1)
        text_add(text, ", %zu after Holm's correction for %zu tests",
                 statistics_least_pairs(COMPARE_LEVEL, pair->family), pair->family);
    return alone || together;
}

static void add_verdict(struct text *text, const struct pair *pair)
{
    bool shown = pair->p_holm <= COMPARE_LEVEL, alone = pair->p <= COMPARE_LEVEL;
    text_add(text, "%s: exact p ", shown ? "Supported" : alone ? "Not established" : "No difference shown");
    add_p(text, pair->p);
    if (pair->family > 1) {
        text_add(text, ", after Holm's correction for %zu tests ", pair->family);
        add_p(text, pair->p_holm);
    }
    text_add(text, shown || alone ? "." : "; that is no proof of equality.");
}

#define SPREAD 1e-9 /* points; with less, rounding alone makes Student's p 0, or nearly */

/* What Student's interval says where the exact test cannot. */
static void add_interval(struct text *text, const struct pair *pair)
{
    bool apart = pair->low > 0 || pair->high < 0;
    text_add(text, "; if differences are normally distributed, p is ");
    add_p(text, pair->p_t);
    text_add(text, " and the interval %s 0.", apart ? "leaves out" : "includes");
}

/* A standard deviation of so few seeds may be off by a factor of two. */
#define ROUGH_SEEDS 5

static void add_detection(struct text *text, const struct pair *pair, double detect)
{
    if (pair->n < 2 || pair->sd == 0) {
        text_add(text, " How many seeds would detect %.4g point%s is not known without a spread.", detect,
                 detect == 1 ? "" : "s");
        return;
    }
    text_add(text, " To detect %.4g point%s with 80%% power takes ", detect, detect == 1 ? "" : "s");
    if (pair->seeds_needed)
        text_add(text, "%zu seeds", pair->seeds_needed);
    else
        text_add(text, "more than a million seeds");
    text_add(text, ", if the standard deviation is the observed %.2f%s.", pair->sd,
             pair->n <= ROUGH_SEEDS ? ", which so few seeds tell only roughly" : "");
}

static void say(struct text *text, const struct pair *pair, double detect)
{
    if (pair->n == 0) {
        add_measure(text, pair);
        text_add(text, "%s and %s have no seed in common, so that nothing is paired.", pair->baseline, pair->other);
        return;
    }
    add_difference(text, pair);
    bool limited = !(pair->p_holm <= COMPARE_LEVEL) && add_limit(text, pair);
    if (limited && pair->n > 1 && pair->sd > SPREAD)
        add_interval(text, pair);
    else if (limited)
        text_add(text, ".");
    else
        add_verdict(text, pair);
    if (detect > 0)
        add_detection(text, pair, detect);
}

static double real(struct statement *row, size_t column)
{
    struct value value = statement_value(row, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

static struct pair read_pair(struct statement *row)
{
    return (struct pair){.place = statement_integer(row, 0),
                         .title = statement_text(row, 1),
                         .dataset = statement_text(row, 2),
                         .baseline = statement_text(row, 3),
                         .other = statement_text(row, 4),
                         .n = (size_t)statement_integer(row, 5),
                         .difference = real(row, 6),
                         .sd = real(row, 7),
                         .low = real(row, 8),
                         .high = real(row, 9),
                         .p = real(row, 10),
                         .p_holm = real(row, 11),
                         .p_t = real(row, 12),
                         .seeds_needed = (size_t)statement_integer(row, 13),
                         .family = (size_t)statement_integer(row, 14)};
}

struct saying {
    const struct compare *c;
    struct statement *insert;
    struct text text;
};

static status say_row(void *context, struct statement *row, struct error *error)
{
    struct saying *s = context;
    struct pair pair = read_pair(row);
    text_clear(&s->text);
    say(&s->text, &pair, s->c->request->detect);
    return statement_run(s->insert, VALUES(value_integer(pair.place), value_text(s->text.data)), error);
}

status compare_say(const struct compare *c, struct error *error)
{
    struct saying s = {.c = c};
    status result = statement_open(&s.insert, c->store->database, "INSERT INTO words VALUES (?1, ?2)", error);
    NEXT(result, database_each(c->store->database, PAIRS, NO_VALUES, say_row, &s, error));
    text_free(&s.text);
    statement_close(s.insert);
    return result;
}
