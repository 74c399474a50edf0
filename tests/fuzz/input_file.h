/* A target's bytes as a file, for parsers that open one: it lies in memory and has a path.
 *
 *     struct input_file file;
 *     input_file_open(&file, data, size);
 *     … idx_read(&idx, file.path, 3, &error) …
 *     input_file_close(&file);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct input_file {
    int descriptor;
    char path[64];
};

/* Aborts when the machine has no memory for it. */
void input_file_open(struct input_file *file, const uint8_t *data, size_t size);
void input_file_close(struct input_file *file);
