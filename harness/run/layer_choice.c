#include "harness/run/layer_choice.h"

#include <stdio.h>
#include <string.h>

#include "adapters/routers/router.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/model/model.h"
#include "harness/run/run.h"
#include "harness/train/batches.h"
#include "harness/train/serializer.h"
#include "harness/train/trainer.h"
#include "models/optimizers/optimizer.h"

static const char *const tower_names[TOWERS] = {"image", "text"};

/* --- Scores --- */

struct scoring {
    struct run *run;
    struct layer_scores *scores;
    struct progress *progress;
    size_t steps; /* of each task before its batches are scored */
};

/* The gradients of a step that does not train stay, and those of the next are added. */
static status one_step(const struct scoring *s, const struct task *task, struct batches *batches, size_t step,
                       bool trains, struct error *error)
{
    struct run *run = s->run;
    struct method_run none = {.model = &run->model};
    struct schedule schedule = {task->settings.rate, task->settings.warmup, task->settings.schedule_end};
    struct trained_group group;
    struct batch batch;
    arena_reset(&run->model.step_memory);
    TRY(batches_take(batches, &batch, error));
    TRY(model_set_step(&run->model, task->index, step, schedule_rate(&schedule, step), error));
    TRY(run->model.backend->ops->zero(run->model.backend, run->model.loss, LOSS_TERMS * sizeof *run->model.loss,
                                      error));
    TRY(classification_loss(&none, task, &batch, error));
    for (size_t i = 0; trains && trained_group_at(&run->model, i, &group); i++)
        TRY(parameters_step(group.parameters, run->model.state, &task->settings.rule, error));
    batches_advance(batches);
    return stop_requested(run->model.stop) ? error_set(error, ERROR_STOPPED, "stopped while blocks were scored") : OK;
}

static status score_task(const struct scoring *s, const struct task *task, struct error *error)
{
    struct run *run = s->run;
    int32_t router = adapters_router(&run->model.adapters->settings, task->index);
    size_t steps = 2 * s->steps < task->settings.iterations ? 2 * s->steps : task->settings.iterations,
           trained = steps / 2;
    SCOPED(batches_close_at) struct batches *batches = NULL;
    if (task->index > 0)
        TRY(model_restart(&run->model, error));
    arena_reset(&run->model.task_memory);
    TRY(run->model.head->begin_task(&run->model, task, router, &run->model.task_memory, &run->model.classes, error));
    TRY(model_fill(&run->model, &run->model.task_memory, task->settings.batch, router, &run->model.routers, error));
    TRY(adapters_begin_task(run->model.adapters, task->index, error));
    TRY(batches_open_task(&batches, &run->model, &run->data, task, 0, steps, error));
    for (size_t step = 0; step < steps; step++) {
        progress_report(s->progress, &(struct progress_state){.activity = "score",
                                                              .subject = task->settings.name,
                                                              .task = task->index + 1,
                                                              .tasks = run->data.task_count,
                                                              .step = step + 1,
                                                              .steps = steps});
        TRY(one_step(s, task, batches, step, step < trained, error));
    }
    return layer_scores_add(s->scores, run->model.adapters, task->index, 1.0 / (double)(steps - trained), error);
}

static void count_blocks(const struct run *run, size_t blocks[TOWERS])
{
    struct adapter_place all = {.towers = run->model.settings.adapter.place.towers};
    for (int t = 0; t < TOWERS; t++)
        blocks[t] = adapter_place_count(&all, &run->model.clip->dimensions, (enum tower)t);
}

static status score_tasks(struct run *run, struct progress *progress, struct layer_scores *scores, struct error *error)
{
    struct adapter_settings *a = &run->model.settings.adapter;
    struct scoring scoring = {run, scores, progress, a->score_steps};
    a->place = (struct adapter_place){.towers = a->place.towers}; /* all blocks, and nothing is shared */
    if (expert_kind_of(a)->place == REPLACES_MLP && a->router == &router_softmax_topk)
        a->aligned_output = ALIGN_SHARED;
    a->start = EXPERT_START_COPIES;
    a->init_noise = a->score_noise;
    a->capacity = 0;
    run->model.settings.gpus = 1;
    TRY(run_reopen(run, run->model.groups & ~(unsigned)GROUPS_TOWERS, MODEL_ALONE, error));
    size_t blocks[TOWERS];
    count_blocks(run, blocks);
    layer_scores_create(scores, run->data.task_count, blocks);
    for (size_t k = 0; k < run->data.task_count; k++)
        TRY(score_task(&scoring, &run->data.tasks[k], error));
    return OK;
}

status layer_choice_score(struct run *run, struct progress *progress, struct layer_scores *scores, struct error *error)
{
    const struct settings own = run->model.settings;
    *scores = (struct layer_scores){0};
    if (!(run->model.groups & GROUP_ADAPTERS))
        return error_set(error, ERROR_ARGUMENT,
                         "suite: method.name: %s trains no adapters, so there is nothing to place by scores",
                         run->model.settings.method->name);
    status result = score_tasks(run, progress, scores, error);
    run->model.settings = own;
    return result;
}

/* --- Their file --- */

/* [tasks, blocks] of each tower. */
static status pass_scores(const struct serializer *p, struct layer_scores *scores, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        if (scores->blocks[t] > 0)
            TRY(serializer_host(p, tower_names[t], SAFETENSOR_F64, scores->tasks * scores->blocks[t], scores->values[t],
                                error));
    return OK;
}

static void write_seed(const struct run *run, char seed[24])
{
    snprintf(seed, 24, "%llu", (unsigned long long)run->model.seed);
}

/* Whether the file belongs to this run; to another one as after a change of data. */
static bool is_of_run(const struct archive *archive, const struct run *run)
{
    const char *hash = archive_metadata(archive, "suite_hash"), *seed = archive_metadata(archive, "seed");
    char own[24];
    write_seed(run, own);
    return hash != NULL && seed != NULL && strcmp(seed, own) == 0 &&
           (strcmp(hash, run->identity) == 0 || strcmp(hash, run->identity_before) == 0);
}

static status read_scores(const struct run *run, const char *path, struct layer_scores *scores, bool *found,
                          struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    size_t blocks[TOWERS];
    *found = file_exists(path);
    if (!*found)
        return OK;
    if (archive_open(&archive, path, error) != OK)
        return error_context(error, "cannot read the scores of blocks; delete the file to compute them again");
    *found = is_of_run(archive, run);
    count_blocks(run, blocks);
    if (*found) {
        layer_scores_create(scores, run->data.task_count, blocks);
        TRY(pass_scores(&(struct serializer){.archive = archive}, scores, error));
    }
    return OK;
}

static status write_scores(const struct run *run, const char *path, struct layer_scores *scores, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    char seed[24];
    write_seed(run, seed);
    const struct safetensors_metadata metadata[] = {{"suite_hash", run->identity}, {"seed", seed}};
    archive_create(&archive);
    TRY(pass_scores(&(struct serializer){.archive = archive, .saving = true}, scores, error));
    return archive_write(archive, path, metadata, sizeof metadata / sizeof *metadata, error);
}

/* --- The choice --- */

static status choose(struct run *run, const char *path, struct progress *progress, struct layer_scores *scores,
                     struct error *error)
{
    struct block_choice *blocks = &run->model.settings.adapter.place.blocks;
    SCOPED(text_free) struct text words = {0};
    bool found;
    TRY(read_scores(run, path, scores, &found, error));
    if (!found) {
        TRY(layer_choice_score(run, progress, scores, error));
        TRY(write_scores(run, path, scores, error));
    }
    layer_scores_choose(scores, blocks->n, blocks);
    block_choice_write(blocks, &words);
    log_info(run->model.log, "adapters in the blocks of the highest scores: %s", words.data != NULL ? words.data : "?");
    return OK;
}

status layer_choice_make(struct run *run, const char *path, struct progress *progress, bool *made, struct error *error)
{
    SCOPED(layer_scores_free) struct layer_scores scores = {0};
    unsigned groups = run->model.groups;
    *made = groups & GROUP_ADAPTERS && run->model.settings.adapter.place.blocks.rule == BLOCKS_BY_SCORE;
    if (!*made)
        return OK;
    TRY(choose(run, path, progress, &scores, error));
    return run_reopen(run, groups, WITH_METHOD, error);
}
