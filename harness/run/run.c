#include "harness/run/run.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/scope.h"
#include "harness/model/tasks.h"
#include "harness/model/weights.h"
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
    s->without_model = s->without_model && !frozen;
    model->groups = frozen ? GROUPS_NONE : method_groups(s->method, s->method_options);
    if (!model->planned)
        TRY(tasks_look(run->suite, error));
    TRY(model_open(model, error));
    if (settings_select(s) && !model->planned)
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

static status open_data(struct run *run, struct error *error)
{
    struct model *model = &run->model;
    struct settings *s = &model->settings;
    memcpy(run->identity, suite_settings_hash(run->suite), sizeof run->identity);
    TRY(settings_read(s, run->suite, error));
    s->without_model = s->split.cut != CUT_BY_LABELS;
    if (!model->planned)
        TRY(tasks_look(run->suite, error));
    TRY(model_open(model, error));
    TRY(model_open_tokenizer(model, error));
    return tasks_open(&run->data, model, run->suite, false, error);
}

static status keep_opened(struct run **result, struct run *run, status opened)
{
    if (opened == OK)
        *result = run;
    else
        run_close(run);
    return opened;
}

static status open_run(struct run **result, const struct suite *suite, uint64_t seed, bool frozen, bool planned,
                       const struct log *log, struct error *error)
{
    struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){.suite = suite, .model = {.seed = seed, .log = log, .planned = planned}};
    return keep_opened(result, run, open_parts(run, frozen, error));
}

status run_open(struct run **result, const struct suite *suite, uint64_t seed, const struct log *log,
                struct error *error)
{
    return open_run(result, suite, seed, false, false, log, error);
}

status run_open_data(struct run **result, const struct suite *suite, uint64_t seed, enum run_data data,
                     const struct log *log, struct error *error)
{
    struct run *run = xcalloc(1, sizeof *run);
    *run = (struct run){.suite = suite, .model = {.seed = seed, .log = log, .planned = data == DATA_COUNTED}};
    return keep_opened(result, run, open_data(run, error));
}

status run_open_planned(struct run **result, const struct suite *suite, uint64_t seed, const struct log *log,
                        struct error *error)
{
    return open_run(result, suite, seed, false, true, log, error);
}

status run_open_frozen(struct run **result, const struct suite *suite, uint64_t seed, const struct log *log,
                       struct error *error)
{
    return open_run(result, suite, seed, true, false, log, error);
}

/* The model that was opened anew has read the same file. */
static status expect_same_weights(const struct model *model, const struct witness *before, struct error *error)
{
    OWNED char *path = weights_path(model->settings.weights);
    return weights_expect(before, path, error);
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
                                .folder = before.folder,
                                .stop = before.stop,
                                .tokenizer = before.tokenizer,
                                .vocabulary_read = before.vocabulary_read,
                                .head = before.head,
                                .evaluation_batch = before.evaluation_batch,
                                .waited = before.waited,
                                .groups = groups};
    TRY(model_open(&run->model, error));
    TRY(expect_same_weights(&run->model, &before.weights_read, error));
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

char *run_state_file(const char *folder, size_t task)
{
    return path_format("%s/task%02zu.state.safetensors", folder, task);
}

char *run_folder(const struct run *run)
{
    return path_format("%s/%s-%.12s/seed%llu", run->model.settings.folder, suite_name(run->suite), run->identity,
                       (unsigned long long)run->model.seed);
}

enum { HASH_DIGITS = 12 };

const char *run_files_place(const char *folder, int64_t seed)
{
    char last[40];
    size_t length = strlen(folder);
    int tail = snprintf(last, sizeof last, "/seed%" PRIu64, (uint64_t)seed);
    if (length <= (size_t)tail + HASH_DIGITS + 1 || strcmp(folder + length - (size_t)tail, last) != 0)
        return NULL;
    const char *hash = folder + length - (size_t)tail - HASH_DIGITS, *slash = memrchr(folder, '/', hash - folder);
    bool digits = hash[-1] == '-';
    for (int i = 0; i < HASH_DIGITS; i++)
        digits = digits && isxdigit((unsigned char)hash[i]);
    return !digits ? NULL : slash != NULL ? slash + 1 : folder;
}

/* Of runs of other programs: their lists, what they saved and what they keep. */
static const char *const folders[] = {"lists", "saved", "program"};

static bool is_run_folder(const char *name)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(name, folders[i]) == 0)
            return true;
    return false;
}

static bool is_log(const char *name)
{
    return strcmp(name, "program.log") == 0 || strcmp(name, "policy.log") == 0;
}

/* "adapters.safetensors", "task03.weights.safetensors", "resume.safetensors", or a temporary file of one of them; a log. */
static bool is_run_file(int folder, const char *name, uint64_t *bytes)
{
    struct stat information;
    const char *ending = strstr(name, ".safetensors");
    bool named = ending != NULL && (ending[strlen(".safetensors")] == 0 ||
                                    strncmp(ending, ".safetensors.tmp-", strlen(".safetensors.tmp-")) == 0);
    if ((!named && !is_log(name)) || fstatat(folder, name, &information, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(information.st_mode))
        return false;
    *bytes += (uint64_t)information.st_size;
    return true;
}

static status list(struct run_files *files, struct error *error)
{
    TRY(directory_list(&files->entries, files->folder, error));
    files->name = xmalloc((files->entries.count + 1) * sizeof *files->name);
    for (size_t i = 0; i < files->entries.count; i++) {
        bool own = is_run_file(files->descriptor, files->entries.names[i], &files->bytes);
        if (own)
            files->name[files->count++] = files->entries.names[i];
        else
            files->others += !is_run_folder(files->entries.names[i]);
    }
    return OK;
}

static status open_folder(struct run_files *files, const char *folder, struct error *error)
{
    files->descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (files->descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
        return OK;
    if (files->descriptor < 0)
        return error_errno(error, errno, "%s: cannot open the run's folder", folder);
    if (flock(files->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(error, ERROR_BUSY,
                         "%s: in use by a run of another database with the same suite and seed; wait for it or stop it",
                         folder);
    files->folder = xstrdup(folder);
    return list(files, error);
}

status run_files_find(struct run_files *files, const char *folder, int64_t seed, struct error *error)
{
    *files = (struct run_files){.descriptor = -1};
    if (folder == NULL || !file_exists(folder))
        return OK;
    if (run_files_place(folder, seed) == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: expected the folder of a run with seed %" PRId64 " (SUITE-HASH/seed%" PRId64
                         "), found another name; see whose files they are",
                         folder, seed, seed);
    return open_folder(files, folder, error);
}

/* The run's folder, and the suite's folder if that is empty then. */
static void remove_folders(const struct run_files *files)
{
    OWNED char *parent = xstrdup(files->folder);
    if (rmdir(files->folder) == 0) {
        *strrchr(parent, '/') = 0;
        rmdir(parent);
    }
}

status run_files_remove(struct run_files *files, struct error *error)
{
    for (size_t i = 0; i < files->count; i++)
        if (unlinkat(files->descriptor, files->name[i], 0) != 0 && errno != ENOENT)
            return error_errno(error, errno, "%s/%s: cannot be removed", files->folder, files->name[i]);
    for (size_t i = 0; files->folder != NULL && i < sizeof folders / sizeof *folders; i++) {
        OWNED char *path = path_format("%s/%s", files->folder, folders[i]);
        directory_remove(path);
    }
    if (files->folder != NULL && files->others == 0)
        remove_folders(files);
    return OK;
}

void run_files_close(struct run_files *files)
{
    if (files->descriptor >= 0)
        close(files->descriptor);
    free(files->folder);
    free(files->name);
    directory_free(&files->entries);
    *files = (struct run_files){.descriptor = -1};
}
