/* MATLAB files, asked for everything that a reader asks for. */
#include "tests/fuzz/target.h"

#include "datasets/formats/mat.h"
#include "tests/fuzz/input.h"

static void read_numbers(const char *path, const char *variable, const char *field)
{
    struct mat_numbers numbers;
    if (mat_read_numbers(path, variable, field, &numbers, &fuzz_error) != OK)
        return;
    fuzz_touch(numbers.values, numbers.count * sizeof *numbers.values);
    mat_numbers_free(&numbers);
}

static void read_strings(const char *path, const char *variable, const char *field)
{
    struct strings strings = {0};
    if (mat_read_strings(path, variable, field, &strings, &fuzz_error) == OK)
        for (size_t i = 0; i < strings.count; i++)
            assert(strings.items[i] != NULL);
    strings_free(&strings);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    const char *path = input_file(data, size);
    read_numbers(path, "trnid", NULL);
    read_numbers(path, "labels", NULL);
    read_numbers(path, "annotations", "class");
    read_strings(path, "annotations", "fname");
    read_strings(path, "class_names", NULL);
    return 0;
}
