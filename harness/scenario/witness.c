#include "harness/scenario/witness.h"

#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "models/files/weights_file.h"

static status add_file(struct digest *sum, const char *path, struct error *error)
{
    struct file_stamp stamp;
    TRY(file_stamp_read(&stamp, path, error));
    digest_add(sum, &stamp, sizeof stamp);
    return OK;
}

static status add_shards(struct digest *sum, const char *index, struct error *error)
{
    SCOPED(weights_shards_free) struct weights_shards shards = {0};
    status result = weights_shards_read(&shards, index, error);
    for (size_t i = 0; result == OK && i < shards.count; i++)
        if ((result = add_file(sum, shards.paths[i], error)) != OK)
            error_context(error, "%s", index);
    return result;
}

status witness_of_file(struct witness *witness, const char *path, struct error *error)
{
    struct digest sum = digest_begin();
    status result = add_file(&sum, path, error);
    if (weights_shards_is_index(path))
        NEXT(result, add_shards(&sum, path, error));
    digest_end(&sum, witness->digest);
    return result;
}

status witness_of_images(struct witness *witness, const struct dataset *dataset, enum split split, struct error *error)
{
    struct dataset_identity identity;
    *witness = (struct witness){0};
    if (!dataset_has_files(dataset, split))
        return OK;
    TRY(dataset_identify(dataset, split, &identity, error));
    memcpy(witness->digest, identity.content, sizeof witness->digest);
    return OK;
}

status witness_of_folder(struct witness *witness, const char *path, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    TRY(dataset_of_images(&dataset, path, error));
    return witness_of_images(witness, dataset, SPLIT_TRAIN, error);
}

bool witness_same(const struct witness *a, const struct witness *b)
{
    return strcmp(a->digest, b->digest) == 0;
}
