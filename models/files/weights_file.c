#include "models/files/weights_file.h"

#include <stdbool.h>
#include <unistd.h>

#include "core/file.h"
#include "models/files/torch/torch_file.h"

enum kind { KIND_SAFETENSORS, KIND_TORCH };

/* What cannot be one of the others is taken for safetensors, whose reader says what is wrong with it. */
static status find_kind(const char *path, enum kind *kind, struct error *error)
{
    uint8_t beginning[8] = {0};
    int descriptor;
    uint64_t size;
    TRY(file_open(path, &descriptor, &size, error));
    size_t count = size < sizeof beginning ? (size_t)size : sizeof beginning;
    status result = file_read_at(descriptor, path, beginning, count, 0, error);
    close(descriptor);
    NEXT(result, torch_file_refuse_old(path, beginning, count, error));
    *kind = torch_file_is_one(beginning, count) ? KIND_TORCH : KIND_SAFETENSORS;
    return result;
}

static status open_any(struct safetensors **file, const char *path, bool data, struct error *error)
{
    enum kind kind;
    *file = NULL;
    TRY(find_kind(path, &kind, error));
    if (kind == KIND_TORCH)
        return (data ? torch_file_open : torch_file_open_header)(file, path, error);
    return (data ? safetensors_open : safetensors_open_header)(file, path, error);
}

status weights_file_open(struct safetensors **file, const char *path, struct error *error)
{
    return open_any(file, path, true, error);
}

status weights_file_open_header(struct safetensors **file, const char *path, struct error *error)
{
    return open_any(file, path, false, error);
}
