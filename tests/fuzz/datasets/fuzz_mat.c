/* MATLAB files, asked for everything that a reader asks for. */
#include "tests/fuzz/target.h"

#include "datasets/formats/mat.h"
#include "tests/fuzz/input_file.h"

static void read_numbers(const char *path, const char *variable, const char *field)
{
    struct mat_numbers numbers;
    struct error error;
    if (mat_read_numbers(path, variable, field, &numbers, &error) != OK)
        return;
    fuzz_touch(numbers.values, numbers.count * sizeof *numbers.values);
    mat_numbers_free(&numbers);
}

static int read_strings(const char *path, const char *variable, const char *field)
{
    struct strings strings = {0};
    struct error error;
    int failed = 0;
    if (mat_read_strings(path, variable, field, &strings, &error) == OK)
        for (size_t i = 0; i < strings.count; i++)
            failed |= strings.items[i] == NULL;
    strings_free(&strings);
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    input_file_open(&file, data, size);
    read_numbers(file.path, "trnid", NULL);
    read_numbers(file.path, "labels", NULL);
    read_numbers(file.path, "annotations", "class");
    int failed = read_strings(file.path, "annotations", "fname") | read_strings(file.path, "class_names", NULL);
    input_file_close(&file);
    return failed;
}
