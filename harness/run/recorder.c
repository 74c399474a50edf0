#include "harness/run/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "harness/methods/methods.h"
#include "harness/run/program.h"
#include "harness/run/run_folder.h"
#include "harness/scenario/label_split.h"
#include "harness/selectors/selectors.h"
#include "harness/train/trained.h"

static const char *const encoders[TOWERS] = {"image", "text"};

static const char *selection_name(const struct experiment *e)
{
    if (!settings_select(&e->settings))
        return "none";
    if (e->settings.selector.kind->route != ROUTE_BY_ERRORS)
        return e->settings.selector.kind->name;
    return e->settings.selector.decision == DECIDE_PER_BATCH ? "per_batch" : "per_image";
}

status record_start(struct recorder *r, const struct inputs *inputs, const struct continuation *continuation,
                    struct run_start *start, struct error *error)
{
    struct experiment *e = r->experiment;
    char *model = experiment_model_name(e), *folder = run_folder(e);
    if (model == NULL || folder == NULL) {
        free(model);
        free(folder);
        return error_set(error, ERROR_MEMORY, "results: no memory for a name");
    }
    const struct settings *s = &e->settings;
    struct setting_row *settings;
    size_t setting_count;
    status result = suite_settings(e->suite, &settings, &setting_count, error);
    struct run_description description = {
        .suite = suite_name(e->suite),
        .suite_text = suite_text(e->suite),
        .suite_hash = inputs->hash,
        .settings_hash = suite_settings_hash(e->suite),
        .folder = folder,
        .inputs = inputs->rows,
        .input_count = inputs->count,
        .settings = settings,
        .setting_count = setting_count,
        .setting = e->settings.setting,
        .method = e->settings.method->name,
        .policy = method_uses(s->method, s->method_options, "merge") ? s->merge.policy->name : "none",
        .selector = settings_select(s) ? s->selector.kind->name : "none",
        .selection = selection_name(e),
        .order = e->settings.order,
        .model = model,
        .backend = e->model.backend->ops->name,
        .precision = precision_name(e->model.backend->precision),
        .program_version = MTIL_VERSION,
        .seed = (int64_t)e->seed,
        .tasks = (int64_t)e->data.task_count,
        .trainable_parameters = (int64_t)trained_values(e),
    };
    if (result == OK)
        result = continuation->run != 0
                     ? store_run_claim(r->store, continuation->run, continuation->claim, &description, start, error)
                     : store_run_start(r->store, &description, start, error);
    suite_settings_free(settings, setting_count);
    free(model);
    free(folder);
    r->run = start->run;
    return result;
}

static status record_classes(const struct recorder *r, const struct task *task, struct error *error)
{
    size_t count = dataset_classes(task->dataset);
    const char **names = xmalloc(array_size(count, sizeof *names));
    for (size_t c = 0; c < count; c++)
        names[c] = dataset_class_name(task->dataset, c);
    status result = store_add_task_classes(r->store, r->run, (int64_t)task->index, names, count, error);
    free(names);
    return result;
}

static status record_labels(const struct recorder *r, const struct task *task, struct error *error)
{
    size_t count = dataset_size(task->dataset, SPLIT_TEST);
    uint16_t *labels = xmalloc(array_size(count, sizeof *labels));
    for (size_t i = 0; i < count; i++)
        labels[i] = (uint16_t)dataset_label(task->dataset, SPLIT_TEST, i);
    status result = store_add_test_labels(r->store, r->run, (int64_t)task->index, labels, count, error);
    free(labels);
    return result;
}

/* Records classes if anything is stored per image, or if tasks have parts of a dataset's classes. */
static status record_details(const struct recorder *r, struct error *error)
{
    const struct label_split *cut = r->experiment->data.cut;
    bool images = r->experiment->settings.per_image != PER_IMAGE_NONE;
    for (size_t k = 0; k < r->experiment->data.task_count; k++) {
        const struct task *task = &r->experiment->data.tasks[k];
        TRY(images || cut != NULL ? record_classes(r, task, error) : OK);
        TRY(images ? record_labels(r, task, error) : OK);
        for (size_t other = k; cut != NULL && other < cut->tasks; other++)
            TRY(store_add_task_similarity(r->store, r->run, (int64_t)k, (int64_t)other,
                                          cut->cosines[k * cut->tasks + other], error));
    }
    return OK;
}

/* digest: memory for the digest of the row. */
static struct task_row describe_task(const struct task *task, char digest[DIGEST_SIZE])
{
    dataset_digest_items(task->dataset, SPLIT_TEST, digest);
    return (struct task_row){.task = (int64_t)task->index,
                             .name = task->settings.name,
                             .classes = (int64_t)dataset_classes(task->dataset),
                             .training_images = (int64_t)dataset_size(task->dataset, SPLIT_TRAIN),
                             .test_images = (int64_t)dataset_size(task->dataset, SPLIT_TEST),
                             .test_digest = digest,
                             .missing_images = (int64_t)dataset_missing(task->dataset),
                             .unreadable_images = (int64_t)(task->survey.splits[SPLIT_TRAIN].unreadable +
                                                            task->survey.splits[SPLIT_TEST].unreadable)};
}

status record_tasks(const struct recorder *r, struct error *error)
{
    for (size_t k = 0; k < r->experiment->data.task_count; k++) {
        char digest[DIGEST_SIZE];
        struct task_row row = describe_task(&r->experiment->data.tasks[k], digest);
        TRY(store_add_task(r->store, r->run, &row, error));
    }
    return record_details(r, error);
}

status record_mended(const struct recorder *r, const struct inputs *inputs, struct error *error)
{
    for (size_t k = 0; k < r->experiment->data.task_count; k++) {
        char digest[DIGEST_SIZE];
        struct task_row row = describe_task(&r->experiment->data.tasks[k], digest);
        TRY(store_change_task(r->store, r->run, &row, error));
    }
    return store_run_change_inputs(r->store, r->run, inputs->hash, inputs->rows, inputs->count, error);
}

/* "NVIDIA H100", or "2 × NVIDIA H100"; nothing without a GPU. */
static void name_gpus(const struct experiment *e, const struct gpus *gpus, struct text *name)
{
    size_t device = e->settings.backend.device;
    if (device < gpus->count && e->settings.gpus > 1)
        text_add(name, "%zu × ", e->settings.gpus);
    if (device < gpus->count)
        text_add(name, "%s", gpus->list[device].name);
}

status record_session(const struct recorder *r, struct error *error)
{
    struct text command = {0}, libraries = {0}, cpu = {0}, gpu = {0};
    struct gpus gpus = {0};
    struct error none;
    bool computes_there = strcmp(r->experiment->model.backend->ops->name, "cpu") != 0;
    program_add_command_line(&command);
    program_add_libraries(&libraries);
    program_add_cpu(&cpu);
    if (computes_there && backend_gpus(&gpus, &none) == OK)
        name_gpus(r->experiment, &gpus, &gpu);
    struct session_row row = {.program_version = MTIL_VERSION,
                              .program_commit = *program_commit() != 0 ? program_commit() : NULL,
                              .command_line = command.data,
                              .compiler = program_compiler(),
                              .libraries = libraries.data,
                              .cpu = cpu.data,
                              .gpu = gpu.data,
                              .driver = gpus.count > 0 ? gpus.versions : NULL};
    status result = store_add_session(r->store, r->run, &row, error);
    text_free(&command);
    text_free(&libraries);
    text_free(&cpu);
    text_free(&gpu);
    return result;
}

static status record_routers(const struct recorder *r, int64_t after_task, const struct test_set *set,
                             struct error *error)
{
    size_t tasks = r->experiment->data.task_count;
    uint64_t *counts = xcalloc(tasks + 1, sizeof *counts);
    for (size_t i = 0; i < set->n; i++)
        counts[set->router[i] + 1]++;
    struct router_choices_row row = {
        .after_task = after_task, .task = (int64_t)set->task->index, .counts = counts, .routers = tasks};
    status result = store_add_router_choices(r->store, r->run, &row, error);
    free(counts);
    return result;
}

static int64_t block_of(const struct recorder *r, enum tower tower, size_t bank)
{
    return (int64_t)r->experiment->model.adapters->towers[tower].banks[bank].block;
}

static status record_class_experts(const struct recorder *r, int64_t after_task, const struct test_set *set,
                                   struct error *error)
{
    const struct class_experts *experts = &set->experts;
    for (size_t b = 0; experts->counts != NULL && b < experts->blocks; b++) {
        struct class_experts_row row = {
            .after_task = after_task,
            .task = (int64_t)set->task->index,
            .block = (int64_t)adapters_decision_block(r->experiment->model.adapters, TOWER_IMAGE, b),
            .counts = experts->counts + b * experts->classes * experts->experts,
            .gates = experts->gates + b * experts->classes * experts->experts,
            .classes = experts->classes,
            .experts = experts->experts};
        TRY(store_add_class_experts(r->store, r->run, &row, error));
    }
    return OK;
}

/* The last part of its name, which is the same wherever the dataset lies; the caller frees. */
static char *file_of(const struct test_set *set, size_t item)
{
    char *name = dataset_item_name(set->task->dataset, SPLIT_TEST, item), *slash = name ? strrchr(name, '/') : NULL;
    char *last = slash != NULL ? strdup(slash + 1) : name;
    if (slash != NULL)
        free(name);
    return last;
}

static status record_patches_of(const struct recorder *r, int64_t after_task, const struct test_set *set, size_t image,
                                struct error *error)
{
    const struct patch_experts *patches = &set->patches;
    size_t item = patch_experts_item(patches, image), count = patches->side * patches->side;
    char *file = file_of(set, item);
    status result = OK;
    for (size_t b = 0; result == OK && b < patches->blocks; b++) {
        struct patch_experts_row row = {
            .after_task = after_task,
            .task = (int64_t)set->task->index,
            .image = (int64_t)item,
            .block = (int64_t)adapters_decision_block(r->experiment->model.adapters, TOWER_IMAGE, b),
            .file = file,
            .width = patches->side,
            .patches = count,
            .experts = patches->experts + (image * patches->blocks + b) * count};
        result = store_add_patch_experts(r->store, r->run, &row, error);
    }
    free(file);
    return result;
}

/* Images without a router chose none. */
static status record_patches(const struct recorder *r, int64_t after_task, const struct test_set *set,
                             struct error *error)
{
    for (size_t i = 0; set->patches.experts != NULL && i < set->patches.images; i++)
        if (set->router[patch_experts_item(&set->patches, i)] >= 0)
            TRY(record_patches_of(r, after_task, set, i, error));
    return OK;
}

status record_evaluation(const struct recorder *r, int64_t after_task, const struct test_set *set, bool routed,
                         struct error *error)
{
    struct per_image per_image = {.kind = r->experiment->settings.per_image,
                                  .images = set->n,
                                  .right = set->right,
                                  .predicted = set->predicted,
                                  .router = set->router};
    struct evaluation_row row = {.after_task = after_task,
                                 .task = (int64_t)set->task->index,
                                 .correct = (int64_t)set->correct,
                                 .images = (int64_t)set->n,
                                 .per_image = per_image.kind != PER_IMAGE_NONE ? &per_image : NULL};
    TRY(store_add_evaluation(r->store, r->run, &row, error));
    TRY(record_class_experts(r, after_task, set, error));
    TRY(record_patches(r, after_task, set, error));
    return routed ? record_routers(r, after_task, set, error) : OK;
}

static status record_merge(const struct recorder *r, size_t task, size_t iteration, const struct expert_change *change,
                           struct error *error)
{
    const struct merge *merge = &change->merge;
    int64_t sources[MERGE_SOURCES];
    double weights[MERGE_SOURCES];
    bool weighted = false;
    for (size_t i = 0; i < merge->sources; i++) {
        sources[i] = merge->source[i];
        weights[i] = (double)merge->weight[i];
        weighted = weighted || weights[i] != 0;
    }
    bool done = change->kind == CHANGE_MERGE;
    struct expert_event_row row = {.event = done ? EVENT_MERGE : EVENT_SKIP,
                                   .task = (int64_t)task,
                                   .iteration = (int64_t)iteration,
                                   .encoder = encoders[change->tower],
                                   .block = block_of(r, change->tower, merge->block),
                                   .target = merge->target,
                                   .sources = merge->sources,
                                   .source = sources,
                                   .weight = weighted ? weights : NULL,
                                   .reason = done ? NULL : merge_skip_name(merge->skip)};
    return store_add_expert_event(r->store, r->run, &row, error);
}

static status record_freezes(const struct recorder *r, size_t task, size_t iteration,
                             const struct expert_change *change, struct error *error)
{
    for (size_t i = 0; i < change->merge.sources; i++) {
        struct expert_event_row row = {.event = EVENT_FREEZE,
                                       .task = (int64_t)task,
                                       .iteration = (int64_t)iteration,
                                       .encoder = encoders[change->tower],
                                       .block = block_of(r, change->tower, change->merge.block),
                                       .target = change->merge.source[i]};
        TRY(store_add_expert_event(r->store, r->run, &row, error));
    }
    return OK;
}

static status record_effects(const struct recorder *r, size_t task, struct error *error)
{
    struct merge_effect_list *effects = &r->experiment->effects;
    for (size_t i = 0; i < effects->count; i++) {
        const struct merge_effect *effect = &effects->effects[i];
        struct merge_effect_row row = {.task = (int64_t)task,
                                       .iteration = (int64_t)effect->iteration,
                                       .encoder = encoders[effect->tower],
                                       .block = block_of(r, effect->tower, effect->block),
                                       .position = (int64_t)effect->position,
                                       .known = (int64_t)effect->known,
                                       .iterations = (int64_t)effect->iterations,
                                       .chosen = effect->chosen,
                                       .choices = effect->choices,
                                       .loss_before = effect->loss_before,
                                       .loss_after = effect->loss_after,
                                       .distance = effect->distance};
        TRY(store_add_merge_effect(r->store, r->run, &row, error));
    }
    effects->count = 0;
    return OK;
}

status record_changes(const struct recorder *r, size_t task, size_t iteration, struct error *error)
{
    struct expert_changes *changes = &r->experiment->changes;
    for (size_t i = 0; i < changes->count; i++)
        TRY((changes->changes[i].kind == CHANGE_FREEZE ? record_freezes : record_merge)(r, task, iteration,
                                                                                        &changes->changes[i], error));
    expert_changes_clear(changes);
    return record_effects(r, task, error);
}

status record_counts(const struct recorder *r, size_t task, struct error *error)
{
    struct adapters *adapters = r->experiment->model.adapters;
    if (adapters == NULL)
        return OK;
    int32_t counts[ADAPTER_EXPERTS];
    uint64_t wide[ADAPTER_EXPERTS];
    size_t experts = adapters->settings.experts;
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            TRY(adapters_read_counts(adapters, (enum tower)t, b, counts, error));
            for (size_t e = 0; e < experts; e++)
                wide[e] = (uint64_t)counts[e];
            struct expert_counts_row row = {.task = (int64_t)task,
                                            .block = block_of(r, (enum tower)t, b),
                                            .encoder = encoders[t],
                                            .counts = wide,
                                            .experts = experts};
            TRY(store_add_expert_counts(r->store, r->run, &row, error));
        }
    return OK;
}

status record_threshold(const struct recorder *r, const struct selector *selector, size_t task, struct error *error)
{
    return store_add_selector_threshold(r->store, r->run, (int64_t)task, (double)selector->thresholds[task], error);
}

status record_file(const struct recorder *r, int64_t task, const char *kind, const char *path, struct error *error)
{
    uint64_t bytes;
    char digest[DIGEST_SIZE];
    TRY(file_size(path, &bytes, error));
    TRY(digest_file(path, digest, error));
    struct artifact_row row = {.task = task, .kind = kind, .path = path, .bytes = (int64_t)bytes, .digest = digest};
    return store_add_artifact(r->store, r->run, &row, error);
}
