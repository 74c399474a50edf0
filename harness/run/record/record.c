#include "harness/run/record/record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/sketch.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "core/threads.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"
#include "harness/run/program.h"
#include "harness/run/run.h"
#include "harness/scenario/label_split.h"
#include "harness/selectors/selector.h"

static const char *const encoders[TOWERS] = {"image", "text"};

static struct value number(size_t value)
{
    return value_integer((int64_t)value);
}

static const char *selection_name(const struct run *run)
{
    if (!settings_select(&run->model.settings))
        return "none";
    if (run->model.settings.selector.kind->route != ROUTE_BY_ERRORS)
        return run->model.settings.selector.kind->name;
    return run->model.settings.selector.decision == DECIDE_PER_BATCH ? "per_batch" : "per_image";
}

status record_start(struct recorder *r, const struct inputs *inputs, const struct continuation *continuation,
                    struct run_start *start, struct error *error)
{
    struct run *run = r->run;
    OWNED char *model = run->model.settings.imported ? xstrdup("external") : model_name(&run->model),
               *folder = run_folder(run);
    const struct settings *s = &run->model.settings;
    struct setting_row *settings;
    size_t setting_count;
    suite_settings(run->suite, &settings, &setting_count);
    struct run_description description = {
        .suite = suite_name(run->suite),
        .suite_text = suite_text(run->suite),
        .suite_hash = inputs->hash,
        .settings_hash = suite_settings_hash(run->suite),
        .folder = folder,
        .inputs = inputs->rows,
        .input_count = inputs->count,
        .settings = settings,
        .setting_count = setting_count,
        .setting = run->model.settings.setting,
        .method = run->model.settings.method->name,
        .policy = method_uses(s->method, s->method_options, "merge") ? s->merge.policy->name : "none",
        .selector = settings_select(s) ? s->selector.kind->name : "none",
        .selection = selection_name(run),
        .order = run->model.settings.order,
        .model = model,
        .backend = model_device(&run->model),
        .precision = precision_name(run->model.backend->precision),
        .program_version = MTIL_VERSION,
        .seed = (int64_t)run->model.seed,
        .tasks = (int64_t)run->data.task_count,
        .trainable_parameters = (int64_t)trained_values(&run->model),
    };
    status result = continuation->run != 0
                        ? store_run_claim(r->store, continuation->run, continuation->claim, &description, start, error)
                        : store_run_start(r->store, &description, start, error);
    suite_settings_free(settings, setting_count);
    r->id = start->run;
    return result;
}

static status record_classes(const struct recorder *r, const struct task *task, struct error *error)
{
    for (size_t c = 0; c < dataset_classes(task->dataset); c++)
        TRY(store_add(r->store, r->id, "task_classes",
                      NAMED({"task", number(task->index)}, {"class", number(c)},
                            {"name", value_text(dataset_class_name(task->dataset, c))}),
                      error));
    return OK;
}

static status record_labels(const struct recorder *r, const struct task *task, struct error *error)
{
    size_t count = dataset_size(task->dataset, SPLIT_TEST);
    OWNED uint16_t *labels = xmalloc(array_size(count, sizeof *labels));
    for (size_t i = 0; i < count; i++)
        labels[i] = (uint16_t)dataset_label(task->dataset, SPLIT_TEST, i);
    return store_add(r->store, r->id, "test_labels",
                     NAMED({"task", number(task->index)}, {"labels", value_blob(labels, 2 * count)}), error);
}

/* Records classes if anything is stored per image, or comes from elsewhere, or if tasks have parts of a dataset's classes. */
static status record_details(const struct recorder *r, struct error *error)
{
    const struct label_split *cut = r->run->data.cut;
    bool images = r->run->model.settings.per_image != PER_IMAGE_NONE;
    for (size_t k = 0; k < r->run->data.task_count; k++) {
        const struct task *task = &r->run->data.tasks[k];
        bool named = images || (r->run->model.settings.imported && !task->planned) || cut != NULL;
        TRY(named ? record_classes(r, task, error) : OK);
        TRY(images ? record_labels(r, task, error) : OK);
        for (size_t other = k; cut != NULL && other < cut->tasks; other++)
            TRY(store_add(r->store, r->id, "task_similarities",
                          NAMED({"task", number(k)}, {"other", number(other)},
                                {"cosine", value_real(cut->cosines[k * cut->tasks + other])}),
                          error));
    }
    return OK;
}

static int64_t count_unreadable(const struct task *task)
{
    return (int64_t)(task->survey.splits[SPLIT_TRAIN].unreadable + task->survey.splits[SPLIT_TEST].unreadable);
}

static status record_task(const struct recorder *r, const struct task *task, struct error *error)
{
    char digest[DIGEST_SIZE];
    if (!task->planned)
        dataset_digest_items(task->dataset, SPLIT_TEST, digest);
    return store_add(r->store, r->id, "tasks",
                     NAMED({"task", number(task->index)}, {"name", value_text(task->settings.name)},
                           {"classes", number(dataset_classes(task->dataset))},
                           {"training_images", number(dataset_size(task->dataset, SPLIT_TRAIN))},
                           {"test_images", number(dataset_size(task->dataset, SPLIT_TEST))},
                           {"test_digest", value_text(task->planned ? NULL : digest)},
                           {"missing_images", number(dataset_missing(task->dataset))},
                           {"unreadable_images", value_integer(count_unreadable(task))}),
                     error);
}

status record_tasks(const struct recorder *r, struct error *error)
{
    store_begin(r->store);
    for (size_t k = 0; k < r->run->data.task_count; k++)
        TRY(record_task(r, &r->run->data.tasks[k], error));
    TRY(record_details(r, error));
    return store_commit(r->store, error);
}

status record_changed_inputs(const struct recorder *r, const struct inputs *inputs, struct error *error)
{
    for (size_t k = 0; k < r->run->data.task_count; k++) {
        const struct task *task = &r->run->data.tasks[k];
        TRY(store_change_task(r->store, r->id, (int64_t)k, (int64_t)dataset_size(task->dataset, SPLIT_TRAIN),
                              (int64_t)dataset_missing(task->dataset), count_unreadable(task), error));
    }
    return store_run_change_inputs(r->store, r->id, inputs->hash, inputs->rows, inputs->count, error);
}

/* "NVIDIA H100", or "2 × NVIDIA H100"; nothing without a GPU. */
static void name_gpus(const struct run *run, const struct gpus *gpus, struct text *name)
{
    size_t device = run->model.settings.backend.device;
    if (device < gpus->count && run->model.settings.gpus > 1)
        text_add(name, "%zu × ", run->model.settings.gpus);
    if (device < gpus->count)
        text_add(name, "%s", gpus->list[device].name);
}

status record_session(const struct recorder *r, struct error *error)
{
    SCOPED(text_free) struct text command = {0}, libraries = {0}, cpu = {0}, gpu = {0};
    struct gpus gpus = {0};
    struct error none;
    size_t chosen = r->run->model.settings.backend.threads, threads = chosen > 0 ? chosen : threads_available();
    bool computes_there = strcmp(model_device(&r->run->model), "cpu") != 0;
    program_add_command_line(&command);
    program_add_libraries(&libraries);
    program_add_cpu(&cpu);
    text_add(&cpu, ", %zu thread%s", threads, threads == 1 ? "" : "s");
    if (computes_there && backend_gpus(&gpus, &none) == OK)
        name_gpus(r->run, &gpus, &gpu);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return store_add(r->store, r->id, "sessions",
                     NAMED({"host", value_text(host)}, {"program_version", value_text(MTIL_VERSION)},
                           {"program_commit", value_text(*program_commit() ? program_commit() : NULL)},
                           {"command_line", value_text(command.data)}, {"compiler", value_text(program_compiler())},
                           {"libraries", value_text(libraries.data)}, {"cpu", value_text(cpu.data)},
                           {"gpu", value_text(gpu.data)},
                           {"driver", value_text(gpus.count > 0 ? gpus.versions : NULL)}),
                     error);
}

static status record_routers(const struct recorder *r, int64_t after_task, const struct test_set *set,
                             struct error *error)
{
    size_t tasks = r->run->data.task_count;
    OWNED uint64_t *counts = xcalloc(tasks + 1, sizeof *counts);
    for (size_t i = 0; i < set->n; i++)
        counts[set->router[i] + 1]++;
    for (size_t i = 0; i <= tasks; i++)
        if (counts[i] > 0)
            TRY(store_add(r->store, r->id, "router_choices",
                          NAMED({"after_task", value_integer(after_task)}, {"task", number(set->task->index)},
                                {"router", value_integer((int64_t)i - 1)}, {"count", number(counts[i])}),
                          error));
    return OK;
}

static int64_t block_of(const struct recorder *r, enum tower tower, size_t bank)
{
    return (int64_t)r->run->model.adapters->towers[tower].banks[bank].block;
}

/* Of one block, [classes, experts]: counts of choices, and the sums of their gates. */
static status record_block(const struct recorder *r, int64_t after_task, const struct test_set *set, size_t block,
                           struct error *error)
{
    const struct class_experts *experts = &set->experts;
    size_t cells = experts->classes * experts->experts;
    const uint64_t *counts = experts->counts + block * cells;
    const double *gates = experts->gates + block * cells;
    size_t at = adapters_decision_block(r->run->model.adapters, TOWER_IMAGE, block);
    for (size_t i = 0; i < cells; i++)
        if (counts[i] > 0)
            TRY(store_add(r->store, r->id, "class_experts",
                          NAMED({"task", number(set->task->index)}, {"after_task", value_integer(after_task)},
                                {"block", number(at)}, {"class", number(i / experts->experts)},
                                {"expert", number(i % experts->experts)}, {"count", number(counts[i])},
                                {"gate", value_real(gates[i] / (double)counts[i])}),
                          error));
    return OK;
}

static status record_class_experts(const struct recorder *r, int64_t after_task, const struct test_set *set,
                                   struct error *error)
{
    for (size_t b = 0; set->experts.counts != NULL && b < set->experts.blocks; b++)
        TRY(record_block(r, after_task, set, b, error));
    return OK;
}

/* The last part of its name, which is the same wherever the dataset lies; the caller frees. */
static char *file_of(const struct test_set *set, size_t item)
{
    char *name = dataset_item_name(set->task->dataset, SPLIT_TEST, item), *slash = strrchr(name, '/');
    char *last = slash != NULL ? xstrdup(slash + 1) : name;
    if (slash != NULL)
        free(name);
    return last;
}

static status record_patches_of(const struct recorder *r, int64_t after_task, const struct test_set *set, size_t image,
                                struct error *error)
{
    const struct patch_experts *patches = &set->patches;
    size_t item = patch_experts_item(patches, image), count = patches->side * patches->side;
    OWNED char *file = file_of(set, item);
    for (size_t b = 0; b < patches->blocks; b++) {
        SCOPED(text_free) struct text experts = {0};
        for (size_t i = 0; i < count; i++)
            text_add(&experts, "%s%" PRId32, i > 0 ? "," : "[",
                     patches->experts[(image * patches->blocks + b) * count + i]);
        text_add(&experts, "]");
        size_t block = adapters_decision_block(r->run->model.adapters, TOWER_IMAGE, b);
        TRY(store_add(r->store, r->id, "patch_experts",
                      NAMED({"task", number(set->task->index)}, {"after_task", value_integer(after_task)},
                            {"image", number(item)}, {"block", number(block)}, {"file", value_text(file)},
                            {"width", number(patches->side)}, {"experts", value_text(experts.data)}),
                      error));
    }
    return OK;
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
    struct per_image per_image = {.kind = r->run->model.settings.per_image,
                                  .images = set->n,
                                  .right = set->right,
                                  .predicted = set->predicted,
                                  .router = set->router};
    struct evaluation_row row = {.after_task = after_task,
                                 .task = (int64_t)set->task->index,
                                 .correct = (int64_t)set->correct,
                                 .images = (int64_t)set->n,
                                 .per_image = per_image.kind != PER_IMAGE_NONE ? &per_image : NULL};
    TRY(store_add_evaluation(r->store, r->id, &row, error));
    TRY(record_class_experts(r, after_task, set, error));
    TRY(record_patches(r, after_task, set, error));
    return routed ? record_routers(r, after_task, set, error) : OK;
}

/* Empty where t1 and t2 suffice: "[[3,0.5],[0,0.3],[7,0.2]]". */
static void add_mixture(struct text *mixture, const struct merge *merge)
{
    double equal = 1.0 / (double)merge->sources;
    bool weighted = false, plain = merge->sources <= 2;
    for (size_t i = 0; i < merge->sources; i++)
        weighted = weighted || merge->weight[i] != 0;
    for (size_t i = 0; weighted && i < merge->sources; i++)
        plain = plain && (double)merge->weight[i] == equal;
    for (size_t i = 0; !plain && i < merge->sources; i++)
        text_add(mixture, "%s[%" PRId64 ",%.17g]", i ? "," : "[", (int64_t)merge->source[i],
                 weighted ? (double)merge->weight[i] : equal);
    text_add(mixture, "%s", plain ? "" : "]");
}

static struct value source_value(const struct merge *merge, size_t index)
{
    return index < merge->sources ? value_integer(merge->source[index]) : value_null();
}

static status record_merge(const struct recorder *r, size_t task, size_t iteration, const struct expert_change *change,
                           struct error *error)
{
    const struct merge *merge = &change->merge;
    bool done = change->kind == CHANGE_MERGE;
    SCOPED(text_free) struct text mixture = {0};
    add_mixture(&mixture, merge);
    return store_add(r->store, r->id, "expert_events",
                     NAMED({"task", number(task)}, {"iteration", number(iteration)},
                           {"encoder", value_text(encoders[change->tower])},
                           {"block", value_integer(block_of(r, change->tower, merge->block))},
                           {"event", value_text(done ? "merge" : "skip")},
                           {"target", merge->target >= 0 ? value_integer(merge->target) : value_null()},
                           {"t1", source_value(merge, 0)}, {"t2", source_value(merge, 1)},
                           {"mixture", value_text(mixture.size ? mixture.data : NULL)},
                           {"reason", value_text(done ? NULL : merge_skip_name(merge->skip))}),
                     error);
}

static status record_freezes(const struct recorder *r, size_t task, size_t iteration,
                             const struct expert_change *change, struct error *error)
{
    for (size_t i = 0; i < change->merge.sources; i++)
        TRY(store_add(r->store, r->id, "expert_events",
                      NAMED({"task", number(task)}, {"iteration", number(iteration)},
                            {"encoder", value_text(encoders[change->tower])},
                            {"block", value_integer(block_of(r, change->tower, change->merge.block))},
                            {"event", value_text("freeze")}, {"target", value_integer(change->merge.source[i])}),
                      error));
    return OK;
}

static status record_effects(const struct recorder *r, size_t task, struct error *error)
{
    struct merge_effect_list *effects = &r->run->method.effects;
    for (size_t i = 0; i < effects->count; i++) {
        const struct merge_effect *effect = &effects->effects[i];
        TRY(store_add(r->store, r->id, "merge_effects",
                      NAMED({"task", number(task)}, {"iteration", number(effect->iteration)},
                            {"encoder", value_text(encoders[effect->tower])},
                            {"block", value_integer(block_of(r, effect->tower, effect->block))},
                            {"position", number(effect->position)}, {"known", number(effect->known)},
                            {"iterations", number(effect->iterations)}, {"chosen", value_integer(effect->chosen)},
                            {"choices", value_integer(effect->choices)},
                            {"loss_before", value_real(effect->loss_before)},
                            {"loss_after", value_real(effect->loss_after)}, {"distance", value_real(effect->distance)}),
                      error));
    }
    effects->count = 0;
    return OK;
}

status record_changes(const struct recorder *r, size_t task, size_t iteration, struct error *error)
{
    struct expert_changes *changes = &r->run->method.changes;
    for (size_t i = 0; i < changes->count; i++)
        TRY((changes->changes[i].kind == CHANGE_FREEZE ? record_freezes : record_merge)(r, task, iteration,
                                                                                        &changes->changes[i], error));
    expert_changes_clear(changes);
    return record_effects(r, task, error);
}

static status record_bank(const struct recorder *r, size_t task, size_t iteration, enum tower tower, size_t bank,
                          struct error *error)
{
    OWNED struct expert_sketch *sketches = xcalloc(ADAPTER_EXPERTS, sizeof *sketches);
    TRY(adapters_sketch(r->run->model.adapters, tower, bank, sketches, error));
    for (size_t e = 0; e < r->run->model.adapters->settings.experts; e++)
        TRY(store_add(r->store, r->id, "expert_sketches",
                      NAMED({"task", number(task)}, {"iteration", number(iteration)},
                            {"encoder", value_text(encoders[tower])},
                            {"block", value_integer(block_of(r, tower, bank))}, {"expert", number(e)},
                            {"distance", value_real(sketches[e].distance)},
                            {"sketch", value_blob(sketches[e].values, sizeof sketches[e].values)}),
                      error));
    return OK;
}

status record_sketches(const struct recorder *r, size_t task, size_t iteration, struct error *error)
{
    const struct adapters *adapters = r->run->model.adapters;
    for (int t = 0; adapters != NULL && r->run->model.settings.trajectory_every > 0 && t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            TRY(record_bank(r, task, iteration, (enum tower)t, b, error));
    return OK;
}

status record_counts(const struct recorder *r, size_t task, struct error *error)
{
    struct adapters *adapters = r->run->model.adapters;
    if (adapters == NULL)
        return OK;
    int32_t counts[ADAPTER_EXPERTS];
    size_t experts = adapters->settings.experts;
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            TRY(adapters_read_counts(adapters, (enum tower)t, b, counts, error));
            for (size_t e = 0; e < experts; e++)
                TRY(store_add(r->store, r->id, "expert_counts",
                              NAMED({"task", number(task)}, {"encoder", value_text(encoders[t])},
                                    {"block", value_integer(block_of(r, (enum tower)t, b))}, {"expert", number(e)},
                                    {"count", value_integer(counts[e])}),
                              error));
        }
    return OK;
}

status record_threshold(const struct recorder *r, const struct selector *selector, size_t task, struct error *error)
{
    return store_add(r->store, r->id, "selector_thresholds",
                     NAMED({"task", number(task)}, {"threshold", value_real((double)selector->thresholds[task])}),
                     error);
}

status record_file(const struct recorder *r, int64_t task, const char *kind, const char *path, struct error *error)
{
    uint64_t bytes;
    char digest[DIGEST_SIZE];
    TRY(file_size(path, &bytes, error));
    TRY(digest_file(path, digest, error));
    return store_add(r->store, r->id, "artifacts",
                     NAMED({"task", value_integer(task)}, {"kind", value_text(kind)}, {"path", value_text(path)},
                           {"bytes", number(bytes)}, {"digest", value_text(digest)}),
                     error);
}
