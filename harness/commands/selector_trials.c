#include "harness/commands/selector_trials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/inputs/suite_words.h"
#include "harness/commands/output.h"
#include "harness/evaluate/label_space.h"
#include "harness/evaluate/trials.h"
#include "harness/run/identity/inputs.h"
#include "harness/run/run.h"
#include "harness/selectors/selector.h"
#include "harness/terminal/progress.h"
#include "results/query.h"

static const char own_section[] = "selector.";

struct command_trials {
    const struct command_call *call;
    struct strings selector_words, other_words; /* the command line's words key=value, of the section selector or not */
    struct store *store;
    int64_t id; /* of the run in the store */
    struct trial_source source;
    struct suite *suite; /* the run's */
    struct run *run;
};

static void read_words(struct command_trials *c)
{
    SCOPED(strings_free) struct strings words = {0};
    suite_words_add(&words, c->call);
    for (size_t i = 1; i < words.count; i++) { /* the first one is the run */
        const char *word = words.items[i];
        bool selectors = strncmp(word, own_section, sizeof own_section - 1) == 0;
        strings_copy(selectors ? &c->selector_words : &c->other_words, &word, 1);
    }
}

/* The run's suite; the words may say where things are, not what is computed. */
static status read_suite(struct command_trials *c, struct error *error)
{
    const struct run_row *run = &c->source.run;
    return suite_parse_stored(&c->suite, run->suite_text, run->suite, settings_sections,
                              (const char *const *)c->other_words.items, c->other_words.count, error);
}

static status check_run(const struct command_trials *c, struct error *error)
{
    const struct settings *s = &c->run->model.settings;
    if (!settings_select(s))
        return error_set(error, ERROR_ARGUMENT,
                         "run %" PRId64 ": expected one in which a selector chooses among routers, found method %s "
                         "and selector %s",
                         c->id, options_text(s->method_options, "name"), s->selector.kind->name);
    return !label_space_grows(s->label_space)
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "run %" PRId64
                           ": its label space grows with the tasks, so that the answers after the last one "
                           "are no others' answers before it",
                           c->id);
}

/* Weights and images must be those of the run. */
static status check_inputs(const struct command_trials *c, struct error *error)
{
    const struct command_call *call = c->call;
    struct run *run = c->run;
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    SCOPED(inputs_free) struct inputs inputs = {0};
    TRY(surveyor_open(&surveyor, &run->model.settings, call->log, call->progress, call->stop, error));
    TRY(surveyor_tasks(run, &surveyor, error));
    TRY(inputs_read(&inputs, &surveyor, c->suite, run, error));
    if (strcmp(inputs.hash, c->source.run.suite_hash) != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "run %" PRId64 ": its weights, vocabulary or images are not those that it was computed from; "
                         "`mtil query inputs` shows them",
                         c->id);
    return OK;
}

/* --- A selector --- */

static status digest_folder(const struct command_trials *c, const char *path, char digest[DIGEST_SIZE],
                            struct error *error)
{
    const struct command_call *call = c->call;
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    struct survey survey;
    TRY(dataset_of_images(&dataset, path, error));
    TRY(surveyor_open(&surveyor, &c->run->model.settings, call->log, call->progress, call->stop, error));
    TRY(surveyor_look(&surveyor, &survey, dataset, &(struct surveyor_subject){.name = "unrelated"}, error));
    memcpy(digest, survey.splits[SPLIT_TRAIN].digest, DIGEST_SIZE);
    return OK;
}

/* Its settings as lines; files and folders stand for their contents, if the kind reads them at all. */
static status write_keys(const struct command_trials *c, const struct options *options, bool pixels, struct text *keys,
                         struct error *error)
{
    for (const struct option *option = options_table(options); option->name != NULL; option++) {
        const char *value = options_as_text(options, option->name);
        char digest[DIGEST_SIZE];
        if (option->type == OPTION_FILE && !pixels)
            value = "";
        if (option_is_path(option) && *value != 0) {
            status result = option->type == OPTION_FILE ? digest_file(value, digest, error)
                                                        : digest_folder(c, value, digest, error);
            if (result != OK)
                return result == ERROR_STOPPED ? result : error_context(error, "%s%s", own_section, option->name);
            value = digest;
        }
        text_add(keys, "%s: %s\n", option->name, value);
    }
    return OK;
}

static status try_settings(struct command_trials *c, const struct suite *suite, struct error *error)
{
    const struct options *options = suite_options(suite, "selector");
    struct selector_settings settings = selector_settings_of(options);
    struct trials trials = {.model = &c->run->model,
                            .data = &c->run->data,
                            .store = c->store,
                            .run = c->id,
                            .source = &c->source,
                            .progress = c->call->progress,
                            .stop = c->call->stop};
    SCOPED(text_free) struct text keys = {0};
    TRY(selector_settings_check(&settings, error));
    TRY(selector_settings_look(&settings, error));
    if (settings.kind->route == ROUTE_ONE)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: --selector none: expected one that chooses; run %" PRId64 " has a router per "
                         "task",
                         c->id);
    TRY(write_keys(c, options, settings.kind->features == FEATURES_PIXELS, &keys, error));
    TRY(trials_run(&trials, &settings, keys.data, error));
    progress_end(c->call->progress);
    return OK;
}

/* The defaults, and the command line's words: what the run's own selector was told is another's. */
static status try_name(struct command_trials *c, const char *name, struct error *error)
{
    static const char empty[] = "selector: {kind: clip}\n";
    SCOPED(strings_free) struct strings words = {0};
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    strings_copy(&words, (const char *const *)c->selector_words.items, c->selector_words.count);
    strings_format(&words, "%skind=%s", own_section, name);
    TRY(suite_parse(&suite, empty, sizeof empty - 1, "command line", settings_sections,
                    (const char *const *)words.items, words.count, error));
    return try_settings(c, suite, error);
}

static status try_all(struct command_trials *c, const char *names, struct error *error)
{
    static const char kind[] = "selector.kind=";
    for (size_t i = c->selector_words.count; i-- > 0;)
        if (strncmp(c->selector_words.items[i], kind, sizeof kind - 1) == 0)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: eval: %s: --selector names the kind, here %s; leave out selector.kind",
                             c->selector_words.items[i], names);
    OWNED char *copy = xstrdup(names);
    char *rest = copy;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        TRY(try_name(c, name, error));
    return OK;
}

/* --- All of it --- */

static status show(const struct command_trials *c, struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    struct query_filter filter = {.run = c->id};
    TRY(query_named(c->store, "selector", &filter, &table, error));
    output_table(c->call, &table);
    return OK;
}

static status work(struct command_trials *c, const char *names, struct error *error)
{
    const struct command_call *call = c->call;
    struct cache_progress decoding = {call->progress, call->stop};
    TRY(store_open(&c->store, call->arguments[0], STORE_WRITE, error));
    TRY(trial_source_read(c->store, c->id, &c->source, error));
    TRY(read_suite(c, error));
    TRY(run_open_frozen(&c->run, c->suite, (uint64_t)c->source.run.seed, call->log, error));
    TRY(check_run(c, error));
    c->run->model.stop = call->stop;
    cache_progress_begin(c->run->data.cache, &decoding);
    status result = check_inputs(c, error);
    NEXT(result, try_all(c, names, error));
    cache_progress_end(c->run->data.cache);
    return result == OK ? show(c, error) : result;
}

status selector_trials(const struct command_call *call, const char *names, struct error *error)
{
    struct command_trials c = {.call = call};
    if (call->argument_count < 2 || !parse_integer(call->arguments[1], &c.id) || c.id <= 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: eval --selector: expected DATABASE RUN (mtil query runs has the numbers), "
                         "found %s",
                         call->argument_count > 1 ? call->arguments[1] : "no run");
    read_words(&c);
    status result = work(&c, names, error);
    run_close(c.run);
    suite_destroy(c.suite);
    trial_source_free(&c.source);
    store_close(c.store);
    strings_free(&c.selector_words);
    strings_free(&c.other_words);
    return result;
}
