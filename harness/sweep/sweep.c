#include "harness/sweep/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/suite.h"
#include "harness/run/identity/inputs.h"
#include "results/store/live.h"

enum { RUNS_MOST = 100000 };

/* --- Configurations --- */

const char *sweep_value(const struct sweep *sweep, size_t axis, size_t configuration)
{
    const struct sweep_configuration *c = &sweep->configurations[configuration];
    return c->unread >> axis & 1 ? NULL : grid_value(&sweep->grid, axis, c->combination);
}

/* The axes with several values, as written; "": none. */
static void make_label(struct sweep *sweep, size_t configuration)
{
    struct text text = {0};
    text_add(&text, "%s", "");
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const char *value = sweep_value(sweep, i, configuration);
        if (value != NULL && sweep->grid.axes[i].values.count > 1)
            text_add(&text, "%s%s=%s", text.size > 0 ? " " : "", sweep->grid.axes[i].name, value);
    }
    free(sweep->configurations[configuration].label);
    sweep->configurations[configuration].label = text.data;
}

status sweep_suite(const struct sweep *sweep, size_t configuration, struct suite **suite, struct error *error)
{
    SCOPED(strings_free) struct strings overrides = {0};
    grid_overrides(&sweep->grid, sweep->configurations[configuration].combination, &overrides);
    status result = suite_load(suite, sweep->suite, settings_sections, (const char *const *)overrides.items,
                               overrides.count, error);
    const char *label = sweep->configurations[configuration].label;
    if (result != OK && label != NULL && *label != 0)
        error_context(error, "%s", label);
    return result;
}

/* One log per run, named by its number and the readable part of its label. */
static char *log_path(const struct sweep *sweep, size_t number, const char *label)
{
    enum { LONGEST = 120 };
    char name[LONGEST + 1];
    snprintf(name, sizeof name, "%s", label);
    for (char *p = name; *p != 0; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=._+-", *p) == NULL)
            *p = *p == ' ' ? ',' : '_';
    return path_format("%s/logs/%04zu-%s.log", sweep->folder, number, name);
}

static status add_run(struct sweep *sweep, size_t configuration, uint64_t seed, struct error *error)
{
    const struct sweep_configuration *c = &sweep->configurations[configuration];
    if (sweep->run_count == RUNS_MOST)
        return error_set(error, ERROR_ARGUMENT, "a sweep has at most %d runs, found more", RUNS_MOST);
    GROW(sweep->runs, sweep->run_count);
    struct sweep_run *run = &sweep->runs[sweep->run_count++];
    *run = (struct sweep_run){
        .configuration = configuration,
        .seed = seed,
        .label = path_format("%s%sseed=%llu", c->label, *c->label != 0 ? " " : "", (unsigned long long)seed)};
    return OK;
}

/* The GPUs that a run may use, and the memory of the smallest. */
static void count_gpus(struct sweep *sweep, const struct settings *settings)
{
    struct gpus gpus;
    struct error none;
    if (strcmp(settings->backend.name, "cpu") == 0 || backend_gpus(&gpus, &none) != OK)
        return;
    sweep->gpus = gpus.count;
    for (size_t i = 0; i < gpus.count; i++)
        if (i == 0 || (double)gpus.list[i].memory < sweep->gpu_memory)
            sweep->gpu_memory = (double)gpus.list[i].memory;
}

/* Of settings and paths; identifies a configuration until its inputs are read. */
static void identify_words(struct sweep_configuration *c, const struct suite *suite)
{
    char key[DIGEST_SIZE];
    inputs_key(suite, key);
    OWNED char *words = path_format("%s %s", suite_settings_hash(suite), key);
    digest_text(words, c->asked);
    memcpy(c->hash, c->asked, sizeof c->hash);
}

static status add_runs(struct sweep *sweep, size_t configuration, const struct suite *suite, struct error *error)
{
    struct sweep_configuration *c = &sweep->configurations[configuration];
    struct settings settings;
    TRY(settings_read(&settings, suite, error));
    c->first = sweep->run_count;
    c->runs = settings_seeds(suite);
    c->threads = settings.threads;
    c->gpus = settings.gpus;
    c->shares = !options_given(suite_options(suite, "run"), "cache");
    c->moves = !options_given(suite_options(suite, "run"), "device");
    identify_words(c, suite);
    for (size_t i = 0; i < c->runs; i++)
        TRY(add_run(sweep, configuration, settings_seed(suite, i), error));
    if (sweep->database == NULL) {
        count_gpus(sweep, &settings);
        sweep->database = xstrdup(settings.database);
        sweep->run_folder = xstrdup(settings.folder);
    }
    return OK;
}

/* --- Keys that are not read --- */

/* Whether the value of an axis in a combination is its first one. */
static bool is_first(const struct sweep *sweep, size_t axis, size_t combination)
{
    return strcmp(grid_value(&sweep->grid, axis, combination), sweep->grid.axes[axis].values.items[0]) == 0;
}

/* Of combinations that differ in what they do not read, the first one is a configuration. */
static bool find_unread(struct sweep *sweep, struct sweep_configuration *c, const struct suite *suite)
{
    bool repeats = false;
    for (size_t i = 0; i < sweep->grid.count; i++)
        if (!sweep->grid.axes[i].seeds && !suite_reads(suite, sweep->grid.axes[i].key, NULL)) {
            c->unread |= UINT64_C(1) << i;
            repeats |= !is_first(sweep, i, c->combination);
        }
    return repeats;
}

/* "policy=none": the first configuration that does not read an axis, and how many more there are. */
static void add_unread(const struct sweep *sweep, size_t axis, struct text *text)
{
    size_t more = 0;
    const char *first = "";
    for (size_t k = 0; k < sweep->configuration_count; k++)
        if (sweep_value(sweep, axis, k) == NULL && *first == 0)
            first = sweep->configurations[k].label;
        else
            more += sweep_value(sweep, axis, k) == NULL;
    text_add(text, "%s is not read with %s", sweep->grid.axes[axis].key, first);
    if (more > 0)
        text_add(text, " and %zu more", more);
}

/* Says what was left out; an axis that nothing reads is a mistake. */
static status note_unread(struct sweep *sweep, size_t repeated, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    for (size_t i = 0; i < sweep->grid.count; i++) {
        const struct grid_axis *axis = &sweep->grid.axes[i];
        size_t reading = 0;
        for (size_t k = 0; k < sweep->configuration_count; k++)
            reading += sweep_value(sweep, i, k) != NULL;
        if (axis->seeds || axis->values.count == 1 || reading == sweep->configuration_count)
            continue;
        if (reading == 0)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: %s: no configuration reads it; expected axes that change what is computed",
                             axis->key);
        text_add(&text, "%s", text.size > 0 ? "; " : "");
        add_unread(sweep, i, &text);
    }
    if (repeated > 0)
        text_add(&text, ": %zu runs instead of %zu", sweep->run_count, sweep->run_count + repeated);
    sweep->left_out = TAKE(text.data);
    return OK;
}

/* Of one combination; *repeats: it is none, and has so many runs. */
static status read_configuration(struct sweep *sweep, size_t combination, size_t *repeats, struct error *error)
{
    size_t index = sweep->configuration_count++;
    struct sweep_configuration *c = &sweep->configurations[index];
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    *c = (struct sweep_configuration){.combination = combination, .cost.core_seconds = NAN};
    make_label(sweep, index);
    TRY(sweep_suite(sweep, index, &suite, error));
    bool again = find_unread(sweep, c, suite);
    *repeats = again ? settings_seeds(suite) : 0;
    status result = OK;
    for (size_t i = 0; i < sweep->grid.count; i++)
        NEXT(result, suite_key_check(suite, sweep->grid.axes[i].name, sweep->grid.axes[i].key, error));
    if (result == OK && !again) {
        make_label(sweep, index);
        result = add_runs(sweep, index, suite, error);
    }
    if (result != OK)
        return c->label == NULL || *c->label == 0 ? result : error_context(error, "%s", c->label);
    if (again) {
        free(c->label);
        sweep->configuration_count--;
    }
    return OK;
}

static status read_configurations(struct sweep *sweep, struct error *error)
{
    size_t repeated = 0, repeats;
    sweep->configurations = xcalloc(sweep->grid.combinations, sizeof *sweep->configurations);
    for (size_t i = 0; i < sweep->grid.combinations; i++) {
        TRY(read_configuration(sweep, i, &repeats, error));
        repeated += repeats;
    }
    return note_unread(sweep, repeated, error);
}

/* --- Inputs --- */

/* Inputs that some configurations have in common. */
struct common_inputs {
    char key[DIGEST_SIZE];
    struct inputs inputs;
};

struct identification {
    struct sweep *sweep;
    const struct sweep_request *request;
    struct common_inputs *known;
    size_t count;
};

/* Inputs that cannot be read count as none: their digest matches no run. */
static status read_inputs(struct identification *id, const struct suite *suite, const char *key, struct error *error)
{
    struct settings settings;
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    GROW(id->known, id->count);
    struct common_inputs *common = &id->known[id->count++];
    *common = (struct common_inputs){0};
    memcpy(common->key, key, sizeof common->key);
    TRY(settings_read(&settings, suite, error));
    TRY(surveyor_open(&surveyor, &settings, NULL, id->request->progress, id->request->stop, error));
    status result = inputs_read(&common->inputs, &surveyor, suite, NULL, error);
    if (result == OK || result == ERROR_STOPPED || result == ERROR_MEMORY)
        return result;
    inputs_free(&common->inputs);
    return OK;
}

static void free_identification(struct identification *id)
{
    for (size_t i = 0; i < id->count; i++)
        inputs_free(&id->known[i].inputs);
    free(id->known);
}

static status identify(struct identification *id, size_t configuration, struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    char key[DIGEST_SIZE];
    size_t i = 0;
    TRY(sweep_suite(id->sweep, configuration, &suite, error));
    inputs_key(suite, key);
    while (i < id->count && strcmp(id->known[i].key, key) != 0)
        i++;
    if (i == id->count)
        TRY(read_inputs(id, suite, key, error));
    if (id->known[i].inputs.count > 0)
        inputs_identify(&id->known[i].inputs, suite_settings_hash(suite),
                        id->sweep->configurations[configuration].hash);
    return OK;
}

/* After all suites were read, so that mistakes are reported before any file is read. */
static status identify_all(struct sweep *sweep, const struct sweep_request *request, struct error *error)
{
    SCOPED(free_identification) struct identification id = {.sweep = sweep, .request = request};
    for (size_t i = 0; i < sweep->configuration_count; i++)
        TRY(identify(&id, i, error));
    return OK;
}

/* --- Equal configurations --- */

/* The results do not distinguish two configurations with the same hash. */
static status check_distinct(const struct sweep *sweep, struct error *error)
{
    const struct sweep_configuration *all = sweep->configurations;
    for (size_t i = 1; i < sweep->configuration_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(all[k].hash, all[i].hash) == 0)
                return error_set(error, ERROR_ARGUMENT,
                                 "command line: \"%s\" and \"%s\" compute the same; expected axes that change what "
                                 "is computed, each value once",
                                 all[k].label, all[i].label);
    return OK;
}

/* --- The sweep --- */

static void name_folder(struct sweep *sweep)
{
    struct digest digest = digest_begin();
    char hash[DIGEST_SIZE], identity[DIGEST_SIZE + 32];
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct sweep_run *run = &sweep->runs[i];
        int length = snprintf(identity, sizeof identity, "%s %llu\n", sweep->configurations[run->configuration].asked,
                              (unsigned long long)run->seed);
        digest_add(&digest, identity, (size_t)length);
    }
    digest_end(&digest, hash);
    const char *slash = strrchr(sweep->suite, '/'), *name = slash != NULL ? slash + 1 : sweep->suite;
    sweep->folder = path_format("%s/sweep-%.*s-%.12s", sweep->run_folder, (int)strcspn(name, "."), name, hash);
    for (size_t i = 0; i < sweep->run_count; i++)
        sweep->runs[i].log = log_path(sweep, i, sweep->runs[i].label);
}

status sweep_open(struct sweep **result, const struct sweep_request *request, struct error *error)
{
    SCOPED(sweep_close_at) struct sweep *sweep = xcalloc(1, sizeof *sweep);
    SCOPED(suite_rows_free) struct suite_rows rows = {0};
    sweep->suite = xstrdup(request->suite);
    sweep->allows_commands = request->allows_commands;
    TRY(grid_parse(&sweep->grid, request->words, request->count, request->values, settings_sections, error));
    TRY(suite_load_rows(&rows, sweep->suite, settings_sections, error));
    TRY(grid_add_rows(&sweep->grid, &rows, error));
    TRY(read_configurations(sweep, error));
    TRY(check_distinct(sweep, error)); /* before files are read */
    TRY(identify_all(sweep, request, error));
    TRY(check_distinct(sweep, error));
    name_folder(sweep);
    *result = TAKE(sweep);
    return OK;
}

void sweep_close(struct sweep *sweep)
{
    if (sweep == NULL)
        return;
    for (size_t i = 0; i < sweep->run_count; i++) {
        free(sweep->runs[i].label);
        free(sweep->runs[i].log);
        free(sweep->runs[i].failure);
    }
    for (size_t i = 0; i < sweep->configuration_count; i++)
        free(sweep->configurations[i].label);
    free(sweep->runs);
    free(sweep->configurations);
    free(sweep->left_out);
    grid_free(&sweep->grid);
    free(sweep->database);
    free(sweep->run_folder);
    free(sweep->folder);
    free(sweep->suite);
    free(sweep);
}

/* The lock first: a run that finishes and is unlocked in between would look abandoned. */
status sweep_look_at(struct sweep *sweep, size_t index, struct store *store, struct error *error)
{
    struct sweep_run *run = &sweep->runs[index];
    const char *hash = sweep->configurations[run->configuration].hash;
    enum run_status past = RUN_RUNNING;
    int64_t row;
    TRY(store_run_find(store, hash, (int64_t)run->seed, &row, &past, error));
    bool has_process = row != 0 && live_has_process(store, row);
    if (row != 0)
        TRY(store_run_find(store, hash, (int64_t)run->seed, &row, &past, error));
    run->row = row;
    run->standing = row == 0               ? SWEEP_MISSING
                    : past == RUN_FINISHED ? SWEEP_FINISHED
                    : has_process          ? SWEEP_ELSEWHERE
                                           : SWEEP_UNFINISHED;
    return OK;
}

status sweep_look(struct sweep *sweep, struct store *store, struct error *error)
{
    for (size_t i = 0; i < sweep->run_count; i++) {
        sweep->runs[i].row = 0;
        sweep->runs[i].standing = SWEEP_MISSING;
        if (store != NULL)
            TRY(sweep_look_at(sweep, i, store, error));
    }
    return OK;
}

size_t sweep_count(const struct sweep *sweep, enum sweep_standing standing)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        count += sweep->runs[i].standing == standing;
    return count;
}

bool sweep_wants(const struct sweep_run *run)
{
    return run->standing == SWEEP_MISSING || run->standing == SWEEP_UNFINISHED;
}

size_t sweep_work(const struct sweep *sweep)
{
    return sweep_count(sweep, SWEEP_MISSING) + sweep_count(sweep, SWEEP_UNFINISHED);
}

status sweep_make_folder(const struct sweep *sweep, const char *name, struct error *error)
{
    OWNED char *path = path_format("%s/%s", sweep->folder, name);
    return directory_create(path, error);
}

void sweep_arguments(const struct sweep *sweep, size_t run, struct strings *arguments)
{
    SCOPED(strings_free) struct strings overrides = {0};
    grid_overrides(&sweep->grid, sweep->configurations[sweep->runs[run].configuration].combination, &overrides);
    strings_copy(arguments, (const char *const[]){"run", sweep->suite}, 2);
    for (size_t i = 0; i < sweep->grid.count; i++)
        if (!sweep->grid.axes[i].seeds)
            strings_format(arguments, "%s", overrides.items[i]);
    strings_format(arguments, "run.seeds=%llu", (unsigned long long)sweep->runs[run].seed);
    if (sweep->allows_commands)
        strings_format(arguments, "--allow-commands");
}
