/* mtil embed: the normalised features of images or texts, for checks and other programs. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/json.h"
#include "core/scope.h"
#include "datasets/formats/strings.h"
#include "harness/commands/command.h"
#include "harness/commands/inputs/adapter_choice.h"
#include "harness/commands/inputs/image_reader.h"
#include "harness/model/weights.h"
#include "models/backend_options.h"
#include "models/files/weights_file.h"

enum { BATCH = 64 };

static const struct option options[] = {
    OPTION(TEXT, "weights", NULL, "file of a CLIP, or of a classifier's image tower; mini: the small model that ships"),
    OPTION(TEXT, "vocabulary", NULL, "vocabulary of the tokenizer, for texts; mini has its own"),
    ADAPTERS_OPTION,
    BACKEND_OPTIONS("auto", "auto", "0"),
    OPTION(TEXT, "router", NULL, "router of the adapters, by name or number; none: adapters off"),
    MODEL_CHOICE_OPTIONS,
    OPTION(TEXT, "images", NULL, "folder of images to embed, in byte order of their names"),
    OPTION(TEXT, "texts", NULL, "file of texts to embed, one per line"),
    OPTION(TEXT, "out", NULL, "safetensors file to write"),
    THREADS_OPTION,
    {0},
};

/* --- Inputs --- */

struct inputs {
    bool images;
    const char *path;     /* of a folder of images, or of a file of texts; borrowed from the options */
    struct strings names; /* of the files, in the order of their bytes; or the lines themselves */
};

/* The files of the folder, without its sub-folders. */
static status list_images(struct inputs *inputs, struct error *error)
{
    SCOPED(directory_free) struct directory directory = {0};
    TRY(directory_list(&directory, inputs->path, error));
    for (size_t i = 0; i < directory.count; i++) {
        OWNED char *path = path_format("%s/%s", inputs->path, directory.names[i]);
        if (!file_is_directory(path))
            strings_format(&inputs->names, "%s", directory.names[i]);
    }
    if (inputs->names.count == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: expected image files, found none (sub-folders are not searched)",
                         inputs->path);
    return OK;
}

static status list_texts(struct inputs *inputs, struct error *error)
{
    TRY(strings_read_lines(&inputs->names, inputs->path, error));
    return strings_check_texts(&inputs->names, inputs->path, "text", error);
}

static status read_inputs(struct inputs *inputs, const struct options *given, struct error *error)
{
    const char *images = options_text(given, "images"), *texts = options_text(given, "texts");
    if ((images != NULL) == (texts != NULL))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: embed: expected either --images FOLDER or --texts FILE, found %s",
                         images != NULL ? "both" : "neither");
    inputs->images = images != NULL;
    inputs->path = images != NULL ? images : texts;
    return (inputs->images ? list_images : list_texts)(inputs, error);
}

/* --- Batches --- */

struct work {
    const struct command_call *call;
    struct inputs inputs;
    struct encoder *encoder;
    struct image_reader reader; /* of images */
    int32_t *tokens;            /* [BATCH, context], of texts */
    float *features;            /* [inputs, width] */
};

static void close_work(struct work *work)
{
    image_reader_close(&work->reader);
    free(work->tokens);
    free(work->features);
    strings_free(&work->inputs.names);
}

static status embed_images(struct work *work, size_t first, size_t count, float *features, struct error *error)
{
    struct image_reader *reader = &work->reader;
    for (size_t i = 0; i < count; i++) {
        free(reader->slots[i].path);
        reader->slots[i].path = path_format("%s/%s", work->inputs.path, work->inputs.names.items[first + i]);
    }
    image_reader_decode(reader, count);
    if (stop_requested(work->call->stop))
        return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu; nothing was written", first,
                         work->inputs.names.count);
    for (size_t i = 0; i < count; i++)
        if (reader->slots[i].error.code != OK) {
            *error = reader->slots[i].error;
            return error->code;
        }
    status result = encoder_images(work->encoder, reader->pixels, count, features, error);
    return result != ERROR_FORMAT ? result : error_context(error, "%s", reader->slots[work->encoder->refused].path);
}

static status embed_texts(struct work *work, size_t first, size_t count, float *features, struct error *error)
{
    size_t context = work->encoder->model.clip->dimensions.context;
    for (size_t i = 0; i < count; i++) {
        size_t found, line = first + i + 1;
        if (tokenizer_encode(work->encoder->model.tokenizer, work->inputs.names.items[first + i],
                             work->tokens + i * context, context, &found, error) != OK)
            return error_context(error, "%s:%zu", work->inputs.path, line);
        if (found > context)
            log_warn(work->call->log, "%s:%zu: the text has %zu tokens, cut to the model's %zu", work->inputs.path,
                     line, found, context);
    }
    status result = encoder_tokens(work->encoder, work->tokens, count, features, error);
    return result != ERROR_FORMAT
               ? result
               : error_context(error, "%s:%zu", work->inputs.path, first + work->encoder->refused + 1);
}

static status embed_all(struct work *work, struct error *error)
{
    size_t all = work->inputs.names.count;
    for (size_t first = 0; first < all; first += BATCH) {
        size_t count = all - first < BATCH ? all - first : BATCH;
        float *features = work->features + first * encoder_width(work->encoder);
        if (stop_requested(work->call->stop))
            return error_set(error, ERROR_STOPPED, "stopped after %zu of %zu; nothing was written", first, all);
        TRY((work->inputs.images ? embed_images : embed_texts)(work, first, count, features, error));
        progress_report(work->call->progress, &(struct progress_state){.activity = "embed",
                                                                       .subject = work->inputs.path,
                                                                       .step = first + count,
                                                                       .steps = all,
                                                                       .images = first + count});
    }
    return OK;
}

/* --- Result --- */

/* The names as a JSON array; the caller frees. */
static status names_as_json(const struct inputs *inputs, char **text, struct error *error)
{
    SCOPED(json_decref_at) json_t *array = json_array();
    for (size_t i = 0; i < inputs->names.count; i++)
        if (json_array_append_new(array, json_string(inputs->names.items[i])) != 0)
            return error_set(error, ERROR_FORMAT, "%s: name %zu, \"%s\": expected UTF-8; rename the file", inputs->path,
                             i + 1, inputs->names.items[i]);
    *text = json_dumps(array, JSON_COMPACT);
    return OK;
}

static status write_features(const struct work *work, struct error *error)
{
    const struct options *given = work->call->options;
    const char *router = options_text(given, "router");
    OWNED char *names = NULL, *model = path_stem(options_text(given, "weights"));
    TRY(names_as_json(&work->inputs, &names, error));
    struct safetensor tensor = {.name = "features",
                                .type = SAFETENSOR_F32,
                                .rank = 2,
                                .shape = {work->inputs.names.count, encoder_width(work->encoder)},
                                .data = work->features};
    const struct safetensors_metadata metadata[] = {{"kind", work->inputs.images ? "images" : "texts"},
                                                    {"model", model},
                                                    {"router", router != NULL ? router : "none"},
                                                    {"names", names}};
    return safetensors_write(options_text(given, "out"), &tensor, 1, metadata, sizeof metadata / sizeof *metadata,
                             error);
}

static status allocate(struct work *work, struct error *error)
{
    const struct clip_dimensions *d = &work->encoder->model.clip->dimensions;
    work->features =
        malloc(array_size(array_size(work->inputs.names.count, encoder_width(work->encoder)), sizeof *work->features));
    if (work->features == NULL)
        return error_set(error, ERROR_MEMORY, "embed: no memory for %zu features", work->inputs.names.count);
    if (work->inputs.images)
        return image_reader_open(&work->reader, work->call, NULL, d->resolution, clip_squashes(d), BATCH, error);
    work->tokens = xmalloc(array_size(BATCH, d->context * sizeof *work->tokens));
    return OK;
}

/* --- Command line --- */

static status read_settings(struct encoder_settings *settings, const struct adapter_choice *adapters,
                            const struct command_call *call, struct error *error)
{
    const struct options *given = call->options;
    const char *weights = options_text(given, "weights"), *vocabulary = options_text(given, "vocabulary");
    if (weights == NULL || options_text(given, "out") == NULL)
        return error_set(error, ERROR_ARGUMENT, "command line: embed: expected --%s, found none; see mtil embed --help",
                         weights == NULL ? "weights FILE" : "out FILE");
    if (vocabulary == NULL && strcmp(weights, "mini") == 0)
        vocabulary = "mini";
    if (vocabulary == NULL && options_text(given, "texts") != NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: embed: texts with weights %s: expected --vocabulary FILE, the model's vocabulary", weights);
    *settings = (struct encoder_settings){
        .weights = weights,
        .vocabulary = options_text(given, "texts") != NULL ? vocabulary : NULL,
        .adapters = adapters->file != NULL ? &adapters->saved : NULL,
        .router = adapters->router,
        .backend = backend_settings_of(given),
    };
    TRY(model_choice_read(&settings->stated, given, "--heads", "--activation", error));
    settings->backend.threads = (size_t)options_integer(given, "threads");
    return OK;
}

/* What is read is not written over. */
static status check_inputs(const struct options *given, const struct inputs *inputs, const char *path,
                           struct error *error)
{
    static const char *const read[] = {"texts", "weights", "adapters", "vocabulary"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        const char *input = options_text(given, read[i]);
        if (input != NULL && !weights_file_is_other(input, path))
            return error_set(error, ERROR_ARGUMENT, "command line: embed: --out %s is a file of --%s; name another one",
                             path, read[i]);
    }
    for (size_t i = 0; inputs->images && i < inputs->names.count; i++) {
        OWNED char *image = path_format("%s/%s", inputs->path, inputs->names.items[i]);
        if (!file_is_other(image, path))
            return error_set(error, ERROR_ARGUMENT,
                             "command line: embed: --out %s is a file of --images; name another one", path);
    }
    return OK;
}

/* Checked before the computation, not after it. */
static status check_output(const char *path, struct error *error)
{
    struct file_writer writer;
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".json") == 0) /* a model's config.json, or the index of its shards */
        return error_set(error, ERROR_ARGUMENT,
                         "command line: embed: --out %s: expected a name such as features.safetensors, found that of a "
                         "configuration",
                         path);
    if (file_is_directory(path))
        return error_set(error, ERROR_ARGUMENT, "%s: expected a file to write, found a folder", path);
    TRY(file_writer_open(&writer, path, error));
    file_writer_abandon(&writer);
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(adapter_choice_free) struct adapter_choice adapters = {0};
    SCOPED(encoder_close) struct encoder encoder = {0};
    SCOPED(close_work) struct work work = {.call = call, .encoder = &encoder};
    struct encoder_settings settings;
    TRY(adapter_choice_read(&adapters, call->options, ROUTER_WORDS_ONE, error));
    TRY(read_settings(&settings, &adapters, call, error));
    TRY(read_inputs(&work.inputs, call->options, error));
    TRY(check_inputs(call->options, &work.inputs, options_text(call->options, "out"), error));
    TRY(check_output(options_text(call->options, "out"), error));
    TRY(encoder_open(&encoder, &settings, error));
    log_info(call->log, "computing on %s", encoder.model.backend->description);
    TRY(allocate(&work, error));
    TRY(embed_all(&work, error));
    progress_end(call->progress);
    return write_features(&work, error);
}

const struct command command_embed = {
    .name = "embed",
    .arguments = "",
    .summary = "write the normalised features of images or texts",
    .details =
        "The file has one f32 tensor, \"features\" [n, width]. Its metadata has \"kind\", \"model\", \"router\" and\n"
        "\"names\", a JSON array with the file names or the lines in the order of the rows. Images go through the\n"
        "evaluation transform at the model's resolution.\n",
    .example = "  mtil embed --weights mini --images photos --out photos.safetensors\n"
               "  mtil embed --weights ViT-B-16.safetensors --vocabulary bpe_simple_vocab_16e6.txt.gz --adapters "
               "adapters.safetensors \\\n"
               "      --router 3 --texts prompts.txt --out prompts.safetensors\n",
    .options = options,
    .most = 0,
    .run = run,
};
