#include "datasets/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/arena.h"

/* A sum over an image's pixels, and which image; unreadable images have none. */
struct sum {
    uint64_t value;
    size_t item;
};

enum { NOT_FOUND = -1 };

struct work {
    const struct dataset *dataset;
    const struct check_settings *settings;
    size_t total; /* images of both splits */
    atomic_size_t done;
    atomic_bool stopped, out_of_memory;
    enum split split;         /* the one at hand */
    char **reasons[SPLITS];   /* [images] why an image cannot be read, NULL: it can */
    struct sum *sums[SPLITS]; /* [images] */
    size_t train_sums;        /* of the training images that can be read, sorted */
    int64_t *duplicates;      /* [test images] the training image of the same pixels, NOT_FOUND: none */
};

/* --- decoding everything once ------------------------------------------------------------------------------------- */

static uint64_t sum_pixels(const struct image *image)
{
    size_t size = (size_t)image->width * (size_t)image->height * 3;
    return (uint64_t)crc32_z(0, image->pixels, size) << 32 | adler32_z((uLong)image->width, image->pixels, size);
}

/* The caller's own thread is worker 0: it alone reports and asks. */
static bool goes_on(struct work *work, size_t worker)
{
    const struct check_settings *settings = work->settings;
    if (worker == 0 && settings->progress != NULL)
        settings->progress(settings->context, atomic_load(&work->done), work->total);
    if (worker == 0 && settings->stopped != NULL && settings->stopped(settings->context))
        atomic_store(&work->stopped, true);
    return !atomic_load(&work->stopped);
}

static void decode_item(void *context, size_t item, size_t worker)
{
    struct work *work = context;
    struct image image;
    struct error error;
    if (!goes_on(work, worker))
        return;
    atomic_fetch_add(&work->done, 1);
    work->sums[work->split][item].item = item;
    if (dataset_read(work->dataset, work->split, item, &image, NULL, &error) == OK) {
        work->sums[work->split][item].value = sum_pixels(&image);
        image_free(&image);
    } else if ((work->reasons[work->split][item] = strdup(error.message)) == NULL) {
        atomic_store(&work->out_of_memory, true);
    }
}

/* --- test images among the training images ------------------------------------------------------------------------ */

static int compare_sums(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void sort_train(struct work *work)
{
    struct sum *sums = work->sums[SPLIT_TRAIN];
    for (size_t i = 0; i < dataset_size(work->dataset, SPLIT_TRAIN); i++)
        if (work->reasons[SPLIT_TRAIN][i] == NULL)
            sums[work->train_sums++] = sums[i];
    if (work->train_sums > 1)
        qsort(sums, work->train_sums, sizeof *sums, compare_sums);
}

/* The first sum in order that is not below value. */
static size_t find_sum(const struct work *work, uint64_t value)
{
    size_t low = 0, high = work->train_sums;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->sums[SPLIT_TRAIN][middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_pixels(const struct dataset *dataset, const struct image *image, size_t train_item)
{
    struct image other;
    struct error error;
    if (dataset_read(dataset, SPLIT_TRAIN, train_item, &other, NULL, &error) != OK)
        return false;
    bool same = image->width == other.width && image->height == other.height &&
                memcmp(image->pixels, other.pixels, (size_t)image->width * (size_t)image->height * 3) == 0;
    image_free(&other);
    return same;
}

static void find_duplicate(void *context, size_t item, size_t worker)
{
    struct work *work = context;
    struct image image;
    struct error error;
    work->duplicates[item] = NOT_FOUND;
    bool wanted = goes_on(work, worker);
    uint64_t value = work->sums[SPLIT_TEST][item].value;
    size_t first = find_sum(work, value);
    if (!wanted || work->reasons[SPLIT_TEST][item] != NULL || first == work->train_sums ||
        work->sums[SPLIT_TRAIN][first].value != value ||
        dataset_read(work->dataset, SPLIT_TEST, item, &image, NULL, &error) != OK)
        return;
    for (size_t i = first; i < work->train_sums && work->sums[SPLIT_TRAIN][i].value == value; i++) {
        if (same_pixels(work->dataset, &image, work->sums[SPLIT_TRAIN][i].item)) {
            work->duplicates[item] = (int64_t)work->sums[SPLIT_TRAIN][i].item;
            break;
        }
    }
    image_free(&image);
}

/* --- findings ----------------------------------------------------------------------------------------------------- */

/* Takes over subject and detail. */
static status add_finding(struct check *check, struct check_finding finding, struct error *error)
{
    if (check->count == check->capacity) {
        size_t capacity = check->capacity > 0 ? 2 * check->capacity : 16;
        struct check_finding *grown = realloc(check->findings, array_size(capacity, sizeof *grown));
        if (grown != NULL) {
            check->findings = grown;
            check->capacity = capacity;
        }
    }
    if (check->count == check->capacity || finding.subject == NULL) {
        free(finding.subject);
        free(finding.detail);
        return error_set(error, ERROR_MEMORY, "no memory for a list of %zu findings", check->count);
    }
    check->findings[check->count++] = finding;
    check->splits[finding.split].of[finding.kind]++;
    return OK;
}

static status add_image_findings(struct check *check, struct work *work, enum split split, struct error *error)
{
    const struct dataset *dataset = work->dataset;
    size_t images = dataset_size(dataset, split);
    const char *missing;
    for (size_t i = 0; (missing = dataset_missing_file(dataset, split, i)) != NULL; i++)
        TRY(add_finding(check, (struct check_finding){CHECK_MISSING, split, strdup(missing), NULL}, error));
    for (size_t i = 0; i < images; i++) {
        char *reason = work->reasons[split][i];
        work->reasons[split][i] = NULL;
        if (reason != NULL)
            TRY(add_finding(
                check, (struct check_finding){CHECK_UNREADABLE, split, dataset_item_name(dataset, split, i), reason},
                error));
    }
    for (size_t i = 0; split == SPLIT_TEST && i < images; i++)
        if (work->duplicates[i] != NOT_FOUND)
            TRY(add_finding(
                check,
                (struct check_finding){CHECK_DUPLICATE, split, dataset_item_name(dataset, split, i),
                                       dataset_item_name(dataset, SPLIT_TRAIN, (size_t)work->duplicates[i])},
                error));
    return OK;
}

static int compare_counts(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static status check_balance(struct check *check, const struct dataset *dataset, enum split split, struct error *error)
{
    struct check_split *balance = &check->splits[split];
    size_t classes = dataset_classes(dataset), *counts = calloc(classes + 1, sizeof *counts);
    if (counts == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for %zu classes", classes);
    balance->images = dataset_size(dataset, split);
    for (size_t i = 0; i < balance->images; i++)
        counts[dataset_label(dataset, split, i)]++;
    status result = OK;
    for (size_t i = 0; result == OK && i < classes; i++)
        if (counts[i] == 0)
            result = add_finding(
                check, (struct check_finding){CHECK_EMPTY_CLASS, split, strdup(dataset_class_name(dataset, i)), NULL},
                error);
    qsort(counts, classes, sizeof *counts, compare_counts);
    if (classes > 0) {
        size_t lower = (classes - 1) / 2, upper = classes / 2;
        balance->least = counts[0];
        balance->most = counts[classes - 1];
        balance->median = ((double)counts[lower] + (double)counts[upper]) / 2;
    }
    free(counts);
    return result;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static status create_work(struct work *work, struct error *error)
{
    bool made = true;
    for (int split = 0; split < SPLITS; split++) {
        size_t images = dataset_size(work->dataset, (enum split)split);
        work->total += images;
        work->reasons[split] = calloc(images + 1, sizeof *work->reasons[split]);
        work->sums[split] = calloc(images + 1, sizeof *work->sums[split]);
        made = made && work->reasons[split] != NULL && work->sums[split] != NULL;
    }
    work->duplicates = calloc(dataset_size(work->dataset, SPLIT_TEST) + 1, sizeof *work->duplicates);
    if (!made || work->duplicates == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to check %zu images", dataset_name(work->dataset),
                         work->total);
    return OK;
}

static void free_work(struct work *work)
{
    for (int split = 0; split < SPLITS; split++) {
        for (size_t i = 0; work->reasons[split] != NULL && i < dataset_size(work->dataset, (enum split)split); i++)
            free(work->reasons[split][i]);
        free(work->reasons[split]);
        free(work->sums[split]);
    }
    free(work->duplicates);
}

static status look_at_images(struct work *work, struct error *error)
{
    struct threads *threads = work->settings->threads;
    for (int split = 0; split < SPLITS; split++) {
        work->split = (enum split)split;
        goes_on(work, 0); /* with few images, worker 0 may get none */
        threads_run(threads, dataset_size(work->dataset, work->split), decode_item, work);
    }
    sort_train(work);
    threads_run(threads, dataset_size(work->dataset, SPLIT_TEST), find_duplicate, work);
    const char *name = dataset_name(work->dataset);
    if (atomic_load(&work->stopped))
        return error_set(error, ERROR_STOPPED, "%s: stopped, not all images were looked at", name);
    if (atomic_load(&work->out_of_memory))
        return error_set(error, ERROR_MEMORY, "%s: no memory for what is wrong with its images", name);
    return OK;
}

status check_dataset(struct check *check, const struct dataset *dataset, const struct check_settings *settings,
                     struct error *error)
{
    struct work work = {.dataset = dataset, .settings = settings};
    *check = (struct check){0};
    status result = create_work(&work, error);
    if (result == OK)
        result = look_at_images(&work, error);
    for (int split = 0; result == OK && split < SPLITS; split++) {
        result = add_image_findings(check, &work, (enum split)split, error);
        if (result == OK)
            result = check_balance(check, dataset, (enum split)split, error);
    }
    if (result == OK && settings->progress != NULL)
        settings->progress(settings->context, work.total, work.total);
    free_work(&work);
    if (result != OK)
        check_free(check);
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
