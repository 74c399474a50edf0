#include "adapters/files/adapter_metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/text.h"

enum { PROMPTS_MOST = 1 << 22, CODE_MOST = 1 << 16, BATCH_MOST = 1000000 };

/* Selector `clip` is written as its features, `features: frozen_patch_mean`, without a kind. */
static const char coders_name[] = "clip", features_name[] = "frozen_patch_mean";
static const char one_router[] = "one"; /* the only value of the key routers */
static const char *const decisions[] = {"per_image", "per_batch"};

/* --- Memory --- */

void adapter_names_create(struct adapter_names *names, size_t count)
{
    *names = (struct adapter_names){.count = count, .items = xcalloc(count + 1, sizeof *names->items)};
}

void adapter_metadata_create(struct adapter_metadata *metadata, size_t tasks)
{
    *metadata = (struct adapter_metadata){.task_count = tasks, .tasks = xcalloc(tasks + 1, sizeof *metadata->tasks)};
}

void adapter_metadata_free(struct adapter_metadata *metadata)
{
    for (size_t k = 0; metadata->tasks != NULL && k < metadata->task_count; k++) {
        free(metadata->tasks[k].classes.items);
        free(metadata->tasks[k].templates.items);
    }
    free(metadata->tasks);
    json_decref(metadata->owner);
    *metadata = (struct adapter_metadata){0};
}

/* --- Reading --- */

/* Where in a file: "FILE: metadata tasks[3]" */
struct place {
    const struct safetensors *file;
    size_t task;
};

static status refuse_task(const struct place *at, const char *expected, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: metadata tasks[%zu]: expected %s", safetensors_path(at->file), at->task,
                     expected);
}

static status read_names(struct adapter_names *names, const json_t *array, const struct place *at, const char *expected,
                         struct error *error)
{
    if (json_array_size(array) == 0)
        return refuse_task(at, expected, error);
    adapter_names_create(names, json_array_size(array));
    for (size_t i = 0; i < names->count; i++) {
        names->items[i] = json_string_value(json_array_get(array, i));
        if (names->items[i] == NULL || *names->items[i] == 0)
            return refuse_task(at, expected, error);
    }
    return OK;
}

static bool has_one_hole(const char *template)
{
    const char *hole = strstr(template, "{}");
    return hole != NULL && strstr(hole + 2, "{}") == NULL;
}

static status read_task(struct adapter_metadata *metadata, const json_t *value, const struct place *at,
                        struct error *error)
{
    struct adapter_task *task = &metadata->tasks[at->task];
    const json_t *trained = json_object_get(value, "trained");
    const char *name = json_string_value(json_object_get(value, "name"));
    if (name == NULL || *name == 0 || adapter_metadata_find(metadata, name) >= 0)
        return refuse_task(at, "a name that no other task has", error);
    if (!json_is_boolean(trained))
        return refuse_task(at, "\"trained\", true or false", error);
    task->trained = json_is_true(trained);
    TRY(read_names(&task->classes, json_object_get(value, "classes"), at, "\"classes\", a list of names", error));
    TRY(read_names(&task->templates, json_object_get(value, "templates"), at, "\"templates\", a list of texts", error));
    for (size_t i = 0; i < task->templates.count; i++)
        if (!has_one_hole(task->templates.items[i]))
            return refuse_task(at, "templates with one {} for the class name", error);
    if (task->classes.count > UINT16_MAX || task->templates.count > PROMPTS_MOST / task->classes.count)
        return refuse_task(at, "at most 65535 classes and 4194304 prompts", error);
    task->name = name;
    return OK;
}

/* The JSON of a key, owned by the metadata because its strings are borrowed; NULL: the file has no such key. */
static status parse(struct adapter_metadata *metadata, const struct safetensors *file, const char *key,
                    const json_t **value, struct error *error)
{
    const char *text = safetensors_metadata_value(file, key);
    json_error_t reason;
    *value = NULL;
    if (text == NULL)
        return OK;
    if (metadata->owner == NULL)
        metadata->owner = json_object();
    errno = 0;
    json_t *parsed = json_loads(text, JSON_REJECT_DUPLICATES, &reason);
    if (parsed == NULL || json_object_set_new(metadata->owner, key, parsed) != 0) {
        error_set(error, ERROR_FORMAT, "%s: metadata %s: expected JSON, found %.80s: %s", safetensors_path(file), key,
                  text, reason.text);
        return memory_blame(ERROR_FORMAT, safetensors_path(file), error);
    }
    *value = parsed;
    return OK;
}

static status read_tasks(struct adapter_metadata *metadata, const struct safetensors *file, struct error *error)
{
    const json_t *list;
    TRY(parse(metadata, file, "tasks", &list, error));
    if (list == NULL)
        return OK;
    size_t count = json_array_size(list);
    if (count == 0 || count > ADAPTER_TASKS_MOST)
        return error_set(error, ERROR_FORMAT, "%s: metadata tasks: expected a list of 1 to %d tasks, found %zu",
                         safetensors_path(file), ADAPTER_TASKS_MOST, count);
    void *owner = metadata->owner;
    adapter_metadata_create(metadata, count);
    metadata->owner = owner;
    for (size_t k = 0; k < count; k++)
        TRY(read_task(metadata, json_array_get(list, k), &(struct place){file, k}, error));
    return OK;
}

static bool read_size(const json_t *object, const char *key, size_t most, size_t *size)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    *size = value > 0 ? (size_t)value : 0;
    return value > 0 && *size <= most;
}

/* A selector without a kind must state its features instead. */
static status read_kind(struct adapter_metadata *metadata, const json_t *selector, const struct safetensors *file,
                        struct error *error)
{
    const char *features = json_string_value(json_object_get(selector, "features"));
    metadata->selector = json_string_value(json_object_get(selector, "kind"));
    if (metadata->selector != NULL)
        return OK;
    metadata->selector = coders_name;
    return features != NULL && strcmp(features, features_name) == 0
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: metadata selector: expected features %s, found %s",
                           safetensors_path(file), features_name, features != NULL ? features : "none");
}

static status read_selector(struct adapter_metadata *metadata, const struct safetensors *file, struct error *error)
{
    const json_t *selector;
    TRY(parse(metadata, file, "selector", &selector, error));
    if (selector == NULL)
        return OK;
    TRY(read_kind(metadata, selector, file, error));
    const char *decision = json_string_value(json_object_get(selector, "decision"));
    metadata->per_batch = decision != NULL && strcmp(decision, decisions[true]) == 0;
    if (decision == NULL || strcmp(decision, decisions[metadata->per_batch]) != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: metadata selector: expected a decision of per_image or per_batch, found %s",
                         safetensors_path(file), decision != NULL ? decision : "none");
    bool coders = json_object_get(selector, "code") != NULL || strcmp(metadata->selector, coders_name) == 0;
    if (!read_size(selector, "decision_batch", BATCH_MOST, &metadata->decision_batch) ||
        (coders && !read_size(selector, "code", CODE_MOST, &metadata->code)))
        return error_set(
            error, ERROR_FORMAT,
            "%s: metadata selector: expected a decision_batch of 1 to %d and a code of 1 to %d, whole numbers",
            safetensors_path(file), BATCH_MOST, CODE_MOST);
    metadata->unrelated = json_is_true(json_object_get(selector, "unrelated"));
    return OK;
}

status adapter_metadata_read(struct adapter_metadata *metadata, const struct safetensors *file, struct error *error)
{
    *metadata = (struct adapter_metadata){0};
    status result = read_tasks(metadata, file, error);
    NEXT(result, read_selector(metadata, file, error));
    if (result != OK) {
        adapter_metadata_free(metadata);
        return result;
    }
    const char *routers = safetensors_metadata_value(file, "routers");
    if (routers != NULL && strcmp(routers, one_router) != 0) {
        adapter_metadata_free(metadata);
        return error_set(error, ERROR_FORMAT, "%s: metadata routers: expected %s, found %.40s", safetensors_path(file),
                         one_router, routers);
    }
    metadata->one_router = routers != NULL;
    metadata->model = safetensors_metadata_value(file, "model");
    metadata->model_digest = safetensors_metadata_value(file, "model_digest");
    return OK;
}

/* --- Writing --- */

static json_t *names_as_json(const struct adapter_names *names)
{
    SCOPED(json_decref_at) json_t *array = json_array();
    for (size_t i = 0; i < names->count; i++)
        if (json_array_append_new(array, json_string(names->items[i])) != 0)
            return NULL;
    return TAKE(array);
}

static json_t *tasks_as_json(const struct adapter_metadata *metadata)
{
    SCOPED(json_decref_at) json_t *list = json_array();
    for (size_t k = 0; k < metadata->task_count; k++) {
        const struct adapter_task *task = &metadata->tasks[k];
        json_t *object = json_pack("{s:s, s:b, s:o, s:o}", "name", task->name, "trained", task->trained, "classes",
                                   names_as_json(&task->classes), "templates", names_as_json(&task->templates));
        if (json_array_append_new(list, object) != 0)
            return NULL;
    }
    return TAKE(list);
}

static json_t *selector_as_json(const struct adapter_metadata *metadata)
{
    bool first = strcmp(metadata->selector, coders_name) == 0;
    SCOPED(json_decref_at)
    json_t *object =
        json_pack("{s:s, s:s, s:I}", first ? "features" : "kind", first ? features_name : metadata->selector,
                  "decision", decisions[metadata->per_batch], "decision_batch", (json_int_t)metadata->decision_batch);
    if ((metadata->code > 0 && json_object_set_new(object, "code", json_integer((json_int_t)metadata->code)) != 0) ||
        (metadata->unrelated && json_object_set_new(object, "unrelated", json_true()) != 0))
        return NULL;
    return TAKE(object);
}

/* Takes ownership of the value. */
static status add_json(struct adapter_metadata_entries *entries, const char *key, json_t *value, char **text,
                       struct error *error)
{
    *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (*text == NULL)
        return error_set(error, ERROR_FORMAT, "adapters: metadata %s: expected names in UTF-8 and memory for them",
                         key);
    entries->list[entries->count++] = (struct safetensors_metadata){key, *text};
    return OK;
}

status adapter_metadata_entries(struct adapter_metadata_entries *entries, const struct adapter_metadata *metadata,
                                struct error *error)
{
    *entries = (struct adapter_metadata_entries){0};
    status result = OK;
    if (metadata->task_count > 0)
        result = add_json(entries, "tasks", tasks_as_json(metadata), &entries->tasks, error);
    if (metadata->selector != NULL)
        NEXT(result, add_json(entries, "selector", selector_as_json(metadata), &entries->selector, error));
    if (metadata->one_router)
        entries->list[entries->count++] = (struct safetensors_metadata){"routers", one_router};
    if (metadata->model != NULL)
        entries->list[entries->count++] = (struct safetensors_metadata){"model", metadata->model};
    if (metadata->model_digest != NULL)
        entries->list[entries->count++] = (struct safetensors_metadata){"model_digest", metadata->model_digest};
    if (result != OK)
        adapter_metadata_entries_free(entries);
    return result;
}

void adapter_metadata_entries_free(struct adapter_metadata_entries *entries)
{
    free(entries->tasks);
    free(entries->selector);
    *entries = (struct adapter_metadata_entries){0};
}

/* --- Looking --- */

int adapter_metadata_router(const struct adapter_metadata *metadata, size_t task)
{
    return metadata->one_router ? 0 : (int)task;
}

int adapter_metadata_find(const struct adapter_metadata *metadata, const char *task)
{
    for (size_t k = 0; k < metadata->task_count; k++)
        if (metadata->tasks[k].name != NULL && strcmp(metadata->tasks[k].name, task) == 0)
            return (int)k;
    return -1;
}

struct adapter_metadata_tasks adapter_metadata_tasks(const struct adapter_metadata *metadata)
{
    struct adapter_metadata_tasks list = {"none"};
    SCOPED(text_free) struct text text = {0};
    for (size_t k = 0; k < metadata->task_count; k++)
        if (metadata->tasks[k].trained)
            text_add(&text, "%s%s", text.size > 0 ? ", " : "", metadata->tasks[k].name);
    if (text.data != NULL)
        snprintf(list.text, sizeof list.text, "%s", text.data);
    return list;
}
