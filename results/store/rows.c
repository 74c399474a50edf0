/* The rows of store.h: one function per table, and the reading back that the harness needs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/text.h"
#include "results/store/holding.h"

#define TASKS_LIMIT 4096 /* the schema's */
#define SOURCES_LIMIT 16

static const char *const insert_sql[INSERT_COUNT] = {
    [INSERT_TASK_CLASS] = "INSERT INTO task_classes (run, task, class, name) VALUES (?1, ?2, ?3, ?4) "
                          "ON CONFLICT DO UPDATE SET name = name WHERE name = excluded.name",
    [INSERT_TEST_LABELS] = "INSERT INTO test_labels (run, task, labels) VALUES (?1, ?2, ?3) "
                           "ON CONFLICT DO UPDATE SET labels = labels WHERE labels = excluded.labels",
    [INSERT_TASK_SIMILARITY] = "INSERT INTO task_similarities (run, task, other, cosine) VALUES (?1, ?2, ?3, ?4) "
                               "ON CONFLICT DO NOTHING",
    [INSERT_EVALUATION] =
        "INSERT INTO evaluations (run, after_task, task, correct, images) VALUES (?1, ?2, ?3, ?4, ?5)",
    [INSERT_PER_IMAGE] = "INSERT INTO per_image (run, after_task, task, kind, data) VALUES (?1, ?2, ?3, ?4, ?5)",
    [INSERT_CLASS_EXPERT] = "INSERT INTO class_experts (run, task, after_task, block, class, expert, count, gate) "
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [INSERT_PATCH_EXPERTS] = "INSERT INTO patch_experts (run, task, after_task, image, block, file, width, experts) "
                             "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [INSERT_EXPERT_COUNT] = "INSERT INTO expert_counts (run, task, encoder, block, expert, count) "
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [INSERT_EXPERT_EVENT] = "INSERT INTO expert_events (run, task, iteration, encoder, block, position, event, target, "
                            "t1, t2, mixture, reason) VALUES (?1, ?2, ?3, ?4, ?5, "
                            "(SELECT count(*) FROM expert_events WHERE (run, task, iteration, encoder, block) = "
                            "(?1, ?2, ?3, ?4, ?5)), ?6, nullif(?7, -1), ?8, ?9, ?10, ?11)",
    [INSERT_MERGE_EFFECT] = "INSERT INTO merge_effects (run, task, iteration, encoder, block, position, known, "
                            "iterations, chosen, choices, loss_before, loss_after, distance) "
                            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [INSERT_ROUTER_CHOICE] = "INSERT INTO router_choices (run, after_task, task, router, count) "
                             "VALUES (?1, ?2, ?3, ?4, ?5)",
    [INSERT_THRESHOLD] = "INSERT INTO selector_thresholds (run, task, threshold) VALUES (?1, ?2, ?3)",
    [INSERT_STEP] = "INSERT INTO steps (run, task, iteration, loss, learning_rate, balance_loss) "
                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [INSERT_SKIPPED_STEPS] = "INSERT INTO skipped_steps (run, task, steps) VALUES (?1, ?2, ?3)",
    [INSERT_TIMING] = "INSERT INTO timings (run, task, iteration, phase, seconds, iterations, images, peak_bytes) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, 0), nullif(?7, 0), nullif(?8, 0))",
    [INSERT_ARTIFACT] = "INSERT OR REPLACE INTO artifacts (run, task, kind, path, bytes, digest) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
};

status rows_insert(struct store *store, enum insert kind, const struct value *values, size_t count, struct error *error)
{
    struct statement **statement = &store->insert[kind];
    if (!*statement)
        TRY(statement_open(statement, store->database, insert_sql[kind], error));
    if (statement_run(*statement, values, count, error) == OK)
        return OK;
    return error_context(error, "run %" PRId64, values[0].integer);
}

/* Now, or with store_commit. */
static status insert(struct store *store, enum insert kind, const struct value *values, size_t count,
                     struct error *error)
{
    if (store->collects)
        return pending_add(&store->pending, (int)kind, values, count, error);
    store->rows.known = false; /* callers that write single rows check them themselves */
    return rows_insert(store, kind, values, count, error);
}

/* Begins rows that are written together or not at all. */
static status begin_rows(struct store *store, bool *began, struct error *error)
{
    *began = false;
    return store->collects ? OK : database_begin(store->database, began, error);
}

/* Whether the existing row has the values of row. */
static status compare_task(struct store *store, const struct value *values, size_t count, bool *same,
                           struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database,
                       "SELECT 1 FROM tasks WHERE run = ?1 AND task = ?2 AND name = ?3 AND classes = ?4 AND "
                       "training_images = ?5 AND test_images = ?6 AND test_digest IS ?7 AND missing_images = ?8 AND "
                       "unreadable_images = ?9",
                       error));
    status result = statement_bind(statement, values, count, error);
    if (result == OK)
        result = statement_step(statement, same, error);
    statement_close(statement);
    return result;
}

status store_add_task(struct store *store, int64_t run, const struct task_row *row, struct error *error)
{
    struct value values[] = {value_integer(run),
                             value_integer(row->task),
                             value_text(row->name),
                             value_integer(row->classes),
                             value_integer(row->training_images),
                             value_integer(row->test_images),
                             value_text(row->test_digest),
                             value_integer(row->missing_images),
                             value_integer(row->unreadable_images)};
    size_t count = sizeof values / sizeof *values;
    struct statement *statement;
    TRY(statement_open(&statement, store->database,
                       "INSERT INTO tasks (run, task, name, classes, training_images, test_images, test_digest, "
                       "missing_images, unreadable_images) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT "
                       "DO NOTHING",
                       error));
    status result = statement_run(statement, values, count, error);
    bool same = result == OK && database_changes(store->database) == 1;
    statement_close(statement);
    if (result == OK && !same)
        result = compare_task(store, values, count, &same, error);
    if (result != OK)
        return error_context(error, "run %" PRId64, run);
    if (!same)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: task %" PRId64 " of run %" PRId64
                         " was recorded with other data than %s now has (%" PRId64 " classes, %" PRId64
                         " training and %" PRId64 " test images, %" PRId64 " missing, %" PRId64
                         " unreadable; which test images they are counts, too): put the data back, or start anew in "
                         "another database",
                         store_path(store), row->task, run, row->name, row->classes, row->training_images,
                         row->test_images, row->missing_images, row->unreadable_images);
    return OK;
}

status store_change_task(struct store *store, int64_t run, const struct task_row *row, struct error *error)
{
    return store_run_once(store,
                          "UPDATE tasks SET training_images = ?3, missing_images = ?4, unreadable_images = ?5 "
                          "WHERE run = ?1 AND task = ?2",
                          VALUES(value_integer(run), value_integer(row->task), value_integer(row->training_images),
                                 value_integer(row->missing_images), value_integer(row->unreadable_images)),
                          error);
}

status store_add_task_similarity(struct store *store, int64_t run, int64_t task, int64_t other, double cosine,
                                 struct error *error)
{
    return insert(store, INSERT_TASK_SIMILARITY,
                  VALUES(value_integer(run), value_integer(task), value_integer(other), value_real(cosine)), error);
}

static status insert_per_image(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    const struct per_image *kept = row->per_image;
    if ((int64_t)kept->images != row->images || (int64_t)per_image_correct(kept) != row->correct)
        return error_set(error, ERROR_ARGUMENT,
                         "run %" PRId64 ": the per-image results hold %zu right of %zu images, the evaluation %" PRId64
                         " of %" PRId64,
                         run, per_image_correct(kept), kept->images, row->correct, row->images);
    struct bytes packed;
    TRY(per_image_pack(kept, &packed, error));
    status result = insert(store, INSERT_PER_IMAGE,
                           VALUES(value_integer(run), value_integer(row->after_task), value_integer(row->task),
                                  value_text(per_image_name(kept->kind)), value_blob(packed.data, packed.size)),
                           error);
    bytes_free(&packed);
    return result;
}

status store_add_evaluation(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    bool began;
    TRY(begin_rows(store, &began, error));
    status result = insert(store, INSERT_EVALUATION,
                           VALUES(value_integer(run), value_integer(row->after_task), value_integer(row->task),
                                  value_integer(row->correct), value_integer(row->images)),
                           error);
    if (result == OK && row->per_image && row->per_image->kind != PER_IMAGE_NONE)
        result = insert_per_image(store, run, row, error);
    return database_end(store->database, began, result, error);
}

status store_add_expert_counts(struct store *store, int64_t run, const struct expert_counts_row *row,
                               struct error *error)
{
    bool began;
    TRY(begin_rows(store, &began, error));
    status result = OK;
    for (size_t expert = 0; expert < row->experts && result == OK; expert++)
        result = insert(store, INSERT_EXPERT_COUNT,
                        VALUES(value_integer(run), value_integer(row->task), value_text(row->encoder),
                               value_integer(row->block), value_integer((int64_t)expert),
                               value_integer((int64_t)row->counts[expert])),
                        error);
    return database_end(store->database, began, result, error);
}

/* Adds nothing where t1 and t2 suffice. */
static void add_mixture(struct text *mixture, const struct expert_event_row *row)
{
    double equal = 1.0 / (double)row->sources;
    bool plain = row->sources <= 2;
    for (size_t i = 0; i < row->sources && row->weight; i++)
        plain &= row->weight[i] == equal;
    if (plain)
        return;
    for (size_t i = 0; i < row->sources; i++)
        text_add(mixture, "%s[%" PRId64 ",%.17g]", i ? "," : "[", row->source[i], row->weight ? row->weight[i] : equal);
    text_add(mixture, "]");
}

static struct value source_value(const struct expert_event_row *row, size_t index)
{
    return index < row->sources ? value_integer(row->source[index]) : value_null();
}

status store_add_expert_event(struct store *store, int64_t run, const struct expert_event_row *row, struct error *error)
{
    static const char *const names[] = {"merge", "skip", "freeze"};
    if (row->sources > SOURCES_LIMIT)
        return error_set(error, ERROR_ARGUMENT, "run %" PRId64 ": a merge of %zu experts, expected at most %d", run,
                         row->sources, SOURCES_LIMIT);
    struct text mixture = {0};
    add_mixture(&mixture, row);
    status result = mixture.failed
                        ? error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", run)
                        : insert(store, INSERT_EXPERT_EVENT,
                                 VALUES(value_integer(run), value_integer(row->task), value_integer(row->iteration),
                                        value_text(row->encoder), value_integer(row->block),
                                        value_text(names[row->event]), value_integer(row->target), source_value(row, 0),
                                        source_value(row, 1), value_text(mixture.data), value_text(row->reason)),
                                 error);
    text_free(&mixture);
    return result;
}

status store_add_merge_effect(struct store *store, int64_t run, const struct merge_effect_row *row, struct error *error)
{
    return insert(store, INSERT_MERGE_EFFECT,
                  VALUES(value_integer(run), value_integer(row->task), value_integer(row->iteration),
                         value_text(row->encoder), value_integer(row->block), value_integer(row->position),
                         value_integer(row->known), value_integer(row->iterations), value_integer(row->chosen),
                         value_integer(row->choices), value_real(row->loss_before), value_real(row->loss_after),
                         value_real(row->distance)),
                  error);
}

status store_add_router_choices(struct store *store, int64_t run, const struct router_choices_row *row,
                                struct error *error)
{
    bool began;
    TRY(begin_rows(store, &began, error));
    status result = OK;
    for (size_t i = 0; i <= row->routers && result == OK; i++)
        if (row->counts[i] > 0)
            result = insert(store, INSERT_ROUTER_CHOICE,
                            VALUES(value_integer(run), value_integer(row->after_task), value_integer(row->task),
                                   value_integer((int64_t)i - 1), value_integer((int64_t)row->counts[i])),
                            error);
    return database_end(store->database, began, result, error);
}

status store_add_class_experts(struct store *store, int64_t run, const struct class_experts_row *row,
                               struct error *error)
{
    bool began;
    TRY(begin_rows(store, &began, error));
    status result = OK;
    for (size_t i = 0; i < row->classes * row->experts && result == OK; i++)
        if (row->counts[i] > 0)
            result =
                insert(store, INSERT_CLASS_EXPERT,
                       VALUES(value_integer(run), value_integer(row->task), value_integer(row->after_task),
                              value_integer(row->block), value_integer((int64_t)(i / row->experts)),
                              value_integer((int64_t)(i % row->experts)), value_integer((int64_t)row->counts[i]),
                              value_real(row->gates != NULL ? row->gates[i] / (double)row->counts[i] : (double)NAN)),
                       error);
    return database_end(store->database, began, result, error);
}

status store_add_patch_experts(struct store *store, int64_t run, const struct patch_experts_row *row,
                               struct error *error)
{
    struct text experts = {0};
    for (size_t i = 0; i < row->patches; i++)
        text_add(&experts, "%s%" PRId32, i > 0 ? "," : "[", row->experts[i]);
    text_add(&experts, "]");
    status result = experts.failed
                        ? error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", run)
                        : insert(store, INSERT_PATCH_EXPERTS,
                                 VALUES(value_integer(run), value_integer(row->task), value_integer(row->after_task),
                                        value_integer(row->image), value_integer(row->block), value_text(row->file),
                                        value_integer((int64_t)row->width), value_text(experts.data)),
                                 error);
    text_free(&experts);
    return result;
}

status store_add_selector_threshold(struct store *store, int64_t run, int64_t task, double threshold,
                                    struct error *error)
{
    return insert(store, INSERT_THRESHOLD, VALUES(value_integer(run), value_integer(task), value_real(threshold)),
                  error);
}

status store_add_step(struct store *store, int64_t run, const struct step_row *row, struct error *error)
{
    return insert(store, INSERT_STEP,
                  VALUES(value_integer(run), value_integer(row->task), value_integer(row->iteration),
                         value_real(row->loss), value_real(row->learning_rate), value_real(row->balance_loss)),
                  error);
}

status store_add_skipped_steps(struct store *store, int64_t run, int64_t task, int64_t steps, struct error *error)
{
    return insert(store, INSERT_SKIPPED_STEPS, VALUES(value_integer(run), value_integer(task), value_integer(steps)),
                  error);
}

status store_add_timing(struct store *store, int64_t run, const struct timing_row *row, struct error *error)
{
    return insert(store, INSERT_TIMING,
                  VALUES(value_integer(run), value_integer(row->task), value_integer(row->iteration),
                         value_text(row->phase), value_real(row->seconds), value_integer(row->iterations),
                         value_integer(row->images), value_integer(row->peak_bytes)),
                  error);
}

status store_add_artifact(struct store *store, int64_t run, const struct artifact_row *row, struct error *error)
{
    return insert(store, INSERT_ARTIFACT,
                  VALUES(value_integer(run), value_integer(row->task), value_text(row->kind), value_text(row->path),
                         value_integer(row->bytes), value_text(row->digest)),
                  error);
}

/* Opens sql with ?1 set to run. */
static status open_for_run(struct statement **statement, struct store *store, const char *sql, int64_t run,
                           struct error *error)
{
    TRY(statement_open(statement, store->database, sql, error));
    status result = statement_bind(*statement, VALUES(value_integer(run)), error);
    if (result != OK)
        statement_close(*statement);
    return result;
}

status store_check_tasks(const struct store *store, int64_t run, int64_t tasks, struct error *error)
{
    if (tasks >= 1 && tasks <= TASKS_LIMIT)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ": expected 1 to %d tasks, found %" PRId64,
                     store_path(store), run, TASKS_LIMIT, tasks);
}

static status read_tasks(struct store *store, int64_t run, size_t *tasks, struct error *error)
{
    struct statement *statement;
    TRY(open_for_run(&statement, store, "SELECT tasks FROM runs WHERE run = ?1", run, error));
    bool row;
    status result = statement_step(statement, &row, error);
    int64_t found = result == OK && row ? statement_integer(statement, 0) : 0;
    statement_close(statement);
    if (result != OK)
        return result;
    if (!row)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are", store_path(store),
                         run);
    *tasks = (size_t)found;
    return store_check_tasks(store, run, found, error);
}

static status read_names(struct store *store, int64_t run, char **names, size_t tasks, struct error *error)
{
    struct statement *statement;
    TRY(open_for_run(&statement, store, "SELECT task, name FROM tasks WHERE run = ?1", run, error));
    bool row;
    status result;
    while ((result = statement_step(statement, &row, error)) == OK && row) {
        int64_t task = statement_integer(statement, 0);
        if (task < 0 || (size_t)task >= tasks || names[task])
            continue;
        names[task] = strdup(statement_text(statement, 1));
    }
    statement_close(statement);
    for (size_t task = 0; task < tasks && result == OK; task++)
        if (!names[task] && !(names[task] = path_format("task %zu", task)))
            result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    return result;
}

static status read_accuracies(struct store *store, int64_t run, double *accuracy, double *zero_shot, size_t tasks,
                              struct error *error)
{
    struct statement *statement;
    TRY(open_for_run(&statement, store, "SELECT after_task, task, correct, images FROM evaluations WHERE run = ?1", run,
                     error));
    bool row;
    status result;
    while ((result = statement_step(statement, &row, error)) == OK && row) {
        int64_t after_task = statement_integer(statement, 0), task = statement_integer(statement, 1);
        if (task < 0 || (size_t)task >= tasks || after_task < -1 || after_task >= (int64_t)tasks)
            continue;
        double percent = 100.0 * (double)statement_integer(statement, 2) / (double)statement_integer(statement, 3);
        *(after_task < 0 ? &zero_shot[task] : &accuracy[(size_t)after_task * tasks + (size_t)task]) = percent;
    }
    statement_close(statement);
    return result;
}

/* *accumulates: the run is class-incremental. */
static status read_images(struct store *store, int64_t run, int64_t *images, size_t tasks, bool *accumulates,
                          struct error *error)
{
    struct statement *statement;
    TRY(open_for_run(&statement, store,
                     "SELECT task, test_images, setting = 'class_incremental' FROM tasks JOIN runs USING (run) "
                     "WHERE run = ?1",
                     run, error));
    bool row;
    status result;
    *accumulates = false;
    while ((result = statement_step(statement, &row, error)) == OK && row) {
        int64_t task = statement_integer(statement, 0);
        if (task >= 0 && (size_t)task < tasks)
            images[task] = statement_integer(statement, 1);
        *accumulates = statement_integer(statement, 2) != 0;
    }
    statement_close(statement);
    return result;
}

status store_read_matrix(struct store *store, int64_t run, struct run_matrix *matrix, struct error *error)
{
    *matrix = (struct run_matrix){0};
    size_t tasks;
    TRY(read_tasks(store, run, &tasks, error));
    size_t cells = tasks * (tasks + 1); /* at most TASKS_LIMIT² */
    double *accuracy = malloc(array_size(cells, sizeof *accuracy));
    char **names = calloc(tasks, sizeof *names);
    int64_t *images = calloc(tasks, sizeof *images);
    bool accumulates = false;
    *matrix = (struct run_matrix){.matrix = {.tasks = tasks, .accuracy = accuracy, .zero_shot = NULL, .images = images},
                                  .names = names};
    if (!accuracy || !names || !images) {
        run_matrix_free(matrix);
        return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    }
    for (size_t i = 0; i < cells; i++)
        accuracy[i] = NAN;
    matrix->matrix.zero_shot = accuracy + tasks * tasks;
    status result = read_names(store, run, names, tasks, error);
    if (result == OK)
        result = read_accuracies(store, run, accuracy, accuracy + tasks * tasks, tasks, error);
    if (result == OK)
        result = read_images(store, run, images, tasks, &accumulates, error);
    if (result != OK)
        run_matrix_free(matrix);
    else if (!accumulates) {
        free(images);
        matrix->matrix.images = NULL;
    }
    return result;
}

void run_matrix_free(struct run_matrix *matrix)
{
    for (size_t task = 0; matrix->names && task < matrix->matrix.tasks; task++)
        free(matrix->names[task]);
    free(matrix->names);
    free((double *)matrix->matrix.accuracy);
    free((int64_t *)matrix->matrix.images);
    *matrix = (struct run_matrix){0};
}

status store_read_record(struct store *store, int64_t run, struct run_record *record, struct error *error)
{
    *record = (struct run_record){0};
    struct statement *statement;
    TRY(open_for_run(&statement, store,
                     "SELECT suite_text, message, (SELECT total(seconds) FROM timings WHERE timings.run = runs.run), "
                     "(SELECT coalesce(max(peak_bytes), 0) FROM timings WHERE timings.run = runs.run), "
                     "(SELECT value FROM settings WHERE settings.run = runs.run AND key = 'run.threads') "
                     "FROM runs WHERE run = ?1",
                     run, error));
    bool row = false, has_message = false;
    status result = statement_step(statement, &row, error);
    if (result == OK && row) {
        has_message = statement_value(statement, 1).kind == VALUE_TEXT;
        *record = (struct run_record){.suite_text = strdup(statement_text(statement, 0)),
                                      .message = has_message ? strdup(statement_text(statement, 1)) : NULL,
                                      .seconds = statement_value(statement, 2).real,
                                      .peak_bytes = statement_integer(statement, 3),
                                      .threads = statement_integer(statement, 4)};
    }
    statement_close(statement);
    if (result == OK && !row)
        result = error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64, store_path(store), run);
    if (result == OK && (!record->suite_text || (has_message && !record->message))) {
        run_record_free(record);
        result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    }
    return result;
}

void run_record_free(struct run_record *record)
{
    free(record->suite_text);
    free(record->message);
    *record = (struct run_record){0};
}

static status unpack_row(struct store *store, struct statement *statement, struct per_image *per_image,
                         struct error *error)
{
    struct value images = statement_value(statement, 0), data = statement_value(statement, 2);
    bool predictions = strcmp(statement_text(statement, 1), "predictions") == 0;
    bool blob = data.kind == VALUE_BLOB && images.kind == VALUE_INTEGER && images.integer > 0;
    status result = per_image_unpack(per_image, predictions ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS,
                                     blob ? (size_t)images.integer : 0, blob ? data.bytes.data : NULL,
                                     blob ? data.bytes.size : 0, error);
    return result == OK ? OK : error_context(error, "%s", store_path(store));
}

status store_read_per_image(struct store *store, int64_t run, int64_t after_task, int64_t task,
                            struct per_image *per_image, struct error *error)
{
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    struct statement *statement;
    TRY(statement_open(&statement, store->database,
                       "SELECT images, kind, data FROM evaluations JOIN per_image USING (run, task, after_task) "
                       "WHERE run = ?1 AND after_task = ?2 AND task = ?3",
                       error));
    bool row = false;
    status result =
        statement_bind(statement, VALUES(value_integer(run), value_integer(after_task), value_integer(task)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK && row)
        result = unpack_row(store, statement, per_image, error);
    statement_close(statement);
    return result;
}
