/* A folder for a test's files, gone when the test is over.
 *
 *     struct scratch scratch;
 *     scratch_create(&scratch);
 *     scratch_write(&scratch, "MNIST/classnames.txt", "zero\none\n", 9);          // and the folders above it
 *     … scratch.path …
 *     scratch_remove(&scratch);
 */
#pragma once

#include <stddef.h>

struct scratch {
    char path[256];
};

void scratch_create(struct scratch *scratch);
void scratch_write(const struct scratch *scratch, const char *name, const void *data, size_t size);
void scratch_write_text(const struct scratch *scratch, const char *name, const char *text);

/* A PNG of width × height pixels in one colour. */
void scratch_write_png(const struct scratch *scratch, const char *name, int width, int height, unsigned color);
void scratch_run(const struct scratch *scratch, const char *commands); /* of the shell, in the folder; they succeed */
void scratch_remove(struct scratch *scratch);

/* That of a whole program's tests, which is there from the first call until the program ends. */
const struct scratch *test_scratch(void);

/* scratch.path/name in a buffer that the next call overwrites. */
const char *scratch_file(const struct scratch *scratch, const char *name);
