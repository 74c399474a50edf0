/* MATLAB 5 files: numbers and strings by the names of their variables and fields, independent of compression, number
 * type and order. A reader of our own, because matio crashes on damaged files.
 *
 *     struct mat_numbers ids;
 *     TRY(mat_read_numbers("flowers-102/setid.mat", "trnid", NULL, &ids, error));
 *     mat_numbers_free(&ids);
 */
#pragma once

#include <stdint.h>

#include "datasets/formats/strings.h"

struct mat_numbers {
    size_t count;
    int32_t *values;
};

/* A numeric array of any class and shape as whole numbers, in memory order; with a field, that field's number of
 * every element of a struct array. The caller frees numbers with mat_numbers_free. */
status mat_read_numbers(const char *path, const char *variable, const char *field, struct mat_numbers *numbers,
                        struct error *error);
void mat_numbers_free(struct mat_numbers *numbers);

/* The strings of a cell array, or, with a field, of every element of a struct array, appended to strings. */
status mat_read_strings(const char *path, const char *variable, const char *field, struct strings *strings,
                        struct error *error);
