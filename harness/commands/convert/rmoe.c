/* mtil convert rmoe: a dense vision transformer as a mixture of experts (Wu et al. 2022, "Residual Mixture of Experts"). */
#include <stdlib.h>

#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_digest.h"
#include "core/rng.h"
#include "harness/commands/convert/mixture.h"
#include "harness/commands/inputs/image_reader.h"
#include "harness/commands/output.h"
#include "harness/heads/model_choice.h"
#include "harness/heads/weights.h"
#include "models/backend_options.h"

enum { BATCH = 16 };

static const struct option options[] = {
    {.name = "experts",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 1024,
     .fallback = "8",
     .help = "experts of a block"},
    {.name = "top-k",
     .type = OPTION_INTEGER,
     .minimum = 1,
     .maximum = 64,
     .fallback = "1",
     .help = "experts chosen per token"},
    {.name = "noise",
     .type = OPTION_REAL,
     .minimum = 0,
     .maximum = 10,
     .fallback = "0.01",
     .help = "standard deviation of the noise added to each tensor of an expert, as a share of the tensor's own"},
    {.name = "blocks",
     .type = OPTION_TEXT,
     .fallback = "last_3",
     .help =
         "blocks whose MLP is replaced: all, first_N, last_N, every_N, or numbers from 0 (mtil layers ranks blocks)"},
    {.name = "unaligned",
     .type = OPTION_BOOLEAN,
     .fallback = "no",
     .help = "weight a token's experts by their gates, without scaling the gates to sum to 1"},
    {.name = "seed",
     .type = OPTION_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .fallback = "1",
     .help = "seed of noise, routers and random images"},
    MODEL_CHOICE_OPTIONS,
    OUTPUT_FORMAT_OPTION,
    BACKEND_OPTIONS("auto", "auto", "0"),
    THREADS_OPTION,
    {0},
};

static status read_settings(struct mixture_settings *s, const struct command_call *call, struct error *error)
{
    const struct options *given = call->options;
    *s = (struct mixture_settings){
        .weights = call->arguments[0],
        .adapter = {.kind = &expert_ffn,
                    .router = &router_softmax_topk,
                    .experts = (size_t)options_integer(given, "experts"),
                    .top_k = (size_t)options_integer(given, "top-k"),
                    .tasks = 1,
                    .routing = ROUTING_PER_TOKEN,
                    .init_noise = (float)options_real(given, "noise"),
                    .aligned_output = options_boolean(given, "unaligned") ? ALIGN_NONE : ALIGN_SHARED,
                    .place.towers = ADAPT_IMAGE},
        .seed = (uint64_t)options_integer(given, "seed"),
        .backend = backend_settings_of(given)};
    s->adapter.kind->settle(&s->adapter);
    s->backend.threads = (size_t)options_integer(given, "threads");
    if (block_choice_parse(&s->adapter.place.blocks, options_text(given, "blocks"), error) != OK)
        return error_context(error, "command line: convert rmoe: --blocks");
    if (s->adapter.place.blocks.rule == BLOCKS_BY_SCORE)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: convert rmoe: --blocks %s needs data to score blocks; rank them with mtil "
                         "layers and give the numbers of the best",
                         options_text(given, "blocks"));
    return model_choice_read(&s->stated, given, "--heads", "--activation", error);
}

/* --- The comparison --- */

struct comparison {
    const struct command_call *call;
    struct mixture *mixture;
    struct deviation deviation;
    size_t images;
};

static status compare_random(struct comparison *c, struct error *error)
{
    size_t resolution = c->mixture->vit->dimensions.resolution, n = BATCH * resolution * resolution * 3;
    struct rng rng = rng_make((uint64_t)options_integer(c->call->options, "seed"), RNG_DRAWING, 0, 0);
    uint8_t *pixels = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)rng_below(&rng, i, 256);
    status result = mixture_compare(c->mixture, pixels, BATCH, &c->deviation, error);
    c->images = BATCH;
    free(pixels);
    return result;
}

static status compare_read(struct comparison *c, struct image_reader *reader, struct error *error)
{
    do {
        TRY(image_reader_next(reader, error));
        if (reader->count > 0)
            TRY(mixture_compare(c->mixture, reader->pixels, reader->count, &c->deviation, error));
        c->images += reader->count;
        progress_report(c->call->progress, &(struct progress_state){.activity = "compare", .step = c->images});
    } while (reader->count > 0);
    progress_end(c->call->progress);
    if (reader->failed > 0 || c->images == 0)
        return error_set(error, ERROR_FORMAT,
                         "%zu of %zu images could not be read; %s is written, but not compared on all of them",
                         reader->failed, reader->read + reader->failed, c->call->arguments[1]);
    return OK;
}

static status compare_given(struct comparison *c, struct error *error)
{
    const struct command_call *call = c->call;
    const struct image_names names = {.arguments = call->arguments + 2, .count = call->argument_count - 2};
    struct image_reader reader;
    status result =
        image_reader_open(&reader, call, &names, c->mixture->vit->dimensions.resolution, false, BATCH, error);
    NEXT(result, compare_read(c, &reader, error));
    image_reader_close(&reader);
    return result;
}

static status show(const struct comparison *c, struct error *error)
{
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "images"});
    table_add_column(&table, &(struct table_column){.title = "largest feature", .decimals = DECIMALS_ALL});
    table_add_column(&table, &(struct table_column){.title = "largest deviation", .decimals = DECIMALS_ALL});
    table_add_integer(&table, (int64_t)c->images);
    table_add_real(&table, c->deviation.largest);
    table_add_real(&table, c->deviation.difference);
    status result = output_table(c->call, &table, error);
    table_free(&table);
    return result;
}

static status convert(const struct command_call *call, struct mixture *mixture, struct error *error)
{
    struct comparison c = {.call = call, .mixture = mixture};
    TRY(mixture_write(mixture, call->arguments[1], error));
    TRY((call->argument_count > 2 ? compare_given : compare_random)(&c, error));
    return show(&c, error);
}

/* Otherwise OUT would overwrite the dense model. */
static status check_files(const char *dense, const char *out, struct error *error)
{
    struct file_stamp read, written;
    char *path = weights_path(dense);
    status result = OK;
    if (file_exists(path) && file_exists(out)) {
        result = file_stamp_read(&read, path, error);
        NEXT(result, file_stamp_read(&written, out, error));
        if (result == OK && file_stamp_same(&read, &written))
            result = error_set(error, ERROR_ARGUMENT,
                               "command line: convert rmoe: DENSE and OUT are both %s; name another file for OUT", out);
    }
    free(path);
    return result;
}

static status run(const struct command_call *call, struct error *error)
{
    struct mixture_settings settings;
    struct mixture mixture;
    TRY(read_settings(&settings, call, error));
    TRY(check_files(call->arguments[0], call->arguments[1], error));
    status result = mixture_open(&mixture, &settings, error);
    if (result == OK)
        log_info(call->log, "computing on %s", mixture.backend->description);
    NEXT(result, convert(call, &mixture, error));
    mixture_close(&mixture);
    return result;
}

const struct command command_convert_rmoe = {
    .name = "convert rmoe",
    .arguments = "DENSE OUT [IMAGES…]",
    .summary = "replace MLPs of a vision transformer by experts that are copies of them",
    .details =
        "DENSE is a ViT's safetensors file with timm's or Hugging Face's names, or a CLIP, of which the image\n"
        "tower is used (mini: the small one that ships). Each expert is a copy of its block's MLP with noise;\n"
        "routers are new. OUT is a classifier's weights like those of mtil classify. Then the features of the\n"
        "dense model and of the mixture are compared on IMAGES (files, folders, @LIST), or on random images, and\n"
        "the largest difference is printed: 0 with --noise 0 and aligned outputs.\n",
    .example = "  mtil convert rmoe vit.safetensors rmoe.safetensors\n"
               "  mtil convert rmoe ViT-B-16.safetensors rmoe.safetensors --blocks 8,9,11 --noise 0 photos\n",
    .options = options,
    .least = 2,
    .most = SIZE_MAX,
    .run = run,
};
