/* A classifier whose blocks share their mixture, as WideNet: its size, that a stop is not seen, its file, and which models
 * it starts from. */
#include <string.h>

#include "models/files/safetensors.h"
#include "tests/harness/heads/classifiers.h"
#include "tests/models/vit.h"

enum { BLOCKS = 4, EXPERTS = 3 };

#define FITTED LINEAR, "method.ffn=widenet", "adapter.experts=3", "adapter.router_noise=0.333", "adapter.bottleneck=64"
#define SIZED FITTED, TINY, "model.blocks=4"

static const char *const sharings[][2] = {{"adapter.share_routing=0"},
                                          {"adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "model.share_groups=2"}};
enum { SHARINGS = sizeof sharings / sizeof *sharings };

/* One attention, one mixture and one router for all blocks, or for each half of them; norms of their own. */
RUN_TEST(values_are_those_of_what_is_shared, NULL)
{
    size_t attention = 4 * WIDTH * WIDTH + 4 * WIDTH, mixture = EXPERTS * (2 * WIDTH * HIDDEN + HIDDEN + WIDTH + WIDTH),
           rest =
               BLOCKS * 4 * WIDTH + 3 * 8 * 8 * WIDTH + WIDTH + WIDTH + 5 * WIDTH + 2 * WIDTH + CLASSES * (WIDTH + 1);
    const size_t expected[SHARINGS] = {attention + mixture + rest, attention + mixture + rest,
                                       attention + 2 * mixture + rest, 2 * (attention + mixture) + rest};
    for (size_t i = 0; i < SHARINGS; i++) {
        small_run_reopen(run, 1, WORDS(SIZED, sharings[i][0], sharings[i][1]));
        assert_int_equal(trained_values(&run->experiment->model), expected[i]);
    }
}

static void expect_refused(struct small_run *run, const char *path, const char *word, const char *first,
                           const char *second)
{
    const char *groups = strstr(word, "share_across") != NULL ? "model.share_groups=1" : NULL;
    must_refuse(small_run_try(run, 1, WORDS(FITTED, small_run_format("model.weights=%s", path), word, groups)),
                ERROR_ARGUMENT, first, second);
}

/* The experts once, under the first block's name; what is read computes what was trained. */
RUN_TEST(a_file_holds_what_is_shared_once, NULL)
{
    struct safetensors *file;
    char *path = classifier_file(run, WORDS(SIZED, sharings[1][0]), "a.db"),
         *weights = small_run_format("model.weights=%s", path);
    float *trained = whole_run_features(run);
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
    small_run_reopen(run, 1, WORDS(SIZED, weights, sharings[1][0]));
    assert_memory_equal(whole_run_features(run), trained, WIDTH * sizeof *trained);
    expect_refused(run, path, "adapter.share_across_blocks=0", "share_across_blocks 1", "suite's is 0");
    expect_refused(run, path, "adapter.share_across_blocks=2", "share_across_blocks 1", "suite's is 2");
    path = classifier_file(run, WORDS(SIZED, "adapter.share_across_blocks=0"), "b.db");
    expect_refused(run, path, "adapter.share_across_blocks=1", "share_across_blocks 0", "suite's is 1");
}

/* A dense model of that sharing in a file; same: its blocks have the first one's MLP, as if experts had been shared and averaged. */
static void save_dense(struct small_run *run, const char *sharing, bool same, const char *path)
{
    small_run_reopen(run, 1,
                     WORDS(SIZED, "method.ffn=dense", "adapter.router_noise=0", "head.pool=mean_patches", sharing));
    struct parameters *group = run->experiment->model.clip->parameters;
    const float *values = small_run_group(group);
    for (size_t i = 0; same && i < PARTS * BLOCKS; i++) {
        const char *block = small_run_format("visual.transformer.resblocks.%zu.mlp", i % BLOCKS);
        must(parameters_upload(group, find_part(group, i / BLOCKS, block),
                               values + find_part(group, i / BLOCKS, "visual.transformer.resblocks.0.mlp")->offset,
                               &error));
    }
    must(vit_save(run->experiment->model.clip, NULL, VIT_TIMM, path, &error));
}

/* Experts are copies of one MLP: of blocks with MLPs that were trained apart they could be that of one alone. */
RUN_TEST(different_mlps_are_not_shared, NULL)
{
    must_refuse(
        small_run_try(run, 1, WORDS("adapter.kind=ffn", "adapter.bottleneck=64", "adapter.share_across_blocks=1")),
        ERROR_ARGUMENT, "blocks 0 and 1", "different MLPs", "adapter.kind=lora");
    char *path = small_run_format("%s", small_run_file(run, "dense.safetensors")),
         *weights = small_run_format("model.weights=%s", path);
    save_dense(run, "model.share_groups=0", false, path);
    expect_refused(run, path, "model.share_groups=0", "different MLPs", "model.share_groups");
    save_dense(run, "model.share_groups=0", true, path);
    must(small_run_try(run, 1, WORDS(FITTED, weights, "model.share_groups=0")));
    save_dense(run, "model.share_groups=1", false, path);
    small_run_reopen(run, 1, WORDS(SIZED, weights));
    assert_int_equal(run->experiment->model.adapters->towers[TOWER_IMAGE].blocks, 1);
}
