/* MATLAB files, asked for everything that a reader asks for. */
#include "tests/fuzz/target.h"

#include "datasets/formats/mat.h"
#include "tests/fuzz/input_file.h"

static void read_numbers(struct mat *mat, const char *variable, const char *field)
{
    struct mat_numbers numbers;
    struct error error;
    if (mat_read_numbers(mat, variable, field, &numbers, &error) != OK)
        return;
    fuzz_touch(numbers.values, numbers.count * sizeof *numbers.values);
    mat_numbers_free(&numbers);
}

static int read_strings(struct mat *mat, const char *variable, const char *field)
{
    struct strings strings = {0};
    struct error error;
    int failed = 0;
    if (mat_read_strings(mat, variable, field, &strings, &error) == OK)
        for (size_t i = 0; i < strings.count; i++)
            failed |= strings.items[i] == NULL;
    strings_free(&strings);
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    struct mat *mat;
    struct error error;
    int failed = 0;
    input_file_open(&file, data, size);
    if (mat_open(&mat, file.path, &error) == OK) {
        read_numbers(mat, "trnid", NULL);
        read_numbers(mat, "labels", NULL);
        read_numbers(mat, "annotations", "class");
        failed = read_strings(mat, "annotations", "fname") | read_strings(mat, "class_names", NULL);
        mat_close(mat);
    }
    input_file_close(&file);
    return failed;
}
