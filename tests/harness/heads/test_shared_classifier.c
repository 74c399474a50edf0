/* A classifier whose blocks share their mixture, as WideNet: its size, that a stop is not seen, its file, and which models
 * it starts from. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/heads/trained.h"
#include "models/files/safetensors.h"
#include "tests/harness/whole_run.h"
#include "tests/models/vit.h"

enum { BLOCKS = 4, CLASSES = 4, WIDTH = 64, HIDDEN = 4 * WIDTH, EXPERTS = 3 };

#define FITTED                                                                                                         \
    "head.name=linear", "method.name=supervised", "method.ffn=widenet", "data.order=third",                            \
        "tasks.third.iterations=12", "adapter.experts=3", "adapter.router_noise=0.333", "adapter.bottleneck=64"
#define SCRATCH                                                                                                        \
    FITTED, "model.weights=scratch", "model.resolution=16", "model.patch=8", "model.width=64", "model.blocks=4"

static const char *const sharings[][3] = {{"adapter.share_routing=0"},
                                          {"adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "model.share_groups=2"}};
enum { SHARINGS = sizeof sharings / sizeof *sharings };

static void reopen(struct small_run *run, const char *const *words)
{
    small_run_reopen(run, 1, (const char *const[]){SCRATCH, words[0], words[1], words[2], NULL});
}

static status run_once(struct small_run *run, const char *const *words, const char *database)
{
    reopen(run, words);
    return whole_run(run, database, NULL);
}

/* One attention, one mixture and one router for all blocks, or for each half of them; norms of their own. */
TEST(values_are_those_of_what_is_shared)
{
    size_t attention = 4 * WIDTH * WIDTH + 4 * WIDTH, mixture = EXPERTS * (2 * WIDTH * HIDDEN + HIDDEN + WIDTH + WIDTH),
           rest =
               BLOCKS * 4 * WIDTH + 3 * 8 * 8 * WIDTH + WIDTH + WIDTH + 5 * WIDTH + 2 * WIDTH + CLASSES * (WIDTH + 1);
    const size_t expected[SHARINGS] = {attention + mixture + rest, attention + mixture + rest,
                                       attention + 2 * mixture + rest, 2 * (attention + mixture) + rest};
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t i = 0; i < SHARINGS; i++) {
        reopen(&run, sharings[i]);
        assert_int_equal(trained_values(&run.experiment->model), expected[i]);
    }
    small_run_close(&run);
}

TEST(stopping_is_not_seen_in_the_weights)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t i = 0; i < SHARINGS; i++) {
        const char *const *words = sharings[i];
        expect_stop_unseen(&run, (const char *const[]){SCRATCH, words[0], words[1], words[2], NULL}, 16);
    }
    small_run_close(&run);
}

static void expect_refused(struct small_run *run, const char *path, const char *word, const char *other,
                           const char *const *tells)
{
    char *weights = path_format("model.weights=%s", path);
    assert_int_equal(small_run_try(run, 1, (const char *const[]){FITTED, weights, word, other, NULL}), ERROR_ARGUMENT);
    error_tells(tells);
    free(weights);
}

#define WORDS(...)                                                                                                     \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    } /* in a message */

/* The experts once, under the first block's name; what is read computes what was trained. */
TEST(a_file_holds_what_is_shared_once)
{
    struct small_run run;
    struct safetensors *file;
    small_run_open(&run, 1, NULL);
    must(run_once(&run, sharings[1], "a.db"));
    float *trained = whole_run_features(&run);
    char *path = whole_run_weights(&run), *weights = path_format("model.weights=%s", path);
    must(safetensors_open(&file, path, &error));
    size_t experts = 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        assert_null(strstr(name, ".mlp."));
        experts += strstr(name, "visual.transformer.resblocks.0.") != NULL;
        assert_true(strstr(name, "visual.") == NULL || strstr(name, "resblocks.0.") != NULL);
    }
    assert_int_equal(experts, 4 * EXPERTS + 1);
    assert_string_equal(safetensors_metadata_value(file, "share_across_blocks"), "1");
    assert_string_equal(safetensors_metadata_value(file, "share_routing"), "2");
    safetensors_close(file);
    small_run_reopen(&run, 1, (const char *const[]){SCRATCH, weights, sharings[1][0], NULL});
    float *read = whole_run_features(&run);
    assert_memory_equal(read, trained, WIDTH * sizeof *read);
    expect_refused(&run, path, "adapter.share_across_blocks=0", "model.share_groups=1",
                   WORDS("share_across_blocks 1", "suite's is 0"));
    expect_refused(&run, path, "adapter.share_across_blocks=2", "model.share_groups=1",
                   WORDS("share_across_blocks 1", "suite's is 2"));
    must(run_once(&run, (const char *const[]){"adapter.share_across_blocks=0", NULL, NULL}, "b.db"));
    free(path);
    path = whole_run_weights(&run);
    expect_refused(&run, path, "adapter.share_across_blocks=1", "model.share_groups=1",
                   WORDS("share_across_blocks 0", "suite's is 1"));
    free(read);
    free(trained);
    free(weights);
    free(path);
    small_run_close(&run);
}

static void open_dense(struct small_run *run, const char *sharing)
{
    small_run_reopen(run, 1,
                     (const char *const[]){SCRATCH, "method.ffn=dense", "adapter.router_noise=0",
                                           "head.pool=mean_patches", sharing, NULL});
}

/* As a dense model of experts that were shared and averaged has them. */
/* By way of the host, since the values may lie on a device. */
static void copy_values(struct backend *backend, float *to, const float *from, size_t n)
{
    float *values = malloc(n * sizeof *values);
    must(backend->ops->download(backend, values, from, n * sizeof *values, &error));
    must(backend->ops->upload(backend, to, values, n * sizeof *values, &error));
    free(values);
}

static void give_all_blocks_the_first_mlp(struct backend *backend, const struct clip *clip)
{
    const struct block *blocks = clip->towers[TOWER_IMAGE].blocks;
    for (size_t b = 1; b < BLOCKS; b++) {
        const struct linear *const pairs[][2] = {{&blocks[0].c_fc, &blocks[b].c_fc},
                                                 {&blocks[0].c_proj, &blocks[b].c_proj}};
        for (size_t i = 0; i < 2; i++) {
            const struct linear *from = pairs[i][0], *to = pairs[i][1];
            copy_values(backend, to->weight.value, from->weight.value, from->out * from->in);
            copy_values(backend, to->bias.value, from->bias.value, from->out);
        }
    }
}

/* Experts are copies of one MLP: of blocks with MLPs that were trained apart they could be that of one alone. */
TEST(different_mlps_are_not_shared)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    assert_int_equal(small_run_try(&run, 1,
                                   (const char *const[]){"adapter.kind=ffn", "adapter.bottleneck=64",
                                                         "adapter.share_across_blocks=1", NULL}),
                     ERROR_ARGUMENT);
    error_tells(WORDS("blocks 0 and 1", "different MLPs", "adapter.kind=lora"));
    open_dense(&run, "model.share_groups=0");
    char *path = strdup(small_run_file(&run, "dense.safetensors"));
    must(vit_save(run.experiment->model.clip, NULL, VIT_TIMM, path, &error));
    expect_refused(&run, path, "model.share_groups=0", NULL, WORDS("different MLPs", "model.share_groups"));
    open_dense(&run, "model.share_groups=0");
    give_all_blocks_the_first_mlp(run.experiment->model.backend, run.experiment->model.clip);
    must(vit_save(run.experiment->model.clip, NULL, VIT_TIMM, path, &error));
    char *weights = path_format("model.weights=%s", path);
    must(small_run_try(&run, 1, (const char *const[]){FITTED, weights, "model.share_groups=0", NULL}));
    open_dense(&run, "model.share_groups=1");
    must(vit_save(run.experiment->model.clip, NULL, VIT_TIMM, path, &error));
    small_run_reopen(&run, 1, (const char *const[]){SCRATCH, weights, NULL});
    assert_int_equal(run.experiment->model.adapters->towers[TOWER_IMAGE].blocks, 1);
    free(weights);
    free(path);
    small_run_close(&run);
}
