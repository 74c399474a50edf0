/* Any folder of class folders: <path>/train/<class>/<file> and <path>/test/<class>/<file>, or <path>/<class>/<file>
 * with a seeded 80/20 split of each class, or several such folders or lists of files for either. Class names
 * are the folder names in byte order (<path>/classnames.txt overrides them). */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/readers/reader.h"

static const struct option own_options[] = {
    OPTION(TEXT, "path", NULL, "folder of the dataset below the data root; default: the task's own name",
           .incidental = "*"),
    OPTION_NUMBER(INTEGER, "split_seed", 0, 4294967295.0, "42",
                  "seed of the 80/20 split of each class, where there are no train and test folders"),
    OPTION(LIST, "train", "",
           "folders of class folders, or lists of files, below the dataset's folder that have the training images; "
           "default: train"),
    OPTION(LIST, "test", "", "folders or lists like those of train that have the test images; default: test"),
    OPTION_ON_MISSING,
    {0}};

/* The length of "017." at the start of a name; 0: there is none. */
static size_t numbered(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && name[digits] == '.' && name[digits + 1] != 0 ? digits + 1 : 0;
}

/* The text after "FOLDER " in the line; NULL: it does not begin so. */
static const char *after_folder(const char *line, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(line, folder, size) == 0 && line[size] == ' ' ? line + size + 1 : NULL;
}

/* The name in the line of classnames.txt that is the folder's; NULL: there is none. "red fox Fox" is not of the folder "red"
 * where there is a folder "red fox". */
static const char *name_of(const struct strings *lines, const struct strings *folders, const char *folder)
{
    for (size_t i = 0; i < lines->count; i++) {
        const char *name = after_folder(lines->items[i], folder), *longer;
        for (size_t j = 0; name != NULL && j < folders->count; j++) {
            longer = after_folder(lines->items[i], folders->items[j]);
            name = longer != NULL && longer > name ? NULL : name;
        }
        if (name != NULL)
            return name;
    }
    return NULL;
}

/* Classes are called as classnames.txt says for their folders, if it says so for all, or else as their folders are, without a
 * number that all of them begin with. A classnames.txt that goes by position is read later. */
static status add_classes(struct dataset *dataset, const struct strings *folders, struct error *error)
{
    SCOPED(strings_free) struct strings lines = {0};
    bool found, named, numbers = true;
    TRY(dataset_read_override(dataset, "classnames.txt", &lines, &found, error));
    named = found;
    for (size_t i = 0; i < folders->count; i++) {
        named = named && name_of(&lines, folders, folders->items[i]) != NULL;
        numbers = numbers && numbered(folders->items[i]) > 0;
    }
    for (size_t i = 0; i < folders->count; i++)
        if (named)
            strings_format(&dataset->classes, "%s", name_of(&lines, folders, folders->items[i]));
        else
            dataset_add_class(dataset, folders->items[i] + (numbers ? numbered(folders->items[i]) : 0));
    dataset->names_given = named;
    return OK;
}

/* Names the folder without a "/." at its end. */
static status refuse(const struct dataset *dataset, struct error *error, const char *found)
{
    bool whole = strcmp(dataset->folder, ".") == 0;
    return error_set(error, ERROR_FORMAT, "%s%s%s: expected a folder for each class, with its images; found %s",
                     dataset->root, whole ? "" : "/", whole ? "" : dataset->folder, found);
}

/* Refuses a folder one level too high, where each dataset would be a class. */
static status refuse_datasets(const struct dataset *dataset, const struct strings *names, struct error *error)
{
    char path[DATASET_PATH], found[DATASET_PATH];
    for (size_t i = 0; i < names->count; i++) {
        bool deeper;
        TRY(dataset_path(dataset, names->items[i], path, error));
        TRY(image_folder_recognize(&deeper, path, error));
        if (!deeper)
            continue;
        snprintf(found, sizeof found, "class folders within \"%s\"; set path to one dataset, as in path: %s%s%s",
                 names->items[i], strcmp(dataset->folder, ".") == 0 ? "" : dataset->folder,
                 strcmp(dataset->folder, ".") == 0 ? "" : "/", names->items[i]);
        return refuse(dataset, error, found);
    }
    return OK;
}

/* The names of folders that hold a split, whatever their case. A validation set tests where there is no test set. */
static const char *const split_names[SPLITS] = {
    "train|training|trainset|train_set|train-set|training_set|train_images|images_train|trn",
    "test|testing|testset|test_set|test-set|test_images|images_test|tst|val|valid|validation|validation_set|dev|eval"};

/* The folder in path that is called as one for this split; the caller frees; NULL: there is none. */
static char *find_part(const char *path, enum split split)
{
    SCOPED(strings_free) struct strings names = {0};
    char lower[32], *found = NULL;
    size_t best = SIZE_MAX, position;
    if (strings_list_folders(&names, path, NULL) != OK)
        return NULL;
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        size_t size = strlen(name);
        for (size_t k = 0; size < sizeof lower && k <= size; k++)
            lower[k] = (char)tolower((unsigned char)name[k]);
        if (size >= sizeof lower || !text_find_word(split_names[split], lower, &position) || position >= best)
            continue;
        best = position;
        free(found);
        found = xstrdup(name);
    }
    return found;
}

/* Refuses a folder whose parts have other names than train and test: as classes, they would mix training and test images. */
static status refuse_parts(const struct dataset *dataset, const char *below, struct error *error)
{
    char path[DATASET_PATH], found[DATASET_PATH];
    TRY(dataset_path(dataset, below, path, error));
    OWNED char *train = find_part(path, SPLIT_TRAIN), *test = find_part(path, SPLIT_TEST);
    bool deeper = *below != 0, whole = strcmp(dataset->folder, ".") == 0;
    bool usual = deeper && train != NULL && test != NULL && strcmp(train, "train") == 0 && strcmp(test, "test") == 0;
    if (train == NULL || test == NULL || usual) /* the usual names are found by path alone */
        return OK;
    OWNED char *own = path_format("%s%s%s", whole ? "" : dataset->folder, whole || !deeper ? "" : "/", below);
    snprintf(found, sizeof found,
             "\"%s\" and \"%s\"%s%s%s; set train: %s and test: %s%s%s (of this task: tasks.NAME.train=%s "
             "tasks.NAME.test=%s)",
             train, test, deeper ? " within \"" : "", below, deeper ? "\"" : "", train, test,
             deeper ? " and path: " : "", deeper ? own : "", train, test);
    return refuse(dataset, error, found);
}

static status check_classes(const struct dataset *dataset, const struct strings *names, struct error *error)
{
    char found[80];
    TRY(refuse_parts(dataset, "", error));
    for (size_t i = 0; i < names->count; i++)
        TRY(refuse_parts(dataset, names->items[i], error));
    if (names->count > 0)
        return refuse_datasets(dataset, names, error);
    snprintf(found, sizeof found, "%zu images and no folder", dataset->left_out.count);
    return refuse(dataset, error, dataset->left_out.count > 0 ? found : "no folder");
}

static status open_whole(struct dataset *dataset, uint64_t seed, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    SCOPED(dataset_items_free) struct dataset_items items = {0};
    TRY(image_folder_list(dataset, ".", &names, &items, error));
    TRY(check_classes(dataset, &names, error));
    TRY(add_classes(dataset, &names, error));
    TRY(dataset_require_images(dataset, &items, error));
    return dataset_split_randomly(dataset, &items, seed, true, error);
}

/* --- parts: several folders of class folders, or lists of files --------------------------------------------------- */

/* Folders, and lists, below the dataset's own folder. A line of a list is a file there and, after a blank, the number of its class.
 * The class is the folder that the file lies in; a number and a folder belong together, or the list is refused. */
struct folder_parts {
    const char **names;
    size_t count;
};

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
static void take_items(struct gathering *g, enum split split, const struct strings *names, struct dataset_items *items)
{
    for (size_t i = 0; split == SPLIT_TRAIN && i < names->count; i++)
        class_of(g, names->items[i], strlen(names->items[i]));
    for (size_t i = 0; i < items->count; i++) {
        struct dataset_item item = items->items[i];
        const char *name = names->items[item.label];
        item.label = (int32_t)class_of(g, name, strlen(name));
        item.position = (uint32_t)g->dataset->items[split].count;
        dataset_add_item(&g->dataset->items[split], item);
        items->items[i].file = NULL; /* it has moved */
    }
}

static status add_folder(struct gathering *g, enum split split, const char *folder, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    SCOPED(dataset_items_free) struct dataset_items items = {0};
    TRY(image_folder_list(g->dataset, folder, &names, &items, error));
    take_items(g, split, &names, &items);
    return OK;
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
    OWNED int32_t *places = xmalloc((g->classes.count + 1) * sizeof *places);
    strings_copy(folders, (const char *const *)g->classes.items, g->classes.count);
    strings_sort(folders);
    for (size_t i = 0; i < g->classes.count; i++)
        places[i] = (int32_t)strings_find_sorted(folders, g->classes.items[i]);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < g->dataset->items[split].count; i++)
            g->dataset->items[split].items[i].label = places[g->dataset->items[split].items[i].label];
}

/* Fills in the items of both splits. folders: the names of the classes' folders in byte order, which the labels count; the
 * caller frees them. A class that is tested without being trained is an error. */
static status gather_parts(struct dataset *dataset, const struct folder_parts parts[SPLITS], struct strings *folders,
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

static const char *const standard[SPLITS] = {"train", "test"};

/* What is not given is the folder of the usual name. */
static status check_parts(const struct dataset *dataset, const size_t given[SPLITS], struct error *error)
{
    char path[DATASET_PATH];
    for (int split = 0; split < SPLITS; split++) {
        enum split other = split == SPLIT_TRAIN ? SPLIT_TEST : SPLIT_TRAIN;
        TRY(dataset_path(dataset, standard[split], path, error));
        if (given[split] > 0 || file_is_directory(path))
            continue;
        if (given[other] > 0)
            return error_set(error, ERROR_ARGUMENT,
                             "train, test: expected both or none of them, found %s alone, and no folder %s",
                             standard[other], path);
        TRY(dataset_path(dataset, "", path, error));
        OWNED char *named = find_part(path, SPLIT_TEST);
        char found[160] = "train without test beside it";
        if (named != NULL)
            snprintf(found, sizeof found,
                     "train without test beside it; to test on \"%s\", set test: %s (of this task: "
                     "tasks.NAME.test=%s)",
                     named, named, named);
        return refuse(dataset, error, found);
    }
    return OK;
}

static status open_parts(struct dataset *dataset, const struct options *options, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    struct folder_parts parts[SPLITS];
    const char *usual[SPLITS] = {standard[SPLIT_TRAIN], standard[SPLIT_TEST]}, **items[SPLITS];
    size_t given[SPLITS];
    for (int split = 0; split < SPLITS; split++) {
        items[split] = options_list_items(options, standard[split], &given[split]);
        parts[split] = given[split] > 0 ? (struct folder_parts){items[split], given[split]}
                                        : (struct folder_parts){&usual[split], 1};
    }
    status result = check_parts(dataset, given, error);
    NEXT(result, gather_parts(dataset, parts, &names, error));
    NEXT(result, add_classes(dataset, &names, error));
    NEXT(result, dataset_require_images(dataset, &dataset->items[SPLIT_TRAIN], error));
    for (int split = 0; split < SPLITS; split++)
        free(items[split]);
    return result;
}

/* --- the dataset -------------------------------------------------------------------------------------------------- */

static status refuse_missing(const struct dataset *dataset, struct error *error)
{
    SCOPED(directory_free) struct directory below = {0};
    TRY(directory_list(&below, dataset->root, error));
    const char *near = nearest_word(dataset->folder, (const char *const *)below.names, below.count);
    error_set(error, ERROR_IO,
              "%s: there is no folder \"%s\"%s%s%s; expected one with a folder of images for each class", dataset->root,
              dataset->folder, near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
              near != NULL ? "\"?)" : "");
    return ERROR_IO;
}

static status open_folder(struct dataset *dataset, const struct options *options, struct error *error)
{
    char whole[DATASET_PATH], train[DATASET_PATH];
    const char *path = options_text(options, "path");
    dataset->given_folder = xstrdup(path != NULL ? path : ".");
    dataset->folder = dataset->given_folder;
    if (*dataset->folder == '/' || path_climbs(dataset->folder))
        return error_set(error, ERROR_ARGUMENT,
                         "path: expected a folder below the data root %s, found \"%s\"; link it there with ln -s",
                         dataset->root, dataset->folder);
    TRY(dataset_path(dataset, "", whole, error));
    TRY(dataset_path(dataset, "train", train, error));
    if (!file_is_directory(whole))
        return refuse_missing(dataset, error);
    if (file_is_directory(train) || options_list_size(options, "train") + options_list_size(options, "test") > 0)
        return open_parts(dataset, options, error);
    return open_whole(dataset, (uint64_t)options_integer(options, "split_seed"), error);
}

const struct dataset_reader dataset_folder = {
    .name = "folder",
    .source = "any folder of class folders, with train and test parts or a seeded 80/20 split of each class",
    .options = own_options,
    .open = open_folder,
};
