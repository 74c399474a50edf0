/* Reads the runs of a comparison: their settings, test sets and metrics. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "core/text.h"
#include "results/compare/internal.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

/* Without a status in the filter, only finished runs. */
#define COMPARED "WITH compared AS (SELECT * FROM chosen WHERE ?1 IS NOT NULL OR status = 'finished') "

static status open_filtered(struct compare *c, const char *sql, struct statement **statement, struct error *error)
{
    TRY(statement_open(statement, c->store->database, sql, error));
    status result = statement_bind(*statement, VALUES(value_text(c->request->filter.status)), error);
    if (result != OK) {
        statement_close(*statement);
        *statement = NULL;
    }
    return result;
}

/* ---- Runs and configurations ---- */

/* The words that name a column of `runs`, in the order of the SELECT below, and the suite keys behind them. */
static const struct dimension {
    const char *name, *keys;
} dimensions[] = {
    {"policy", "merge.policy"},
    {"method", "method.name"},
    {"selector", "selector.kind"},
    {"setting", "data.shots|evaluation.label_space"},
    {"order", "data.order"},
    {"model", "model.weights|model.configuration|model.vocabulary|model.heads|model.activation"},
    {"suite", "*"},
    {"row", "*"}, /* of the suite: settings of any kind */
};

enum { DIMENSIONS = sizeof dimensions / sizeof *dimensions, COLUMNS = 4 }; /* before theirs in the SELECT */

static const struct dimension *find_dimension(const char *name)
{
    for (size_t i = 0; i < DIMENSIONS; i++)
        if (strcmp(dimensions[i].name, name) == 0)
            return &dimensions[i];
    return NULL;
}

const char *compare_by_keys(const char *name)
{
    const struct dimension *dimension = find_dimension(name);
    return dimension ? dimension->keys : name;
}

bool compare_is_incidental(const struct comparison_request *request, const char *key, const char *a, const char *b)
{
    return request->incidental && !contents_has_key(key) && (!a || request->incidental(key, a)) &&
           (!b || request->incidental(key, b));
}

/* Which template a dataset has decides its prompts. */
static bool decides_prompts(const char *key)
{
    const char *last = strrchr(key, '.');
    return last && strcmp(last, ".template") == 0;
}

/* Other test images are never compared. */
bool compare_is_by(const struct comparison_request *request, const char *key)
{
    if (strcmp(key, CONTENTS_TESTS) == 0)
        return false;
    for (size_t i = 0; i < request->by_count; i++) {
        const char *keys = compare_by_keys(request->by[i]);
        if (strcmp(keys, "*") == 0 || text_has_word(keys, key) ||
            (strcmp(key, CONTENTS_PROMPTS) == 0 && decides_prompts(keys)))
            return true;
    }
    return false;
}

/* A run has a hundred keys, too many for a message. */
static status unknown_key(const char *name, const struct setting_values *values, struct error *error)
{
    const char **names = calloc(DIMENSIONS + values->count, sizeof *names);
    if (!names)
        return error_set(error, ERROR_MEMORY, "compare: out of memory");
    for (size_t i = 0; i < DIMENSIONS; i++)
        names[i] = dimensions[i].name;
    for (size_t i = 0; i < values->count; i++)
        names[DIMENSIONS + i] = values->value[i].key;
    const char *nearest = nearest_word(name, names, DIMENSIONS + values->count);
    error_set(error, ERROR_ARGUMENT,
              "compare by: no run has a setting \"%.60s\"%s%s%s; expected policy, method, selector, setting, order, "
              "model, suite, row, or a key of the suite such as merge.every",
              name, nearest ? " (did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?)" : "");
    free(names);
    return ERROR_ARGUMENT;
}

/* Reads the compared values of the configuration whose first run the statement is at. */
static status read_by(struct compare *c, struct statement *statement, struct configuration *configuration,
                      struct error *error)
{
    const struct comparison_request *request = c->request;
    struct text name = {0};
    bool several = request->by_count > 1;
    configuration->by = calloc(request->by_count, sizeof *configuration->by);
    if (!configuration->by)
        return compare_no_memory(c, error);
    for (size_t i = 0; i < request->by_count; i++) {
        const struct dimension *dimension = find_dimension(request->by[i]);
        const char *value = dimension ? statement_text(statement, COLUMNS + (size_t)(dimension - dimensions))
                                      : setting_values_find(&configuration->values, request->by[i]);
        configuration->by[i] = strdup(value ? value : "not set");
        if (!configuration->by[i])
            name.failed = true;
        else
            text_add(&name, "%s%s%s%s", i ? ", " : "", several ? request->by[i] : "", several ? " = " : "",
                     configuration->by[i]);
    }
    configuration->name = name.data;
    return name.failed ? compare_no_memory(c, error) : OK;
}

static status begin_configuration(struct compare *c, struct statement *statement, struct error *error)
{
    struct configuration *configuration = &c->configuration[c->made++];
    *configuration = (struct configuration){.first = c->runs};
    c->configurations = c->made;
    int64_t run = statement_integer(statement, 0);
    TRY(setting_values_read(&configuration->values, c->store, run, error));
    TRY(contents_add(&c->contents, run, &configuration->values, error));
    return read_by(c, statement, configuration, error);
}

/* In the order of the index of (suite_hash, seed), so that a configuration's runs come together. */
static status read_runs(struct compare *c, struct error *error)
{
    struct statement *statement;
    TRY(open_filtered(c,
                      COMPARED
                      "SELECT run, seed, tasks, selection, policy, method, selector, setting, "
                      "task_order, model, suite, (SELECT value FROM settings WHERE settings.run = compared.run AND "
                      "key = 'run.row'), suite_hash FROM compared ORDER BY suite_hash, seed",
                      &statement, error));
    char hash[128] = "";
    status result;
    for (bool row; (result = statement_step(statement, &row, error)) == OK && row;) {
        const char *found = statement_text(statement, COLUMNS + DIMENSIONS);
        if (c->configurations == 0 || strncmp(hash, found, sizeof hash - 1) != 0) {
            snprintf(hash, sizeof hash, "%s", found);
            if ((result = begin_configuration(c, statement, error)) != OK)
                break;
        }
        if ((result = store_check_tasks(c->store, statement_integer(statement, 0), statement_integer(statement, 2),
                                        error)) != OK)
            break;
        const char *setting = statement_text(statement, COLUMNS + (size_t)(find_dimension("setting") - dimensions));
        const char *method = statement_text(statement, COLUMNS + (size_t)(find_dimension("method") - dimensions));
        c->configuration[c->configurations - 1].runs++;
        c->run[c->runs++] = (struct compared_run){.run = statement_integer(statement, 0),
                                                  .seed = statement_integer(statement, 1),
                                                  .tasks = (size_t)statement_integer(statement, 2),
                                                  .routed = strcmp(statement_text(statement, 3), "none") != 0,
                                                  .accumulates = strcmp(setting, "class_incremental") == 0,
                                                  .untrained = strcmp(method, "zero_shot") == 0};
    }
    statement_close(statement);
    return result;
}

/* A key that no configuration has is an error. */
static status check_by(const struct compare *c, struct error *error)
{
    for (size_t i = 0; i < c->request->by_count; i++) {
        bool known = find_dimension(c->request->by[i]) != NULL, decides = known;
        for (size_t k = 0; k < c->configurations && !decides; k++) {
            const char *value = setting_values_find(&c->configuration[k].values, c->request->by[i]);
            known |= value != NULL;
            decides = value != NULL && !compare_is_incidental(c->request, c->request->by[i], value, value);
        }
        if (!known)
            return unknown_key(c->request->by[i], &c->configuration[0].values, error);
        if (!decides)
            return error_set(error, ERROR_ARGUMENT,
                             "compare by %s: it says how a run is computed, not what; expected a setting that decides "
                             "the numbers",
                             c->request->by[i]);
    }
    return OK;
}

/* ---- Rows that belong to runs ---- */

struct place {
    int64_t run;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    int64_t left = ((const struct place *)a)->run, right = ((const struct place *)b)->run;
    return (left > right) - (left < right);
}

/* The places of the runs in c->run by number; the caller frees. */
static status order_runs(const struct compare *c, struct place **places, struct error *error)
{
    *places = malloc(c->runs * sizeof **places);
    if (!*places)
        return compare_no_memory(c, error);
    for (size_t i = 0; i < c->runs; i++)
        (*places)[i] = (struct place){c->run[i].run, i};
    qsort(*places, c->runs, sizeof **places, compare_places);
    return OK;
}

/* ---- Test sets ---- */

static status dataset_place(struct compare *c, const char *name, size_t *place, struct error *error)
{
    struct comparison *result = c->result;
    for (*place = 0; *place < result->dataset_count; ++*place)
        if (strcmp(result->dataset[*place], name) == 0)
            return OK;
    TRY(ARRAY_GROW(result->dataset, result->dataset_count, "datasets of a comparison", error));
    char *copy = strdup(name);
    if (!copy)
        return compare_no_memory(c, error);
    result->dataset[result->dataset_count++] = copy;
    return OK;
}

static status share_task_memory(struct compare *c, struct error *error)
{
    size_t total = 0;
    for (size_t i = 0; i < c->runs; i++)
        total += c->run[i].tasks;
    c->dataset = calloc(total + 1, sizeof *c->dataset);
    c->images = calloc(total + 1, sizeof *c->images);
    if (!c->dataset || !c->images)
        return compare_no_memory(c, error);
    total = 0;
    for (size_t i = 0; i < c->runs; i++) {
        c->run[i].dataset = c->dataset + total;
        c->run[i].images = c->images + total;
        total += c->run[i].tasks;
    }
    return OK;
}

static status read_tasks(struct compare *c, const struct place *places, struct error *error)
{
    struct statement *statement;
    TRY(open_filtered(c,
                      COMPARED "SELECT tasks.run, task, name, test_images FROM compared JOIN tasks ON tasks.run = "
                               "compared.run ORDER BY tasks.run",
                      &statement, error));
    status result;
    size_t at = 0;
    for (bool row; (result = statement_step(statement, &row, error)) == OK && row;) {
        while (at < c->runs && places[at].run < statement_integer(statement, 0))
            at++;
        size_t task = (size_t)statement_integer(statement, 1);
        if (at == c->runs || places[at].run != statement_integer(statement, 0) ||
            task >= c->run[places[at].index].tasks)
            continue;
        struct compared_run *run = &c->run[places[at].index];
        run->images[task] = statement_integer(statement, 3);
        if ((result = dataset_place(c, statement_text(statement, 2), &run->dataset[task], error)) != OK)
            break;
    }
    statement_close(statement);
    return result;
}

/* ---- Metrics ---- */

/* A matrix that is filled and emptied for one run after another. */
struct scan {
    struct compare *c;
    size_t capacity;  /* tasks */
    double *accuracy; /* [tasks + 1, tasks]; the first row is the zero-shot one */
    const struct metric **metric;
};

static status scan_begin(struct scan *scan, const struct compared_run *run, struct error *error)
{
    size_t cells = (run->tasks + 1) * run->tasks;
    if (run->tasks > scan->capacity) {
        double *larger = realloc(scan->accuracy, array_size(cells, sizeof *larger));
        if (!larger)
            return compare_no_memory(scan->c, error);
        scan->accuracy = larger;
        scan->capacity = run->tasks;
    }
    for (size_t i = 0; i < cells; i++)
        scan->accuracy[i] = NAN;
    return OK;
}

static void scan_end(struct scan *scan, struct compared_run *run)
{
    const struct compare *c = scan->c;
    struct accuracy_matrix matrix = {.tasks = run->tasks,
                                     .accuracy = scan->accuracy + run->tasks,
                                     .zero_shot = scan->accuracy,
                                     .images = run->accumulates ? run->images : NULL};
    for (size_t i = 1; run->untrained && !run->accumulates && i <= run->tasks; i++)
        memcpy(scan->accuracy + i * run->tasks, scan->accuracy, run->tasks * sizeof *scan->accuracy);
    run->complete = true;
    for (size_t i = 0; i < run->tasks * run->tasks; i++)
        run->complete &= !isnan(matrix.accuracy[i]) || !accuracy_expected(&matrix, i / run->tasks, i % run->tasks);
    if (!run->complete)
        return;
    for (size_t m = 0; m < c->request->metric_count; m++) {
        for (size_t task = 0; task < run->tasks; task++)
            run->value[compare_place(c, m, run->dataset[task])] = metric_of_task(scan->metric[m], &matrix, task);
        run->value[compare_place(c, m, c->result->dataset_count)] = metric_mean(scan->metric[m], &matrix);
    }
}

/* One pass over the evaluations in the order in which they lie in the file. */
static status scan_evaluations(struct scan *scan, const struct place *places, struct statement *statement,
                               struct error *error)
{
    struct compare *c = scan->c;
    struct compared_run *run = NULL;
    size_t at = 0;
    for (;;) {
        bool row;
        TRY(statement_step(statement, &row, error));
        int64_t number = row ? statement_integer(statement, 0) : 0;
        if (run && (!row || number != run->run)) {
            scan_end(scan, run);
            run = NULL;
        }
        if (!row)
            return OK;
        if (!run) {
            while (at < c->runs && places[at].run < number)
                at++;
            if (at == c->runs || places[at].run != number)
                continue;
            run = &c->run[places[at].index];
            TRY(scan_begin(scan, run, error));
        }
        size_t task = (size_t)statement_integer(statement, 1), row_of = (size_t)statement_integer(statement, 2) + 1;
        if (task < run->tasks && row_of <= run->tasks)
            scan->accuracy[row_of * run->tasks + task] =
                100.0 * (double)statement_integer(statement, 3) / (double)statement_integer(statement, 4);
    }
}

static status read_values(struct compare *c, const struct place *places, struct error *error)
{
    size_t width = compare_place(c, c->request->metric_count, 0);
    struct scan scan = {.c = c, .metric = calloc(c->request->metric_count, sizeof *scan.metric)};
    c->values = malloc(array_size(c->runs * width, sizeof *c->values));
    struct statement *statement = NULL;
    status result = c->values && scan.metric ? OK : compare_no_memory(c, error);
    if (result == OK)
        result = open_filtered(c,
                               COMPARED "SELECT evaluations.run, task, after_task, correct, images FROM compared JOIN "
                                        "evaluations ON evaluations.run = compared.run ORDER BY evaluations.run",
                               &statement, error);
    if (result == OK) {
        for (size_t i = 0; i < c->runs * width; i++)
            c->values[i] = NAN;
        for (size_t i = 0; i < c->runs; i++)
            c->run[i].value = c->values + i * width;
        for (size_t m = 0; m < c->request->metric_count; m++)
            scan.metric[m] = metric_find(c->request->metrics[m]);
        result = scan_evaluations(&scan, places, statement, error);
    }
    statement_close(statement);
    free(scan.metric);
    free(scan.accuracy);
    return result;
}

/* ---- All of it ---- */

static status count_runs(struct compare *c, size_t *runs, size_t *left_out, struct error *error)
{
    struct statement *statement;
    TRY(open_filtered(c, COMPARED "SELECT (SELECT count(*) FROM compared), (SELECT count(*) FROM chosen)", &statement,
                      error));
    bool row;
    status result = statement_step(statement, &row, error);
    if (result == OK) {
        *runs = (size_t)statement_integer(statement, 0);
        *left_out = (size_t)statement_integer(statement, 1) - *runs;
    }
    statement_close(statement);
    return result;
}

/* Runs of one configuration that were tested on other images (older programs did not look at them), and those whose matrix
 * has holes, are left out. */
static status drop_runs(struct compare *c, struct error *error)
{
    for (size_t k = 0; k < c->configurations; k++) {
        struct configuration *configuration = &c->configuration[k];
        struct compared_run *runs = c->run + configuration->first;
        size_t kept = 0;
        for (size_t i = 0; i < configuration->runs; i++) {
            bool same = runs[i].tasks == runs[0].tasks &&
                        memcmp(runs[i].images, runs[0].images, runs[i].tasks * sizeof *runs[i].images) == 0;
            if (!runs[i].complete)
                TRY(compare_add_note(c, error, "run %" PRId64 " is left out: its accuracy matrix has holes",
                                     runs[i].run));
            else if (!same && kept > 0)
                TRY(compare_add_note(c, error,
                                     "run %" PRId64 " is left out: it was tested on other images than run %" PRId64
                                     " of the same settings",
                                     runs[i].run, runs[0].run));
            else
                runs[kept++] = runs[i];
        }
        configuration->runs = kept;
    }
    return OK;
}

/* Notes differences that are no settings but may change the last digits. */
static status note_mixed(struct compare *c, const char *column, const char *what, struct error *error)
{
    char sql[4096];
    snprintf(sql, sizeof sql, COMPARED "SELECT count(DISTINCT %s) > 1, group_concat(DISTINCT %s) FROM compared", column,
             column);
    struct statement *statement;
    TRY(open_filtered(c, sql, &statement, error));
    bool row;
    status result = statement_step(statement, &row, error);
    if (result == OK && row && statement_integer(statement, 0))
        result = compare_add_note(c, error, "runs of several %s stand side by side: %.200s", what,
                                  statement_text(statement, 1));
    statement_close(statement);
    return result;
}

static status read_rows(struct compare *c, struct error *error)
{
    struct place *places;
    TRY(share_task_memory(c, error));
    TRY(order_runs(c, &places, error));
    status result = read_tasks(c, places, error);
    if (result == OK)
        result = read_values(c, places, error);
    free(places);
    return result;
}

status compare_read(struct compare *c, struct error *error)
{
    size_t runs, left_out;
    TRY(query_choose(c->store, &c->request->filter, error));
    TRY(count_runs(c, &runs, &left_out, error));
    if (runs == 0 && left_out == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: no run to compare: none fits; the query `runs` lists those there are",
                         store_path(c->store));
    if (runs == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run to compare: %zu fit%s, but none is finished",
                         store_path(c->store), left_out, left_out == 1 ? "s" : "");
    if (left_out)
        TRY(compare_add_note(c, error, "%zu run%s that did not finish %s left out", left_out, left_out == 1 ? "" : "s",
                             left_out == 1 ? "is" : "are"));
    c->run = calloc(runs, sizeof *c->run);
    c->configuration = calloc(runs, sizeof *c->configuration);
    if (!c->run || !c->configuration)
        return compare_no_memory(c, error);
    TRY(read_runs(c, error));
    TRY(check_by(c, error));
    TRY(read_rows(c, error));
    TRY(note_mixed(c, "backend", "backends", error));
    TRY(note_mixed(c, "\"precision\"", "precisions", error));
    TRY(note_mixed(c, "program_version", "versions of the program", error));
    return drop_runs(c, error);
}
