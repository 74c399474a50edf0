#include "harness/selectors/saved_adapters.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/deltas.h"
#include "adapters/files/adapter_file.h"
#include "adapters/prefixes.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "harness/selectors/selector.h"
#include "harness/train/method.h"
#include "models/files/weights_file.h"

/* --- Writing --- */

static void describe(struct adapter_metadata *metadata, const struct model *model, const struct data *data,
                     const struct selector *selector, size_t task)
{
    adapter_metadata_create(metadata, data->task_count);
    metadata->one_router = model_routers(model) < data->task_count;
    for (size_t k = 0; k < data->task_count; k++)
        task_describe(&metadata->tasks[k], &data->tasks[k], model->settings.method->alone ? k == task : k <= task);
    if (selector != NULL) {
        metadata->selector = selector->kind->name;
        metadata->code = selector->coders != NULL ? selector->code : 0;
        metadata->unrelated = selector->unrelated;
        metadata->per_batch = selector->decision == DECIDE_PER_BATCH;
        metadata->decision_batch = selector->decision_batch;
    }
}

static status add_selector(struct selector_tensors *tensors, const struct selector *selector, struct error *error)
{
    if (selector == NULL)
        return OK;
    TRY(selector->kind->file(selector, &(struct selector_arrays){.tensors = tensors}, error));
    selector_tensors_add_thresholds(tensors, selector->thresholds, selector->trained);
    return OK;
}

static status write_described(const struct model *model, const struct selector *selector,
                              const struct adapter_metadata *metadata, const char *path, struct error *error)
{
    SCOPED(adapter_metadata_entries_free) struct adapter_metadata_entries entries = {0};
    SCOPED(selector_tensors_free) struct selector_tensors tensors = {0};
    TRY(adapter_metadata_entries(&entries, metadata, error));
    TRY(add_selector(&tensors, selector, error));
    const struct group_extra extra = {tensors.list, tensors.count, entries.list, entries.count};
    return model->deltas != NULL     ? deltas_save(model->deltas, &extra, path, error)
           : model->prefixes != NULL ? prefixes_save(model->prefixes, &extra, path, error)
                                     : adapters_save(model->adapters, &extra, path, error);
}

status saved_adapters_write(const struct model *model, const struct data *data, const struct selector *selector,
                            size_t task, const char *path, struct error *error)
{
    SCOPED(adapter_metadata_free) struct adapter_metadata metadata = {0};
    OWNED char *name = model_name(model);
    char digest[CLIP_DIGEST_SIZE];
    TRY(clip_digest(model->clip, digest, error));
    if (model->deltas != NULL) /* of the weights before they were changed */
        memcpy(digest, model->deltas->model, sizeof digest);
    describe(&metadata, model, data, selector, task);
    metadata.model = name;
    metadata.model_digest = digest;
    return write_described(model, selector, &metadata, path, error);
}

/* --- Reading --- */

/* A classifier's experts belong to its own tower. */
static status refuse_classifier(const struct safetensors *file, struct error *error)
{
    if (safetensors_metadata_value(file, "pool") == NULL)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected adapters, found the weights of a classifier; name them by --weights",
                     safetensors_path(file));
}

status saved_adapters_open(struct saved_adapters *saved, const char *path, struct error *error)
{
    *saved = (struct saved_adapters){0};
    TRY(weights_file_open(&saved->file, path, WEIGHTS_WHOLE, error));
    status result = refuse_classifier(saved->file, error);
    NEXT(result, adapter_metadata_read(&saved->metadata, saved->file, error));
    saved->deltas = result == OK && delta_file_is(saved->file);
    if (result != OK)
        saved_adapters_close(saved);
    return result;
}

void saved_adapters_close(struct saved_adapters *saved)
{
    adapter_metadata_free(&saved->metadata);
    safetensors_close(saved->file);
    *saved = (struct saved_adapters){0};
}

static status check_model(const struct saved_adapters *saved, const struct clip *clip, struct error *error)
{
    char found[CLIP_DIGEST_SIZE];
    const char *expected = saved->metadata.model_digest, *model = saved->metadata.model;
    if (expected == NULL)
        return OK;
    TRY(clip_digest(clip, found, error));
    if (strcmp(found, expected) == 0)
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: these adapters belong to the model %s (digest %s), found one with other weights, heads, activation "
        "or mean and deviation of pixels (digest %s); name the weights that they were trained on",
        safetensors_path(saved->file), model != NULL ? model : "of another name", expected, found);
}

/* The requested routers, and those of all tasks that the file was trained for, because a selector may choose any of
 * them. */
static status open_with_routers(const struct saved_adapters *saved, struct model *model, const int *routers,
                                size_t count, struct error *error)
{
    const struct adapter_metadata *metadata = &saved->metadata;
    OWNED int *all = xmalloc(array_size(count + metadata->task_count + 1, sizeof *all));
    if (count > 0)
        memcpy(all, routers, count * sizeof *routers);
    for (size_t k = 0; k < metadata->task_count; k++)
        all[count + k] = metadata->tasks[k].trained ? adapter_metadata_router(metadata, k) : ROUTER_NONE;
    return adapters_open(&model->adapters, model->backend, &model->memory, &model->clip->dimensions, saved->file, all,
                         count + metadata->task_count, error);
}

/* Prefixes have none but those of their tasks. */
static status check_routers(const struct saved_adapters *saved, const struct model *model, const int *routers,
                            size_t count, struct error *error)
{
    size_t found = model_routers(model);
    for (size_t i = 0; i < count; i++)
        if (routers[i] >= (int)found)
            return error_set(error, ERROR_ARGUMENT, "%s: has no router %d; its routers are 0 to %zu",
                             safetensors_path(saved->file), routers[i], found - 1);
    return saved->metadata.one_router || saved->metadata.task_count <= found
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: names %zu tasks, but has %zu routers",
                           safetensors_path(saved->file), saved->metadata.task_count, found);
}

status saved_adapters_load(const struct saved_adapters *saved, struct model *model, const int *routers, size_t count,
                           struct error *error)
{
    if (model->adapters != NULL)
        return adapters_load(model->adapters, saved->file, "", GROUP_COMPLETE, error);
    if (model->prefixes == NULL)
        TRY(check_model(saved, model->clip, error));
    if (saved->deltas)
        return deltas_open(&model->deltas, model->clip, &model->memory, saved->file, error);
    if (prefix_file_is(saved->file))
        TRY(prefixes_open(&model->prefixes, model->clip, &model->memory, saved->file, error));
    else
        TRY(open_with_routers(saved, model, routers, count, error));
    return check_routers(saved, model, routers, count, error);
}

status saved_adapters_list(const struct saved_adapters *saved, struct text *list, struct error *error)
{
    if (saved->metadata.task_count == 0)
        return adapter_file_routers(saved->file, list, error);
    text_add(list, "%s", adapter_metadata_tasks(&saved->metadata).text);
    return OK;
}
