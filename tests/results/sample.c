#include "tests/results/sample.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/rng.h"
#include "results/store/store_internal.h"

static const char *const task_names[SAMPLE_TASKS] = {"aircraft", "digits", "textures_&_more", "flowers"};

char *sample_path(const char *name)
{
    const char *base = getenv("TMPDIR");
    char *folder = path_format("%s/mtil-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        abort();
    char *path = path_format("%s/%s", folder, name);
    free(folder);
    return path;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

void sample_remove(char *path)
{
    *strrchr(path, '/') = '\0';
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(path);
}

void sample_tell(struct run_description *description, const char *text)
{
    static struct setting_row rows[32];
    static char memory[2048];
    char section[64] = "", *to = memory;
    size_t count = 0;
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        int length = (int)strcspn(line, "\n"), key = (int)strcspn(line, ":");
        if (*line != ' ')
            snprintf(section, sizeof section, "%.*s", key == length - 1 ? key : 0, line);
        if (key >= length - 1)
            continue;
        int indent = *line == ' ' ? 2 : 0;
        bool real = strspn(line + key + 2, "0123456789.") == (size_t)(length - key - 2);
        rows[count] = (struct setting_row){.key = to, .type = real ? "real" : "text"};
        to += sprintf(to, "%s%s%.*s", section, *section ? "." : "", key - indent, line + indent) + 1;
        rows[count++].value = to;
        to += sprintf(to, "%.*s", length - key - 2, line + key + 2) + 1;
    }
    description->suite_text = text;
    description->settings = rows;
    description->setting_count = count;
}

struct run_description sample_description(int64_t seed)
{
    static char hash[DIGEST_SIZE];
    static const struct input_row inputs[] = {
        {.task = -1, .kind = "weights", .path = "/small.safetensors", .files = 1, .bytes = 99, .digest = "0a"},
        {.task = 0, .kind = "test", .path = "/data/aircraft", .files = 200, .bytes = 99, .digest = "0b"}};
    digest_text("suite: sample", hash);
    static const struct setting_row settings[] = {
        {"suite", "sample", "text"}, {"merge.every", "10", "integer"}, {"training.iterations", "20", "integer"}};
    return (struct run_description){.suite = "sample",
                                    .suite_text = "suite: sample\n",
                                    .settings = settings,
                                    .setting_count = sizeof settings / sizeof *settings,
                                    .suite_hash = hash,
                                    .settings_hash = "0c",
                                    .folder = "runs/sample/seed1",
                                    .inputs = inputs,
                                    .input_count = sizeof inputs / sizeof *inputs,
                                    .setting = "full_shot",
                                    .method = "adapters",
                                    .policy = "most_used",
                                    .selector = "clip",
                                    .selection = "per_image",
                                    .order = "I",
                                    .model = "small",
                                    .backend = "cpu",
                                    .precision = "f32",
                                    .program_version = "0.1.0",
                                    .seed = seed,
                                    .tasks = SAMPLE_TASKS,
                                    .trainable_parameters = 12345};
}

int64_t sample_correct(int64_t seed, int64_t after_task, int64_t task)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)(after_task + 1));
    return rng_below(&rng, 0, SAMPLE_IMAGES + 1);
}

status sample_add_task(struct store *store, int64_t run, const struct sample_task *row, struct error *error)
{
    return store_add(
        store, run, "tasks",
        NAMED({"task", value_integer(row->task)}, {"name", value_text(row->name)},
              {"classes", value_integer(row->classes)}, {"training_images", value_integer(row->training_images)},
              {"test_images", value_integer(row->test_images)}, {"missing_images", value_integer(row->missing_images)},
              {"unreadable_images", value_integer(row->unreadable_images)},
              {"test_digest", value_text(row->test_digest)}),
        error);
}

status sample_add_classes(struct store *store, int64_t run, int64_t task, const char *const *names, size_t count,
                          struct error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(store_add(
            store, run, "task_classes",
            NAMED({"task", value_integer(task)}, {"class", value_integer((int64_t)i)}, {"name", value_text(names[i])}),
            error));
    return OK;
}

status sample_add_step(struct store *store, int64_t run, int64_t task, int64_t iteration, double loss,
                       struct error *error)
{
    return store_add(store, run, "steps",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                           {"loss", value_real(loss)}, {"learning_rate", value_real(1e-3)},
                           {"balance_loss", value_real(0)}),
                     error);
}

/* Twice as many choices of experts as images with a router, and the patches of an image. */
static status write_choices(struct store *store, int64_t run, int64_t after_task, int64_t task, struct error *error)
{
    const int64_t counts[12] = {90, 30, [10] = 60, [11] = 180};
    char patches[32];
    for (int64_t i = 0; i < 12; i++)
        if (counts[i] > 0)
            TRY(store_add(store, run, "class_experts",
                          NAMED({"task", value_integer(task)}, {"after_task", value_integer(after_task)},
                                {"block", value_integer(1)}, {"class", value_integer(i / 6)},
                                {"expert", value_integer(i % 6)}, {"count", value_integer(counts[i])}),
                          error));
    snprintf(patches, sizeof patches, "[5,0,%d,2,2,1]", (int)task);
    return store_add(store, run, "patch_experts",
                     NAMED({"task", value_integer(task)}, {"after_task", value_integer(after_task)},
                           {"image", value_integer(100)}, {"block", value_integer(1)},
                           {"file", value_text("hundredth.png")}, {"width", value_integer(3)},
                           {"experts", value_text(patches)}),
                     error);
}

static status write_evaluations(struct store *store, int64_t run, int64_t seed, int64_t after_task, struct error *error)
{
    for (int64_t task = 0; task < SAMPLE_TASKS; task++) {
        int64_t correct = sample_correct(seed, after_task, task);
        uint8_t right[SAMPLE_IMAGES] = {0};
        memset(right, 1, (size_t)correct);
        struct per_image kept = {.kind = PER_IMAGE_BITS, .images = SAMPLE_IMAGES, .right = right};
        TRY(store_add_evaluation(store, run,
                                 &(struct evaluation_row){.after_task = after_task,
                                                          .task = task,
                                                          .correct = correct,
                                                          .images = SAMPLE_IMAGES,
                                                          .per_image = &kept},
                                 error));
        if (task == 0 && after_task >= 0)
            TRY(store_add(
                store, run, "selector_thresholds",
                NAMED({"task", value_integer(after_task)}, {"threshold", value_real(0.05 + (double)after_task)}),
                error));
        const int64_t counts[SAMPLE_TASKS + 1] = {[0] = 20, [1] = task, [SAMPLE_TASKS] = 180 - task};
        for (int64_t i = 0; i <= SAMPLE_TASKS; i++)
            if (counts[i] > 0)
                TRY(store_add(store, run, "router_choices",
                              NAMED({"after_task", value_integer(after_task)}, {"task", value_integer(task)},
                                    {"router", value_integer(i - 1)}, {"count", value_integer(counts[i])}),
                              error));
        if (after_task == SAMPLE_TASKS - 1)
            TRY(write_choices(store, run, after_task, task, error));
    }
    return OK;
}

static status write_merge(struct store *store, int64_t run, int64_t task, int64_t iteration, const char *encoder,
                          struct error *error)
{
    bool skipped = iteration == 20;
    return store_add(store, run, "expert_events",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                           {"encoder", value_text(encoder)}, {"block", value_integer(1)},
                           {"event", value_text(skipped ? "skip" : "merge")},
                           {"target", skipped ? value_null() : value_integer(2)}, {"t1", value_integer(5)},
                           {"t2", value_integer(task)}, {"reason", value_text(skipped ? "no expert is free" : NULL)}),
                     error);
}

/* Of the merge after iteration 10. */
static status write_effect(struct store *store, int64_t run, int64_t task, const char *encoder, int64_t known,
                           struct error *error)
{
    return store_add(store, run, "merge_effects",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(10)},
                           {"encoder", value_text(encoder)}, {"block", value_integer(1)},
                           {"position", value_integer(0)}, {"known", value_integer(known)},
                           {"iterations", value_integer(10)}, {"chosen", value_integer(15 * (task + 1))},
                           {"choices", value_integer(120)}, {"loss_before", value_real(2.5)},
                           {"loss_after", task == 0 ? value_null() : value_real(1.5)}, {"distance", value_real(0.25)}),
                     error);
}

static status write_step(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                         struct error *error)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)iteration);
    TRY(sample_add_step(store, run, task, iteration, (double)rng_uniform(&rng, 1), error));
    if (iteration % 10 != 0)
        return OK;
    TRY(write_merge(store, run, task, iteration, "image", error));
    TRY(write_merge(store, run, task, iteration, "text", error));
    if (iteration == 20)
        TRY(write_effect(store, run, task, "image", iteration, error));
    return store_add(store, run, "timings",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                           {"phase", value_text("train")}, {"seconds", value_real(2.5)},
                           {"iterations", value_integer(10)}, {"images", value_integer(640)}),
                     error);
}

static status write_task_end(struct store *store, int64_t run, int64_t seed, int64_t task, struct error *error)
{
    const int64_t counts[6] = {30, 0, 10, task, 5, 55};
    for (int64_t frozen = 0; frozen < 2; frozen++)
        TRY(store_add(store, run, "expert_events",
                      NAMED({"task", value_integer(task)}, {"iteration", value_integer(SAMPLE_ITERATIONS)},
                            {"encoder", value_text("image")}, {"block", value_integer(1)},
                            {"event", value_text("freeze")}, {"target", value_integer(task + frozen)}),
                      error));
    TRY(write_effect(store, run, task, "text", SAMPLE_ITERATIONS + 1, error));
    for (int64_t expert = 0; expert < 6; expert++)
        TRY(store_add(store, run, "expert_counts",
                      NAMED({"task", value_integer(task)}, {"encoder", value_text("image")},
                            {"block", value_integer(1)}, {"expert", value_integer(expert)},
                            {"count", value_integer(counts[expert])}),
                      error));
    TRY(write_evaluations(store, run, seed, task, error));
    return store_add(store, run, "artifacts",
                     NAMED({"task", value_integer(task)}, {"kind", value_text("adapters")},
                           {"path", value_text("a.safetensors")}, {"bytes", value_integer(1000)}),
                     error);
}

status sample_write(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration, int64_t stop_task,
                    int64_t stop_iteration, struct error *error)
{
    for (int64_t i = 0; i < SAMPLE_TASKS; i++)
        TRY(sample_add_task(store, run,
                            &(struct sample_task){.task = i,
                                                  .name = task_names[i],
                                                  .classes = 6 + i,
                                                  .training_images = 1000,
                                                  .test_images = SAMPLE_IMAGES,
                                                  .missing_images = 10 * i,
                                                  .unreadable_images = 3 * i,
                                                  .test_digest = i == 0 ? NULL : "00ff"},
                            error));
    for (int64_t i = 0; i < SAMPLE_TASKS; i++) {
        TRY(sample_add_classes(store, run, i, (const char *const[]){"a class", "another"}, 2, error));
        TRY(store_add(
            store, run, "task_similarities",
            NAMED({"task", value_integer(i)}, {"other", value_integer(SAMPLE_TASKS - 1)}, {"cosine", value_real(0.5)}),
            error));
    }
    if (task < 0)
        TRY(write_evaluations(store, run, seed, -1, error));
    for (int64_t t = task < 0 ? 0 : task; t < SAMPLE_TASKS; t++) {
        for (int64_t i = t == task ? iteration + 1 : 1; i <= SAMPLE_ITERATIONS; i++) {
            if (t == stop_task && i == stop_iteration)
                return OK;
            TRY(write_step(store, run, seed, t, i, error));
        }
        TRY(write_task_end(store, run, seed, t, error));
    }
    return OK;
}

status sample_write_at_once(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                            int64_t stop_task, int64_t stop_iteration, struct error *error)
{
    store_begin(store);
    TRY(sample_write(store, run, seed, task, iteration, stop_task, stop_iteration, error));
    return store_commit(store, error);
}

status sample_check(struct store *store, struct error *error)
{
    int64_t sound;
    TRY(database_integer(store->database, "SELECT integrity_check = 'ok' FROM pragma_integrity_check(1)", &sound,
                         error));
    return sound ? OK : error_set(error, ERROR_FORMAT, "%s: a page is damaged", store_path(store));
}

status sample_execute(const char *path, const char *sql, struct error *error)
{
    sqlite3 *database;
    if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(database, sql, NULL, NULL, NULL);
    status result = OK;
    if (sqlite3_errcode(database) != SQLITE_OK)
        result = error_set(error, ERROR_ARGUMENT, "%s: %s", sql, sqlite3_errmsg(database));
    sqlite3_close(database);
    return result;
}

int64_t sample_ask(struct store *store, const char *sql)
{
    struct error error;
    int64_t found;
    if (database_integer(store->database, sql, &found, &error) != OK) {
        fprintf(stderr, "%s: %s\n", sql, error.message);
        abort();
    }
    return found;
}

static status add_session(struct store *store, int64_t run, struct error *error)
{
    return store_add(store, run, "sessions",
                     NAMED({"host", value_text("a host")}, {"program_version", value_text("0.1.0")},
                           {"program_commit", value_text("0123456789ab")},
                           {"command_line", value_text("mtil run sample.yaml")}, {"compiler", value_text("GCC 12.2.0")},
                           {"libraries", value_text("SQLite 3.40.1")}, {"cpu", value_text("a processor")}),
                     error);
}

int64_t sample_finished_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    struct error error = {0};
    if (store_run_start(store, &description, &start, &error) != OK || add_session(store, start.run, &error) != OK ||
        sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, &error) != OK ||
        store_run_end(store, start.run, RUN_FINISHED, NULL, &error) != OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return start.run;
}
