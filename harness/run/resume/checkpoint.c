#include "harness/run/resume/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/statistics.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/model/model.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"
#include "harness/train/serializer.h"

static status pass_array(const struct serializer *p, const char *prefix, const char *name, enum safetensor_type type,
                         size_t count, void *device, struct error *error)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", prefix, name);
    return serializer_device(p, full, type, count, device, error);
}

/* The optimizer starts afresh with every task, so its state is only saved within one. */
static status pass_parameters(const struct serializer *p, const char *prefix, struct parameters *group, bool optimizer,
                              struct error *error)
{
    char values[96];
    snprintf(values, sizeof values, "%s.values", prefix);
    TRY(serializer_weights(p, values, group, error));
    if (!optimizer)
        return OK;
    TRY(pass_array(p, prefix, "first_moment", SAFETENSOR_F32, group->values_count, group->first_moment, error));
    if (group->second_moment != NULL)
        TRY(pass_array(p, prefix, "second_moment", SAFETENSOR_F32, group->values_count, group->second_moment, error));
    TRY(pass_array(p, prefix, "steps", SAFETENSOR_I32, group->segments, group->steps, error));
    return pass_array(p, prefix, "flags", SAFETENSOR_I32, group->flags_count, group->flags, error);
}

/* The state of adapters besides their weights. */
static status pass_adapters(const struct serializer *p, struct adapters *adapters, struct error *error)
{
    static const char *const names[TOWERS] = {"image", "text"};
    for (int t = 0; t < TOWERS; t++) {
        struct adapter_counts use = adapters_counts(adapters, (enum tower)t);
        if (use.n == 0)
            continue;
        TRY(pass_array(p, names[t], "counts", SAFETENSOR_I32, use.n, use.counts, error));
        TRY(pass_array(p, names[t], "frozen", SAFETENSOR_I32, use.n, use.frozen, error));
        struct statistic s;
        char name[96];
        for (size_t i = 0; adapters_statistic(adapters, (enum tower)t, i, &s); i++) {
            snprintf(name, sizeof name, "%s.%s", names[t], s.name);
            if (s.of_leader && !p->saving && !archive_has(p->archive, name)) /* merge.analysis was off */
                continue;
            TRY(pass_array(p, names[t], s.name, s.integers ? SAFETENSOR_I32 : SAFETENSOR_F32, s.n, s.data, error));
        }
    }
    return OK;
}

static status pass_selector(const struct serializer *p, struct selector *selector, size_t trained, struct error *error)
{
    size_t tasks = p->tasks_before > 0 ? p->tasks_before : selector->data->task_count;
    selector->trained = trained;
    selector->prepared = trained > 0;
    TRY(selector->kind->keep(selector, p, trained, error));
    return serializer_host(p, "selector.thresholds", SAFETENSOR_F32, tasks, selector->thresholds, error);
}

/* Nothing where every task is done: what is left is to record the run's end. */
static status pass_all(const struct serializer *p, struct run *run, struct selector *selector,
                       const struct checkpoint_place *place, struct error *error)
{
    const struct method *method = run->model.settings.method;
    struct trained_group group;
    bool optimizer = place->iteration > 0;
    if (place->task == run->data.task_count && !place->lasts)
        return OK;
    if (optimizer)
        TRY(pass_array(p, "steps", "guard", SAFETENSOR_I32, sizeof *run->model.guard / sizeof(int32_t),
                       run->model.guard, error));
    for (size_t i = 0; trained_group_at(&run->model, i, &group); i++)
        TRY(pass_parameters(p, group.name, group.parameters, optimizer, error));
    if (run->model.groups & GROUP_ADAPTERS)
        TRY(pass_adapters(p, run->model.adapters, error));
    if (selector != NULL)
        TRY(pass_selector(p, selector, place->task, error));
    return method->keep != NULL ? method->keep(&run->method, p, error) : OK;
}

struct labels {
    char seed[24], task[24], iteration[24], rows[24];
    char blocks[1024]; /* the adapters' blocks where they are listed, as by scores; "": a rule determines them */
};

static void make_labels(struct labels *labels, const struct run *run, const struct checkpoint_place *place)
{
    const struct adapters *adapters = run->model.adapters;
    SCOPED(text_free) struct text blocks = {0};
    if (adapters != NULL && adapters->settings.place.blocks.rule == BLOCKS_LISTED)
        block_choice_write(&adapters->settings.place.blocks, &blocks);
    snprintf(labels->blocks, sizeof labels->blocks, "%s", blocks.data != NULL ? blocks.data : "");
    snprintf(labels->seed, sizeof labels->seed, "%llu", (unsigned long long)run->model.seed);
    snprintf(labels->task, sizeof labels->task, "%zu", place->task);
    snprintf(labels->iteration, sizeof labels->iteration, "%zu", place->iteration);
    snprintf(labels->rows, sizeof labels->rows, "%lld", (long long)place->rows);
}

/* A copy in the host's memory of all that a resume file has. */
struct checkpoint_snapshot {
    struct archive *archive;
    char identity[DIGEST_SIZE];
    struct labels labels;
};

/* NULL is allowed. */
static void free_snapshot(struct checkpoint_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    archive_close(snapshot->archive);
    free(snapshot);
}

SCOPED_POINTER(struct checkpoint_snapshot, free_snapshot)

static status take(struct checkpoint_snapshot **snapshot, const struct run *run, const struct selector *selector,
                   const struct checkpoint_place *place, struct error *error)
{
    SCOPED(free_snapshot_at) struct checkpoint_snapshot *taken = xcalloc(1, sizeof *taken);
    memcpy(taken->identity, run->identity, sizeof taken->identity);
    make_labels(&taken->labels, run, place);
    archive_create(&taken->archive);
    struct serializer p = {.archive = taken->archive, .backend = run->model.backend, .saving = true};
    TRY(pass_all(&p, (struct run *)run, (struct selector *)selector, place, error));
    *snapshot = TAKE(taken);
    return OK;
}

static status write_snapshot(const struct checkpoint_snapshot *s, const char *path, struct error *error)
{
    const struct safetensors_metadata metadata[] = {{"program", "mtil " MTIL_VERSION},  {"suite_hash", s->identity},
                                                    {"seed", s->labels.seed},           {"task", s->labels.task},
                                                    {"iteration", s->labels.iteration}, {"rows", s->labels.rows},
                                                    {"blocks", s->labels.blocks}};
    size_t count = sizeof metadata / sizeof *metadata - (*s->labels.blocks == 0);
    return archive_write(s->archive, path, metadata, count, error);
}

status checkpoint_save(const struct run *run, const struct selector *selector, const char *path,
                       const struct checkpoint_place *place, struct error *error)
{
    SCOPED(free_snapshot_at) struct checkpoint_snapshot *snapshot = NULL;
    TRY(take(&snapshot, run, selector, place, error));
    return write_snapshot(snapshot, path, error);
}

static void *write_in_thread(void *argument)
{
    struct checkpoint_writer *writer = argument;
    writer->result = write_snapshot(writer->snapshot, writer->path, &writer->error);
    atomic_store(&writer->ended, true);
    return NULL;
}

status checkpoint_writer_finish(struct checkpoint_writer *writer, struct error *error)
{
    if (writer->running)
        pthread_join(writer->thread, NULL);
    writer->running = false;
    free_snapshot(writer->snapshot);
    writer->snapshot = NULL;
    if (writer->result != OK && error != NULL)
        *error = writer->error;
    status result = writer->result;
    writer->result = OK;
    return result;
}

status checkpoint_writer_check(struct checkpoint_writer *writer, struct error *error)
{
    return writer->running && atomic_load(&writer->ended) ? checkpoint_writer_finish(writer, error) : OK;
}

/* A thread that cannot be started is no failure: the caller writes. */
status checkpoint_writer_save(struct checkpoint_writer *writer, const struct run *run, const struct selector *selector,
                              const char *path, const struct checkpoint_place *place, struct error *error)
{
    TRY(checkpoint_writer_finish(writer, error));
    TRY(take(&writer->snapshot, run, selector, place, error));
    writer->path = path;
    atomic_store(&writer->ended, false);
    writer->running = pthread_create(&writer->thread, NULL, write_in_thread, writer) == 0;
    if (writer->running)
        return OK;
    write_in_thread(writer);
    return checkpoint_writer_finish(writer, error);
}

static status same(const struct archive *archive, const char *path, const char *key, const char *expected,
                   struct error *error)
{
    const char *found = archive_metadata(archive, key);
    if (found != NULL && strcmp(found, expected) == 0)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: resume file of another run: expected %s %s, found %s; delete it to start this run from the beginning",
        path, key, expected, found != NULL ? found : "none");
}

static status read_place(const struct archive *archive, const struct run *run, const char *path,
                         struct checkpoint_place *place, struct error *error)
{
    const char *task = archive_metadata(archive, "task"), *iteration = archive_metadata(archive, "iteration"),
               *rows = archive_metadata(archive, "rows");
    int64_t t, i, n;
    bool numbers = task != NULL && iteration != NULL && rows != NULL && parse_integer(task, &t) &&
                   parse_integer(iteration, &i) && parse_integer(rows, &n);
    if (!numbers || t < 0 || (size_t)t > run->data.task_count || i < 0 ||
        (size_t)i > ((size_t)t < run->data.task_count ? joint_or(&run->data, (size_t)t)->settings.iterations : 0))
        return error_set(error, ERROR_FORMAT,
                         "%s: resume file without a valid task and iteration; delete it to start this run afresh",
                         path);
    *place = (struct checkpoint_place){.task = (size_t)t, .iteration = (size_t)i, .rows = n};
    return OK;
}

static status read_labels(const struct archive *archive, const struct run *run, const char *path,
                          struct checkpoint_place *place, struct error *error)
{
    struct labels labels;
    *place = (struct checkpoint_place){0};
    make_labels(&labels, run, place);
    TRY(same(archive, path, "program", "mtil " MTIL_VERSION, error));
    if (same(archive, path, "suite_hash", run->identity_before, NULL) != OK)
        TRY(same(archive, path, "suite_hash", run->identity, error));
    TRY(same(archive, path, "seed", labels.seed, error));
    if (archive_metadata(archive, "blocks") != NULL)
        TRY(same(archive, path, "blocks", labels.blocks, error));
    return read_place(archive, run, path, place, error);
}

status checkpoint_load(struct run *run, struct selector *selector, const char *path, struct checkpoint_place *place,
                       bool *found, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    *place = (struct checkpoint_place){0};
    *found = file_exists(path);
    if (!*found)
        return OK;
    if (archive_open(&archive, path, error) != OK)
        return error_context(error, "cannot resume; delete the file to start this run afresh");
    TRY(read_labels(archive, run, path, place, error));
    struct serializer p = {.archive = archive, .backend = run->model.backend};
    return pass_all(&p, run, selector, place, error);
}

status checkpoint_load_shorter(struct run *run, struct selector *selector, const char *path, const char *identity,
                               size_t tasks, struct checkpoint_place *place, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    TRY(archive_open(&archive, path, error));
    memcpy(run->identity_before, identity, sizeof run->identity_before);
    status result = read_labels(archive, run, path, place, error);
    struct serializer p = {
        .archive = archive, .backend = run->model.backend, .tasks = run->data.task_count, .tasks_before = tasks};
    if (result == OK && (result = pass_all(&p, run, selector, place, error)) == ERROR_FORMAT)
        error_context(error,
                      "%s: what the run keeps depends on the number of tasks, and it cannot go on with more; "
                      "leave --extend out",
                      path);
    memset(run->identity_before, 0, sizeof run->identity_before);
    return result;
}

void checkpoint_remove_finished(const struct run *run, const char *path)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    struct checkpoint_place place;
    struct error ignored;
    if (!file_exists(path) || archive_open(&archive, path, &ignored) != OK)
        return;
    if (read_labels(archive, run, path, &place, &ignored) == OK && place.task == run->data.task_count)
        unlink(path);
}
