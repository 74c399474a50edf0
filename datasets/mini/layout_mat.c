/* The datasets whose labels are MATLAB files: flowers and stanford_cars. They are written as MATLAB 5 without compression: a
 * header, then nested elements of type, size, and bytes filled up to a multiple of eight. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/mini/layout.h"

enum element { INT8 = 1, UINT16 = 4, INT32, UINT32, MATRIX = 14, UTF8 = 16 };
enum class { CELL_CLASS = 1, STRUCT_CLASS, CHAR_CLASS = 4, UINT16_CLASS = 11 };

static void add_element(struct text *mat, enum element type, const void *data, size_t size)
{
    text_add_bytes(mat, (const char *)(uint32_t[]){type, (uint32_t)size}, 8);
    text_add_bytes(mat, data, size);
    text_add_bytes(mat, (const char[8]){0}, (8 - size % 8) % 8);
}

/* A matrix of one row; returns where it begins, for end_matrix after its contents. */
static size_t begin_matrix(struct text *mat, enum class class, size_t columns, const char *name)
{
    size_t begin = mat->size;
    add_element(mat, MATRIX, "", 0);
    add_element(mat, UINT32, (uint32_t[]){class, 0}, 8);
    add_element(mat, INT32, (int32_t[]){1, (int32_t)columns}, 8);
    add_element(mat, INT8, name, strlen(name));
    return begin;
}

static void end_matrix(struct text *mat, size_t begin)
{
    uint32_t size = (uint32_t)(mat->size - begin - 8);
    memcpy(mat->data + begin + 4, &size, sizeof size);
}

/* Whole numbers, as in the originals, because Python's readers use them as indices. */
static void add_row(struct text *mat, const char *name, const uint16_t *values, size_t count)
{
    size_t row = begin_matrix(mat, UINT16_CLASS, count, name);
    add_element(mat, UINT16, values, count * sizeof *values);
    end_matrix(mat, row);
}

static void add_string(struct text *mat, const char *string)
{
    size_t row = begin_matrix(mat, CHAR_CLASS, strlen(string), "");
    add_element(mat, UTF8, string, strlen(string));
    end_matrix(mat, row);
}

/* Without a date: the same suite has the same bytes on any day. */
static void begin_file(struct text *mat)
{
    static const uint16_t version_and_order[2] = {0x0100, 'M' << 8 | 'I'};
    text_add(mat, "%-124s", "MATLAB 5.0 MAT-file, Platform: GLNXA64, Created by: mtil");
    text_add_bytes(mat, (const char *)version_and_order, sizeof version_and_order);
}

/* Image numbers are 1-based and in an order of their own; the few of "valid" follow those of test. */
static status flowers_lists(const struct layout *layout, const uint16_t *order, size_t train, size_t test, size_t valid,
                            struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    add_row(&mat, "trnid", order, train);
    add_row(&mat, "tstid", order + train, test);
    add_row(&mat, "valid", order + train + test, valid);
    return layout_text(layout, "flowers-102/setid.mat", &mat, error);
}

static status flowers_labels(const struct layout *layout, const uint16_t *labels, size_t count, struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    add_row(&mat, "labels", labels, count);
    return layout_text(layout, "flowers-102/imagelabels.mat", &mat, error);
}

status layout_flowers(struct layout *layout, struct error *error)
{
    size_t train = (size_t)layout->domain->train, test = (size_t)layout->domain->test,
           valid = (size_t)layout->domain->classes;
    size_t count = train + test + valid;
    uint16_t *order = xcalloc(count, sizeof *order), *labels = xcalloc(count, sizeof *labels);
    status result = layout_folder(layout, error, "flowers-102/jpg");
    for (size_t item = 0; item < count; item++) {
        size_t number = count - item; /* the lists are not sorted in the original either */
        order[item] = (uint16_t)number;
        labels[number - 1] = (uint16_t)(layout_label(layout, item) + 1);
        layout_picture(layout, item, "flowers-102/jpg/image_%05zu.jpg", number);
    }
    NEXT(result, flowers_lists(layout, order, train, test, valid, error));
    NEXT(result, flowers_labels(layout, labels, count, error));
    free(order);
    free(labels);
    if (result != OK)
        return result;
    return layout_class_names(layout, "flowers-102/classnames.txt", error);
}

/* annotations: 1×N struct of box, class (1-based) and file name */
static status cars_annotations(const struct layout *layout, const char *path, bool test, struct error *error)
{
    enum { LONGEST = 8, FIELDS = 6 };
    static const char fields[FIELDS][LONGEST] = {"bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname"};
    size_t first, count = layout_items(layout, test, &first);
    struct text mat = {0};
    begin_file(&mat);
    size_t annotations = begin_matrix(&mat, STRUCT_CLASS, count, "annotations");
    add_element(&mat, INT32, (int32_t[]){LONGEST}, sizeof(int32_t));
    add_element(&mat, INT8, fields, sizeof fields);
    for (size_t i = 0; i < count; i++) {
        uint16_t side = (uint16_t)layout->domain->side,
                 numbers[FIELDS - 1] = {1, 1, side, side, (uint16_t)(layout_label(layout, first + i) + 1)};
        char name[16];
        snprintf(name, sizeof name, "%05zu.jpg", i + 1);
        for (size_t field = 0; field < FIELDS - 1; field++)
            add_row(&mat, "", &numbers[field], 1);
        add_string(&mat, name);
    }
    end_matrix(&mat, annotations);
    return layout_text(layout, path, &mat, error);
}

static status cars_names(const struct layout *layout, struct error *error)
{
    struct text mat = {0};
    begin_file(&mat);
    size_t names = begin_matrix(&mat, CELL_CLASS, (size_t)layout->domain->classes, "class_names");
    for (int i = 0; i < layout->domain->classes; i++)
        add_string(&mat, layout->domain->class_names[i]);
    end_matrix(&mat, names);
    return layout_text(layout, "stanford_cars/devkit/cars_meta.mat", &mat, error);
}

status layout_stanford_cars(struct layout *layout, struct error *error)
{
    static const char *const annotations[] = {"stanford_cars/devkit/cars_train_annos.mat",
                                              "stanford_cars/cars_test_annos_withlabels.mat"};
    TRY(layout_folder(layout, error, "stanford_cars/devkit"));
    TRY(cars_names(layout, error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        const char *folder = test ? "cars_test" : "cars_train";
        size_t first, count = layout_items(layout, test, &first);
        TRY(layout_folder(layout, error, "stanford_cars/%s", folder));
        TRY(cars_annotations(layout, annotations[test], test, error));
        for (size_t i = 0; i < count; i++)
            layout_picture(layout, first + i, "stanford_cars/%s/%05zu.jpg", folder, i + 1);
    }
    return OK;
}
