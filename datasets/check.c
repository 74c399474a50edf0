#include "datasets/check.h"

#include <stdlib.h>

#include "core/alloc.h"
struct work {
    const struct dataset *dataset;
    struct survey_images images;
    const struct survey_image **train; /* [train_count] the training images that can be read, sorted by their pixels */
    size_t train_count;
};

/* --- test images among the training images ------------------------------------------------------------------------ */

static int compare_pixels(const struct survey_image *a, const struct survey_image *b)
{
    const uint64_t x[] = {a->pixels[0], a->pixels[1], a->width, a->height},
                   y[] = {b->pixels[0], b->pixels[1], b->width, b->height};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Orders images with the same pixels by their addresses, which is the dataset's order. */
static int compare_places(const void *a, const void *b)
{
    const struct survey_image *x = *(const struct survey_image *const *)a, *y = *(const struct survey_image *const *)b;
    int order = compare_pixels(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static void sort_train(struct work *work)
{
    size_t images = dataset_size(work->dataset, SPLIT_TRAIN);
    work->train = xcalloc(images + 1, sizeof *work->train);
    for (size_t i = 0; i < images; i++)
        if (work->images.of[SPLIT_TRAIN][i].state == SURVEY_READABLE)
            work->train[work->train_count++] = &work->images.of[SPLIT_TRAIN][i];
    qsort(work->train, work->train_count, sizeof *work->train, compare_places);
}

/* The first training image with the same pixels; NULL: none. */
static const struct survey_image *find_same(const struct work *work, const struct survey_image *image)
{
    size_t low = 0, high = work->train_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_pixels(work->train[middle], image) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < work->train_count && compare_pixels(work->train[low], image) == 0 ? work->train[low] : NULL;
}

/* --- findings ----------------------------------------------------------------------------------------------------- */

/* Takes over subject and detail. */
static void add_finding(struct check *check, struct check_finding finding)
{
    GROW(check->findings, check->count);
    check->findings[check->count++] = finding;
    check->splits[finding.split].of[finding.kind]++;
}

/* Reads the image again for the reason of the failure. */
static void add_unreadable(struct check *check, const struct work *work, enum split split, size_t item)
{
    struct image image;
    struct error why;
    if (dataset_read(work->dataset, split, item, &image, NULL, &why) == OK) {
        error_set(&why, ERROR_IO, "could not be read at first, but on a second try");
        image_free(&image);
    }
    add_finding(check, (struct check_finding){CHECK_UNREADABLE, split, dataset_item_name(work->dataset, split, item),
                                              xstrdup(why.message)});
}

static void add_duplicate(struct check *check, const struct work *work, size_t item)
{
    const struct survey_image *image = &work->images.of[SPLIT_TEST][item], *same = NULL;
    if (image->state == SURVEY_READABLE)
        same = find_same(work, image);
    if (same == NULL)
        return;
    size_t training = (size_t)(same - work->images.of[SPLIT_TRAIN]);
    add_finding(check,
                (struct check_finding){CHECK_DUPLICATE, SPLIT_TEST, dataset_item_name(work->dataset, SPLIT_TEST, item),
                                       dataset_item_name(work->dataset, SPLIT_TRAIN, training)});
}

static void add_image_findings(struct check *check, const struct work *work, enum split split)
{
    size_t images = dataset_size(work->dataset, split);
    const char *file;
    for (size_t i = 0; (file = dataset_missing_file(work->dataset, split, i)) != NULL; i++)
        add_finding(check, (struct check_finding){CHECK_MISSING, split, xstrdup(file), NULL});
    for (size_t i = 0; i < images; i++)
        if (work->images.of[split][i].state != SURVEY_READABLE)
            add_unreadable(check, work, split, i);
    for (size_t i = 0; split == SPLIT_TEST && i < images; i++)
        add_duplicate(check, work, i);
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
    size_t classes = dataset_classes(dataset), *counts = xcalloc(classes + 1, sizeof *counts);
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
    free(counts);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

status check_dataset(struct check *check, const struct dataset *dataset, const struct survey_settings *settings,
                     struct error *error)
{
    struct work work = {.dataset = dataset};
    *check = (struct check){0};
    TRY(survey_images_look(&work.images, dataset, settings, error));
    size_t images = work.images.count;
    sort_train(&work);
    for (int split = 0; split < SPLITS; split++) {
        add_image_findings(check, &work, (enum split)split);
        check_balance(check, dataset, (enum split)split);
        check->splits[split].clipped = survey_images_clipped(&work.images, dataset, (enum split)split);
    }
    if (settings->progress != NULL)
        settings->progress(settings->context, images, images);
    survey_images_free(&work.images);
    free(work.train);
    return OK;
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
