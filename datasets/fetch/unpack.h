/* Internal: archives, by libarchive. */
#pragma once

#include "datasets/fetch/fetch.h"

/* Unpacks an archive's files and folders below folder, which is created; with target, a gzip file to that file. Absolute
 * paths, "..", links and devices are refused with the name of the first. What was unpacked before a failure stays. */
status unpack(const char *path, const char *folder, const char *target, const struct fetch_settings *settings,
              struct error *error);
