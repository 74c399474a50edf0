#include "harness/heads/weights.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/file.h"
#include "models/files/weights_file.h"

static char *beside_program(const char *file)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = 0;
    static const char *const places[] = {"weights", "../weights", INSTALLED_WEIGHTS};
    char *path = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        free(path);
        path = path_format("%s/%s/%s", program, places[i], file);
        if (file_exists(path))
            return path;
    }
    return path; /* the last candidate; opening it reports what is missing */
}

char *weights_path(const char *name)
{
    return strcmp(name, "mini") == 0 ? beside_program("mini-clip.safetensors") : xstrdup(name);
}

char *vocabulary_path(const char *name)
{
    return strcmp(name, "mini") == 0 ? beside_program("mini-vocabulary.txt") : xstrdup(name);
}

static void add_stamp(struct file_stamp *sum, const struct file_stamp *part)
{
    sum->size += part->size;
    sum->inode = 31 * sum->inode + part->inode;
    sum->modified = part->modified > sum->modified ? part->modified : sum->modified;
    sum->changed = part->changed > sum->changed ? part->changed : sum->changed;
}

status weights_stamp(struct file_stamp *stamp, const char *path, struct error *error)
{
    struct weights_shards shards = {0};
    struct file_stamp part;
    TRY(file_stamp_read(stamp, path, error));
    if (!weights_shards_is_index(path))
        return OK;
    status result = weights_shards_read(&shards, path, error);
    for (size_t i = 0; i < shards.count; i++) {
        if (result == OK && (result = file_stamp_read(&part, shards.paths[i], error)) != OK)
            error_context(error, "%s", path);
        if (result == OK)
            add_stamp(stamp, &part);
    }
    weights_shards_free(&shards);
    return result;
}

static status look_at(const char *path, const char *key, const char *expected, struct file_stamp *stamp,
                      struct error *error)
{
    struct file_stamp unasked;
    if (!file_exists(path) && errno == ENOENT) /* opening it says what else is wrong */
        return error_set(error, ERROR_IO, "%s: there is no file %s; expected %s", key, path, expected);
    return weights_stamp(stamp != NULL ? stamp : &unasked, path, error);
}

static const char weights_expected[] = "CLIP's weights (safetensors, .pt, .pth, .bin, or the index of shards), or "
                                       "mini for the small model that ships";

status weights_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, const struct clip_stated *stated, struct file_stamp *stamp,
                    struct error *error)
{
    char *path = weights_path(name);
    status result = look_at(path, "model.weights", weights_expected, stamp, error);
    NEXT(result, clip_load(clip, backend, arena, path, mode, stated, error));
    free(path);
    return result;
}

status vit_weights_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *name,
                        enum parameters_mode mode, const struct vit_stated *stated, struct file_stamp *stamp,
                        struct error *error)
{
    char *path = weights_path(name);
    status result = look_at(path, "model.weights", weights_expected, stamp, error);
    NEXT(result, vit_load(vit, backend, arena, path, mode, stated, error));
    free(path);
    return result;
}

status vit_weights_look(struct vit_file *found, bool *is_vit, const char *name, const struct vit_stated *stated,
                        struct error *error)
{
    char *path = weights_path(name);
    status result = look_at(path, "model.weights", weights_expected, NULL, error);
    NEXT(result, vit_file_look(found, is_vit, path, stated, error));
    free(path);
    return result;
}

status vit_weights_experts(struct adapters **experts, const struct clip *vit, struct arena *arena, const char *name,
                           struct error *error)
{
    struct safetensors *file;
    static const int router = 0;
    TRY(weights_file_open(&file, name, error));
    status result = adapters_open(experts, vit->backend, arena, &vit->dimensions, file, &router, 1, error);
    safetensors_close(file);
    return result;
}

struct vit_stated vit_weights_stated(const struct clip_stated *stated)
{
    bool command_line = stated->heads_by != NULL && stated->heads_by[0] == '-';
    return (struct vit_stated){.heads = stated->config.image_heads,
                               .activation = stated->config.activation,
                               .by = command_line ? "--heads or --activation" : "model.heads or model.activation",
                               .experts = true};
}

status vocabulary_open(struct tokenizer **tokenizer, const char *name, const struct clip *clip, const char *weights,
                       struct file_stamp *stamp, struct error *error)
{
    char *path = vocabulary_path(name);
    status result =
        look_at(path, "model.vocabulary",
                "CLIP's bpe_simple_vocab_16e6.txt.gz, SigLIP's SentencePiece .model, or mini with the small model",
                stamp, error);
    NEXT(result, tokenizer_open(tokenizer, path, error));
    free(path);
    TRY(result);
    size_t found = tokenizer_vocabulary(*tokenizer), expected = clip->dimensions.vocabulary;
    if (found != expected)
        return error_set(error, ERROR_ARGUMENT,
                         "%s has %zu tokens, but the model %s knows %zu: they do not belong together", name, found,
                         weights, expected);
    return OK;
}
