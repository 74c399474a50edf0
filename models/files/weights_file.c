#include "models/files/weights_file.h"

#include <unistd.h>

#include "core/file.h"
#include "models/files/torch/torch_file.h"
#include "models/files/weights_shards.h"

enum kind { KIND_SAFETENSORS, KIND_TORCH };

/* A file of no other kind is opened as safetensors, whose reader reports what is wrong with it. */
static status find_kind(const char *path, enum kind *kind, struct error *error)
{
    uint8_t beginning[8] = {0};
    int descriptor;
    uint64_t size;
    TRY(file_open(path, &descriptor, &size, error));
    size_t count = size < sizeof beginning ? (size_t)size : sizeof beginning;
    status result = count < sizeof beginning
                        ? error_set(error, ERROR_FORMAT,
                                    "%s: expected weights (safetensors, PyTorch's .pt, .pth or .bin, or the index of "
                                    "their shards), found %zu bytes",
                                    path, count)
                        : file_read_at(descriptor, path, beginning, count, 0, error);
    close(descriptor);
    NEXT(result, torch_file_refuse_old(path, beginning, count, error));
    *kind = torch_file_is_one(beginning, count) ? KIND_TORCH : KIND_SAFETENSORS;
    return result;
}

static status open_one(struct safetensors **file, const char *path, struct error *error)
{
    enum kind kind;
    *file = NULL;
    TRY(find_kind(path, &kind, error));
    return kind == KIND_TORCH ? torch_file_open(file, path, error) : safetensors_open(file, path, error);
}

static status open_one_header(struct safetensors **file, const char *path, struct error *error)
{
    enum kind kind;
    *file = NULL;
    TRY(find_kind(path, &kind, error));
    return kind == KIND_TORCH ? torch_file_open_header(file, path, error) : safetensors_open_header(file, path, error);
}

status weights_file_open(struct safetensors **file, const char *path, struct error *error)
{
    return weights_shards_is_index(path) ? weights_shards_open(file, path, open_one, error)
                                         : open_one(file, path, error);
}

status weights_file_open_header(struct safetensors **file, const char *path, struct error *error)
{
    return weights_shards_is_index(path) ? weights_shards_open(file, path, open_one_header, error)
                                         : open_one_header(file, path, error);
}
