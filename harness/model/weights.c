#include "harness/model/weights.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "models/files/weights_file.h"

enum { HEADS_MOST = 1024, HEAD_WIDTH = 64, HIDDEN_PER_WIDTH = 4 };

#define SIZES(usual)                                                                                                   \
    OPTION_NUMBER(INTEGER, "resolution", 1, 4096, usual("32"),                                                         \
                  "side of an image in pixels; positions of a file of another side are interpolated"),                 \
        OPTION_NUMBER(INTEGER, "patch", 1, 4096, usual("4"), "side of a patch in pixels"),                             \
        OPTION_NUMBER(INTEGER, "width", 1, 16384, usual("192"), "width of the blocks"),                                \
        OPTION_NUMBER(INTEGER, "hidden", 0, 65536, usual("0"), "hidden units of the MLPs; 0: 4 times the width"),      \
        OPTION_NUMBER(INTEGER, "blocks", 1, CLIP_BLOCKS_MOST, usual("12"), "number of blocks"),                        \
        OPTION_NUMBER(                                                                                                 \
            INTEGER, "share_groups", 0, CLIP_BLOCKS_MOST, usual("0"),                                                  \
            "groups of successive blocks that share one attention and one MLP (WideNet); 0: every block has its own"), \
        OPTION(BOOLEAN, "share_norms", usual("no"), "LayerNorms shared within a group of blocks, too")
#define USUAL(value) value
#define OF_THE_FILE(value) NULL

static const struct option scratch_options[] = {SIZES(USUAL), {0}}, file_options[] = {SIZES(OF_THE_FILE), {0}};

static bool is_scratch(const char *weights)
{
    return strcmp(weights, "scratch") == 0;
}

status model_choice_keys(const char *weights, const struct option **table, struct error *error)
{
    *table = is_scratch(weights) ? scratch_options : file_options;
    return OK;
}

static bool read_heads(const struct options *options, size_t item, size_t *heads)
{
    int64_t value;
    if (!parse_integer(options_list_item(options, "heads", item), &value) || value < 1 || value > HEADS_MOST)
        return false;
    *heads = (size_t)value;
    return true;
}

static bool is_auto(const struct options *options)
{
    return options_list_size(options, "heads") == 1 && strcmp(options_list_item(options, "heads", 0), "auto") == 0;
}

static size_t whole(const struct options *options, const char *key)
{
    return (size_t)options_integer(options, key);
}

status model_choice_scratch(struct vit_settings *vit, const struct options *options, const char *heads,
                            struct error *error)
{
    *vit = (struct vit_settings){0};
    if (!is_scratch(options_text(options, "weights")))
        return OK;
    enum activation activation = clip_activation_parse(options_text(options, "activation"));
    *vit = (struct vit_settings){.resolution = whole(options, "resolution"),
                                 .patch = whole(options, "patch"),
                                 .width = whole(options, "width"),
                                 .hidden = whole(options, "hidden"),
                                 .heads = whole(options, "width") / HEAD_WIDTH,
                                 .blocks = whole(options, "blocks"),
                                 .activation = activation == ACTIVATION_NONE ? ACTIVATION_GELU : activation,
                                 .share_groups = whole(options, "share_groups"),
                                 .share_norms = options_boolean(options, "share_norms")};
    if (vit->hidden == 0)
        vit->hidden = HIDDEN_PER_WIDTH * vit->width;
    if (is_auto(options) && vit->width % HEAD_WIDTH == 0)
        return OK;
    if (options_list_size(options, "heads") == 1 && read_heads(options, 0, &vit->heads))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: with weights scratch expected one number, or auto and a width that is a multiple of %d; "
                     "found \"%s\" and a width of %zu",
                     heads, HEAD_WIDTH, options_as_text(options, "heads"), vit->width);
}

status model_choice_read(struct clip_stated *stated, const struct options *options, const char *heads,
                         const char *activation, struct error *error)
{
    size_t count = options_list_size(options, "heads");
    *stated = (struct clip_stated){.heads_by = heads, .activation_by = activation};
    stated->config.activation = clip_activation_parse(options_text(options, "activation"));
    if (is_auto(options))
        return OK;
    if (count == 1 && read_heads(options, 0, &stated->config.image_heads)) /* the text tower's are unknown */
        return OK;
    if (count == 2 && read_heads(options, 0, &stated->config.image_heads) &&
        read_heads(options, 1, &stated->config.text_heads))
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: expected auto, or numbers of heads from 1 to %d: two for image and text tower, as in 16,16, or one for an "
        "image tower alone; found \"%s\"",
        heads, HEADS_MOST, options_as_text(options, "heads"));
}

static bool has_value(const struct options *options, const struct option *option)
{
    const struct option *own = options_find(options_table(options), option->name);
    return own != NULL && (own->fallback != NULL || options_given(options, option->name));
}

const char *model_choice_size(const struct options *options)
{
    for (const struct option *option = file_options; option->name != NULL; option++)
        if (!is_scratch(options_text(options, "weights")) && has_value(options, option))
            return option->name;
    return NULL;
}

size_t model_choice_resolution(const struct options *options, size_t of_file)
{
    return has_value(options, &file_options[0]) ? whole(options, "resolution") : of_file;
}

/* In the order of the options; images may have another size. */
static void sizes_of(const struct vit_settings *vit, size_t sizes[])
{
    const size_t all[] = {vit->resolution, vit->patch,        vit->width,      vit->hidden,
                          vit->blocks,     vit->share_groups, vit->share_norms};
    memcpy(sizes, all, sizeof all);
}

/* Whether a stated size is the model's, also where the number stands for a default. */
static bool is_same(const struct options *options, const struct option *option, size_t size,
                    const struct vit_settings *vit)
{
    size_t stated = option->type == OPTION_BOOLEAN ? options_boolean(options, option->name)
                                                   : (size_t)options_integer(options, option->name);
    bool by_width = strcmp(option->name, "hidden") == 0 && stated == 0,
         of_one = strcmp(option->name, "share_groups") == 0 && stated == vit->blocks;
    return stated == size || (by_width && size == HIDDEN_PER_WIDTH * vit->width) || (of_one && size == 0);
}

status model_choice_check(const struct options *options, const struct vit_settings *vit, struct error *error)
{
    enum { SIZES_COUNT = sizeof file_options / sizeof *file_options - 1 };
    size_t sizes[SIZES_COUNT];
    sizes_of(vit, sizes);
    for (size_t i = 1; i < SIZES_COUNT; i++)
        if (has_value(options, &file_options[i]) && !is_same(options, &file_options[i], sizes[i], vit))
            return error_set(
                error, ERROR_ARGUMENT,
                "model.%s is %s, but %zu in %s, and its weights are not resized; set model.%s=%zu or leave it "
                "out",
                file_options[i].name, options_as_text(options, file_options[i].name), sizes[i],
                options_text(options, "weights"), file_options[i].name, sizes[i]);
    return OK;
}

/* --- Files --- */

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

status weights_expect(const struct witness *read, const char *path, struct error *error)
{
    struct witness now;
    if (*read->digest == 0)
        return OK;
    TRY(witness_of_file(&now, path, error));
    return witness_same(&now, read)
               ? OK
               : error_set(error, ERROR_IO,
                           "model.weights: %s changed during the run; restore the old file and give the same command "
                           "to go on",
                           path);
}

static status look_at(const char *path, const char *key, const char *expected, struct witness *witness,
                      struct error *error)
{
    struct witness unasked;
    if (!file_exists(path) && errno == ENOENT) /* opening it says what else is wrong */
        return error_set(error, ERROR_IO, "%s: there is no file %s; expected %s", key, path, expected);
    return witness_of_file(witness != NULL ? witness : &unasked, path, error);
}

static const char weights_expected[] = "CLIP's weights (safetensors, .pt, .pth, .bin, or the index of shards), or "
                                       "mini for the small model that ships";

status weights_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, const struct clip_stated *stated, struct witness *witness,
                    struct error *error)
{
    OWNED char *path = weights_path(name);
    TRY(look_at(path, "model.weights", weights_expected, witness, error));
    return clip_load(clip, backend, arena, path, mode, stated, error);
}

status weights_plan(struct clip **clip, struct backend *backend, struct arena *arena, const char *name,
                    enum parameters_mode mode, struct error *error)
{
    struct clip_dimensions dimensions;
    OWNED char *path = weights_path(name), *stem = path_stem(path);
    bool known = !file_exists(path) && clip_published(&dimensions, stem);
    return known ? clip_create(clip, backend, arena, &dimensions, mode, ACTIVATION_QUICK_GELU, error) : ERROR_IO;
}

status vit_weights_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *name,
                        enum parameters_mode mode, const struct vit_stated *stated, struct witness *witness,
                        struct error *error)
{
    OWNED char *path = weights_path(name);
    TRY(look_at(path, "model.weights", weights_expected, witness, error));
    return vit_load(vit, backend, arena, path, mode, stated, error);
}

status vit_weights_look(struct vit_file *found, bool *is_vit, const char *name, const struct vit_stated *stated,
                        struct error *error)
{
    OWNED char *path = weights_path(name);
    TRY(look_at(path, "model.weights", weights_expected, NULL, error));
    return vit_file_look(found, is_vit, path, stated, error);
}

status vit_weights_experts(struct adapters **experts, const struct clip *vit, struct arena *arena, const char *name,
                           struct error *error)
{
    SCOPED(safetensors_close_at) struct safetensors *file = NULL;
    static const int router = 0;
    TRY(weights_file_open(&file, name, WEIGHTS_WHOLE, error));
    return adapters_open(experts, vit->backend, arena, &vit->dimensions, file, &router, 1, error);
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
                       struct witness *witness, struct error *error)
{
    OWNED char *path = vocabulary_path(name);
    TRY(look_at(path, "model.vocabulary",
                "CLIP's bpe_simple_vocab_16e6.txt.gz, SigLIP's SentencePiece .model, or mini with the small model",
                witness, error));
    TRY(tokenizer_open(tokenizer, path, error));
    size_t found = tokenizer_vocabulary(*tokenizer), expected = clip->dimensions.vocabulary;
    if (found != expected)
        return error_set(error, ERROR_ARGUMENT,
                         "%s has %zu tokens, but the model %s knows %zu: they do not belong together", name, found,
                         weights, expected);
    return OK;
}
