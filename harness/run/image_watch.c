#include "harness/run/image_watch.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"

static struct watched_split *watched(const struct image_watch *watch, size_t task, enum split split)
{
    return &watch->splits[task * SPLITS + (size_t)split];
}

static status look(const struct dataset *dataset, enum split split, struct watched_split *found, struct error *error)
{
    struct dataset_identity identity;
    found->files = dataset_has_files(dataset, split);
    if (!found->files)
        return OK;
    TRY(dataset_identify(dataset, split, &identity, error));
    memcpy(found->content, identity.content, sizeof found->content);
    return OK;
}

static status look_at_task(const struct image_watch *watch, size_t task, enum split split, struct error *error)
{
    return look(watch->run->data.tasks[task].dataset, split, watched(watch, task, split), error);
}

static status open_folders(struct image_watch *watch, struct error *error)
{
    const struct settings *s = &watch->run->model.settings;
    for (const struct option *option = s->method->options; option != NULL && option->name != NULL; option++) {
        const char *path = option->type == OPTION_FOLDER ? options_text(s->method_options, option->name) : NULL;
        if (path == NULL)
            continue;
        GROW(watch->folders, watch->folder_count);
        struct watched_folder *folder = &watch->folders[watch->folder_count];
        *folder = (struct watched_folder){.option = option->name};
        TRY(dataset_of_images(&folder->dataset, path, error));
        watch->folder_count++;
        TRY(look(folder->dataset, SPLIT_TRAIN, &folder->images, error));
    }
    return OK;
}

status image_watch_open(struct image_watch *watch, const struct run *run, struct error *error)
{
    *watch =
        (struct image_watch){.run = run, .splits = xcalloc(run->data.task_count * SPLITS + 1, sizeof *watch->splits)};
    for (size_t task = 0; task < run->data.task_count; task++)
        for (int split = 0; split < SPLITS; split++)
            TRY(look_at_task(watch, task, (enum split)split, error));
    return open_folders(watch, error);
}

status image_watch_after_survey(struct image_watch *watch, struct error *error)
{
    for (size_t task = 0; task < watch->run->data.task_count; task++)
        for (int split = 0; split < SPLITS; split++)
            if (watch->run->data.tasks[task].survey.splits[split].unreadable > 0)
                TRY(look_at_task(watch, task, (enum split)split, error));
    return OK;
}

static status check(const struct dataset *dataset, enum split split, const struct watched_split *expected,
                    const char *what, const char *name, const char *root, struct error *error)
{
    struct watched_split found;
    TRY(look(dataset, split, &found, error));
    if (!expected->files || strcmp(found.content, expected->content) == 0)
        return OK;
    return error_set(error, ERROR_IO,
                     "the %s%s below %s changed during the run; results since the last resume point are not recorded; "
                     "restore the images and give the same command to go on",
                     what, name, root);
}

static status check_split(const struct image_watch *watch, size_t task, enum split split, struct error *error)
{
    const struct task *t = &watch->run->data.tasks[task];
    return check(t->dataset, split, watched(watch, task, split),
                 split == SPLIT_TRAIN ? "training images of " : "test images of ", t->settings.name, t->settings.root,
                 error);
}

status image_watch_check(const struct image_watch *watch, size_t task, struct error *error)
{
    for (size_t k = 0; k < watch->run->data.task_count; k++) {
        TRY(check_split(watch, k, SPLIT_TEST, error));
        if (k <= task)
            TRY(check_split(watch, k, SPLIT_TRAIN, error));
    }
    for (size_t i = 0; i < watch->folder_count; i++) {
        const struct watched_folder *folder = &watch->folders[i];
        TRY(check(folder->dataset, SPLIT_TRAIN, &folder->images, "images of method.", folder->option,
                  dataset_root(folder->dataset), error));
    }
    return OK;
}

void image_watch_close(struct image_watch *watch)
{
    for (size_t i = 0; i < watch->folder_count; i++)
        dataset_close(watch->folders[i].dataset);
    free(watch->folders);
    free(watch->splits);
    *watch = (struct image_watch){0};
}
