/* Files compiled into the program by mtil_embed() of cmake/embed.cmake.
 *
 *     mtil_embed(TARGET mtil_harness NAME embedded_suites FILES suites/mini.yaml)         # in CMakeLists.txt
 *     EMBEDDED_FILES(embedded_suites);                                                    // in C
 *     for (const struct embedded_file *file = embedded_suites; file->name != NULL; file++)
 *         text_add_bytes(&text, (const char *)file->data, file->size);
 */
#pragma once

#include <stddef.h>

struct embedded_file {
    const char *name; /* without its folder; NULL ends the table */
    const unsigned char
        *data; /* 64-byte aligned; one more byte than size is readable and zero, so that text is a C string */
    size_t size;
};

#define EMBEDDED_FILES(table) extern const struct embedded_file table[]
