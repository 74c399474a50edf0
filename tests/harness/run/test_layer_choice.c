/* Blocks that are chosen by scores before a run: what the scores are, what they choose, and that a stop changes nothing. */
#include "harness/run/layer_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/files/adapter_file.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "harness/train/serializer.h"
#include "harness/train/services/merging.h"
#include "tests/harness/whole_run.h"

enum { BLOCKS = 2, STEPS = 3, WORDS_MOST = 32 };

/* --- Scores are norms after the first steps of a task's training --- */

static struct layer_scores seen;
static float *added[TOWERS]; /* of the gradients of the batches that count */

/* Takes a tower's gradients away, and leaves the sum of all in the end. */
static status add_gradients(struct parameters *group, float *sum, bool last, struct error *failure)
{
    const struct backend_ops *ops = group->backend->ops;
    size_t bytes = group->values_count * sizeof *sum;
    float *own = small_run_keep(malloc(bytes));
    TRY(ops->download(group->backend, own, group->gradients, bytes, failure));
    for (size_t i = 0; i < group->values_count; i++)
        sum[i] += own[i];
    return last ? ops->upload(group->backend, group->gradients, sum, bytes, failure)
                : ops->zero(group->backend, group->gradients, bytes, failure);
}

/* After STEPS steps the rate is 0, so that nothing changes. */
static status look(struct method_run *run, const struct task *task, size_t iteration, struct error *failure)
{
    struct model *model = run->model;
    bool last = iteration == 2 * STEPS;
    if (iteration <= STEPS)
        return OK;
    for (int t = 0; t < TOWERS; t++)
        if (seen.blocks[t] > 0)
            TRY(add_gradients(model->adapters->towers[t].parameters, added[t], last, failure));
    TRY(model_set_step(model, task->index, iteration - 1, 0, failure));
    return last ? layer_scores_add(&seen, model->adapters, task->index, 1.0 / STEPS, failure) : OK;
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
    for (int t = 0; t < TOWERS; t++)
        if (seen.blocks[t] > 0)
            added[t] = small_run_keep(calloc(e->model.adapters->towers[t].parameters->values_count, sizeof **added));
    must(small_run_train(run, task, NULL));
}

static void expect_scores_of_training(struct small_run *run, const char *const *choices, const char *const *of_scoring)
{
    const char *words[WORDS_MOST] = {"adapter.blocks=by_score_1", "adapter.score_steps=3", "merge.policy=none"};
    struct layer_scores scores;
    size_t count = add_words(words, 3, choices);
    small_run_reopen(run, 1, words);
    struct settings before = run->experiment->model.settings;
    size_t tasks = run->experiment->data.task_count;
    must(layer_choice_score(run->experiment, NULL, &scores, &error));
    assert_memory_equal(&before, &run->experiment->model.settings, sizeof before);
    layer_scores_create(&seen, tasks, scores.blocks);
    add_words(words, count, of_scoring);
    for (size_t task = 0; task < tasks; task++) {
        small_run_reopen(run, 1, words + 2);             /* all blocks */
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

static const char *const tower_names[TOWERS] = {"image", "text"};

/* What a run is, besides its blocks. */
static const struct kind {
    const char *words[WORDS_MOST];
    size_t tasks;
    int towers;
} sequence_kind = {{"run.log_every=2", "adapter.dropout=0"}, SMALL_RUN_TASKS, TOWERS},
  shared_kind = {{"run.gpus=2"}, SMALL_RUN_TASKS, TOWERS},
  classifier_kind = {
      {CLASSIFIER, "model.patch=4"}, 1, TOWER_TEXT}; /* its tower is not trained in the steps that score */
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
    struct archive *archive;
    must(archive_open(&archive, path, &error));
    for (int t = 0; t < kind->towers; t++) {
        double values[SMALL_RUN_TASKS * BLOCKS], sums[BLOCKS] = {0};
        must(archive_get(archive, tower_names[t], SAFETENSOR_F64, kind->tasks * BLOCKS, values, &error));
        for (size_t i = 0; i < kind->tasks * BLOCKS; i++)
            sums[i % BLOCKS] += values[i];
        best[t] = sums[1] > sums[0];
    }
    archive_close(archive);
}

/* The scores with the blocks of both towers exchanged, in a file of the same run. */
static void exchange_blocks(const char *path)
{
    struct archive *before, *after;
    must(archive_open(&before, path, &error));
    archive_create(&after);
    for (int t = 0; t < TOWERS; t++) {
        double values[SMALL_RUN_TASKS * BLOCKS], exchanged[SMALL_RUN_TASKS * BLOCKS];
        must(archive_get(before, tower_names[t], SAFETENSOR_F64, SMALL_RUN_TASKS * BLOCKS, values, &error));
        for (size_t i = 0; i < SMALL_RUN_TASKS * BLOCKS; i++)
            exchanged[i] = values[i ^ 1];
        must(archive_put(after, tower_names[t], SAFETENSOR_F64, SMALL_RUN_TASKS * BLOCKS, exchanged, &error));
    }
    const struct safetensors_metadata metadata[] = {{"suite_hash", archive_metadata(before, "suite_hash")},
                                                    {"seed", archive_metadata(before, "seed")}};
    must(archive_write(after, path, metadata, 2, &error));
    archive_close(before);
    archive_close(after);
}

/* Digests of what a run has saved, but for the scores. */
#define SAVED "SELECT group_concat(digest) FROM artifacts WHERE kind <> 'layer_scores'"

static void expect_blocks(const struct small_run *run, const char *database, const size_t best[TOWERS])
{
    for (int t = 0; t < kind->towers; t++)
        expect_number(run, database,
                      small_run_format("SELECT count(*) > 0 AND min(block = %zu) FROM expert_counts WHERE encoder = "
                                       "'%s'",
                                       best[t], tower_names[t]),
                      1);
}

#define BY_SCORE "adapter.blocks=by_score_1"

/* The files that a run leaves are those of a run whose suite names these blocks, also when it was stopped. */
RUN_TEST(runs_have_the_best_blocks, NULL)
{
    static const struct kind *const kinds[] = {&sequence_kind, &classifier_kind, &shared_kind};
    for (size_t i = 0; i < (small_run_gpus() < 2 ? 2 : 3); i++) {
        size_t best[TOWERS] = {0};
        kind = kinds[i];
        must(run_once(run, BY_SCORE, "scored.db", false));
        best_blocks(scores_file(run), best);
        assert_true(best[TOWER_IMAGE] == 0 || best[TOWER_TEXT] == 0); /* not those that are last anyway */
        expect_blocks(run, "scored.db", best);
        expect_text(run, "scored.db", "SELECT path FROM artifacts WHERE kind = 'layer_scores'", scores_file(run));
        const char *saved = whole_run_text(run, "scored.db", SAVED);
        assert_int_equal(run_once(run, BY_SCORE, "stopped.db", true), ERROR_STOPPED);
        must(run_once(run, BY_SCORE, "stopped.db", false));
        expect_text(run, "stopped.db", SAVED, saved);
        must(run_once(run,
                      kind->towers < TOWERS ? small_run_format("adapter.blocks=%zu", best[0])
                                            : small_run_format("adapter.blocks=image.%zu,text.%zu", best[0], best[1]),
                      "listed.db", false));
        expect_text(run, "listed.db", SAVED, saved);
        remove_database(run, "scored.db");
        remove_database(run, "stopped.db");
        remove_database(run, "listed.db");
    }
    kind = &sequence_kind;
}

/* What a run finds in its folder decides, unless it is of another run, or damaged; a stop keeps the choice. */
RUN_TEST(the_file_decides, NULL)
{
    size_t best[TOWERS], exchanged[TOWERS];
    struct bytes bytes;
    must(run_once(run, BY_SCORE, "whole.db", false));
    const char *path = scores_file(run), *saved = whole_run_text(run, "whole.db", SAVED);
    best_blocks(path, best);
    assert_int_equal(run_once(run, BY_SCORE, "stopped.db", true), ERROR_STOPPED);
    exchange_blocks(path); /* scores of other blocks are not those that the resume file was trained with */
    must_refuse(run_once(run, BY_SCORE, "stopped.db", false), ERROR_FORMAT, "resume.safetensors", "expected blocks");
    assert_int_equal(unlink(path), 0); /* they can be computed again */
    must(run_once(run, BY_SCORE, "stopped.db", false));
    expect_blocks(run, "stopped.db", best);
    expect_text(run, "stopped.db", SAVED, saved);
    exchange_blocks(path);
    must(run_once(run, BY_SCORE, "other.db", false));
    best_blocks(path, exchanged);
    assert_int_equal(exchanged[TOWER_IMAGE], 1 - best[TOWER_IMAGE]);
    expect_blocks(run, "other.db", exchanged);
    must(file_read(path, FILE_LIMIT, &bytes, &error));
    ((char *)bytes.data)[bytes.size - 1] ^= 1;
    must(file_write(path, bytes.data, bytes.size, &error));
    bytes_free(&bytes);
    must_refuse(run_once(run, BY_SCORE, "damaged.db", false), ERROR_FORMAT, path, "delete the file");
}

RUN_TEST(nothing_trains_without_a_choice, "adapter.blocks=by_score_1", NULL)
{
    struct layer_scores scores;
    must_refuse(small_run_train(run, 0, NULL), ERROR_ARGUMENT, "first", "adapter.blocks", "scores");
    small_run_reopen(run, 1, WORDS("method.name=continual_ft"));
    must_refuse(layer_choice_score(run->experiment, NULL, &scores, &error), ERROR_ARGUMENT, "continual_ft",
                "no adapters");
}
