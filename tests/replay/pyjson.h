/* JSON as Python writes it.
 *
 *     json_t *json;
 *     TRY(pyjson_read(&json, "shared/fixtures/stats/paired.json", error));      // the caller drops the reference
 *     pyjson_number(json_object_get(json, "t")) …                                // NAN for null and what is no number
 */
#pragma once

#include <jansson.h>

#include "core/status.h"

/* What JSON has no numbers for becomes strings: NaN, Infinity, -Infinity, and integers that may be beyond 63 bits. */
status pyjson_read(json_t **json, const char *path, struct error *error);

double pyjson_number(const json_t *value);

/* The whole number of a key, 0 when there is none. */
json_int_t pyjson_integer(const json_t *object, const char *key);

/* The string of a key, "" when there is none. */
const char *pyjson_text(const json_t *object, const char *key);
