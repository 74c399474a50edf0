/* The datasets whose labels are MATLAB files: flowers and stanford_cars. */
#include <stdlib.h>
#include <string.h>

#include <matio.h>

#include "core/arena.h"
#include "core/file.h"
#include "datasets/mini/layout.h"

/* A fixed header, so that the same suite has the same bytes on any day. */
static const char mat_header[] = "MATLAB 5.0 MAT-file, Platform: GLNXA64, Created by: mtil";

/* Writes the variables to path below the root, whole or not at all, and frees them, also on failure. NULL ones are
   reported as a lack of memory. */
static status mat_save(const struct layout *layout, const char *path, matvar_t *const *variables, size_t count,
                       struct error *error)
{
    char *whole = path_format("%s/%s", layout->root, path);
    struct file_writer writer = {0};
    bool complete = whole != NULL;
    for (size_t i = 0; i < count; i++)
        complete = complete && variables[i] != NULL;
    status result = complete ? file_writer_open(&writer, whole, error)
                             : error_set(error, ERROR_MEMORY, "%s: no memory left for %s", layout->domain->name, path);
    if (result == OK) {
        /* matio opens files by name: it fills the writer's temporary file, which the writer then syncs and renames */
        mat_t *mat = Mat_CreateVer(writer.temporary.path, mat_header, MAT_FT_MAT5);
        bool good = mat != NULL;
        for (size_t i = 0; i < count && good; i++)
            good = Mat_VarWrite(mat, variables[i], MAT_COMPRESSION_ZLIB) == 0;
        if (mat != NULL)
            good = Mat_Close(mat) == 0 && good;
        result = good ? file_writer_close(&writer, error)
                      : error_set(error, ERROR_IO, "%s: cannot write its variables", whole);
        if (!good)
            file_writer_abandon(&writer);
    }
    for (size_t i = 0; i < count; i++)
        Mat_VarFree(variables[i]);
    free(whole);
    return result;
}

/* matio copies what it is given, but older versions do not say const. */
static void *borrowed(const void *data)
{
    return (void *)(uintptr_t)data;
}

/* A row of doubles. */
static matvar_t *mat_row(const char *name, const double *values, size_t count)
{
    size_t sizes[2] = {1, count};
    return Mat_VarCreate(name, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, sizes, borrowed(values), 0);
}

static matvar_t *mat_number(double value)
{
    return mat_row(NULL, &value, 1);
}

static matvar_t *mat_string(const char *string)
{
    size_t sizes[2] = {1, strlen(string)};
    return Mat_VarCreate(NULL, MAT_C_CHAR, MAT_T_UTF8, 2, sizes, borrowed(string), 0);
}

static status mat_row_save(const struct layout *layout, const char *path, const char *name, const double *values,
                           size_t count, struct error *error)
{
    return mat_save(layout, path, (matvar_t *[]){mat_row(name, values, count)}, 1, error);
}

/* Image numbers are 1-based and in an order of their own; the few of "valid" follow those of test. */
static status flowers_lists(const struct layout *layout, const double *order, size_t train, size_t test, size_t valid,
                            struct error *error)
{
    return mat_save(layout, "flowers-102/setid.mat",
                    (matvar_t *[]){mat_row("trnid", order, train), mat_row("tstid", order + train, test),
                                   mat_row("valid", order + train + test, valid)},
                    3, error);
}

status layout_flowers(struct layout *layout, struct error *error)
{
    size_t train = (size_t)layout->domain->train, test = (size_t)layout->domain->test,
           valid = (size_t)layout->domain->classes;
    size_t count = train + test + valid;
    double *order = calloc(count, sizeof *order), *labels = calloc(count, sizeof *labels);
    if (order == NULL || labels == NULL) {
        free(order);
        free(labels);
        return error_set(error, ERROR_MEMORY, "flowers: no memory left for %zu labels", count);
    }
    status result = layout_folder(layout, error, "flowers-102/jpg");
    for (size_t item = 0; item < count && result == OK; item++) {
        size_t number = count - item; /* the lists are not sorted in the original either */
        order[item] = (double)number;
        labels[number - 1] = layout_label(layout, item) + 1;
        result = layout_picture(layout, item, error, "flowers-102/jpg/image_%05zu.jpg", number);
    }
    if (result == OK)
        result = flowers_lists(layout, order, train, test, valid, error);
    if (result == OK)
        result = mat_row_save(layout, "flowers-102/imagelabels.mat", "labels", labels, count, error);
    free(order);
    free(labels);
    if (result != OK)
        return result;
    return layout_class_names(layout, "flowers-102/classnames.txt", error);
}

/* annotations: 1×N struct of box, class (1-based) and file name */
static matvar_t *cars_annotations(const struct layout *layout, bool test)
{
    static const char *fields[] = {"bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname"};
    size_t first, count = layout_items(layout, test, &first), sizes[2] = {1, count};
    matvar_t *annotations = Mat_VarCreateStruct("annotations", 2, sizes, fields, 6);
    for (size_t i = 0; i < count && annotations != NULL; i++) {
        double box[5] = {1, 1, layout->domain->side, layout->domain->side, layout_label(layout, first + i) + 1};
        char name[16];
        snprintf(name, sizeof name, "%05zu.jpg", i + 1);
        for (size_t field = 0; field < 5; field++)
            Mat_VarSetStructFieldByName(annotations, fields[field], i, mat_number(box[field]));
        Mat_VarSetStructFieldByName(annotations, fields[5], i, mat_string(name));
    }
    return annotations;
}

static matvar_t *cars_names(const struct layout *layout)
{
    size_t sizes[2] = {1, (size_t)layout->domain->classes};
    matvar_t *names = Mat_VarCreate("class_names", MAT_C_CELL, MAT_T_CELL, 2, sizes, NULL, 0);
    for (int i = 0; i < layout->domain->classes && names != NULL; i++)
        Mat_VarSetCell(names, i, mat_string(layout->domain->class_names[i]));
    return names;
}

status layout_stanford_cars(struct layout *layout, struct error *error)
{
    static const char *const annotations[] = {"stanford_cars/devkit/cars_train_annos.mat",
                                              "stanford_cars/cars_test_annos_withlabels.mat"};
    TRY(layout_folder(layout, error, "stanford_cars/devkit"));
    TRY(mat_save(layout, "stanford_cars/devkit/cars_meta.mat", (matvar_t *[]){cars_names(layout)}, 1, error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        const char *folder = test ? "cars_test" : "cars_train";
        size_t first, count = layout_items(layout, test, &first);
        TRY(layout_folder(layout, error, "stanford_cars/%s", folder));
        TRY(mat_save(layout, annotations[test], (matvar_t *[]){cars_annotations(layout, test)}, 1, error));
        for (size_t i = 0; i < count; i++)
            TRY(layout_picture(layout, first + i, error, "stanford_cars/%s/%05zu.jpg", folder, i + 1));
    }
    return OK;
}
