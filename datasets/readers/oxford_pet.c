/* oxford-iiit-pet/annotations/{trainval,test}.txt: lines of image id, class (1-based), species, breed number;
 * images/<id>.jpg. A class is named after its ids without their last "_number", every word capitalised. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/readers/reader.h"

enum { CLASSES_MOST = 10000, ID = 256 };

struct line {
    char id[ID];
    int class;
};

static bool parse_line(struct line *line, const char *text)
{
    long numbers[3]; /* class, species, breed */
    int length = 0;
    if (sscanf(text, "%255s%n", line->id, &length) != 1)
        return false;
    const char *at = text + length;
    for (int i = 0; i < 3; i++) {
        char *end;
        numbers[i] = strtol(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    line->class = numbers[0] >= 1 && numbers[0] <= CLASSES_MOST ? (int)numbers[0] : 0;
    return line->class > 0 && strrchr(line->id, '_') != NULL;
}

/* "american_pit_bull_terrier_12" → "American_Pit_Bull_Terrier" */
static void breed_of(const char *id, char name[ID])
{
    size_t size = (size_t)(strrchr(id, '_') - id);
    for (size_t i = 0; i < size; i++)
        name[i] = (char)(i == 0 || id[i - 1] == '_' ? toupper((unsigned char)id[i]) : tolower((unsigned char)id[i]));
    name[size] = 0;
}

/* The classes are numbered without gaps; each is named by its first line. */
static status list_classes(struct dataset *dataset, const struct strings *lines, struct error *error)
{
    struct line line;
    char names[ID];
    for (int class = 1;; class ++) {
        size_t i = 0;
        int highest = 0;
        for (; i < lines->count && parse_line(&line, lines->items[i]) && line.class != class; i++)
            highest = line.class > highest ? line.class : highest;
        if (i == lines->count && highest < class)
            return OK;
        if (i == lines->count)
            return error_set(error, ERROR_FORMAT, "expected class numbers without gaps, found %d but not %d", highest,
                             class);
        if (!parse_line(&line, lines->items[i]))
            return error_set(error, ERROR_FORMAT, "line %zu: expected image id, class, species and breed, found \"%s\"",
                             i + 1, lines->items[i]);
        breed_of(line.id, names);
        dataset_add_class(dataset, names);
    }
}

static status add_images(struct dataset *dataset, enum split split, const struct strings *lines, struct error *error)
{
    struct line line;
    for (size_t i = 0; i < lines->count; i++) {
        if (!parse_line(&line, lines->items[i]))
            return error_set(error, ERROR_FORMAT, "line %zu: expected image id, class, species and breed, found \"%s\"",
                             i + 1, lines->items[i]);
        TRY(dataset_add_file(dataset, &dataset->items[split], (size_t)line.class - 1, error, "images/%s.jpg", line.id));
    }
    return OK;
}

static status open_split(struct dataset *dataset, enum split split, struct error *error)
{
    const char *name = split == SPLIT_TRAIN ? "annotations/trainval.txt" : "annotations/test.txt";
    SCOPED(strings_free) struct strings lines = {0};
    TRY(dataset_read_lines(dataset, name, &lines, error));
    status result = split == SPLIT_TRAIN ? list_classes(dataset, &lines, error) : OK;
    NEXT(result, add_images(dataset, split, &lines, error));
    return result == OK ? OK : error_context(error, "%s/%s/%s", dataset->root, dataset->folder, name);
}

static status open_oxford_pet(struct dataset *dataset, const struct options *options, struct error *error)
{
    TRY(open_split(dataset, SPLIT_TRAIN, error));
    return open_split(dataset, SPLIT_TEST, error);
}

const struct dataset_reader dataset_oxford_pet = {
    .name = "oxford_pet",
    .source = "Oxford-IIIT Pet: trainval and test lists",
    .folders = {"oxford-iiit-pet", "oxford_pets"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){.file = "split_zhou_OxfordPets.json",
                                 .places = {{"oxford_pets", "images"}, {"oxford-iiit-pet", "images"}}},
    .open = open_oxford_pet,
};
