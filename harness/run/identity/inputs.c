#include "harness/run/identity/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/model/image_tower.h"
#include "harness/model/tasks.h"
#include "harness/model/weights.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"
#include "models/files/weights_file.h"

struct reading {
    struct inputs *inputs;
    struct surveyor *surveyor;
    const struct suite *suite;
    const struct run *run; /* NULL: datasets are opened */
    const struct settings *settings;
};

/* --- Rows --- */

/* path becomes the row's. */
static void add_row(struct inputs *inputs, const struct input_row *row, char *path)
{
    char *digest = xstrdup(row->digest);
    GROW(inputs->rows, inputs->count);
    inputs->rows[inputs->count] = *row;
    inputs->rows[inputs->count].path = path;
    inputs->rows[inputs->count++].digest = digest;
}

void inputs_free(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free((char *)inputs->rows[i].path);
        free((char *)inputs->rows[i].digest);
    }
    free(inputs->rows);
    *inputs = (struct inputs){0};
}

/* --- Files --- */

/* The run must have read the digested contents. read: from before it did; NULL: it has not read them. */
static status check_read(const struct witness *read, bool folder, const char *path, struct error *error)
{
    struct witness now;
    if (read == NULL)
        return OK;
    TRY((folder ? witness_of_folder : witness_of_file)(&now, path, error));
    return witness_same(&now, read)
               ? OK
               : error_set(error, ERROR_FORMAT, "%s changed while the run started; start again", path);
}

static status add_file(const struct reading *r, const char *kind, const char *path, struct error *error)
{
    struct file_digest digest;
    TRY(surveyor_read(r->surveyor, &digest, path, error));
    struct input_row row = {
        .task = -1, .kind = kind, .files = 1, .bytes = (int64_t)digest.bytes, .digest = digest.hash};
    add_row(r->inputs, &row, path_absolute(path));
    return OK;
}

/* The digest of a sharded file covers the index and each shard. */
static status digest_shards(const struct reading *r, const struct weights_shards *shards, const char *path,
                            struct input_row *row, char hash[DIGEST_SIZE], struct error *error)
{
    struct digest sum = digest_begin();
    for (size_t i = 0; i <= shards->count; i++) {
        struct file_digest digest;
        TRY(surveyor_read(r->surveyor, &digest, i == 0 ? path : shards->paths[i - 1], error));
        digest_add(&sum, digest.hash, sizeof digest.hash);
        row->bytes += (int64_t)digest.bytes;
        row->files++;
    }
    digest_end(&sum, hash);
    return OK;
}

static status add_shards(const struct reading *r, const char *path, struct error *error)
{
    SCOPED(weights_shards_free) struct weights_shards shards = {0};
    struct input_row row = {.task = -1, .kind = "weights"};
    char hash[DIGEST_SIZE];
    TRY(weights_shards_read(&shards, path, error));
    TRY(digest_shards(r, &shards, path, &row, hash, error));
    row.digest = hash;
    add_row(r->inputs, &row, path_absolute(path));
    return OK;
}

static status image_configuration(struct clip_config *config, const struct settings *s, const char *weights,
                                  struct error *error)
{
    struct vit_file file = {0};
    bool is_vit = false;
    if (!s->head->of_texts)
        TRY(image_tower_look(&file, &is_vit, s, error));
    if (!is_vit)
        return clip_config_of(config, weights, &s->stated, error);
    *config = (struct clip_config){
        .image_heads = file.settings.heads, .activation = file.settings.activation, .pixels = file.settings.pixels};
    return OK;
}

/* The settings that the weights file does not contain, from a configuration beside it or from the suite. */
static status add_configuration(const struct reading *r, const char *weights, struct error *error)
{
    const struct run *run = r->run;
    struct clip_config config;
    char words[96], hash[DIGEST_SIZE];
    if (run != NULL && r->settings->head->of_texts)
        config = clip_config_used(run->model.clip);
    else
        TRY(image_configuration(&config, r->settings, weights, error));
    int length = snprintf(words, sizeof words, "%zu %zu %s %s", config.image_heads, config.text_heads,
                          clip_activation_name(config.activation), pixel_norms[config.pixels].name);
    if (config.resolution > 0)
        snprintf(words + length, sizeof words - (size_t)length, " %zu", config.resolution);
    digest_text(words, hash);
    struct input_row row = {.task = -1, .kind = "configuration", .digest = hash};
    add_row(r->inputs, &row, path_absolute(weights));
    return OK;
}

/* A run without a model has not read its files. */
static status check_model(const struct reading *r, const char *kind, const char *path, const struct witness *read,
                          struct error *error)
{
    if (r->settings->without_model || check_read(read, false, path, error) == OK)
        return OK;
    return error_context(error, "model.%s", kind);
}

static status add_weights(const struct reading *r, struct error *error)
{
    OWNED char *weights = weights_path(r->settings->weights);
    status result =
        weights_shards_is_index(weights) ? add_shards(r, weights, error) : add_file(r, "weights", weights, error);
    NEXT(result, check_model(r, "weights", weights, r->run != NULL ? &r->run->model.weights_read : NULL, error));
    if (!r->settings->without_model)
        NEXT(result, add_configuration(r, weights, error));
    return result;
}

static status add_vocabulary(const struct reading *r, struct error *error)
{
    OWNED char *vocabulary = vocabulary_path(r->settings->vocabulary);
    TRY(add_file(r, "vocabulary", vocabulary, error));
    return check_model(r, "vocabulary", vocabulary, r->run != NULL ? &r->run->model.vocabulary_read : NULL, error);
}

/* --- Files and folders that the options of method and selector name --- */

static status add_folder(const struct reading *r, const char *kind, const char *path, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct survey survey;
    TRY(dataset_of_images(&dataset, path, error));
    TRY(surveyor_look(r->surveyor, &survey, dataset, &(struct surveyor_subject){.name = kind}, error));
    const struct survey_split *found = &survey.splits[SPLIT_TRAIN];
    struct input_row row = {.task = -1,
                            .kind = kind,
                            .files = (int64_t)found->files,
                            .bytes = (int64_t)found->bytes,
                            .digest = found->digest};
    add_row(r->inputs, &row, path_absolute(path));
    return OK;
}

/* One digest of all files, in their order. */
static status add_files(const struct reading *r, const struct options *options, const char *name, struct error *error)
{
    struct digest sum = digest_begin();
    struct input_row row = {.task = -1, .kind = name};
    char hash[DIGEST_SIZE];
    for (size_t i = 0; i < options_list_size(options, name); i++) {
        struct file_digest digest;
        TRY(surveyor_read(r->surveyor, &digest, options_list_item(options, name, i), error));
        digest_add(&sum, digest.hash, sizeof digest.hash);
        row.bytes += (int64_t)digest.bytes;
        row.files++;
    }
    digest_end(&sum, hash);
    row.digest = hash;
    if (row.files > 0)
        add_row(r->inputs, &row, path_absolute(options_list_item(options, name, 0)));
    return OK;
}

static status add_paths(const struct reading *r, const char *section, struct error *error)
{
    const struct options *options = suite_options(r->suite, section);
    for (const struct option *option = options_table(options); option->name != NULL; option++) {
        const char *path = option_is_path(option) ? options_text(options, option->name) : NULL;
        if (path == NULL)
            continue;
        status result = option->type == OPTION_FILES  ? add_files(r, options, option->name, error)
                        : option->type == OPTION_FILE ? add_file(r, option->name, path, error)
                                                      : add_folder(r, option->name, path, error);
        if (strcmp(section, "method") == 0 && r->run != NULL)
            NEXT(result,
                 check_read(method_input(&r->run->method, option->name), option->type == OPTION_FOLDER, path, error));
        if (result != OK)
            return result == ERROR_STOPPED ? result : error_context(error, "%s.%s", section, option->name);
    }
    return OK;
}

/* --- Datasets --- */

static char *dataset_path(const struct dataset *dataset)
{
    const char *own = dataset_own_folder(dataset);
    OWNED char *path = own != NULL ? path_format("%s/%s", dataset_root(dataset), own) : xstrdup(dataset_root(dataset));
    return path_absolute(path);
}

static void add_survey(const struct reading *r, int64_t task, const struct dataset *dataset,
                       const struct survey *survey)
{
    static const char *const kinds[SPLITS] = {[SPLIT_TRAIN] = "train", [SPLIT_TEST] = "test"};
    struct input_row prompts = {.task = task, .kind = "prompts", .digest = survey->prompts};
    add_row(r->inputs, &prompts, dataset_path(dataset));
    for (int split = 0; split < SPLITS; split++) {
        const struct survey_split *found = &survey->splits[split];
        struct input_row row = {.task = task,
                                .kind = kinds[split],
                                .files = (int64_t)found->files,
                                .bytes = (int64_t)found->bytes,
                                .digest = found->digest};
        add_row(r->inputs, &row, dataset_path(dataset));
    }
}

static status survey_again(const struct reading *r, int64_t task, const struct task_settings *s,
                           const struct surveyor_subject *subject, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct survey survey;
    status result = tasks_open_dataset(&dataset, r->suite, s, NULL, error);
    NEXT(result, surveyor_look(r->surveyor, &survey, dataset, subject, error));
    if (result == OK)
        add_survey(r, task, dataset, &survey);
    return result == OK || result == ERROR_STOPPED ? result : error_context(error, "task %s", s->name);
}

/* The run's own dataset is used if it has all images. */
static status add_dataset(const struct reading *r, size_t k, size_t count, struct error *error)
{
    bool cut = r->settings->split.cut != CUT_NONE;
    struct task_settings s;
    s = task_settings_of(r->suite, options_list_item(suite_options(r->suite, "data"), "order", k));
    if (r->run != NULL && !cut && r->settings->shots == 0) {
        add_survey(r, (int64_t)k, r->run->data.tasks[k].dataset, &r->run->data.tasks[k].survey);
        return OK;
    }
    return survey_again(r, cut ? -1 : (int64_t)k, &s, &(struct surveyor_subject){s.name, k + 1, count}, error);
}

/* --- All of it --- */

void inputs_identify(const struct inputs *inputs, const char *settings_hash, char hash[DIGEST_SIZE])
{
    SCOPED(text_free) struct text text = {0};
    text_add(&text, "settings %s\n", settings_hash);
    for (size_t i = 0; i < inputs->count; i++)
        text_add(&text, "%lld %s %s\n", (long long)inputs->rows[i].task, inputs->rows[i].kind, inputs->rows[i].digest);
    digest_text(text.data, hash);
}

status inputs_read(struct inputs *inputs, struct surveyor *surveyor, const struct suite *suite, const struct run *run,
                   struct error *error)
{
    struct settings settings;
    *inputs = (struct inputs){0};
    if (run == NULL)
        TRY(settings_read(&settings, suite, error));
    struct reading r = {inputs, surveyor, suite, run, run != NULL ? &run->model.settings : &settings};
    size_t count = options_list_size(suite_options(suite, "data"), "order");
    if (r.settings->scratch.width == 0 && !r.settings->imported)
        TRY(add_weights(&r, error));
    if (r.settings->head->of_texts && !r.settings->imported)
        TRY(add_vocabulary(&r, error));
    TRY(add_paths(&r, "method", error));
    if (method_uses(r.settings->method, r.settings->method_options, "merge"))
        TRY(add_paths(&r, "merge", error));
    if (settings_select(r.settings))
        TRY(add_paths(&r, "selector", error));
    for (size_t k = 0; k < count; k++)
        TRY(add_dataset(&r, k, count, error));
    inputs_identify(inputs, suite_settings_hash(suite), inputs->hash);
    return OK;
}

/* but: options to leave out; NULL: none. */
static void add_options(struct text *text, const struct options *options, const struct options *but)
{
    for (const struct option *option = options_table(options); option->name != NULL; option++)
        if (but == NULL || options_find(options_table(but), option->name) == NULL)
            text_add(text, "%s=%s\n", option->name, options_as_text(options, option->name));
}

static void write_paths(struct text *text, const struct options *options)
{
    for (const struct option *option = options_table(options); option->name != NULL; option++)
        if (option_is_path(option))
            text_add(text, "%s=%s\n", option->name, options_as_text(options, option->name));
}

void inputs_key(const struct suite *suite, char key[DIGEST_SIZE])
{
    const struct options *data = suite_options(suite, "data"), *training = suite_options(suite, "training");
    SCOPED(text_free) struct text text = {0};
    add_options(&text, suite_options(suite, "model"), NULL);
    add_options(&text, data, NULL);
    write_paths(&text, suite_options(suite, "method"));
    write_paths(&text, suite_options(suite, "selector"));
    for (size_t k = 0; k < options_list_size(data, "order"); k++) {
        const char *name = options_list_item(data, "order", k);
        text_add(&text, "%s:\n", name);
        add_options(&text, suite_entry(suite, "tasks", name), training);
    }
    digest_text(text.data, key);
}

char *inputs_describe(const struct input_row *row, const struct run *run)
{
    static const struct {
        const char *kind, *words;
    } datasets[] = {{"prompts", "class names and templates"}, {"train", "training images"}, {"test", "test images"}};
    bool known = row->task >= 0 && row->task < (int64_t)run->data.task_count;
    const char *task = known ? run->data.tasks[row->task].settings.name : run->data.whole.settings.name;
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++)
        if (strcmp(row->kind, datasets[i].kind) == 0)
            return path_format("the %s of %s (%s)", datasets[i].words, task != NULL ? task : "a task", row->path);
    if (options_find(run->model.settings.method->options, row->kind) != NULL)
        return path_format("method.%s (%s)", row->kind, row->path);
    if (options_find(selector_options, row->kind) != NULL)
        return path_format("selector.%s (%s)", row->kind, row->path);
    if (strcmp(row->kind, "configuration") == 0)
        return path_format(
            "the heads, the activation or the pixels' mean of the model (%s, and the configuration beside it)",
            row->path);
    return path_format("model.%s, the file %s,", row->kind, row->path);
}
