/* NumPy's .npy files with one row of whole numbers.
 *
 *     int64_t *values;
 *     size_t count;
 *     TRY(npy_read_integers("labels.npy", &values, &count, error));
 *     free(values);
 *
 * Versions 1 to 3 of the format, signed and unsigned numbers of 1 to 8 bytes, little-endian, shape (n,).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

status npy_read_integers(const char *path, int64_t **values, size_t *count, struct error *error);
