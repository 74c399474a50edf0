/* The metadata of a file of adapters: the task of each router with its class names and templates, the model that the
 * adapters were trained on, and how the selector decides. The selector's tensors are in adapters/files/selector_file.h.
 *
 *     struct adapter_metadata metadata;
 *     TRY(adapter_metadata_read(&metadata, file, error));
 *     for (size_t k = 0; k < metadata.task_count; k++) … metadata.tasks[k].name … adapter_metadata_router(&metadata, k) …
 *     adapter_metadata_free(&metadata);
 *
 * A file without this metadata, such as other programs write, leaves all fields zero.
 */
#pragma once

#include <stdbool.h>

#include "models/files/safetensors.h"

enum { ADAPTER_TASKS_MOST = 1024, ADAPTER_METADATA_KEYS = 5 };

struct adapter_names {
    size_t count;
    const char **items; /* array owned by the metadata; for the names see `owner` below */
};

struct adapter_task {
    const char *name;
    bool trained; /* false: the run had not reached the task, and its router has its start values */
    struct adapter_names classes, templates;
};

struct adapter_metadata {
    size_t task_count; /* 0: the file does not say */
    struct adapter_task *tasks;
    bool one_router;                  /* all tasks share router 0; otherwise task k has router k */
    const char *model, *model_digest; /* a name for people, and clip_digest; NULL: the file does not say */
    const char *selector;             /* its kind: "clip"; NULL: there is none */
    size_t code;                      /* hidden units of its autoencoders; 0: it has none */
    bool unrelated;                   /* an autoencoder of unrelated images follows those of the tasks */
    bool per_batch;                   /* the selector decides once for decision_batch consecutive images */
    size_t decision_batch;
    void *owner; /* of the strings that were read; strings to be written belong to the caller */
};

/* Memory for tasks without a name, class or template; adapter_metadata_free also after a failure. */
void adapter_metadata_create(struct adapter_metadata *metadata, size_t tasks);
void adapter_names_create(struct adapter_names *names, size_t count); /* all NULL */
void adapter_metadata_free(struct adapter_metadata *metadata);

/* A malformed value is an error that names the file and the key. */
status adapter_metadata_read(struct adapter_metadata *metadata, const struct safetensors *file, struct error *error);

/* The entries of a safetensors file; the caller frees it after a success. */
struct adapter_metadata_entries {
    size_t count;
    struct safetensors_metadata list[ADAPTER_METADATA_KEYS];
    char *tasks, *selector; /* storage */
};
status adapter_metadata_entries(struct adapter_metadata_entries *entries, const struct adapter_metadata *metadata,
                                struct error *error);
void adapter_metadata_entries_free(struct adapter_metadata_entries *entries);

int adapter_metadata_router(const struct adapter_metadata *metadata, size_t task);

/* The task with this name, −1 when there is none. */
int adapter_metadata_find(const struct adapter_metadata *metadata, const char *task);

/* The trained tasks' names, "mnist, eurosat", for messages; static text where there are none. */
struct adapter_metadata_tasks {
    char text[512];
};
struct adapter_metadata_tasks adapter_metadata_tasks(const struct adapter_metadata *metadata);
