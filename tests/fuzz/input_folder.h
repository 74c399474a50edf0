/* A target's bytes as the files of a folder, for parsers that read several: file after file, each ended by
 * INPUT_SEPARATOR. The folder is a temporary one of this process and goes when it ends.
 *
 *     static const char *const files[] = {"labels/train1.txt", "labels/test1.txt"};
 *     input_folder_make("labels/train1.txt");                     // the folder that it will lie in
 *     input_folder_fill("", files, 2, data, size);
 *     … strings_read_lines(&lines, path, error) …                 // path: input_folder() + "/labels/train1.txt"
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INPUT_SEPARATOR "\n==\n"

/* All of these abort when the disk does not let them. */
const char *input_folder(void);
void input_folder_make(const char *name);
void input_folder_write(const char *name, const uint8_t *data, size_t size);

/* Writes prefix + names[i] for every part of data that is ended; files without a part are removed. Returns what is left
 * of data, of *left bytes. */
const uint8_t *input_folder_fill(const char *prefix, const char *const *names, size_t count, const uint8_t *data,
                                 size_t size, size_t *left);
