/* What the numbers of two groups allow to be said, for people who do not read p-values every day. */
#include <math.h>

#include "core/text.h"
#include "results/compare/internal.h"

#define LEVEL 0.05
#define PAIRS                                                                                                          \
    "SELECT place, title, dataset_name, said_baseline, said_other, runs, seeds, contexts, above, below, family, "      \
    "equal_family, tier, "                                                                                             \
    "drawn, seeds_needed, seeds_low, seeds_high, difference, sd, low, high, low90, "                                   \
    "high90, p, p_holm, p_seeds, seeds_holm, least, p_t, p_equal, equal_holm FROM answer"

/* A row of it; strings are borrowed from the statement. */
struct pair {
    int64_t place;
    const char *title, *dataset, *baseline, *other; /* dataset "": the mean over tasks */
    size_t runs, seeds, contexts, above, below, family, equal_family, tier, drawn, needed, needed_low, needed_high;
    double difference, sd, low, high, low90, high90, p, p_holm, p_seeds, seeds_holm, least, p_t, p_equal, equal_holm;
};

struct saying {
    const struct compare *c;
    struct statement *insert;
    struct text text;
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

static void add_correction(struct text *text, const struct pair *pair, double p)
{
    const char *tier = pair->tier ? "secondary " : "";
    if (pair->family > 1 || pair->tier) {
        text_add(text, ", after Holm's correction for %zu %stest%s%s ", pair->family, tier, plural(pair->family),
                 pair->tier ? " and the primary ones" : "");
        add_p(text, p);
    }
}

static void add_measure(struct text *text, const struct pair *pair)
{
    text_add(text, "%s%s%s: ", pair->title, *pair->dataset ? " on " : "", pair->dataset);
}

static void add_sample(struct text *text, const struct pair *pair, bool unpaired)
{
    if (unpaired)
        text_add(text, " over %zu runs that are not paired", pair->runs);
    else if (pair->contexts > 1)
        text_add(text, " over %zu pairs of runs of %zu seed%s", pair->runs, pair->seeds, plural(pair->seeds));
    else
        text_add(text, " over %zu common seed%s", pair->runs, plural(pair->runs));
    if (pair->contexts > 1)
        text_add(text, " in %zu contexts, above in %zu and below in %zu", pair->contexts, pair->above, pair->below);
    text_add(text, ". ");
}

static void add_difference(struct text *text, const struct pair *pair)
{
    add_measure(text, pair);
    if (pair->difference == 0)
        text_add(text, "%s is 0.00 points from %s", pair->other, pair->baseline);
    else
        text_add(text, "%s is %.2f points %s %s", pair->other, fabs(pair->difference),
                 pair->difference > 0 ? "above" : "below", pair->baseline);
    if (!isnan(pair->low))
        text_add(text, " (95%% interval %+.2f to %+.2f)", pair->low, pair->high);
}

static void add_verdict(struct text *text, const struct pair *pair)
{
    bool shown = pair->p_holm <= LEVEL, alone = pair->p <= LEVEL;
    bool needs = shown && pair->seeds_holm > LEVEL;
    text_add(text, "%s%s: %s p ",
             shown   ? "Supported"
             : alone ? "Not established"
                     : "No difference shown",
             needs ? " if runs of one seed are independent of one another in different contexts" : "",
             pair->drawn ? "drawn" : "exact");
    add_p(text, pair->p);
    add_correction(text, pair, pair->p_holm);
    if (!isnan(pair->p_seeds)) {
        text_add(text, "; with one sign for each seed in all contexts p is ");
        add_p(text, pair->p_seeds);
    }
    text_add(text, shown || alone || !isnan(pair->low90) ? "." : "; that is no proof of equality.");
}

#define SPREAD 1e-9 /* points; with less, rounding alone makes Student's p 0, or nearly */

/* No seeds, or runs, of this number can show a difference: the summary says how many can. What Student's test says stays. */
static void add_limited(struct text *text, const struct pair *pair, bool unpaired)
{
    text_add(text, "Undecided");
    if (pair->sd > SPREAD) {
        text_add(text, "; if %s are normally distributed, p is ", unpaired ? "results" : "differences");
        add_p(text, pair->p_t);
    }
    text_add(text, ".");
}

static void add_equivalence(struct text *text, const struct pair *pair, double margin)
{
    const char *points = margin == 1 ? "" : "s";
    if (isnan(pair->p_equal) || pair->sd <= SPREAD) {
        text_add(text, " Whether it is within %.4g point%s is not known without a spread.", margin, points);
        return;
    }
    text_add(text, " %s within %.4g point%s (90%% interval %+.2f to %+.2f): one-sided p ",
             pair->equal_holm <= LEVEL ? "Equal" : "Not shown to be equal", margin, points, pair->low90, pair->high90);
    add_p(text, pair->p_equal);
    if (pair->equal_family > 1) {
        text_add(text, ", after Holm's correction for %zu tests ", pair->equal_family);
        add_p(text, pair->equal_holm);
    }
    text_add(text, ".");
}

static void add_seeds(struct text *text, size_t seeds)
{
    if (seeds)
        text_add(text, "%zu", seeds);
    else
        text_add(text, "more than a million");
}

static void add_detection(struct text *text, const struct pair *pair, const struct comparison_request *request)
{
    double detect = request->detect;
    if (isnan(pair->sd) || pair->sd <= SPREAD) {
        text_add(text, " How many seeds would detect %.4g point%s is not known without a spread.", detect,
                 detect == 1 ? "" : "s");
        return;
    }
    text_add(text, " To detect %.4g point%s with 80%% power", detect, detect == 1 ? "" : "s");
    if (pair->family > 1)
        text_add(text, " after a correction for %zu tests", pair->family);
    text_add(text, " takes ");
    add_seeds(text, pair->needed);
    text_add(text, " seeds%s with the observed standard deviation of %.2f, ",
             request->unpaired    ? " on each side"
             : pair->contexts > 1 ? " in each context"
                                  : "",
             pair->sd);
    add_seeds(text, pair->needed_low);
    text_add(text, " to ");
    add_seeds(text, pair->needed_high);
    text_add(text, " with those of its 95%% interval.");
}

static void say(struct text *text, const struct pair *pair, const struct comparison_request *request)
{
    if (pair->runs == 0) {
        add_measure(text, pair);
        text_add(text, "%s and %s have no seed in common, so that nothing is paired.", pair->baseline, pair->other);
        return;
    }
    add_difference(text, pair);
    add_sample(text, pair, request->unpaired);
    if (!(pair->p_holm <= LEVEL) && pair->least * (double)pair->family > LEVEL)
        add_limited(text, pair, request->unpaired);
    else
        add_verdict(text, pair);
    if (request->equivalence > 0)
        add_equivalence(text, pair, request->equivalence);
    if (request->detect > 0)
        add_detection(text, pair, request);
}

static double real(struct statement *row, size_t column)
{
    struct value value = statement_value(row, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

static struct pair read_pair(struct statement *row)
{
    struct pair pair = {.place = statement_integer(row, 0),
                        .title = statement_text(row, 1),
                        .dataset = statement_text(row, 2),
                        .baseline = statement_text(row, 3),
                        .other = statement_text(row, 4)};
    size_t *const counts[] = {&pair.runs,  &pair.seeds,  &pair.contexts,     &pair.above,
                              &pair.below, &pair.family, &pair.equal_family, &pair.tier,
                              &pair.drawn, &pair.needed, &pair.needed_low,   &pair.needed_high};
    double *const reals[] = {&pair.difference, &pair.sd,  &pair.low,     &pair.high,      &pair.low90,
                             &pair.high90,     &pair.p,   &pair.p_holm,  &pair.p_seeds,   &pair.seeds_holm,
                             &pair.least,      &pair.p_t, &pair.p_equal, &pair.equal_holm};
    size_t column = 5;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i] = (size_t)statement_integer(row, column++);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = real(row, column++);
    return pair;
}

static status say_row(void *context, struct statement *row, struct error *error)
{
    struct saying *s = context;
    struct pair pair = read_pair(row);
    text_clear(&s->text);
    say(&s->text, &pair, s->c->request);
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
