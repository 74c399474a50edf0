#include "datasets/readers/folder_parts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/image_folder.h"

/* Classes in the order in which they are met; numbers: theirs in lists, "" without. */
struct gathering {
    struct dataset *dataset;
    enum split split; /* of the list that is read */
    struct strings classes, numbers;
    size_t last; /* the class that was asked for last: neighbours in a list share it */
};

static size_t class_of(struct gathering *g, const char *name, size_t size)
{
    for (size_t i = 0; i < g->classes.count; i++) {
        size_t at = (g->last + i) % g->classes.count;
        if (strlen(g->classes.items[at]) == size && memcmp(g->classes.items[at], name, size) == 0)
            return g->last = at;
    }
    strings_add(&g->classes, name, size);
    strings_add(&g->numbers, "", 0);
    return g->last = g->classes.count - 1;
}

/* Moves items, labelled by names, to those of the split. */
static status take_items(struct gathering *g, enum split split, const struct strings *names,
                         struct dataset_items *items, struct error *error)
{
    for (size_t i = 0; split == SPLIT_TRAIN && i < names->count; i++)
        class_of(g, names->items[i], strlen(names->items[i]));
    for (size_t i = 0; i < items->count; i++) {
        struct dataset_item item = items->items[i];
        const char *name = names->items[item.label];
        item.label = (int32_t)class_of(g, name, strlen(name));
        item.position = (uint32_t)g->dataset->items[split].count;
        TRY(dataset_add_item(&g->dataset->items[split], item, error));
        items->items[i].file = NULL; /* it has moved */
    }
    return OK;
}

static status add_folder(struct gathering *g, enum split split, const char *folder, struct error *error)
{
    struct strings names = {0};
    struct dataset_items items = {0};
    status result = image_folder_list(g->dataset, folder, &names, &items, error);
    NEXT(result, take_items(g, split, &names, &items, error));
    dataset_items_free(&items);
    strings_free(&names);
    return result;
}

/* A class has one number in all lists, and no other class has it. */
static status check_number(struct gathering *g, size_t class, const char *number, struct error *error)
{
    char **known = &g->numbers.items[class];
    if (strcmp(*known, number) == 0)
        return OK;
    if (**known != 0)
        return error_set(error, ERROR_FORMAT, "expected the number %s for images in %s, as before, found \"%s\"",
                         *known, g->classes.items[class], number);
    for (size_t i = 0; i < g->classes.count; i++)
        if (strcmp(g->numbers.items[i], number) == 0)
            return error_set(error, ERROR_FORMAT,
                             "expected a number of its own for images in %s, found %s, which is that of %s",
                             g->classes.items[class], number, g->classes.items[i]);
    free(*known);
    *known = xstrdup(number);
    return OK;
}

/* "clipart/owl/clipart_001.jpg 213", with a space or a tab; the number may be missing. */
static status add_line(void *context, const char *line, struct error *error)
{
    struct gathering *g = context;
    size_t size = strlen(line), number = size;
    while (number > 0 && isdigit((unsigned char)line[number - 1]))
        number--;
    bool numbered = number > 0 && number < size && (line[number - 1] == ' ' || line[number - 1] == '\t');
    size = numbered ? number - 1 : size;
    size_t end = size;
    while (end > 0 && line[end - 1] != '/')
        end--;
    size_t start = end > 0 ? end - 1 : 0;
    while (start > 0 && line[start - 1] != '/')
        start--;
    if (end < 2 || end == size)
        return error_set(error, ERROR_FORMAT, "expected CLASS/FILE below the folder, found \"%s\"", line);
    size_t class = class_of(g, line + start, end - 1 - start);
    if (numbered)
        TRY(check_number(g, class, line + number, error));
    return dataset_add_file(g->dataset, &g->dataset->items[g->split], class, error, "%.*s", (int)size, line);
}

static status add_list(struct gathering *g, enum split split, const char *name, struct error *error)
{
    g->dataset->has_lists = true;
    g->split = split;
    return dataset_each_line(g->dataset, name, add_line, g, error);
}

static status add_parts(struct gathering *g, enum split split, const struct folder_parts *parts, struct error *error)
{
    char path[DATASET_PATH];
    for (size_t i = 0; i < parts->count; i++) {
        const char *name = parts->names[i];
        TRY(dataset_path(g->dataset, name, path, error));
        if (path_climbs(name))
            return error_set(error, ERROR_ARGUMENT, "%s: expected a folder or list below the dataset's", path);
        if (!file_exists(path) && !file_is_directory(path))
            return error_set(error, ERROR_IO, "%s: expected a folder with a folder of images for each class, or a list",
                             path);
        TRY(file_is_directory(path) ? add_folder(g, split, name, error) : add_list(g, split, name, error));
    }
    return OK;
}

/* Numbers the classes by the bytes of their names. */
static void sort_classes(struct gathering *g, struct strings *folders)
{
    int32_t *places = xmalloc((g->classes.count + 1) * sizeof *places);
    strings_copy(folders, (const char *const *)g->classes.items, g->classes.count);
    strings_sort(folders);
    for (size_t i = 0; i < g->classes.count; i++)
        places[i] = (int32_t)strings_find_sorted(folders, g->classes.items[i]);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < g->dataset->items[split].count; i++)
            g->dataset->items[split].items[i].label = places[g->dataset->items[split].items[i].label];
    free(places);
}

status folder_parts_open(struct dataset *dataset, const struct folder_parts parts[SPLITS], struct strings *folders,
                         struct error *error)
{
    struct gathering g = {.dataset = dataset};
    status result = add_parts(&g, SPLIT_TRAIN, &parts[SPLIT_TRAIN], error);
    size_t trained = g.classes.count;
    NEXT(result, add_parts(&g, SPLIT_TEST, &parts[SPLIT_TEST], error));
    if (result == OK && g.classes.count > trained)
        result = error_set(error, ERROR_FORMAT, "%s/%s: the class \"%s\" has test images but no train folder",
                           dataset->root, dataset->folder, g.classes.items[trained]);
    if (result == OK)
        sort_classes(&g, folders);
    strings_free(&g.classes);
    strings_free(&g.numbers);
    return result;
}
