/* Internal: one file over HTTP(S), resumed where it was cut. */
#ifndef MTIL_DATASETS_FETCH_TRANSFER_H
#define MTIL_DATASETS_FETCH_TRANSFER_H

#include "datasets/fetch/fetch.h"

/* Downloads file to path, which lies in the folder that is open, from the first of urls (which end with NULL) that gives bytes of the right number and digest.
 * What lies at path already counts as the beginning. On failure path holds what came, for the next call, or is
 * empty where that was wrong. */
status transfer_get(const struct fetch_file *file, const char *const *urls, int folder, const char *path,
                    const struct fetch_settings *settings, struct error *error);

#endif
