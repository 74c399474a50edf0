/* The handwritten digits, compiled into the program (README.md). */
#ifndef MTIL_DATASETS_MINI_DIGITS_DIGITS_H
#define MTIL_DATASETS_MINI_DIGITS_DIGITS_H

#include <stddef.h>
#include <stdint.h>

enum { DIGITS_FILES = 4 };

struct digits_file {
    const char *name;    /* "train-images-idx3-ubyte" */
    const uint8_t *data; /* gzip */
    size_t size;
};

extern const struct digits_file digits_files[DIGITS_FILES];

#endif
