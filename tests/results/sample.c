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

status sample_add_step(struct store *store, int64_t run, int64_t task, int64_t iteration, double loss,
                       struct error *error)
{
    return store_add(store, run, "steps",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                           {"loss", value_real(loss)}, {"learning_rate", value_real(1e-3)},
                           {"balance_loss", value_real(0)}, {"accuracy", value_real(0.5)}),
                     error);
}

struct rows_of {
    const char *table, *select;
};

static const struct rows_of rows_of_run[] = {
    {"sessions", "SELECT 'a host' AS host, '0.1.0' AS program_version, '0123456789ab' AS program_commit, "
                 "'mtil run sample.yaml' AS command_line, 'GCC 12.2.0' AS compiler, 'SQLite 3.40.1' AS libraries, "
                 "'a processor' AS cpu"},
};

/* ?1: the task */
static const struct rows_of rows_of_task[] = {
    {"tasks", "SELECT ?1 AS task, value AS name, 6 + ?1 AS classes, 1000 AS training_images, 200 AS test_images, "
              "10 * ?1 AS missing_images, 3 * ?1 AS unreadable_images, iif(?1 = 0, NULL, '00ff') AS test_digest "
              "FROM json_each('[\"aircraft\", \"digits\", \"textures_&_more\", \"flowers\"]') WHERE key = ?1"},
    {"operations", "SELECT ?1 AS task, 3e9 AS step, 1e9 AS image"},
    {"task_classes", "SELECT ?1 AS task, key AS class, value AS name FROM json_each('[\"a class\", \"another\"]')"},
    {"task_similarities", "SELECT ?1 AS task, 3 AS other, 0.5 AS cosine"},
};

/* Of every tenth step. ?1: the task, ?2: the iteration; behind the last one comes what is known at the end of the task. */
static const struct rows_of rows_of_step[] = {
    {"expert_events", "SELECT ?1 AS task, ?2 AS iteration, value AS encoder, 1 AS block, "
                      "iif(?2 = 20, 'skip', 'merge') AS event, iif(?2 = 20, NULL, 2) AS target, 5 AS t1, ?1 AS t2, "
                      "iif(?2 = 20, 'no expert is free', NULL) AS reason "
                      "FROM json_each('[\"image\", \"text\"]') WHERE ?2 % 10 = 0"},
    {"merge_effects", "SELECT ?1 AS task, 10 AS iteration, iif(?2 = 20, 'image', 'text') AS encoder, 1 AS block, "
                      "0 AS position, ?2 AS known, 10 AS iterations, 15 * (?1 + 1) AS chosen, 120 AS choices, "
                      "2.5 AS loss_before, iif(?1 = 0, NULL, 1.5) AS loss_after, 0.25 AS distance WHERE ?2 >= 20"},
    {"timings", "SELECT ?1 AS task, ?2 AS iteration, 'train' AS phase, 2.5 AS seconds, 10 AS iterations, 640 AS images "
                "WHERE ?2 % 10 = 0"},
    /* Of adapters/sketch.h are 256 numbers; these lie 10 and 2 from their mean along two directions (functions.txt). */
    {"expert_sketches", "SELECT ?1 AS task, ?2 AS iteration, 'image' AS encoder, 1 AS block, column1 AS expert, "
                        "column2 AS distance, column3 AS sketch FROM (VALUES (0, 10.0, x'0000e0400000204100004040'), "
                        "(1, 10.0, x'0000a0c00000c0c000004040'), (2, 2.0, x'0000803f000000400000a040'), "
                        "(3, 2.0, x'0000803f000000400000803f')) WHERE ?2 > 20"},
    {"resources", "SELECT ?1 AS task, 'evaluate' AS phase, 50 AS encoded, 0.5 AS encoding WHERE ?2 > 20"},
    {"expert_events", "SELECT ?1 AS task, 20 AS iteration, 'image' AS encoder, 1 AS block, 'freeze' AS event, "
                      "?1 + value AS target FROM json_each('[0, 1]') WHERE ?2 > 20"},
    {"expert_counts", "SELECT ?1 AS task, 'image' AS encoder, 1 AS block, key AS expert, value AS count "
                      "FROM json_each('[30, 0, 10, ' || ?1 || ', 5, 55]') WHERE ?2 > 20"},
    {"artifacts", "SELECT ?1 AS task, 'adapters' AS kind, 'a.safetensors' AS path, 1000 AS bytes WHERE ?2 > 20"},
};

/* Of an evaluation. ?1: after this task, ?2: of this. The last has twice as many choices of experts as images with a router, and the
 * patches of an image. */
static const struct rows_of rows_of_evaluation[] = {
    {"selector_thresholds", "SELECT ?1 AS task, 0.05 + ?1 AS threshold WHERE ?2 = 0 AND ?1 >= 0"},
    {"router_choices", "SELECT ?1 AS after_task, ?2 AS task, key - 1 AS router, value AS count "
                       "FROM json_each('[20, ' || ?2 || ', 0, 0, ' || (180 - ?2) || ']') WHERE value > 0"},
    {"class_experts", "SELECT ?2 AS task, ?1 AS after_task, 1 AS block, key / 6 AS class, key % 6 AS expert, value AS "
                      "count FROM json_each('[90, 30, 0, 0, 0, 0, 0, 0, 0, 0, 60, 180]') WHERE value > 0 AND ?1 = 3"},
    {"patch_experts", "SELECT ?2 AS task, ?1 AS after_task, 100 AS image, 1 AS block, 'hundredth.png' AS file, "
                      "3 AS width, '[5,0,' || ?2 || ',2,2,1]' AS experts WHERE ?1 = 3"},
};

#define ROWS(of) of, sizeof of / sizeof *of

/* As the trainer does, by store_add. */
static status add_rows(struct store *store, int64_t run, const struct rows_of *rows, size_t count, int64_t first,
                       int64_t second, struct error *error)
{
    enum { COLUMNS_MOST = 16 };
    status result = OK;
    for (size_t i = 0; i < count && result == OK; i++) {
        struct named_value row[COLUMNS_MOST];
        struct statement *statement;
        TRY(statement_open(&statement, store_database(store), rows[i].select, error));
        result = statement_bind(statement, VALUES(value_integer(first), value_integer(second)), error);
        for (bool more; result == OK && (result = statement_step(statement, &more, error)) == OK && more;) {
            for (size_t c = 0; c < statement_columns(statement); c++)
                row[c] = (struct named_value){statement_title(statement, c), statement_value(statement, c)};
            result = store_add(store, run, rows[i].table, row, statement_columns(statement), error);
        }
        statement_close(statement);
    }
    return result;
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
        TRY(add_rows(store, run, ROWS(rows_of_evaluation), after_task, task, error));
    }
    return OK;
}

static status write_step(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                         struct error *error)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)iteration);
    TRY(sample_add_step(store, run, task, iteration, (double)rng_uniform(&rng, 1), error));
    return iteration % 10 == 0 ? add_rows(store, run, ROWS(rows_of_step), task, iteration, error) : OK;
}

status sample_write(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration, int64_t stop_task,
                    int64_t stop_iteration, struct error *error)
{
    for (int64_t i = SAMPLE_TASKS; i-- > 0;) /* the last first, which all are like */
        TRY(add_rows(store, run, ROWS(rows_of_task), i, 0, error));
    if (task < 0)
        TRY(write_evaluations(store, run, seed, -1, error));
    for (int64_t t = task < 0 ? 0 : task; t < SAMPLE_TASKS; t++) {
        for (int64_t i = t == task ? iteration + 1 : 1; i <= SAMPLE_ITERATIONS; i++) {
            if (t == stop_task && i == stop_iteration)
                return OK;
            TRY(write_step(store, run, seed, t, i, error));
        }
        TRY(add_rows(store, run, ROWS(rows_of_step), t, SAMPLE_ITERATIONS + 1, error));
        TRY(write_evaluations(store, run, seed, t, error));
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
    int64_t faults;
    TRY(database_integer(store->database, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
                         &faults, error));
    return faults == 0 ? OK : error_set(error, ERROR_FORMAT, "%s: a page is damaged", store_path(store));
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

int64_t sample_finished_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    struct error error = {0};
    if (store_run_start(store, &description, &start, &error) != OK ||
        add_rows(store, start.run, ROWS(rows_of_run), 0, 0, &error) != OK ||
        sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, &error) != OK ||
        store_run_end(store, start.run, RUN_FINISHED, NULL, &error) != OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return start.run;
}
