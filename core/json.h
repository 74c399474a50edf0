/* jansson's values, released at the end of a scope:
 *
 *     SCOPED(json_decref_at) json_t *root = json_object();
 */
#pragma once

#include <jansson.h>

#include "core/scope.h"

SCOPED_POINTER(json_t, json_decref)
