/* Internal: one file over HTTP(S), resumed after an interruption. */
#pragma once

#include "datasets/fetch/fetch.h"

/* Downloads file to path, which lies in the open folder, from the first of urls (NULL at the end) that gives bytes of
 * the right number and digest. Bytes already at path count as the beginning. After a failure path holds the bytes
 * received so far, for the next call, or is empty if they were wrong. */
status transfer_get(const struct fetch_file *file, const char *const *urls, int folder, const char *path,
                    const struct fetch_settings *settings, struct error *error);
