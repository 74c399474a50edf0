/* Where the weights that ship are: beside the program.
 *
 *     char *path = weights_path("mini");        // …/weights/mini-clip.safetensors; any other name is a path already
 */
#ifndef MTIL_HARNESS_RUN_WEIGHTS_H
#define MTIL_HARNESS_RUN_WEIGHTS_H

/* The caller frees; NULL when out of memory. "mini" is looked for in weights/ beside the executable, then in
 * ../share/mtil/weights/. */
char *weights_path(const char *name);
char *vocabulary_path(const char *name);

/* What a model is called in results: the file name without its folder and ending. The caller frees; NULL when out of
 * memory. */
char *weights_name(const char *name);

#endif
