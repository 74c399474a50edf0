/* A classifier with mixtures in place of MLPs, of a block each or, as WideNet, of several: its size, what is trained, what its file
 * holds, and which models it starts from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "models/files/safetensors.h"
#include "tests/harness/model/classifiers.h"
#include "tests/models/vit.h"

enum { EXPERTS = 4 };

static const char *const mixtures[] = {"method.ffn=ewa", "method.ffn=moe", "method.ffn=rmoe", "method.ffn=widenet"};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures };

static struct parameters *tower_of(const struct small_run *run)
{
    return run->experiment->model.clip->parameters;
}

static struct parameters *experts_of(const struct small_run *run)
{
    return run->experiment->model.adapters->towers[TOWER_IMAGE].parameters;
}

static void reopen(struct small_run *run, const char *weights, const char *ffn, const char *word)
{
    small_run_reopen(run, 1, WORDS(SCRATCH, MIXTURE, weights, ffn, word));
}

/* The choice of a trained one's file. */
static char *weights_of(struct small_run *run, const char *const *words)
{
    return small_run_format("model.weights=%s", classifier_file(run, words));
}

static bool is_replaced(const struct parameter *p)
{
    return strstr(p->name, "resblocks.1.mlp.") != NULL;
}

/* --- Training --- */

/* Everything is trained but the MLP that experts stand for, which weight decay does not shrink either. */
RUN_TEST(an_mlp_that_is_replaced_stays, SCRATCH, MIXTURE, "method.ffn=moe", "training.weight_decay=0.1", NULL)
{
    const struct parameters *tower = tower_of(run), *experts = experts_of(run);
    float *before = small_run_group(tower), *expert_before = small_run_group(experts);
    learn(run, 0);
    float *after = small_run_group(tower), *expert_after = small_run_group(experts);
    size_t replaced = 0;
    for (size_t i = 0; i < tower->count; i++) {
        const struct parameter *p = &tower->list[i];
        bool same = memcmp(before + p->offset, after + p->offset, p->size * sizeof *after) == 0;
        if (same != is_replaced(p))
            fail_msg("%s: %s", p->name, same ? "not trained" : "changed");
        replaced += is_replaced(p) ? p->size : 0;
    }
    for (size_t i = 0; i < experts->count; i++)
        assert_memory_not_equal(expert_before + experts->list[i].offset, expert_after + experts->list[i].offset,
                                experts->list[i].size * sizeof(float));
    assert_int_equal(replaced, 2 * WIDTH * HIDDEN + WIDTH + HIDDEN);
    assert_int_equal(trained_values(&run->experiment->model),
                     parameters_size(tower) - replaced + EXPERTS * (replaced + WIDTH) + CLASSES * (WIDTH + 1));
}

/* 24 images in batches of 8: in its only epoch the share rate would stay 0. */
RUN_TEST(experts_that_are_never_averaged_are_refused, NULL)
{
    enum { REFUSED = 2 }; /* of the cases, the first ones */
    static const char *const cases[][2] = {{"tasks.third.iterations=3"},
                                           {"tasks.third.iterations=4", "merge.until=0.75"},
                                           {"tasks.third.iterations=4"},
                                           {"tasks.third.iterations=3", "merge.ramp=linear"},
                                           {"tasks.third.iterations=3", "merge.rate=0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        status opened = small_run_try(run, 1, WORDS(SCRATCH, MIXTURE, mixtures[0], cases[i][0], cases[i][1]));
        if (i >= REFUSED)
            must(opened);
        else
            must_refuse(opened, ERROR_ARGUMENT, "third: merge.ramp: epoch", "averages no experts", "an epoch has 3",
                        "merge.ramp=linear");
    }
}

/* With share rate (N − 1)/N the average of each expert with the others is the mean of all. */
RUN_TEST(experts_are_averaged_after_every_step, NULL)
{
    for (int averaged = 0; averaged < 2; averaged++) {
        small_run_reopen(run, 1,
                         WORDS(SCRATCH, MIXTURE, "method.ffn=ewa", "merge.ramp=constant",
                               averaged ? "merge.rate=0.75" : "merge.rate=0"));
        learn(run, 0);
        const struct parameter *p = parameters_find(experts_of(run), "1.c_fc.weight");
        float *values = small_run_group(experts_of(run)), most = 0;
        size_t n = p->size / EXPERTS;
        for (size_t i = 0; i < p->size; i++)
            most = fmaxf(most, fabsf(values[p->offset + i] - values[p->offset + i % n]));
        assert_true(averaged ? most < 1e-6f : most > 1e-4f);
        int32_t counts[EXPERTS];
        must(adapters_read_counts(run->experiment->model.adapters, TOWER_IMAGE, 0, counts, &error));
        for (size_t e = 0; e < EXPERTS; e++)
            assert_int_equal(counts[e], 24 * 8 * 5 / EXPERTS); /* steps, images, tokens */
    }
}

/* --- Answers --- */

/* EWA and WideNet draw every expert; RMoE's are one MLP and small residuals. What either is, is test_mixtures'. */
RUN_TEST(answers_are_those_of_the_experts, NULL)
{
    float *zeros = small_run_keep(calloc(WIDTH * HIDDEN * 8, sizeof *zeros));
    for (size_t m = 0; m < MIXTURES; m++) {
        small_run_reopen(run, 1, WORDS(SCRATCH, MIXTURE, mixtures[m]));
        assert_int_equal(run->experiment->model.settings.adapter.start,
                         strstr(mixtures[m], "rmoe") != NULL ? EXPERT_START_COPIES : EXPERT_START_INDEPENDENT);
        struct parameters *tower = tower_of(run), *experts = experts_of(run);
        float *features = whole_run_features(run);
        for (size_t i = 0; i < tower->count; i++)
            if (is_replaced(&tower->list[i]))
                must(parameters_upload(tower, &tower->list[i], zeros, &error));
        assert_memory_equal(whole_run_features(run), features, WIDTH * sizeof *features);
        must(parameters_upload(experts, parameters_find(experts, "1.c_proj.weight"), zeros, &error));
        assert_memory_not_equal(whole_run_features(run), features, WIDTH * sizeof *features);
    }
}

/* Features that were computed before a step are not kept for after it, though experts may be as they were. */
RUN_TEST(the_tower_under_experts_is_not_taken_as_unchanged, SCRATCH, MIXTURE, "method.ffn=moe",
         "adapter.routing=per_sample", NULL)
{
    float token[WIDTH] = {1, -1, 1}, before[WIDTH];
    struct parameters *tower = tower_of(run);
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    memcpy(before, evaluator->sets[0].routed.features, sizeof before);
    must(parameters_upload(tower, parameters_find(tower, "visual.class_embedding"), token, &error));
    must(evaluator_refresh(evaluator, &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    assert_memory_not_equal(before, evaluator->sets[0].routed.features, sizeof before);
}

/* --- Runs --- */

static void expect_values(const struct parameters *group, const float *expected)
{
    float *found = small_run_group(group);
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        if (!is_replaced(p) && memcmp(expected + p->offset, found + p->offset, p->size * sizeof *found) != 0)
            fail_msg("%s is not the file's", p->name);
    }
}

/* Tower, head, experts and routers, which a run that names the file starts from. */
static void goes_on_from(struct small_run *run, const char *weights, const char *ffn)
{
    struct trained_group group;
    float *trained[3];
    size_t groups = 0;
    for (; trained_group_at(&run->experiment->model, groups, &group); groups++)
        trained[groups] = small_run_group(group.parameters);
    assert_int_equal(groups, 3);
    reopen(run, weights, ffn, NULL);
    for (size_t i = 0; trained_group_at(&run->experiment->model, i, &group); i++)
        expect_values(group.parameters, trained[i]);
    learn(run, 0);
}

/* Embedded positions are interpolated; nothing else depends on the side of an image. */
static void goes_on_at_another_resolution(struct small_run *run, const char *weights, const char *ffn)
{
    reopen(run, weights, ffn, NULL);
    struct parameter old = *parameters_find(tower_of(run), "visual.positional_embedding"),
                     patches = *parameters_find(tower_of(run), "visual.conv1.weight");
    float *before = small_run_group(tower_of(run)), expected[16 * WIDTH];
    reopen(run, weights, ffn, "model.resolution=32");
    const struct parameter *new = parameters_find(tower_of(run), "visual.positional_embedding"),
                           *same = parameters_find(tower_of(run), "visual.conv1.weight");
    float *after = small_run_group(tower_of(run));
    assert_int_equal(run->experiment->model.clip->dimensions.resolution, 32);
    assert_int_equal(new->size, (1 + 16) * WIDTH);
    vit_resize_grid(before + old.offset + WIDTH, 2, expected, 4, WIDTH);
    assert_memory_equal(after + new->offset, before + old.offset, WIDTH * sizeof *after);
    assert_memory_equal(after + new->offset + WIDTH, expected, sizeof expected);
    assert_memory_equal(after + same->offset, before + patches.offset, patches.size * sizeof *after);
    learn(run, 0);
}

RUN_TEST(training_goes_on_from_a_file, NULL)
{
    for (size_t m = 0; m < MIXTURES; m++) {
        char *weights = weights_of(run, WORDS(SCRATCH, MIXTURE, mixtures[m]));
        if (m > 0) /* what EWA leaves is dense */
            goes_on_from(run, weights, mixtures[m]);
        goes_on_at_another_resolution(run, weights, mixtures[m]);
    }
    assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
}

static float *mean_of_experts(const struct small_run *run, size_t part, size_t *n)
{
    const struct parameter *p = find_part(experts_of(run), part, "1");
    float *values = small_run_group(experts_of(run)), *mean = small_run_keep(malloc(p->size * sizeof *mean));
    *n = p->size / EXPERTS;
    for (size_t i = 0; i < *n; i++) {
        double sum = 0;
        for (size_t e = 0; e < EXPERTS; e++)
            sum += (double)values[p->offset + e * *n + i];
        mean[i] = (float)(sum / EXPERTS);
    }
    return mean;
}

/* What EWA leaves is a dense model, whose MLPs are the means of the experts. It answers as the experts did together, and fine-tuning
 * starts each expert from the mean. */
RUN_TEST(averaged_experts_become_a_dense_model, NULL)
{
    float *mean[PARTS];
    size_t n[PARTS];
    char *weights = weights_of(run, WORDS(SCRATCH, MIXTURE, "method.ffn=ewa"));
    float *features = whole_run_features(run);
    for (size_t i = 0; i < PARTS; i++)
        mean[i] = mean_of_experts(run, i, &n[i]);
    reopen(run, weights, "method.ffn=dense", NULL);
    assert_memory_equal(whole_run_features(run), features, WIDTH * sizeof *features);
    float *tower = small_run_group(tower_of(run));
    reopen(run, weights, "method.ffn=ewa", NULL);
    float *experts = small_run_group(experts_of(run));
    for (size_t i = 0; i < PARTS; i++) {
        const struct parameter *mlp = find_part(tower_of(run), i, "visual.transformer.resblocks.1.mlp"),
                               *expert = find_part(experts_of(run), i, "1");
        assert_memory_equal(tower + mlp->offset, mean[i], n[i] * sizeof *tower);
        for (size_t e = 0; e < EXPERTS; e++)
            assert_memory_equal(experts + expert->offset + e * n[i], mean[i], n[i] * sizeof *experts);
    }
    learn(run, 0);
}

/* As timm and Hugging Face name a dense model: each expert is the MLP. A head of other classes starts at zero. */
RUN_TEST(experts_start_from_a_dense_file, NULL)
{
    for (enum clip_naming names = VIT_TIMM; names <= VIT_HUGGINGFACE; names++) {
        classifier_file(run, WORDS(SCRATCH, MIXTURE, "method.ffn=dense"));
        const struct model *model = &run->experiment->model;
        const char *path = small_run_file(run, "dense.safetensors"),
                   *weights = small_run_format("model.weights=%s", path);
        must(vit_save(model->clip, model->head_state, names, path, &error));
        float *tower = small_run_group(tower_of(run));
        small_run_reopen(run, 1,
                         WORDS(SCRATCH, MIXTURE, weights, "method.ffn=ewa", "model.heads=1", "model.activation=gelu",
                               "data.order=second"));
        model = &run->experiment->model;
        expect_values(tower_of(run), tower);
        const struct parameter *expert = find_part(experts_of(run), 0, "1"),
                               *mlp = find_part(tower_of(run), 0, "visual.transformer.resblocks.1.mlp");
        float *experts = small_run_group(experts_of(run));
        for (size_t i = 0; i < EXPERTS; i++)
            assert_memory_equal(experts + expert->offset + i * mlp->size, tower + mlp->offset,
                                mlp->size * sizeof *experts);
        const struct linear_head *head = model->head_state;
        float *rows = small_run_group(head->parameters);
        assert_int_equal(head->linear.out, 3);
        for (size_t i = 0; i < head->parameters->values_count; i++)
            assert_true(rows[i] == 0);
    }
}

RUN_TEST(a_file_that_does_not_fit_is_refused, NULL)
{
    static const struct {
        const char *word, *tells[2];
    } cases[] = {
        {"method.ffn=dense", {"experts in place of MLPs", "method.ffn"}},
        {"adapter.experts=3", {"4 experts", "adapter.experts is 3"}},
        {"adapter.blocks=all", {"an MLP in block 0", "set adapter.blocks"}},
        {"adapter.blocks=0", {"block 0"}},
        {"adapter.share_across_blocks=1", {"share_across_blocks 0", "is 1"}},
        {"head.pool=mean_patches", {"head.pool=class_token"}},
        {"model.patch=4", {"patch is 4", "8 in"}},
        {"model.resolution=12", {"multiple of the patch", "12 and 8"}},
        {"model.share_groups=1", {"share_groups is 1", "0 in"}},
    };
    char *weights = weights_of(run, WORDS(SCRATCH, MIXTURE, "method.ffn=moe"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_refuse(small_run_try(run, 1, WORDS(LINEAR, MIXTURE, weights, "method.ffn=moe", cases[i].word)),
                    ERROR_ARGUMENT, cases[i].tells[0], cases[i].tells[1]);
}

/* --- Blocks that share their mixture --- */

#define FITTED LINEAR, "method.ffn=widenet", "adapter.experts=4", "adapter.router_noise=0.333", "adapter.bottleneck=64"
#define SIZED FITTED, TINY, "model.blocks=4"

static const char *const sharings[][2] = {{"adapter.share_routing=0"},
                                          {"adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "adapter.share_routing=2"},
                                          {"adapter.share_across_blocks=2", "model.share_groups=2"}};
enum { BLOCKS = 4, SHARINGS = sizeof sharings / sizeof *sharings };

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

static void expect_refused(struct small_run *run, const char *weights, const char *word, const char *first,
                           const char *second)
{
    const char *groups = strstr(word, "share_across") != NULL ? "model.share_groups=1" : NULL;
    must_refuse(small_run_try(run, 1, WORDS(FITTED, weights, word, groups)), ERROR_ARGUMENT, first, second);
}

/* The experts once, under the first block's name; what is read computes what was trained. */
RUN_TEST(a_file_holds_what_is_shared_once, NULL)
{
    struct safetensors *file;
    char *weights = weights_of(run, WORDS(SIZED, sharings[1][0]));
    float *trained = whole_run_features(run);
    must(safetensors_open(&file, whole_run_weights(run), WEIGHTS_WHOLE, &error));
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
    expect_refused(run, weights, "adapter.share_across_blocks=0", "share_across_blocks 1", "suite's is 0");
    expect_refused(run, weights, "adapter.share_across_blocks=2", "share_across_blocks 1", "suite's is 2");
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
    const char *path = small_run_format("%s/dense.safetensors", run->scratch.path),
               *weights = small_run_format("model.weights=%s", path);
    save_dense(run, "model.share_groups=0", false, path);
    expect_refused(run, weights, "model.share_groups=0", "different MLPs", "model.share_groups");
    save_dense(run, "model.share_groups=0", true, path);
    must(small_run_try(run, 1, WORDS(FITTED, weights, "model.share_groups=0")));
    save_dense(run, "model.share_groups=1", false, path);
    small_run_reopen(run, 1, WORDS(SIZED, weights));
    assert_int_equal(run->experiment->model.adapters->towers[TOWER_IMAGE].blocks, 1);
}
