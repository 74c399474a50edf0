#include "datasets/check.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/same.h"

struct work {
    const struct dataset *dataset;
    struct survey_images images;
    struct same_images same; /* of those that can be read */
};

/* --- findings ----------------------------------------------------------------------------------------------------- */

/* Takes over subject and detail. */
static void add_finding(struct check *check, struct check_finding finding)
{
    GROW(check->findings, check->count);
    check->findings[check->count++] = finding;
    check->splits[finding.split].of[finding.kind]++;
}

static void add_same(struct check *check, enum check_kind kind, const struct work *work, enum split split, size_t item,
                     const struct same_image *other)
{
    add_finding(check, (struct check_finding){kind, split, dataset_item_name(work->dataset, split, item),
                                              dataset_item_name(work->dataset, (enum split)other->split, other->item)});
}

/* Compares an image with the first one of the same pixels. */
static void add_shared(struct check *check, const struct work *work, enum split split, size_t item)
{
    const struct dataset *dataset = work->dataset;
    const struct survey_image *image = &work->images.of[split][item];
    if (image->state != SURVEY_READABLE)
        return;
    const struct same_image *first = same_images_find(&work->same, image);
    if (split == SPLIT_TEST && first->split == SPLIT_TRAIN)
        add_same(check, CHECK_DUPLICATE, work, split, item, first);
    if (dataset_label(dataset, split, item) != dataset_label(dataset, (enum split)first->split, first->item))
        add_same(check, CHECK_CLASSES, work, split, item, first);
}

/* A file that a list names twice. */
static void add_repeated(struct check *check, const struct work *work)
{
    const struct same_image *images = work->same.images;
    for (size_t i = 1; i < work->same.count; i++) {
        if (images[i].split != images[i - 1].split || !same_image_is(&images[i], &images[i - 1]))
            continue;
        OWNED char *name = dataset_item_name(work->dataset, (enum split)images[i].split, images[i].item),
                   *before = dataset_item_name(work->dataset, (enum split)images[i].split, images[i - 1].item);
        if (strcmp(name, before) == 0)
            add_same(check, CHECK_REPEATED, work, (enum split)images[i].split, images[i].item, &images[i - 1]);
    }
}

static void add_image_findings(struct check *check, const struct work *work, enum split split)
{
    size_t images = dataset_size(work->dataset, split);
    const char *file;
    for (size_t i = 0; (file = dataset_missing_file(work->dataset, split, i)) != NULL; i++)
        add_finding(check, (struct check_finding){CHECK_MISSING, split, xstrdup(file), NULL});
    for (size_t i = 0; i < work->images.failure_count; i++) {
        const struct survey_failure *failure = &work->images.failures[i];
        if (failure->split == split)
            add_finding(check, (struct check_finding){CHECK_UNREADABLE, split,
                                                      dataset_item_name(work->dataset, split, failure->item),
                                                      xstrdup(failure->why)});
    }
    for (size_t i = 0; i < images; i++)
        add_shared(check, work, split, i);
    for (size_t i = 0; split == SPLIT_TRAIN && (file = dataset_left_out(work->dataset, i)) != NULL; i++)
        add_finding(check, (struct check_finding){CHECK_LEFT_OUT, split, xstrdup(file), NULL});
}

static int compare_counts(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void check_balance(struct check *check, const struct dataset *dataset, enum split split)
{
    struct check_split *balance = &check->splits[split];
    size_t classes = dataset_classes(dataset);
    OWNED size_t *counts = xcalloc(classes + 1, sizeof *counts);
    balance->images = dataset_size(dataset, split);
    for (size_t i = 0; i < balance->images; i++)
        counts[dataset_label(dataset, split, i)]++;
    for (size_t i = 0; i < classes; i++)
        if (counts[i] == 0)
            add_finding(
                check, (struct check_finding){CHECK_EMPTY_CLASS, split, xstrdup(dataset_class_name(dataset, i)), NULL});
    qsort(counts, classes, sizeof *counts, compare_counts);
    if (classes > 0) {
        size_t lower = (classes - 1) / 2, upper = classes / 2;
        balance->least = counts[0];
        balance->most = counts[classes - 1];
        balance->median = ((double)counts[lower] + (double)counts[upper]) / 2;
    }
}

/* A shortage is no fault of an image. */
static status check_machine(const struct survey_images *images, struct error *error)
{
    for (size_t i = 0; i < images->failure_count; i++)
        if (images->failures[i].code == ERROR_MEMORY)
            return error_set(error, ERROR_MEMORY, "%s", images->failures[i].why);
    return OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

status check_dataset(struct check *check, const struct dataset *dataset, const struct survey_settings *settings,
                     struct error *error)
{
    struct work work = {.dataset = dataset};
    *check = (struct check){0};
    TRY(survey_images_look(&work.images, dataset, settings, error));
    size_t images = work.images.count;
    status result = check_machine(&work.images, error);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++)
            if (work.images.of[split][i].state == SURVEY_READABLE)
                same_images_add(&work.same, 0, (enum split)split, i, &work.images.of[split][i]);
    same_images_sort(&work.same);
    add_repeated(check, &work);
    for (int split = 0; split < SPLITS && result == OK; split++) {
        add_image_findings(check, &work, (enum split)split);
        check_balance(check, dataset, (enum split)split);
        check->splits[split].clipped = survey_images_clipped(&work.images, dataset, (enum split)split);
    }
    if (result != OK)
        check_free(check);
    if (settings->progress != NULL)
        settings->progress(settings->context, images, images);
    survey_images_free(&work.images);
    free(work.same.images);
    return result;
}

void check_free(struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        free(check->findings[i].subject);
        free(check->findings[i].detail);
    }
    free(check->findings);
    *check = (struct check){0};
}
