/* The suites that ship: harness/suites/NAME.yaml, compiled into the program.
 *
 *     for (size_t i = 0; i < suite_library_size(); i++)
 *         printf("%s: %s\n", suite_library_get(i).name, suite_library_get(i).summary);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct shipped_suite {
    char name[64];
    char summary[160]; /* the file's first line, when it is a comment */
    char table[160];   /* the table of a paper that it reproduces, from its second line "# Table: …"; "": none */
    const char *text;  /* NUL-terminated, size bytes without the NUL */
    size_t size;
};

size_t suite_library_size(void);
struct shipped_suite suite_library_get(size_t index);                   /* index < suite_library_size() */
bool suite_library_find(struct shipped_suite *suite, const char *name); /* false: no suite of that name ships */
