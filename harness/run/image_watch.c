#include "harness/run/image_watch.h"

#include <stdlib.h>
#include <string.h>

static struct watched_split *watched(const struct image_watch *watch, size_t task, enum split split)
{
    return &watch->splits[task * SPLITS + (size_t)split];
}

static status look(const struct image_watch *watch, size_t task, enum split split, struct watched_split *found,
                   struct error *error)
{
    const struct dataset *dataset = watch->experiment->data.tasks[task].dataset;
    struct dataset_identity identity;
    found->files = dataset_has_files(dataset, split);
    if (!found->files)
        return OK;
    TRY(dataset_identify(dataset, split, &identity, error));
    memcpy(found->content, identity.content, sizeof found->content);
    return OK;
}

status image_watch_open(struct image_watch *watch, const struct experiment *experiment, struct error *error)
{
    *watch = (struct image_watch){.experiment = experiment,
                                  .splits = calloc(experiment->data.task_count * SPLITS + 1, sizeof *watch->splits)};
    if (watch->splits == NULL)
        return error_set(error, ERROR_MEMORY, "run: no memory to watch %zu tasks", experiment->data.task_count);
    for (size_t task = 0; task < experiment->data.task_count; task++)
        for (int split = 0; split < SPLITS; split++)
            TRY(look(watch, task, (enum split)split, watched(watch, task, (enum split)split), error));
    return OK;
}

status image_watch_after_survey(struct image_watch *watch, struct error *error)
{
    for (size_t task = 0; task < watch->experiment->data.task_count; task++)
        for (int split = 0; split < SPLITS; split++)
            if (watch->experiment->data.tasks[task].survey.splits[split].unreadable > 0)
                TRY(look(watch, task, (enum split)split, watched(watch, task, (enum split)split), error));
    return OK;
}

static status check_split(const struct image_watch *watch, size_t task, enum split split, struct error *error)
{
    const struct task_settings *s = &watch->experiment->data.tasks[task].settings;
    const struct watched_split *expected = watched(watch, task, split);
    struct watched_split found;
    TRY(look(watch, task, split, &found, error));
    if (!expected->files || strcmp(found.content, expected->content) == 0)
        return OK;
    return error_set(
        error, ERROR_IO,
        "the %s images of %s below %s have changed while the run went on; what was computed since the last "
        "resume point is not recorded: put them back, and the same command goes on",
        split == SPLIT_TRAIN ? "training" : "test", s->name, s->root);
}

status image_watch_check(const struct image_watch *watch, size_t task, struct error *error)
{
    for (size_t k = 0; k < watch->experiment->data.task_count; k++) {
        TRY(check_split(watch, k, SPLIT_TEST, error));
        if (k <= task)
            TRY(check_split(watch, k, SPLIT_TRAIN, error));
    }
    return OK;
}

void image_watch_close(struct image_watch *watch)
{
    free(watch->splits);
    *watch = (struct image_watch){0};
}
