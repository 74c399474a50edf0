/* Blocks that are chosen by scores before a run: what the scores are, what they choose, and that a stop changes nothing. */
#include "harness/run/layer_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/files/adapter_file.h"
#include "core/file.h"
#include "harness/train/archive.h"
#include "harness/train/services/merging.h"
#include "tests/harness/whole_run.h"

enum { BLOCKS = 2, STEPS = 3, WORDS_MOST = 32 };

/* --- Scores are norms after the first steps of a task's training --- */

static struct layer_scores seen;
static float *added[TOWERS]; /* of the gradients of the batches that count */

/* Takes a tower's gradients away, and leaves the sum of all in the end. */
static status add_gradients(struct parameters *group, float **sum, bool first, bool last, struct error *failure)
{
    size_t bytes = group->values_count * sizeof **sum;
    float *own = malloc(bytes);
    assert_non_null(own);
    *sum = first ? calloc(group->values_count, sizeof **sum) : *sum;
    assert_non_null(*sum);
    TRY(group->backend->ops->download(group->backend, own, group->gradients, bytes, failure));
    for (size_t i = 0; i < group->values_count; i++)
        (*sum)[i] += own[i];
    free(own);
    return last ? group->backend->ops->upload(group->backend, group->gradients, *sum, bytes, failure)
                : group->backend->ops->zero(group->backend, group->gradients, bytes, failure);
}

/* After STEPS steps the rate is 0, so that nothing changes. */
static status look(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    struct model *model = run->model;
    if (iteration <= STEPS)
        return OK;
    for (int t = 0; t < TOWERS; t++)
        if (seen.blocks[t] > 0)
            TRY(add_gradients(model->adapters->towers[t].parameters, &added[t], iteration == STEPS + 1,
                              iteration == 2 * STEPS, failure));
    TRY(model_set_step(model, task->index, iteration - 1, 0, failure));
    if (iteration < 2 * STEPS)
        return OK;
    for (int t = 0; t < TOWERS; t++) {
        free(added[t]);
        added[t] = NULL;
    }
    return layer_scores_add(&seen, model->adapters, task->index, 1.0 / STEPS, failure);
}

static size_t add_words(const char **list, size_t count, const char *const *more)
{
    for (; more != NULL && *more != NULL; more++)
        list[count++] = *more;
    list[count] = NULL;
    return count;
}

/* The steps of the trainer itself; only gradients before the first update have to be those of one task alone. */
static void train_watched(struct small_run *run, size_t task)
{
    struct run *e = run->experiment;
    static struct method watched; /* until the run is closed */
    watched = *e->model.settings.method;
    watched.before_update = look;
    watched.end_task = NULL;
    e->model.settings.method = &watched;
    e->data.tasks[task].settings.iterations = 2 * STEPS;
    must(small_run_train(run, task, NULL));
}

static void expect_scores_of_training(struct small_run *run, const char *const *choices, const char *const *of_scoring)
{
    static const char *const common[] = {"merge.policy=none", NULL};
    const char *words[WORDS_MOST] = {"adapter.blocks=by_score_1", "adapter.score_steps=3"};
    struct layer_scores scores;
    add_words(words, add_words(words, add_words(words, 2, common), choices), NULL);
    small_run_reopen(run, 1, words);
    struct settings before = run->experiment->model.settings;
    size_t tasks = run->experiment->data.task_count;
    must(layer_choice_score(run->experiment, NULL, &scores, &error));
    assert_memory_equal(&before, &run->experiment->model.settings, sizeof before);
    layer_scores_create(&seen, tasks, scores.blocks);
    add_words(words, add_words(words, add_words(words, 0, common), choices), of_scoring);
    for (size_t task = 0; task < tasks; task++) {
        small_run_reopen(run, 1, words);
        unsigned groups = run->experiment->model.groups; /* without the tower, where it is trained */
        must(run_reopen(run->experiment, groups & ~(unsigned)GROUPS_TOWERS, WITH_METHOD, &error));
        train_watched(run, task);
    }
    for (int t = 0; t < TOWERS; t++)
        for (size_t i = 0; i < scores.blocks[t] * tasks; i++)
            if (!(scores.values[t][i] > 0) || fabs(scores.values[t][i] - seen.values[t][i]) > 1e-5 * seen.values[t][i])
                fail_msg("tower %d, score %zu: %.17g, found %.17g", t, i, seen.values[t][i], scores.values[t][i]);
    assert_int_equal(scores.blocks[TOWER_IMAGE], BLOCKS);
    layer_scores_free(&scores);
    layer_scores_free(&seen);
}

#define FFN "adapter.kind=ffn", "adapter.bottleneck=64", "adapter.router=softmax_topk"
#define CLASSIFIER                                                                                                     \
    "head.name=linear", "method.name=supervised", "method.ffn=rmoe", "data.order=third", "model.weights=scratch",      \
        "model.resolution=16", "model.patch=8", "model.width=64", "model.blocks=2", "adapter.experts=3",               \
        "adapter.top_k=1", "adapter.bottleneck=64"

/* What a suite chooses, and what is otherwise while blocks are scored. */
RUN_TEST(scores_follow_the_first_steps, NULL)
{
    static const struct {
        const char *choices[WORDS_MOST / 2], *of_scoring[4];
    } cases[] = {
        {{"adapter.balance_loss=cv"}, {0}},
        {{"adapter.share_across_blocks=1"}, {"adapter.share_across_blocks=0"}},
        {{FFN, "adapter.top_k=1", "adapter.init_noise=0.01", "adapter.capacity=1"},
         {"adapter.aligned_output=shared", "adapter.capacity=0", "adapter.init_noise=0.001"}},
        {{FFN, "adapter.aligned_output=shared", "adapter.routing=per_token", "adapter.score_noise=0.1"},
         {"adapter.score_noise=0.001", "adapter.init_noise=0.1"}},
        {{CLASSIFIER}, {"adapter.blocks=all", "adapter.aligned_output=shared", "adapter.init_noise=0.001"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_scores_of_training(run, cases[i].choices, cases[i].of_scoring);
}

/* --- A run --- */

/* What a run is, besides its blocks, and what it leaves. */
static const struct kind {
    const char *words[WORDS_MOST], *saved;
    size_t tasks;
} sequence_kind = {{"run.log_every=2", "adapter.dropout=0"}, "adapters.safetensors", SMALL_RUN_TASKS},
  shared_kind = {{"run.gpus=2"}, "adapters.safetensors", SMALL_RUN_TASKS},
  classifier_kind = {/* its tower is trained, too, but not in the steps that score */
                     {CLASSIFIER, "model.patch=4"},
                     "weights.safetensors",
                     1};
static const struct kind *kind = &sequence_kind;

static struct stop interruption;

static status interrupt(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    interruption.signal = task->index == kind->tasks / 2 && iteration == 3 ? 2 : 0;
    return merging_after_step(run, task, iteration, failure);
}

/* As the program does; interrupted: in the second of several tasks, or in the only one. */
static status run_once(struct small_run *run, const char *blocks, const char *database, bool interrupted)
{
    const char *words[WORDS_MOST] = {blocks};
    add_words(words, 1, kind->words);
    small_run_reopen(run, 1, words);
    const struct method *method = run->experiment->model.settings.method;
    static struct method watched; /* replicas keep it */
    watched = *method;
    watched.after_step = interrupt;
    interruption = (struct stop){0};
    if (interrupted)
        run->experiment->model.settings.method = &watched;
    status result = whole_run(run, database, &(struct backend_spy){.stop = &interruption});
    run->experiment->model.settings.method = method;
    return result;
}

static const char *scores_file(const struct small_run *run)
{
    return whole_run_file(run, "layer_scores.safetensors");
}

/* Each tower's best block in the stored scores. */
static void best_blocks(const char *path, size_t best[TOWERS])
{
    static const char *const names[TOWERS] = {"image", "text"};
    struct archive *archive;
    must(archive_open(&archive, path, &error));
    for (int t = 0; t < TOWERS; t++) {
        double values[SMALL_RUN_TASKS * BLOCKS], sums[BLOCKS] = {0};
        best[t] = best[TOWER_IMAGE];
        if (kind == &classifier_kind && t == TOWER_TEXT)
            continue;
        must(archive_get(archive, names[t], SAFETENSOR_F64, kind->tasks * BLOCKS, values, &error));
        for (size_t i = 0; i < kind->tasks * BLOCKS; i++)
            sums[i % BLOCKS] += values[i];
        best[t] = sums[1] > sums[0];
    }
    archive_close(archive);
}

static const char *choice_word(const size_t best[TOWERS])
{
    return best[0] == best[1] ? small_run_format("adapter.blocks=%zu", best[0])
                              : small_run_format("adapter.blocks=image.%zu,text.%zu", best[0], best[1]);
}

/* The scores with the blocks of both towers exchanged, in a file of the same run. */
static void exchange_blocks(const char *path)
{
    static const char *const names[TOWERS] = {"image", "text"};
    struct archive *before, *after;
    must(archive_open(&before, path, &error));
    archive_create(&after);
    for (int t = 0; t < TOWERS; t++) {
        double values[SMALL_RUN_TASKS * BLOCKS], exchanged[SMALL_RUN_TASKS * BLOCKS];
        must(archive_get(before, names[t], SAFETENSOR_F64, SMALL_RUN_TASKS * BLOCKS, values, &error));
        for (size_t i = 0; i < SMALL_RUN_TASKS * BLOCKS; i++)
            exchanged[i] = values[i ^ 1];
        must(archive_put(after, names[t], SAFETENSOR_F64, SMALL_RUN_TASKS * BLOCKS, exchanged, &error));
    }
    const struct safetensors_metadata metadata[] = {{"suite_hash", archive_metadata(before, "suite_hash")},
                                                    {"seed", archive_metadata(before, "seed")}};
    must(archive_write(after, path, metadata, 2, &error));
    archive_close(before);
    archive_close(after);
}

/* What the run has saved is kept, or is as what was kept. */
static void keep_saved(const struct small_run *run)
{
    small_run_copy(whole_run_file(run, kind->saved), small_run_file(run, "kept"));
}

static void expect_saved(const struct small_run *run)
{
    small_run_expect_same(whole_run_file(run, kind->saved), small_run_file(run, "kept"));
}

static void expect_blocks(const struct small_run *run, const char *database, const size_t best[TOWERS])
{
    for (int t = 0; t < (kind == &classifier_kind ? TOWER_TEXT : TOWERS); t++)
        expect_number(run, database,
                      small_run_format("SELECT count(*) > 0 AND min(block = %zu) FROM expert_counts WHERE encoder = "
                                       "'%s'",
                                       best[t], t == TOWER_IMAGE ? "image" : "text"),
                      1);
}

#define BY_SCORE "adapter.blocks=by_score_1"

/* The file that a run leaves is that of a run whose suite names these blocks, also when it was stopped. */
RUN_TEST(runs_have_the_best_blocks, NULL)
{
    static const struct kind *const kinds[] = {&sequence_kind, &classifier_kind, &shared_kind};
    for (size_t i = 0; i < (small_run_gpus() < 2 ? 2 : 3); i++) {
        size_t best[TOWERS];
        kind = kinds[i];
        must(run_once(run, BY_SCORE, "scored.db", false));
        best_blocks(scores_file(run), best);
        assert_true(best[TOWER_IMAGE] == 0 || best[TOWER_TEXT] == 0); /* not those that are last anyway */
        expect_blocks(run, "scored.db", best);
        expect_text(run, "scored.db", "SELECT path FROM artifacts WHERE kind = 'layer_scores'", scores_file(run));
        keep_saved(run);
        assert_int_equal(run_once(run, BY_SCORE, "stopped.db", true), ERROR_STOPPED);
        must(run_once(run, BY_SCORE, "stopped.db", false));
        expect_saved(run);
        must(run_once(run, choice_word(best), "listed.db", false));
        expect_saved(run);
        remove_database(run, "scored.db");
    }
    kind = &sequence_kind;
}

RUN_TEST(a_stop_keeps_the_choice, NULL)
{
    size_t best[TOWERS];
    must(run_once(run, BY_SCORE, "whole.db", false));
    keep_saved(run);
    const char *path = scores_file(run);
    best_blocks(path, best);
    assert_int_equal(run_once(run, BY_SCORE, "stopped.db", true), ERROR_STOPPED);
    exchange_blocks(path); /* scores of other blocks are not those that the resume file was trained with */
    must_refuse(run_once(run, BY_SCORE, "stopped.db", false), ERROR_FORMAT, "resume.safetensors", "expected blocks");
    assert_int_equal(unlink(path), 0); /* they can be computed again */
    must(run_once(run, BY_SCORE, "stopped.db", false));
    expect_blocks(run, "stopped.db", best);
    expect_saved(run);
}

/* What a run finds in its folder decides, unless it is of another run, or damaged. */
RUN_TEST(the_file_decides, NULL)
{
    size_t best[TOWERS], exchanged[TOWERS];
    must(run_once(run, BY_SCORE, "first.db", false));
    const char *path = scores_file(run);
    best_blocks(path, best);
    exchange_blocks(path);
    must(run_once(run, BY_SCORE, "second.db", false));
    best_blocks(path, exchanged);
    assert_int_equal(exchanged[TOWER_IMAGE], 1 - best[TOWER_IMAGE]);
    expect_blocks(run, "second.db", exchanged);
    struct bytes bytes;
    must(file_read(path, FILE_LIMIT, &bytes, &error));
    ((char *)bytes.data)[bytes.size - 1] ^= 1;
    must(file_write(path, bytes.data, bytes.size, &error));
    bytes_free(&bytes);
    must_refuse(run_once(run, BY_SCORE, "third.db", false), ERROR_FORMAT, path, "delete the file");
}

RUN_TEST(nothing_trains_without_a_choice, "adapter.blocks=by_score_1", NULL)
{
    struct layer_scores scores;
    must_refuse(small_run_train(run, 0, NULL), ERROR_ARGUMENT, "first", "adapter.blocks", "scores");
    small_run_reopen(run, 1, WORDS("method.name=continual_ft"));
    must_refuse(layer_choice_score(run->experiment, NULL, &scores, &error), ERROR_ARGUMENT, "continual_ft",
                "no adapters");
}
