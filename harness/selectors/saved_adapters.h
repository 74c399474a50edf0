/* The adapters file of a run: experts and routers, prefixes or low-rank deltas, the tasks they were trained for, and the selector.
 *
 *     TRY(saved_adapters_write(model, data, selector, task, path, error));        // after the task
 *
 *     struct saved_adapters saved;
 *     TRY(saved_adapters_open(&saved, path, error));
 *     TRY(saved_adapters_load(&saved, model, routers, count, error));
 *     if (saved.metadata.selector != NULL)
 *         TRY(selector_open(&selector, model, data, saved.file, &saved.metadata, error));
 *     saved_adapters_close(&saved);
 */
#pragma once

#include "core/text.h"
#include "harness/selectors/selector.h"

/* Tasks up to `task` are trained; for a method that trains every task alone, only this one. selector NULL: none. */
status saved_adapters_write(const struct model *model, const struct data *data, const struct selector *selector,
                            size_t task, const char *path, struct error *error);

struct saved_adapters {
    struct safetensors *file;
    struct adapter_metadata metadata;
    bool deltas; /* of the towers' matrices, in place of experts: without routers */
};

/* After a failure there is nothing to close. */
status saved_adapters_open(struct saved_adapters *saved, const char *path, struct error *error);
void saved_adapters_close(struct saved_adapters *saved); /* zeros are allowed */

#define ROUTER_NONE (-1)

/* Loads into the model, which then owns them, the adapters with the `count` requested routers (ROUTER_NONE: none) and
 * those of all trained tasks, the prefixes, or the deltas, which replace the zero-shot model. Adapters or prefixes
 * that the model has already get the file's values. If the file names the CLIP that they were trained on, the model's
 * must be that one. */
status saved_adapters_load(const struct saved_adapters *saved, struct model *model, const int *routers, size_t count,
                           struct error *error);

/* The routers in the file, for messages: "mnist, eurosat" or "0, 1, 2". */
status saved_adapters_list(const struct saved_adapters *saved, struct text *list, struct error *error);
