#include "harness/run/identity/image_watch.h"

#include <stdlib.h>

#include "core/alloc.h"

static status add(struct image_watch *watch, const struct watched *set, struct error *error)
{
    GROW(watch->sets, watch->count);
    watch->sets[watch->count] = *set;
    watch->count++;
    return witness_of_images(&watch->sets[watch->count - 1].seen, set->dataset, set->split, error);
}

status image_watch_open(struct image_watch *watch, const struct run *run, struct error *error)
{
    const struct settings *s = &run->model.settings;
    *watch = (struct image_watch){0};
    for (size_t k = 0; k < run->data.task_count; k++)
        for (int split = 0; split < SPLITS; split++) {
            const struct task *task = &run->data.tasks[k];
            const struct watched set = {
                .task = task, .name = task->settings.name, .dataset = task->dataset, .split = (enum split)split};
            TRY(add(watch, &set, error));
        }
    for (const struct option *option = s->method->options; option != NULL && option->name != NULL; option++) {
        const char *path = option->type == OPTION_FOLDER ? options_text(s->method_options, option->name) : NULL;
        struct dataset *images;
        if (path == NULL)
            continue;
        TRY(dataset_of_images(&images, path, error));
        TRY(add(watch, &(struct watched){.name = option->name, .dataset = images, .split = SPLIT_TRAIN}, error));
    }
    return OK;
}

status image_watch_after_survey(struct image_watch *watch, struct error *error)
{
    for (struct watched *set = watch->sets; set < watch->sets + watch->count; set++)
        if (set->task != NULL && set->task->survey.splits[set->split].unreadable > 0)
            TRY(witness_of_images(&set->seen, set->dataset, set->split, error));
    return OK;
}

static status check(const struct watched *set, struct error *error)
{
    struct witness now;
    TRY(witness_of_images(&now, set->dataset, set->split, error));
    if (witness_same(&now, &set->seen))
        return OK;
    return error_set(error, ERROR_IO,
                     "the %s%s below %s changed during the run; results since the last resume point are not recorded; "
                     "restore the images and give the same command to go on",
                     set->task == NULL           ? "images of method."
                     : set->split == SPLIT_TRAIN ? "training images of "
                                                 : "test images of ",
                     set->name, set->task != NULL ? set->task->settings.root : dataset_root(set->dataset));
}

status image_watch_check(const struct image_watch *watch, size_t task, struct error *error)
{
    for (const struct watched *set = watch->sets; set < watch->sets + watch->count; set++)
        if (set->task == NULL || set->split == SPLIT_TEST || set->task->index <= task)
            TRY(check(set, error));
    return OK;
}

void image_watch_close(struct image_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->sets[i].task == NULL)
            dataset_close((struct dataset *)watch->sets[i].dataset);
    free(watch->sets);
    *watch = (struct image_watch){0};
}
