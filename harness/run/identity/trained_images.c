#include "harness/run/identity/trained_images.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"

/* The test images of a task that are trained on. */
struct trained {
    size_t count, own;                   /* own: by the same task */
    const struct same_image *first, *as; /* the first one, and the training image */
};

static void warn_of_task(const struct trained *found, const struct data *data, const struct log *log)
{
    const struct task *task = &data->tasks[found->first->set], *by = &data->tasks[found->as->set];
    OWNED char *name = dataset_item_name(task->dataset, SPLIT_TEST, found->first->item),
               *as = dataset_item_name(by->dataset, SPLIT_TRAIN, found->as->item);
    log_warn(log,
             "%s: %zu of %zu test images have the pixels of training images (%zu of this task, %zu of others), so "
             "that accuracies are too high; the first is %s, in training %s of %s",
             task->settings.name, found->count, dataset_size(task->dataset, SPLIT_TEST), found->own,
             found->count - found->own, name, as, by->settings.name);
}

void trained_images_warn(struct same_images *same, const struct data *data, const struct log *log)
{
    OWNED struct trained *tasks = xcalloc(data->task_count + 1, sizeof *tasks);
    const struct same_image *first = same->images, *own = NULL;
    same_images_sort(same);
    for (const struct same_image *image = same->images; image < same->images + same->count; image++) {
        first = same_image_is(first, image) ? first : image;
        if (image->split == SPLIT_TRAIN || first->split == SPLIT_TEST)
            continue;
        for (own = first; own->split == SPLIT_TRAIN && own->set != image->set;)
            own++;
        struct trained *task = &tasks[image->set];
        bool by_itself = own->split == SPLIT_TRAIN;
        task->count++;
        task->own += by_itself;
        if (task->first == NULL || image->item < task->first->item) {
            task->first = image;
            task->as = by_itself ? own : first;
        }
    }
    for (size_t k = 0; k < data->task_count; k++)
        if (tasks[k].count > 0)
            warn_of_task(&tasks[k], data, log);
}
