#include "results/report/labels.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/store/setting_values.h"

enum { READ_MOST = 200, KEYS_MOST = 3, HASH_DIGITS = 6, NEIGHBOURS = 1000 };
enum { METHOD = 2, POLICY = 3 }; /* of report_fields */

#define ROW "run.row"

/* --- Fields --- */

static const char *join(struct report *report, const char *label, const char *more)
{
    return *label ? report_format(report, "%s · %s", label, more) : more;
}

/* Tells configurations apart that are called the same so far. */
static bool separates(const struct board *board, size_t field)
{
    for (size_t i = 0; i < board->count; i++)
        for (size_t j = i + 1; j < board->count && j < i + NEIGHBOURS; j++)
            if (strcmp(board->configuration[i]->label, board->configuration[j]->label) == 0 &&
                strcmp(board->configuration[i]->field[field], board->configuration[j]->field[field]) != 0)
                return true;
    return false;
}

/* A field that only says once more what others have said is left out. One configuration alone is called by its method and
 * policy. */
static void label_by_fields(struct report *report, struct board *board)
{
    for (size_t i = 0; i < board->count; i++)
        board->configuration[i]->label = "";
    for (size_t field = 0; field < REPORT_FIELDS; field++) {
        if (!separates(board, field) && (board->count > 1 || (field != METHOD && field != POLICY)))
            continue;
        for (size_t i = 0; i < board->count; i++)
            board->configuration[i]->label =
                join(report, board->configuration[i]->label, board->configuration[i]->field[field]);
    }
}

/* --- Settings --- */

/* Configurations that are called the same so far. */
struct namesakes {
    struct report *report;
    size_t count;
    struct configuration **configuration;
    struct setting_values *values;
    const char *key[KEYS_MOST];
    size_t keys;
    bool too_many; /* keys differ */
};

static void note_difference(void *context, const char *key, const char *a, const char *b)
{
    struct namesakes *names = context;
    if (report_is_incidental(names->report, key, a, b))
        return;
    for (size_t i = 0; i < names->keys; i++)
        if (strcmp(names->key[i], key) == 0)
            return;
    if (names->keys == KEYS_MOST)
        names->too_many = true;
    else
        names->key[names->keys++] = report_copy(names->report, key);
}

static void append_settings(struct namesakes *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t k = 0; k < names->keys; k++) {
            const char *value = setting_values_find(&names->values[i], names->key[k]);
            const char *setting = report_format(names->report, "%s=%s", names->key[k], value ? value : "none");
            names->configuration[i]->label = join(names->report, names->configuration[i]->label, setting);
        }
}

static bool same_labels(const struct namesakes *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t j = i + 1; j < names->count; j++)
            if (strcmp(names->configuration[i]->label, names->configuration[j]->label) == 0)
                return true;
    return false;
}

static void append_hashes(struct namesakes *names)
{
    for (size_t i = 0; i < names->count; i++)
        names->configuration[i]->label = report_format(names->report, "%s #%.*s", names->configuration[i]->label,
                                                       HASH_DIGITS, names->configuration[i]->hash);
}

/* Rows of a suite have names, which say more than the settings in which they differ. */
static bool append_rows(struct namesakes *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *a = setting_values_find(&names->values[i], ROW),
                       *b = setting_values_find(&names->values[j], ROW);
            if (a == NULL || b == NULL || strcmp(a, b) == 0)
                return false;
        }
    for (size_t i = 0; i < names->count; i++)
        names->configuration[i]->label =
            join(names->report, names->configuration[i]->label, setting_values_find(&names->values[i], ROW));
    return true;
}

static status read_settings(struct namesakes *names, struct error *error)
{
    for (size_t i = 0; i < names->count; i++)
        TRY(report_values(names->report, names->configuration[i], &names->values[i], error));
    for (size_t i = 1; i < names->count; i++)
        setting_values_compare(&names->values[0], &names->values[i], note_difference, names);
    return OK;
}

static status tell_apart(struct namesakes *names, struct error *error)
{
    struct report *report = names->report;
    names->values = report_take(report, names->count, sizeof *names->values);
    TRY(report_check(report, error));
    status result = names->count <= READ_MOST ? read_settings(names, error) : OK;
    bool rows = result == OK && names->count <= READ_MOST && append_rows(names);
    if (!rows && !names->too_many)
        append_settings(names);
    for (size_t i = 0; i < names->count; i++)
        setting_values_free(&names->values[i]);
    if (names->count > READ_MOST || same_labels(names))
        append_hashes(names);
    return result == OK ? report_check(report, error) : result;
}

/* --- Colours --- */

/* What has a colour: the policy, or the method of runs without one. */
static const char *colour_name(const struct configuration *configuration)
{
    return configuration->field[strcmp(configuration->field[POLICY], "none") == 0 ? METHOD : POLICY];
}

/* Each has a colour of its own; the colours of other names are shared. */
static const char *const OWNERS[REPORT_BEST] = {"moe_adapters", "most_used",   "random",
                                                "similar",      "coactivated", "downstream"};

static size_t owned_colour(const char *name) /* REPORT_BEST: none */
{
    size_t colour = 0;
    while (colour < REPORT_BEST && strcmp(OWNERS[colour], name) != 0)
        colour++;
    return colour;
}

static size_t usual_colour(const char *name)
{
    uint32_t hash = 0;
    size_t owned = owned_colour(name);
    for (; *name != 0; name++)
        hash = 31 * hash + (unsigned char)*name;
    return owned < REPORT_BEST ? owned : hash % REPORT_BEST;
}

static int compare_colours(const void *a, const void *b)
{
    const struct configuration *x = *(struct configuration *const *)a, *y = *(struct configuration *const *)b;
    const char *own = colour_name(x), *other = colour_name(y);
    int shared = (owned_colour(own) == REPORT_BEST) - (owned_colour(other) == REPORT_BEST);
    if (shared != 0)
        return shared;
    return strcmp(own, other) != 0 ? strcmp(own, other) : strcmp(x->legend, y->legend);
}

/* A merge policy of OWNERS has the same colour on every page, whatever its rank. A further configuration of that policy, and another
 * name whose usual colour is taken, gets one that is left. */
static void choose_colours(const struct board *board)
{
    struct configuration *sorted[REPORT_BEST];
    bool taken[REPORT_BEST] = {false}, settled[REPORT_BEST] = {false};
    memcpy(sorted, board->configuration, board->shown * sizeof *sorted);
    qsort(sorted, board->shown, sizeof *sorted, compare_colours);
    for (size_t i = 0; i < board->shown; i++) {
        sorted[i]->colour = usual_colour(colour_name(sorted[i]));
        settled[i] = !taken[sorted[i]->colour];
        taken[sorted[i]->colour] = true;
    }
    for (size_t i = 0; i < board->shown; i++) {
        while (!settled[i] && taken[sorted[i]->colour])
            sorted[i]->colour = (sorted[i]->colour + 1) % REPORT_BEST;
        taken[sorted[i]->colour] = true;
    }
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp((*(struct configuration *const *)a)->label, (*(struct configuration *const *)b)->label);
}

/* Where each configuration is another row of a suite, its name is all there is to say. */
static status label_by_rows(struct report *report, struct board *board, bool *done, struct error *error)
{
    *done = board->count <= READ_MOST;
    for (size_t i = 0; i < board->count && *done; i++) {
        struct setting_values values;
        status result = report_values(report, board->configuration[i], &values, error);
        const char *row = result == OK ? setting_values_find(&values, ROW) : NULL;
        *done = row != NULL && row[0] != 0;
        board->configuration[i]->label = *done ? report_copy(report, row) : "";
        setting_values_free(&values);
        TRY(result);
        for (size_t j = 0; j < i && *done; j++)
            *done = strcmp(board->configuration[j]->label, board->configuration[i]->label) != 0;
    }
    return report_check(report, error);
}

status label_configurations(struct report *report, struct board *board, struct error *error)
{
    bool rows;
    TRY(label_by_rows(report, board, &rows, error));
    if (!rows)
        label_by_fields(report, board);
    struct configuration **sorted = report_take(report, board->count, sizeof(struct configuration *));
    TRY(report_check(report, error));
    memcpy(sorted, board->configuration, board->count * sizeof(struct configuration *));
    qsort(sorted, board->count, sizeof(struct configuration *), compare_labels);
    for (size_t first = 0, count; first < board->count; first += count) {
        const char *label = sorted[first]->label;
        for (count = 1; first + count < board->count && strcmp(sorted[first + count]->label, label) == 0;)
            count++;
        struct namesakes names = {.report = report, .count = count, .configuration = sorted + first};
        if (count > 1)
            TRY(tell_apart(&names, error));
    }
    for (size_t i = 0; i < board->count; i++) {
        struct configuration *configuration = board->configuration[i];
        bool said = rows || strstr(configuration->label, configuration->field[METHOD]) != NULL;
        configuration->legend =
            said ? configuration->label : join(report, configuration->field[METHOD], configuration->label);
    }
    choose_colours(board);
    return report_check(report, error);
}
