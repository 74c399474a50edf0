#include "models/files/safetensors_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/digest.h"

/* The NUL is included, so that "ab", "c" differs from "a", "bc". */
static uint64_t add_string(uint64_t digest, const char *string)
{
    return digest_quick(string, strlen(string) + 1, digest);
}

static uint64_t digest_tensor(const struct safetensor *tensor)
{
    uint64_t digest = add_string(add_string(1, tensor->name), safetensor_type_name(tensor->type));
    for (int i = 0; i < tensor->rank; i++) {
        uint64_t size = tensor->shape[i];
        digest = digest_quick(&size, sizeof size, digest);
    }
    return digest_quick(tensor->data, safetensor_elements(tensor) * safetensor_type_size(tensor->type), digest);
}

/* Entries are summed up, because their order in a file means nothing. */
void safetensors_digest(struct safetensors_digest *digest, const json_t *metadata, const struct safetensor *tensors,
                        size_t count)
{
    uint64_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (strcmp(key, SAFETENSORS_DIGEST) != 0)
            sum += add_string(add_string(0, key), json_string_value(value));
    }
    for (size_t i = 0; i < count; i++)
        sum += digest_tensor(&tensors[i]);
    snprintf(digest->text, sizeof digest->text, "xxh3:%016" PRIx64, sum);
}
