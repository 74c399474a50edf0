/* Datasets that are made from others or not opened by name: fewer images, some of the classes, class names alone, the images of a
 * folder, images of other datasets. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "core/text.h"
#include "datasets/prompts.h"
#include "datasets/readers/reader.h"

/* --- fewer images ------------------------------------------------------------------------------------------------- */

void dataset_keep_items(struct dataset *dataset, enum split split, const bool *keep)
{
    struct dataset_items *items = &dataset->items[split];
    size_t kept = 0;
    for (size_t i = 0; i < items->count; i++) {
        if (keep[i])
            items->items[kept++] = items->items[i];
        else
            free(items->items[i].file);
    }
    items->count = kept;
}

/* Appends a copy of item. */
static void copy_item(struct dataset_items *items, struct dataset_item item)
{
    if (item.file != NULL)
        item.file = xstrdup(item.file);
    dataset_add_item(items, item);
}

/* Groups the items by class: those of class c are by_class[starts[c]] … by_class[starts[c + 1] − 1]. */
static void sort_by_class(const struct dataset_items *items, size_t classes, size_t *starts, uint32_t *by_class)
{
    for (size_t i = 0; i < items->count; i++)
        starts[items->items[i].label + 1]++;
    for (size_t c = 0; c < classes; c++)
        starts[c + 1] += starts[c];
    for (size_t i = items->count; i-- > 0;)
        by_class[--starts[items->items[i].label + 1]] = (uint32_t)i;
    memmove(starts, starts + 1, classes * sizeof *starts);
    starts[classes] = items->count;
}

static void warn_of_short_classes(const struct dataset *dataset, size_t shots, bool repeat, const size_t *starts)
{
    enum { NAMED = 3 };
    SCOPED(text_free) struct text names = {0};
    size_t count = 0, classes = dataset->classes.count;
    for (size_t c = 0; c < classes; c++)
        if (starts[c + 1] - starts[c] < shots && ++count <= NAMED)
            text_add(&names, "%s%s (%zu)", count > 1 ? ", " : "", dataset->classes.items[c], starts[c + 1] - starts[c]);
    if (count > 0)
        log_warn(dataset->log, "%s: %zu of %zu classes have fewer than %zu training images, %s: %s%s",
                 dataset->reader->name, count, classes, shots,
                 repeat ? "so that some are drawn more than once" : "of which all are used", names.data,
                 count > NAMED ? ", …" : "");
}

/* times [items]: how often each is kept. */
static void draw(size_t shots, bool repeat, uint64_t seed, size_t classes, const size_t *starts,
                 const uint32_t *by_class, uint32_t *order, uint32_t *times)
{
    for (size_t c = 0; c < classes; c++) {
        size_t count = starts[c + 1] - starts[c];
        struct rng rng = rng_make(seed, RNG_FEW_SHOT, 0, (uint32_t)c);
        if (repeat && count < shots && count > 0) {
            for (size_t i = 0; i < shots; i++)
                times[by_class[starts[c] + rng_below(&rng, i, count)]]++;
            continue;
        }
        rng_permutation(&rng, count, order);
        for (size_t i = 0; i < count && i < shots; i++)
            times[by_class[starts[c] + order[i]]] = 1;
    }
}

/* The items in order, each as often as times says. */
static void repeat_items(struct dataset_items *items, const uint32_t *times)
{
    struct dataset_items kept = {0};
    for (size_t i = 0; i < items->count; i++)
        for (uint32_t k = 0; k < times[i]; k++)
            copy_item(&kept, items->items[i]);
    dataset_items_free(items);
    *items = kept;
}

void dataset_keep_shots(struct dataset *dataset, size_t shots, bool repeat, uint64_t seed)
{
    struct dataset_items *items = &dataset->items[SPLIT_TRAIN];
    size_t classes = dataset->classes.count;
    OWNED size_t *starts = xcalloc(classes + 2, sizeof *starts);
    OWNED uint32_t *by_class = xmalloc((items->count + 1) * sizeof *by_class);
    OWNED uint32_t *order = xmalloc((items->count + 1) * sizeof *order);
    OWNED uint32_t *times = xcalloc(items->count + 1, sizeof *times);
    sort_by_class(items, classes, starts, by_class);
    draw(shots, repeat, seed, classes, starts, by_class, order, times);
    warn_of_short_classes(dataset, shots, repeat, starts);
    repeat_items(items, times);
}

/* --- other classes ------------------------------------------------------------------------------------------------ */

/* Appends copies of the items whose class has a new label, with that label. */
static void copy_items(struct dataset_items *items, const struct dataset_items *whole, const int32_t *labels)
{
    for (size_t i = 0; i < whole->count; i++) {
        struct dataset_item item = whole->items[i];
        if (labels[item.label] < 0)
            continue;
        item.label = labels[item.label];
        copy_item(items, item);
    }
}

void dataset_set_classes(struct dataset *dataset, const char *const *classes, size_t count, const int32_t *labels)
{
    struct strings copies = {0};
    strings_copy(&copies, classes, count);
    strings_free(&dataset->classes);
    dataset->classes = copies;
    for (int split = 0; split < SPLITS; split++) {
        for (size_t i = 0; i < dataset->items[split].count; i++)
            dataset->items[split].items[i].label = labels[dataset->items[split].items[i].label];
        for (size_t i = 0; i < dataset->missing[split].count; i++)
            dataset->missing[split].items[i].label = labels[dataset->missing[split].items[i].label];
    }
}

struct dataset *dataset_select(const struct dataset *whole, const size_t *classes, size_t count)
{
    struct dataset *part = xcalloc(1, sizeof *part);
    OWNED int32_t *labels = xmalloc((whole->classes.count + 1) * sizeof *labels);
    part->root = xstrdup(whole->root);
    part->reader = whole->reader;
    part->folder = whole->folder;
    part->log = whole->log;
    part->names_given = whole->names_given;
    part->skip_unreadable = whole->skip_unreadable;
    part->sources = whole->sources;
    part->source_count = whole->source_count;
    part->whole = whole;
    for (size_t c = 0; c < whole->classes.count; c++)
        labels[c] = -1;
    for (size_t i = 0; i < count; i++) {
        labels[classes[i]] = (int32_t)i;
        strings_copy(&part->classes, (const char *const *)&whole->classes.items[classes[i]], 1);
    }
    strings_copy(&part->templates, (const char *const *)whole->templates.items, whole->templates.count);
    for (int split = 0; split < SPLITS; split++) {
        copy_items(&part->items[split], &whole->items[split], labels);
        copy_items(&part->missing[split], &whole->missing[split], labels);
    }
    return part;
}

/* --- names, from an adapters file --------------------------------------------------------------------------------- */

static const struct dataset_reader names_alone = {.name = "class names", .source = "the caller"};

void dataset_of_names(struct dataset **result, const char *const *classes, size_t class_count,
                      const char *const *templates, size_t template_count)
{
    struct dataset *dataset = *result = xcalloc(1, sizeof *dataset);
    dataset->reader = &names_alone;
    strings_copy(&dataset->classes, classes, class_count);
    strings_copy(&dataset->templates, templates, template_count);
}

void dataset_of_sizes(struct dataset **result, const struct dataset_published *sizes)
{
    struct dataset *dataset = *result = xcalloc(1, sizeof *dataset);
    dataset->reader = &names_alone;
    for (size_t c = 0; c < sizes->classes; c++)
        strings_format(&dataset->classes, "%s %zu", sizes->reader, c); /* no other dataset's */
    prompts_add_templates(sizes->reader, &dataset->templates);
    for (size_t i = 0; i < sizes->train; i++)
        dataset_add_generated(dataset, SPLIT_TRAIN, i % sizes->classes);
    for (size_t i = 0; i < sizes->test; i++)
        dataset_add_generated(dataset, SPLIT_TEST, i % sizes->classes);
}

/* --- a folder of images: references for distillation -------------------------------------------------------------- */

static const struct dataset_reader images_alone = {.name = "image folder", .source = "the caller"};

static status add_images(struct dataset *dataset, struct error *error)
{
    strings_add(&dataset->classes, "image", strlen("image"));
    TRY(image_folder_add(dataset, ".", 0, &dataset->items[SPLIT_TRAIN], error));
    return dataset->items[SPLIT_TRAIN].count > 0
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: expected a folder with images in it, at any depth; found none",
                           dataset->root);
}

status dataset_of_images(struct dataset **result, const char *path, struct error *error)
{
    if (!file_is_directory(path))
        return error_set(error, ERROR_IO, "there is no folder %s; expected one with images in it", path);
    struct dataset *dataset = xcalloc(1, sizeof *dataset);
    dataset->root = xstrdup(path);
    dataset->reader = &images_alone;
    dataset->folder = ".";
    status filled = add_images(dataset, error);
    *result = filled == OK ? dataset : NULL;
    if (filled != OK)
        dataset_close(dataset);
    return filled;
}

/* --- training images of other datasets, read by those ------------------------------------------------------------- */

static status read_item(const struct dataset *list, const struct dataset_item *item, struct image *image,
                        struct error *error)
{
    const struct dataset_place *place = (const struct dataset_place *)list->sources->owner + item->position;
    return dataset_read(place->dataset, SPLIT_TRAIN, place->item, image, NULL, error);
}

static const struct dataset_reader item_list = {.name = "item list", .source = "the caller", .read = read_item};

struct dataset *dataset_of_items(const struct dataset_place *places, size_t count)
{
    struct dataset *list = xcalloc(1, sizeof *list);
    struct dataset_place *copy = xmalloc(count * sizeof *copy);
    list->reader = &item_list;
    list->root = xstrdup("");
    list->sources = xcalloc(1, sizeof *list->sources);
    memcpy(copy, places, count * sizeof *copy);
    *list->sources = (struct raw_images){.owner = copy, .release = free, .name = xstrdup(item_list.name)};
    list->source_count = 1;
    strings_add(&list->classes, "image", strlen("image"));
    for (size_t i = 0; i < count; i++) {
        int label = dataset_label(places[i].dataset, SPLIT_TRAIN, places[i].item);
        dataset_add_item(&list->items[SPLIT_TRAIN], (struct dataset_item){.label = label, .position = (uint32_t)i});
    }
    return list;
}

static void copy_classes(struct dataset *joint, const struct dataset *part)
{
    strings_copy(&joint->classes, (const char *const *)part->classes.items, part->classes.count);
}

struct dataset *dataset_join(const struct dataset *const *parts, size_t count, bool shared)
{
    size_t images = 0;
    for (size_t k = 0; k < count; k++)
        images += dataset_size(parts[k], SPLIT_TRAIN);
    struct dataset_place *places = xmalloc(images * sizeof *places), *place = places;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < dataset_size(parts[k], SPLIT_TRAIN); i++)
            *place++ = (struct dataset_place){parts[k], (uint32_t)i};
    struct dataset *joint = dataset_of_items(places, images);
    struct dataset_item *items = joint->items[SPLIT_TRAIN].items;
    free(places);
    strings_free(&joint->classes);
    if (shared)
        copy_classes(joint, parts[0]);
    for (size_t k = 0; k < count && !shared; k++) {
        for (size_t i = 0; i < dataset_size(parts[k], SPLIT_TRAIN); i++)
            items++->label += (int32_t)joint->classes.count;
        copy_classes(joint, parts[k]);
    }
    return joint;
}
