/* JSON files, read with jansson.
 *
 *     SCOPED(json_decref_at) json_t *root = NULL;
 *     TRY(json_read(&root, path, FILE_LIMIT, error));
 *     if (!json_is_object(root))
 *         …
 */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "core/scope.h"
#include "core/status.h"

SCOPED_POINTER(json_t, json_decref)

/* A byte order mark is skipped, and a key that an object has twice is an error. name is for messages. The caller releases root with
 * json_decref; after an error it is NULL. */
status json_parse(json_t **root, const void *data, size_t size, const char *name, struct error *error);

/* The same of a file of at most limit bytes. */
status json_read(json_t **root, const char *path, size_t limit, struct error *error);
