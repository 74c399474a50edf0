/* mtil convert rmoe: a dense vision transformer as a mixture of experts (Wu et al. 2022, "Residual Mixture of Experts"). */
#include <math.h>
#include <stdlib.h>

#include "adapters/adapter.h"
#include "adapters/files/adapter_file.h"
#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/digest.h"
#include "core/rng.h"
#include "core/scope.h"
#include "harness/commands/inputs/image_reader.h"
#include "harness/commands/output.h"
#include "harness/model/proven.h"
#include "harness/model/weights.h"
#include "models/backend_options.h"
#include "models/files/weights_file.h"
#include "models/vit.h"

enum { BATCH = 16 };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "experts", 1, 1024, "8", "experts of a block"),
    OPTION_NUMBER(INTEGER, "top-k", 1, 64, "1", "experts chosen per token"),
    OPTION_NUMBER(REAL, "noise", 0, 10, "0.01",
                  "standard deviation of the noise added to each tensor of an expert, as a share of the tensor's own"),
    OPTION(TEXT, "blocks", "last_3",
           "blocks whose MLP is replaced: all, first_N, last_N, every_N, or numbers from 0 (mtil layers ranks blocks)"),
    OPTION(BOOLEAN, "unaligned", "no",
           "weight a token's experts by their gates, without scaling the gates to sum to 1"),
    OPTION_NUMBER(INTEGER, "seed", 0, 1e9, "1", "seed of noise, routers and random images"),
    MODEL_CHOICE_OPTIONS,
    OUTPUT_FORMAT_OPTION,
    BACKEND_OPTIONS("auto", "auto", "0"),
    THREADS_OPTION,
    {0},
};

struct mixture_settings {
    const char *weights; /* file of a CLIP, or of a ViT with timm's or Hugging Face's names; mini */
    struct clip_stated stated;
    struct adapter_settings adapter; /* its activation is replaced by the model's */
    uint64_t seed;
    struct backend_settings backend;
};

struct mixture {
    struct backend *backend;
    struct arena memory, step;
    struct clip *vit, *written; /* the dense model; the tower of the file */
    struct linear_head *head;   /* NULL: the file has none */
    struct adapters *adapters;
};

/* --- The dense model --- */

/* The CLIP is in the step's memory until its tower is copied. */
static status take_tower(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    SCOPED(clip_destroy_at) struct clip *clip = NULL;
    TRY(weights_load(&clip, m->backend, &m->step, s->weights, PARAMETERS_FROZEN, &s->stated, NULL, error));
    struct vit_settings vit = vit_settings_of(clip);
    TRY(vit_create(&m->vit, m->backend, &m->memory, &vit, PARAMETERS_FROZEN, error));
    return vit_copy_image_tower(m->vit, clip, error);
}

static status load_dense(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    const struct vit_stated stated = {.heads = s->stated.config.image_heads,
                                      .activation = s->stated.config.activation,
                                      .by = "--heads or --activation"};
    struct vit_file file;
    bool is_vit;
    TRY(vit_weights_look(&file, &is_vit, s->weights, &stated, error));
    if (!is_vit)
        return take_tower(m, s, error);
    TRY(vit_weights_load(&m->vit, m->backend, &m->memory, s->weights, PARAMETERS_FROZEN, &stated, NULL, error));
    if (file.classes == 0)
        return OK;
    return vit_load_head(&m->head, m->backend, &m->memory, s->weights, PARAMETERS_FROZEN, error);
}

/* --- The mixture --- */

/* With a shared MLP, one block could not have experts while another keeps the MLP. */
static status check_sharing(const struct mixture *m, const char *weights, struct error *error)
{
    if (m->vit->run == 1)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: runs of %zu blocks share an MLP, but experts belong to one block; convert a model whose "
                     "blocks have their own MLPs",
                     weights, m->vit->run);
}

static status make_experts(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    struct adapter_settings adapter = s->adapter;
    const struct block *blocks[TOWERS] = {m->vit->towers[TOWER_IMAGE].blocks, NULL};
    adapter.activation = m->vit->activation;
    TRY(check_sharing(m, s->weights, error));
    TRY(adapters_create(&m->adapters, m->backend, &m->memory, &m->vit->dimensions, &adapter, PARAMETERS_FROZEN, error));
    TRY(adapters_initialize(m->adapters, blocks, s->seed, error));
    return clip_replace_mlps(m->vit, TOWER_IMAGE, adapters_hooks(m->adapters, TOWER_IMAGE), error);
}

/* The mixture is zeros; it is closed after a failure, too. */
static status mixture_open(struct mixture *m, const struct mixture_settings *s, struct error *error)
{
    TRY(proven_open(&m->backend, &s->backend, NULL, NULL, error));
    TRY(m->backend->ops->arena_create(m->backend, &m->memory, 0, "model", error));
    TRY(m->backend->ops->arena_create(m->backend, &m->step, 0, "step", error));
    TRY(load_dense(m, s, error));
    arena_reset(&m->step);
    return make_experts(m, s, error);
}

static void mixture_close(struct mixture *m)
{
    adapters_destroy(m->adapters);
    linear_head_destroy(m->head);
    clip_destroy(m->written);
    clip_destroy(m->vit);
    if (m->backend != NULL) {
        m->backend->ops->arena_destroy(m->backend, &m->step);
        m->backend->ops->arena_destroy(m->backend, &m->memory);
        backend_close(m->backend);
    }
}

static status read_experts(struct mixture *m, const char *path, struct error *error)
{
    SCOPED(safetensors_close_at) struct safetensors *file = NULL;
    struct adapters *read = NULL;
    const int router = 0;
    TRY(safetensors_open(&file, path, WEIGHTS_WHOLE, error));
    TRY(adapters_open(&read, m->backend, &m->memory, &m->vit->dimensions, file, &router, 1, error));
    adapters_destroy(m->adapters);
    m->adapters = read;
    return OK;
}

/* Writes the file and reads tower and experts back from it. */
static status mixture_write(struct mixture *m, const char *path, struct error *error)
{
    const struct vit_stated with_experts = {.experts = true};
    TRY(classifier_save(m->vit, m->head, m->adapters, NULL, path, error));
    TRY(vit_load(&m->written, m->backend, &m->memory, path, PARAMETERS_FROZEN, &with_experts, error));
    return read_experts(m, path, error);
}

/* --- Both on the same images --- */

/* The largest magnitude of a feature of the dense model, and the largest difference between features of both models,
 * over all images so far; zeros at first. */
struct deviation {
    double largest, difference;
};

/* features [count, width], on the host; ERROR_FORMAT where one is not finite */
static status encode(struct mixture *m, const uint8_t *pixels, size_t count, bool experts, float *features,
                     struct error *error)
{
    size_t r = m->vit->dimensions.resolution;
    struct encoding encoding = {.arena = &m->step};
    struct tensor batch = {0};
    struct tower_pass pass;
    struct tensor routers, output;
    arena_reset(&m->step);
    TRY(tensor_take(&routers, &m->step, TENSOR_I32, "routers", 1, &count, error));
    TRY(m->backend->ops->zero(m->backend, routers.data, tensor_bytes(&routers), error));
    if (experts) {
        encoding.hooks = adapters_hooks(m->adapters, TOWER_IMAGE);
        encoding.router = routers.data;
    }
    TRY(tensor_take(&batch, &m->step, TENSOR_U8, "images", 4, (size_t[]){count, r, r, 3}, error));
    TRY(m->backend->ops->upload(m->backend, batch.data, pixels, tensor_bytes(&batch), error));
    TRY(clip_encode_images(experts ? m->written : m->vit, &encoding, &batch, &pass, &output, error));
    TRY(m->backend->ops->download(m->backend, features, output.data, tensor_bytes(&output), error));
    size_t n = tensor_elements(&output);
    return not_finite_at(features, n) == n ? OK
                                           : error_set(error, ERROR_FORMAT,
                                                       "features of the %s are not finite: numbers overflow on their "
                                                       "way through the model",
                                                       experts ? "mixture" : "dense model");
}

/* pixels [count, R, R, 3] */
static status mixture_compare(struct mixture *m, const uint8_t *pixels, size_t count, struct deviation *deviation,
                              struct error *error)
{
    size_t n = count * m->vit->dimensions.image_width;
    OWNED float *dense = xmalloc(array_size(n, 2 * sizeof *dense));
    float *mixture = dense + n;
    TRY(encode(m, pixels, count, false, dense, error));
    TRY(encode(m, pixels, count, true, mixture, error));
    for (size_t i = 0; i < n; i++) {
        double value = fabs((double)dense[i]), difference = fabs((double)dense[i] - (double)mixture[i]);
        if (value > deviation->largest)
            deviation->largest = value;
        if (difference > deviation->difference)
            deviation->difference = difference;
    }
    return OK;
}

/* --- Command line --- */

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
    s->adapter.kind->set_unread(&s->adapter);
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
    OWNED uint8_t *pixels = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)rng_below(&rng, i, 256);
    c->images = BATCH;
    return mixture_compare(c->mixture, pixels, BATCH, &c->deviation, error);
}

static status compare_given(struct comparison *c, struct error *error)
{
    const struct command_call *call = c->call;
    const struct image_names names = {.arguments = call->arguments + 2, .count = call->argument_count - 2};
    SCOPED(image_reader_close) struct image_reader reader = {0};
    TRY(image_reader_open(&reader, call, &names, c->mixture->vit->dimensions.resolution, false, BATCH, error));
    do {
        TRY(image_reader_next(&reader, error));
        if (reader.count > 0)
            TRY(mixture_compare(c->mixture, reader.pixels, reader.count, &c->deviation, error));
        c->images += reader.count;
        progress_report(call->progress, &(struct progress_state){.activity = "compare", .step = c->images});
    } while (reader.count > 0);
    progress_end(call->progress);
    if (reader.failed > 0 || c->images == 0)
        return error_set(error, ERROR_FORMAT,
                         "%zu of %zu images could not be read; %s is written, but not compared on all of them",
                         reader.failed, reader.read + reader.failed, call->arguments[1]);
    return OK;
}

static void show(const struct comparison *c)
{
    SCOPED(table_free) struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "images"});
    table_add_column(&table, &(struct table_column){.title = "largest feature", .decimals = DECIMALS_ALL});
    table_add_column(&table, &(struct table_column){.title = "largest deviation", .decimals = DECIMALS_ALL});
    table_add_integer(&table, (int64_t)c->images);
    table_add_real(&table, c->deviation.largest);
    table_add_real(&table, c->deviation.difference);
    output_table(c->call, &table);
}

static status convert(const struct command_call *call, struct mixture *mixture, struct error *error)
{
    struct comparison c = {.call = call, .mixture = mixture};
    TRY(mixture_write(mixture, call->arguments[1], error));
    TRY((call->argument_count > 2 ? compare_given : compare_random)(&c, error));
    show(&c);
    return OK;
}

/* Otherwise OUT would overwrite the dense model. */
static status check_files(const char *dense, const char *out, struct error *error)
{
    OWNED char *path = weights_path(dense);
    bool other = weights_file_is_other(path, out);
    return other ? OK
                 : error_set(error, ERROR_ARGUMENT,
                             "command line: convert rmoe: OUT is %s, which is read; name another file", out);
}

static status run(const struct command_call *call, struct error *error)
{
    struct mixture_settings settings;
    SCOPED(mixture_close) struct mixture mixture = {0};
    TRY(read_settings(&settings, call, error));
    TRY(check_files(call->arguments[0], call->arguments[1], error));
    TRY(mixture_open(&mixture, &settings, error));
    log_info(call->log, "computing on %s", mixture.backend->description);
    return convert(call, &mixture, error);
}

const struct command command_convert_rmoe = {
    .name = "convert rmoe",
    .arguments = "DENSE OUT [IMAGES…]",
    .summary = "replace MLPs of a vision transformer by experts that are copies of them",
    .details =
        "DENSE is a ViT's safetensors file with timm's or Hugging Face's names, or a CLIP, whose image\n"
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
