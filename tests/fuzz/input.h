/* A target's bytes as what a parser takes: a file, the files of a folder, or the words of a command line. Files lie in a
 * temporary folder of this process, which goes when it ends. All of these abort when the machine does not let them.
 *
 *     mnist_read_idx(&idx, input_file(data, size), 3, &error);
 *
 *     static const char *const files[] = {"labels/train1.txt", "labels/test1.txt"};
 *     input_folder_fill("", files, 2, data, size);
 *     strings_read_lines(&lines, path, error);                    // path: input_folder() + "/labels/train1.txt"
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INPUT_SEPARATOR "\n==\n" /* ends each file of several */

/* The path of a file of these bytes, until the next call of any of these. */
const char *input_file(const uint8_t *data, size_t size);

const char *input_folder(void);
void input_folder_write(const char *name, const uint8_t *data, size_t size); /* and makes the folders above it */

/* Writes prefix + names[i] for every part of data that is ended; files without a part are removed. */
void input_folder_fill(const char *prefix, const char *const *names, size_t count, const uint8_t *data, size_t size);

/* A word a line. */
enum { WORDS_MOST = 32 };
struct words {
    char *text;                  /* of the words; the caller frees */
    char *items[WORDS_MOST + 1]; /* ends with NULL */
    size_t count;
};
struct words input_words(const uint8_t *data, size_t size);
