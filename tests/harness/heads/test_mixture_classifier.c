/* A classifier with mixtures in place of MLPs: what is trained, what is written, and that a stop is not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "core/file.h"
#include "harness/evaluate/evaluator.h"
#include "harness/heads/trained.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "harness/train/guard.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "models/files/safetensors.h"
#include "results/verify.h"
#include "tests/harness/whole_run.h"
#include "tests/models/vit.h"

enum { CLASSES = 4, WIDTH = 64, HIDDEN = 4 * WIDTH, EXPERTS = 4 };

/* Block 1 of 2 has a mixture. */
#define FITTED                                                                                                         \
    "head.name=linear", "method.name=supervised", "data.order=third", "tasks.third.iterations=24",                     \
        "adapter.blocks=every_2", "adapter.experts=4", "adapter.top_k=1", "adapter.bottleneck=64"
#define SCRATCH                                                                                                        \
    FITTED, "model.weights=scratch", "model.resolution=16", "model.patch=8", "model.width=64", "model.blocks=2"

static const char *const mixtures[] = {"method.ffn=ewa", "method.ffn=moe", "method.ffn=rmoe", "method.ffn=widenet"};
enum { MIXTURES = sizeof mixtures / sizeof *mixtures };

static void open_run(struct small_run *run, const char *ffn, const char *word)
{
    small_run_open(run, 1, NULL);
    small_run_reopen(run, 1, (const char *const[]){SCRATCH, ffn, word, NULL});
}

static void train(const struct small_run *run)
{
    must(train_task(&(struct training){.run = &run->experiment->method, .task = &run->experiment->data.tasks[0]},
                    &error));
}

static float *values_of(const struct small_run *run, const struct parameters *group)
{
    return small_run_values(run, group->values, group->values_count);
}

static bool is_replaced(const struct parameter *p)
{
    return strstr(p->name, "resblocks.1.mlp.") != NULL;
}

/* --- Training --- */

/* Everything is trained but the MLP that experts stand for, which weight decay does not shrink either. */
TEST(an_mlp_that_is_replaced_stays)
{
    struct small_run run;
    open_run(&run, mixtures[1], "training.weight_decay=0.1");
    const struct run *e = run.experiment;
    const struct parameters *tower = e->model.clip->parameters,
                            *experts = e->model.adapters->towers[TOWER_IMAGE].parameters;
    float *before = values_of(&run, tower), *expert_before = values_of(&run, experts);
    train(&run);
    float *after = values_of(&run, tower), *expert_after = values_of(&run, experts);
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
    assert_int_equal(trained_values(&e->model),
                     parameters_size(tower) - replaced + EXPERTS * (replaced + WIDTH) + CLASSES * (WIDTH + 1));
    free(before);
    free(after);
    free(expert_before);
    free(expert_after);
    small_run_close(&run);
}

/* 24 images in batches of 8: in its only epoch the share rate would stay 0. */
TEST(experts_that_are_never_averaged_are_refused)
{
    static const struct {
        const char *word, *more;
        bool refused;
    } cases[] = {{"tasks.third.iterations=3", NULL, true},
                 {"tasks.third.iterations=4", NULL, false},
                 {"tasks.third.iterations=4", "merge.until=0.75", true},
                 {"tasks.third.iterations=3", "merge.ramp=linear", false},
                 {"tasks.third.iterations=3", "merge.rate=0", false}};
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const words[] = {SCRATCH, mixtures[0], cases[i].word, cases[i].more, NULL};
        assert_int_equal(small_run_try(&run, 1, words), cases[i].refused ? ERROR_ARGUMENT : OK);
        if (cases[i].refused)
            error_tells((const char *const[]){"third: merge.ramp: epoch", "averages no experts",
                                              "of which 3 are an epoch", "merge.ramp=linear", NULL});
    }
    small_run_close(&run);
}

/* With share rate (N − 1)/N the average of each expert with the others is the mean of all. */
TEST(experts_are_averaged_after_every_step)
{
    struct small_run run;
    for (int averaged = 0; averaged < 2; averaged++) {
        small_run_open(&run, 1, NULL);
        small_run_reopen(&run, 1,
                         (const char *const[]){SCRATCH, mixtures[0], "merge.ramp=constant",
                                               averaged ? "merge.rate=0.75" : "merge.rate=0", NULL});
        train(&run);
        const struct parameters *all = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters;
        const struct parameter *p = parameters_find(all, "1.c_fc.weight");
        float *values = values_of(&run, all), most = 0;
        size_t n = p->size / EXPERTS;
        for (size_t i = 0; i < p->size; i++)
            most = fmaxf(most, fabsf(values[p->offset + i] - values[p->offset + i % n]));
        assert_true(averaged ? most < 1e-6f : most > 1e-4f);
        int32_t counts[EXPERTS];
        must(adapters_read_counts(run.experiment->model.adapters, TOWER_IMAGE, 0, counts, &error));
        for (size_t e = 0; e < EXPERTS; e++)
            assert_int_equal(counts[e], 24 * 8 * 5 / EXPERTS); /* steps, images, tokens */
        free(values);
        small_run_close(&run);
    }
}

static bool has_copies(const float *values, const struct parameter *p)
{
    size_t n = p->size / EXPERTS;
    for (size_t e = 1; e < EXPERTS; e++)
        if (memcmp(values + p->offset, values + p->offset + e * n, n * sizeof *values) != 0)
            return false;
    return true;
}

/* EWA and WideNet draw every expert; RMoE's are one MLP and small residuals. */
TEST(from_scratch_experts_start_independently)
{
    static const char *const words[] = {NULL, "adapter.start=copies"};
    struct small_run run;
    for (size_t m = 0; m < 2 * MIXTURES; m++) {
        bool rmoe = strstr(mixtures[m / 2], "rmoe") != NULL;
        open_run(&run, mixtures[m / 2], rmoe ? "adapter.init_noise=0" : words[m % 2]);
        const struct parameters *all = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters;
        float *values = values_of(&run, all);
        const char *block = all->list[0].name[0] == '0' ? "0" : "1"; /* WideNet has one set, block 0's */
        char name[32];
        for (int i = 0; i < 2; i++) {
            snprintf(name, sizeof name, "%s.%s.weight", block, i == 0 ? "c_fc" : "c_proj");
            assert_int_equal(has_copies(values, parameters_find(all, name)), rmoe || m % 2 == 1);
        }
        free(values);
        small_run_close(&run);
    }
}

/* A tensor of each of the three groups. */
TEST(what_overflows_is_told_by_its_name)
{
    static const char *const names[] = {"adaptmlp_list.0.c_fc.weight", "visual.class_embedding", "head.weight"};
    const float bad = INFINITY;
    struct small_run run;
    struct trained_group group;
    open_run(&run, mixtures[1], NULL);
    struct run *e = run.experiment;
    const struct task *task = &e->data.tasks[0];
    for (size_t i = 0; trained_group_at(&e->model, i, &group); i++) {
        assert_in_range(i, 0, 2);
        const struct parameter *p = parameters_find(group.parameters, names[i]);
        const struct backend_ops *ops = e->model.backend->ops;
        float *gradient = group.parameters->gradients + (p != NULL ? p->offset : 0);
        int32_t on = 1;
        if (i == 0) /* as after a forward pass that chose the expert */
            must(ops->upload(e->model.backend, group.parameters->flags, &on, sizeof on, &error));
        must(guard_begin_step(&e->model, task, &error));
        must(ops->upload(e->model.backend, gradient, &bad, sizeof bad, &error));
        must(guard_end_step(&e->model, task, &error));
        assert_int_equal(guard_check_steps(&e->model, task, &error), ERROR_FORMAT);
        error_tells((const char *const[]){"gradient of", names[i], NULL});
        must(ops->zero(e->model.backend, gradient, sizeof bad, &error));
        must(guard_begin_task(&e->model, &error));
    }
    small_run_close(&run);
}

/* --- Answers --- */

TEST(answers_are_those_of_the_experts)
{
    for (size_t m = 0; m < MIXTURES; m++) {
        struct small_run run;
        open_run(&run, mixtures[m], NULL);
        struct parameters *tower = run.experiment->model.clip->parameters,
                          *experts = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters;
        float *first = whole_run_features(&run), *zeros = calloc(WIDTH * HIDDEN * 8, sizeof *zeros);
        for (size_t i = 0; i < tower->count; i++)
            if (is_replaced(&tower->list[i]))
                must(parameters_upload(tower, &tower->list[i], zeros, &error));
        float *second = whole_run_features(&run);
        assert_memory_equal(first, second, WIDTH * sizeof *first);
        must(parameters_upload(experts, parameters_find(experts, "1.c_proj.weight"), zeros, &error));
        float *third = whole_run_features(&run);
        assert_memory_not_equal(first, third, WIDTH * sizeof *first);
        free(first);
        free(second);
        free(third);
        free(zeros);
        small_run_close(&run);
    }
}

/* Features that were computed before a step are not kept for after it, though experts may be as they were. */
TEST(the_tower_under_experts_is_not_taken_as_unchanged)
{
    struct small_run run;
    struct evaluator *evaluator;
    float token[WIDTH] = {1, -1, 1}, before[WIDTH];
    open_run(&run, mixtures[1], "adapter.routing=per_sample");
    struct parameters *tower = run.experiment->model.clip->parameters;
    must(evaluator_create(&evaluator, &run.experiment->model, &run.experiment->data, &run.experiment->method, NULL,
                          &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    memcpy(before, evaluator->sets[0].routed.features, sizeof before);
    must(parameters_upload(tower, parameters_find(tower, "visual.class_embedding"), token, &error));
    must(evaluator_refresh(evaluator, &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    assert_memory_not_equal(before, evaluator->sets[0].routed.features, sizeof before);
    evaluator_destroy(evaluator);
    small_run_close(&run);
}

/* --- Runs --- */

static status run_once(struct small_run *run, const char *ffn)
{
    small_run_reopen(run, 1, (const char *const[]){SCRATCH, ffn, NULL});
    return whole_run(run, "a.db", NULL);
}

TEST(stopping_is_not_seen_in_the_weights)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t m = 0; m < MIXTURES; m++)
        expect_stop_unseen(&run, (const char *const[]){SCRATCH, mixtures[m], NULL}, 31);
    small_run_close(&run);
}

/* The tower under timm's names without the MLP, the head, and the experts under theirs. */
TEST(a_file_holds_experts_in_place_of_the_mlp)
{
    static const char *const there[] = {"blocks.0.mlp.fc1.weight", "blocks.1.norm2.weight", "head.weight",
                                        "visual.transformer.resblocks.1.adaptmlp_list.3.c_proj.bias",
                                        "visual.transformer.resblocks.1.router_list.0"};
    struct small_run run;
    struct safetensors *file;
    small_run_open(&run, 1, NULL);
    must(run_once(&run, mixtures[1]));
    char *path = whole_run_weights(&run);
    must(safetensors_open(&file, path, &error));
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_non_null(safetensors_find(file, there[i]));
    for (size_t i = 0; i < safetensors_count(file); i++)
        assert_null(strstr(safetensors_at(file, i)->name, "blocks.1.mlp."));
    assert_string_equal(safetensors_metadata_value(file, "expert_kind"), "ffn");
    assert_string_equal(safetensors_metadata_value(file, "pool"), "class_token");
    safetensors_close(file);
    free(path);
    small_run_close(&run);
}

static const char *trained_cells(const char *method)
{
    (void)method;
    return "trained";
}

TEST(results_of_a_mixture_agree)
{
    struct small_run run;
    struct store *store;
    struct verification verification = {.cells = trained_cells};
    small_run_open(&run, 1, NULL);
    for (size_t m = 0; m < MIXTURES; m++)
        must(run_once(&run, mixtures[m]));
    must(store_open(&store, small_run_file(&run, "a.db"), STORE_READ, &error));
    must(verify_database(store, &verification, &error));
    assert_int_equal(table_rows(&verification.faults), 0);
    verification_free(&verification);
    store_close(store);
    small_run_close(&run);
}

/* --- Starting from a file --- */

static void expect_values(const struct small_run *run, const struct parameters *group, const float *expected)
{
    float *found = values_of(run, group);
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        if (!is_replaced(p) && memcmp(expected + p->offset, found + p->offset, p->size * sizeof *found) != 0)
            fail_msg("%s is not the file's", p->name);
    }
    free(found);
}

static void reopen_from(struct small_run *run, const char *path, const char *ffn, const char *word)
{
    char *weights = path_format("model.weights=%s", path);
    small_run_reopen(run, 1, (const char *const[]){SCRATCH, weights, ffn, word, NULL});
    free(weights);
}

/* The tensors of the experts of block 1, and what timm calls the MLP's. */
static const struct {
    const char *expert, *timm;
} expert_parts[] = {{"1.c_fc.weight", "blocks.1.mlp.fc1.weight"},
                    {"1.c_fc.bias", "blocks.1.mlp.fc1.bias"},
                    {"1.c_proj.weight", "blocks.1.mlp.fc2.weight"},
                    {"1.c_proj.bias", "blocks.1.mlp.fc2.bias"}};
enum { PARTS = sizeof expert_parts / sizeof *expert_parts };

static float *mean_of_experts(const struct small_run *run, size_t part, size_t *n)
{
    const struct parameters *group = run->experiment->model.adapters->towers[TOWER_IMAGE].parameters;
    const struct parameter *p = parameters_find(group, expert_parts[part].expert);
    float *values = values_of(run, group), *mean = malloc(p->size * sizeof *mean);
    *n = p->size / EXPERTS;
    for (size_t i = 0; i < *n; i++) {
        double sum = 0;
        for (size_t e = 0; e < EXPERTS; e++)
            sum += (double)values[p->offset + e * *n + i];
        mean[i] = (float)(sum / EXPERTS);
    }
    free(values);
    return mean;
}

/* What EWA leaves is a dense model: a ViT under timm's names whose MLPs are the means of the experts. It answers as the experts
 * did together, and fine-tuning starts each expert from the mean. */
TEST(averaged_experts_become_a_dense_model)
{
    struct small_run run;
    struct safetensors *file;
    float *mean[PARTS];
    size_t n[PARTS];
    small_run_open(&run, 1, NULL);
    must(run_once(&run, "method.ffn=ewa"));
    char *path = whole_run_weights(&run);
    float *features = whole_run_features(&run);
    must(safetensors_open(&file, path, &error));
    for (size_t i = 0; i < safetensors_count(file); i++)
        assert_null(strstr(safetensors_at(file, i)->name, "adapt"));
    for (size_t i = 0; i < PARTS; i++) {
        mean[i] = mean_of_experts(&run, i, &n[i]);
        const struct safetensor *tensor = safetensors_find(file, expert_parts[i].timm);
        assert_non_null(tensor);
        assert_memory_equal(tensor->data, mean[i], n[i] * sizeof **mean);
    }
    safetensors_close(file);
    reopen_from(&run, path, "method.ffn=dense", NULL);
    float *dense = whole_run_features(&run);
    assert_memory_equal(dense, features, WIDTH * sizeof *dense);
    reopen_from(&run, path, "method.ffn=ewa", NULL);
    const struct parameters *experts = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters;
    float *values = values_of(&run, experts);
    for (size_t i = 0; i < PARTS; i++) {
        for (size_t e = 0; e < EXPERTS; e++)
            assert_memory_equal(values + parameters_find(experts, expert_parts[i].expert)->offset + e * n[i], mean[i],
                                n[i] * sizeof *values);
        free(mean[i]);
    }
    train(&run);
    free(values);
    free(dense);
    free(features);
    free(path);
    small_run_close(&run);
}

/* What was trained and saved is where a run that names the file starts: tower, head, experts and routers. */
TEST(training_goes_on_from_a_file)
{
    struct small_run run;
    struct trained_group group;
    small_run_open(&run, 1, NULL);
    for (size_t m = 1; m < MIXTURES; m++) { /* what EWA leaves is dense */
        float *trained[3];
        size_t groups = 0;
        must(run_once(&run, mixtures[m]));
        for (; trained_group_at(&run.experiment->model, groups, &group); groups++)
            trained[groups] = values_of(&run, group.parameters);
        assert_int_equal(groups, 3);
        char *path = whole_run_weights(&run);
        reopen_from(&run, path, mixtures[m], NULL);
        for (size_t i = 0; trained_group_at(&run.experiment->model, i, &group); i++) {
            expect_values(&run, group.parameters, trained[i]);
            free(trained[i]);
        }
        train(&run);
        free(path);
    }
    small_run_close(&run);
}

/* Embedded positions are interpolated; nothing else depends on the side of an image. */
TEST(a_file_is_taken_at_another_resolution)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t m = 0; m < MIXTURES; m++) {
        must(run_once(&run, mixtures[m]));
        const struct parameters *tower = run.experiment->model.clip->parameters;
        struct parameter old = *parameters_find(tower, "visual.positional_embedding"),
                         patches = *parameters_find(tower, "visual.conv1.weight");
        float *before = values_of(&run, tower);
        char *path = whole_run_weights(&run);
        reopen_from(&run, path, mixtures[m], "model.resolution=32");
        tower = run.experiment->model.clip->parameters;
        const struct parameter *new = parameters_find(tower, "visual.positional_embedding"),
                               *same = parameters_find(tower, "visual.conv1.weight");
        float *after = values_of(&run, tower), expected[16 * WIDTH];
        assert_int_equal(run.experiment->model.clip->dimensions.resolution, 32);
        assert_int_equal(new->size, (1 + 16) * WIDTH);
        vit_resize_grid(before + old.offset + WIDTH, 2, expected, 4, WIDTH);
        assert_memory_equal(after + new->offset, before + old.offset, WIDTH * sizeof *after);
        assert_memory_equal(after + new->offset + WIDTH, expected, sizeof expected);
        assert_memory_equal(after + same->offset, before + patches.offset, patches.size * sizeof *after);
        train(&run);
        free(path);
        free(before);
        free(after);
    }
    small_run_close(&run);
}

/* As timm and Hugging Face name a dense model: each expert is the MLP. A head of other classes starts at zero. */
TEST(experts_start_from_a_dense_file)
{
    struct small_run run;
    for (enum clip_naming names = VIT_TIMM; names <= VIT_HUGGINGFACE; names++) {
        small_run_open(&run, 1, NULL);
        must(run_once(&run, "method.ffn=dense"));
        const struct run *e = run.experiment;
        char *path = strdup(small_run_file(&run, "dense.safetensors"));
        must(vit_save(e->model.clip, e->model.head_state, names, path, &error));
        float *tower = values_of(&run, e->model.clip->parameters);
        const char *heads = "model.heads=1";
        char *weights = path_format("model.weights=%s", path);
        small_run_reopen(&run, 1,
                         (const char *const[]){SCRATCH, weights, "method.ffn=ewa", heads, "model.activation=gelu",
                                               "data.order=second", NULL});
        e = run.experiment;
        expect_values(&run, e->model.clip->parameters, tower);
        const struct parameters *all = e->model.adapters->towers[TOWER_IMAGE].parameters;
        const struct parameter *expert = parameters_find(all, "1.c_fc.weight"),
                               *mlp = parameters_find(e->model.clip->parameters,
                                                      "visual.transformer.resblocks.1.mlp.c_fc.weight");
        float *experts = values_of(&run, all);
        for (size_t i = 0; i < EXPERTS; i++)
            assert_memory_equal(experts + expert->offset + i * mlp->size, tower + mlp->offset,
                                mlp->size * sizeof *experts);
        const struct linear_head *head = e->model.head_state;
        float *rows = values_of(&run, head->parameters);
        assert_int_equal(head->linear.out, 3);
        for (size_t i = 0; i < head->parameters->values_count; i++)
            assert_true(rows[i] == 0);
        free(rows);
        free(experts);
        free(tower);
        free(weights);
        free(path);
        small_run_close(&run);
    }
}

static void expect_refused(struct small_run *run, const char *path, const char *ffn, const char *word,
                           const char *const *tells)
{
    char *weights = path_format("model.weights=%s", path);
    assert_int_equal(small_run_try(run, 1, (const char *const[]){FITTED, weights, ffn, word, NULL}), ERROR_ARGUMENT);
    error_tells(tells);
    free(weights);
}

TEST(a_file_that_does_not_fit_is_refused)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    must(run_once(&run, mixtures[1]));
    char *path = whole_run_weights(&run);
#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL} /* in a message */
    expect_refused(&run, path, "method.ffn=dense", NULL, WORDS("experts in place of MLPs", "method.ffn"));
    expect_refused(&run, path, mixtures[1], "adapter.experts=3", WORDS("4 experts", "adapter.experts is 3"));
    expect_refused(&run, path, mixtures[1], "adapter.blocks=all", WORDS("an MLP in block 0", "set adapter.blocks"));
    expect_refused(&run, path, mixtures[1], "adapter.blocks=0", WORDS("block 0"));
    expect_refused(&run, path, mixtures[1], "adapter.share_across_blocks=1", WORDS("share_across_blocks 0", "is 1"));
    expect_refused(&run, path, mixtures[1], "head.pool=mean_patches", WORDS("head.pool=class_token"));
    expect_refused(&run, path, mixtures[1], "model.patch=4", WORDS("patch is 4", "8 in"));
    expect_refused(&run, path, mixtures[1], "model.resolution=12", WORDS("multiple of the patch", "12 and 8"));
    expect_refused(&run, path, mixtures[1], "model.share_groups=1", WORDS("share_groups is 1", "0 in"));
    free(path);
    small_run_close(&run);
}

/* Every rank has the same experts after the same updates. */
TEST(ranks_train_one_mixture)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_run run;
    open_run(&run, mixtures[0], "run.gpus=2");
    train(&run);
    const struct model *other = replicas_at(run.experiment->model.work.replicas, 1)->model;
    const struct parameters *own = run.experiment->model.adapters->towers[TOWER_IMAGE].parameters,
                            *theirs = other->adapters->towers[TOWER_IMAGE].parameters;
    float *expected = values_of(&run, own), *found = malloc(theirs->values_count * sizeof *found);
    must(other->backend->ops->bind(other->backend, &error));
    must(other->backend->ops->download(other->backend, found, theirs->values, theirs->values_count * sizeof *found,
                                       &error));
    assert_memory_equal(expected, found, theirs->values_count * sizeof *found);
    free(expected);
    free(found);
    small_run_close(&run);
}
