#include "harness/run/run.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/heads/tasks.h"
#include "harness/selectors/selector.h"
#include "harness/train/replicas.h"

static status open_cache(struct run *run, struct error *error)
{
    struct cache_settings settings = run->model.settings.cache;
    settings.log = run->model.log;
    return cache_create(&run->data.cache, &settings, error);
}

static status open_trained(struct run *run, struct error *error)
{
    TRY(method_open(&run->method, &run->model, &run->data, error));
    model_choose_batch(&run->model);
    return replicas_open(&run->method, error);
}

static status open_parts(struct run *run, bool frozen, struct error *error)
{
    struct model *model = &run->model;
    struct settings *s = &model->settings;
    memcpy(run->identity, suite_settings_hash(run->suite), sizeof run->identity);
    TRY(settings_read(s, run->suite, error));
    model->groups = frozen ? GROUPS_NONE : method_groups(s->method, s->method_options);
    TRY(tasks_look(run->suite, error));
    TRY(model_open(model, error));
    if (settings_select(s))
        TRY(selector_settings_look(&s->selector, error));
    TRY(model_open_tokenizer(model, error));
    TRY(tasks_open(&run->data, model, run->suite, s->method->joint, error));
    TRY(model_open_head(model, run->data.class_count, error));
    TRY(open_cache(run, error));
    if (!frozen)
        return open_trained(run, error);
    model_choose_batch(model);
    return OK;
}

static status keep_opened(struct run **result, struct run *run, status opened)
{
    if (opened == OK)
        *result = run;
    else
        run_close(run);
    return opened;
}

static status open_run(struct run **result, const struct suite *suite, uint64_t seed, bool frozen,
                       const struct log *log, struct error *error)
{
    struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){.suite = suite, .model = {.seed = seed, .log = log}};
    return keep_opened(result, run, open_parts(run, frozen, error));
}

status run_open(struct run **result, const struct suite *suite, uint64_t seed, const struct log *log,
                struct error *error)
{
    return open_run(result, suite, seed, false, log, error);
}

status run_open_frozen(struct run **result, const struct suite *suite, uint64_t seed, const struct log *log,
                       struct error *error)
{
    return open_run(result, suite, seed, true, log, error);
}

status run_open_recorded(struct run **result, const struct settings *settings, const struct recorded *recorded,
                         struct task *tasks, size_t task_count, struct error *error)
{
    struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){
        .model = {.settings = *settings, .groups = method_groups(settings->method, settings->method_options)},
        .data = {.tasks = tasks, .task_count = task_count, .recorded = recorded}};
    status opened = model_open(&run->model, error);
    NEXT(opened, method_open(&run->method, &run->model, &run->data, error));
    NEXT(opened, replicas_open(&run->method, error));
    return keep_opened(result, run, opened);
}

static status expect_same_file(const struct model *model, const struct file_stamp *before, struct error *error)
{
    if (file_stamp_same(before, &model->weights_read))
        return OK;
    return error_set(
        error, ERROR_IO,
        "model.weights: %s changed while it was used; restore the old file and give the same command again",
        model->settings.weights);
}

static void close_model(struct run *run)
{
    replicas_close(&run->model);
    method_close(&run->method);
    model_close(&run->model);
}

status run_reopen(struct run *run, unsigned groups, enum run_parts parts, struct error *error)
{
    const struct model before = run->model;
    close_model(run);
    run->model = (struct model){.settings = before.settings,
                                .seed = before.seed,
                                .log = before.log,
                                .stop = before.stop,
                                .tokenizer = before.tokenizer,
                                .vocabulary_read = before.vocabulary_read,
                                .head = before.head,
                                .evaluation_batch = before.evaluation_batch,
                                .waited = before.waited,
                                .groups = groups};
    TRY(model_open(&run->model, error));
    TRY(expect_same_file(&run->model, &before.weights_read, error));
    TRY(model_open_head(&run->model, run->data.class_count, error));
    return parts == WITH_METHOD ? open_trained(run, error) : OK;
}

void run_close(struct run *run)
{
    if (run == NULL)
        return;
    replicas_close(&run->model);
    method_close(&run->method);     /* before what it reads from */
    cache_destroy(run->data.cache); /* before the datasets, whose images it caches */
    tasks_close(&run->data, &run->model);
    tokenizer_close(run->model.tokenizer);
    model_close(&run->model);
    free(run);
}

char *run_resume_file(const char *folder)
{
    return path_format("%s/resume.safetensors", folder);
}

char *run_scores_file(const char *folder)
{
    return path_format("%s/layer_scores.safetensors", folder);
}

char *run_folder(const struct run *run)
{
    return path_format("%s/%s-%.12s/seed%llu", run->model.settings.folder, suite_name(run->suite), run->identity,
                       (unsigned long long)run->model.seed);
}
