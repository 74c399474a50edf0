/* The metadata of a file of adapters: the task of each router with its class names and templates, the model that the
 * adapters were trained on, and how the selector decides. The selector's tensors are in selector_file.h.
 *
 *     struct adapter_card card;
 *     TRY(adapter_card_read(&card, file, error));
 *     for (size_t k = 0; k < card.task_count; k++) … card.tasks[k].name … adapter_card_router(&card, k) …
 *     adapter_card_free(&card);
 *
 * A file without this metadata, such as other programs write, has an empty card.
 */
#ifndef MTIL_ADAPTERS_FILES_ADAPTER_CARD_H
#define MTIL_ADAPTERS_FILES_ADAPTER_CARD_H

#include <stdbool.h>

#include "models/files/safetensors.h"

enum { ADAPTER_TASKS_MOST = 1024, ADAPTER_CARD_KEYS = 5 };

struct adapter_names {
    size_t count;
    const char **items; /* array owned by the card; for the names see `owner` below */
};

struct adapter_task {
    const char *name;
    bool trained; /* false: the run had not reached the task, and its router has its start values */
    struct adapter_names classes, templates;
};

struct adapter_card {
    size_t task_count; /* 0: the file does not say */
    struct adapter_task *tasks;
    bool one_router;                  /* all tasks share router 0; otherwise task k has router k */
    const char *model, *model_digest; /* a name for people, and clip_digest.h; NULL: the file does not say */
    const char *selector;             /* its kind: "clip"; NULL: there is none */
    size_t code;                      /* hidden units of its autoencoders; 0: it has none */
    bool unrelated;                   /* an autoencoder of unrelated images follows those of the tasks */
    bool per_batch;                   /* the selector decides once for decision_batch consecutive images */
    size_t decision_batch;
    void *owner; /* of the strings of a card that was read; strings of a card to be written belong to the caller */
};

/* Memory for tasks without a name, class or template; adapter_card_free also after a failure. */
void adapter_card_create(struct adapter_card *card, size_t tasks);
void adapter_names_create(struct adapter_names *names, size_t count); /* all NULL */
void adapter_card_free(struct adapter_card *card);

/* A malformed value is an error that names the file and the key. */
status adapter_card_read(struct adapter_card *card, const struct safetensors *file, struct error *error);

/* The card as metadata of a safetensors file; the caller frees it after a success. */
struct adapter_card_metadata {
    size_t count;
    struct safetensors_metadata list[ADAPTER_CARD_KEYS];
    char *tasks, *selector; /* storage */
};
status adapter_card_metadata(struct adapter_card_metadata *metadata, const struct adapter_card *card,
                             struct error *error);
void adapter_card_metadata_free(struct adapter_card_metadata *metadata);

int adapter_card_router(const struct adapter_card *card, size_t task);

/* The task with this name, −1 when there is none. */
int adapter_card_find(const struct adapter_card *card, const char *task);

/* The trained tasks' names, "mnist, eurosat", for messages; static text where there are none. */
struct adapter_card_tasks {
    char text[512];
};
struct adapter_card_tasks adapter_card_tasks(const struct adapter_card *card);

#endif
