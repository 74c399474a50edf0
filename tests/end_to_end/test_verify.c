/* mtil verify: sound databases have no faults, and each edit that another row contradicts is named with its run. */
#include "tests/end_to_end/rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"

#define RUN "run tiny.yaml --quiet run.precision=f32 run.log_every=3 "

static struct workshop workshop;

static void execute(const char *name, const char *sql)
{
    sqlite3 *database;
    char *said = NULL, *path = workshop_path(&workshop, name);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    if (sqlite3_exec(database, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s: %s", sql, said);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(path);
}

/* Two seeds, of which the second has a trial; a third run in which tokens decide, and one of all tasks at once. */
static int create(void **state)
{
    (void)state;
    workshop_open(&workshop);
    program_succeeds(&workshop, RUN "seed=1");
    program_succeeds(&workshop, RUN "seed=2");
    program_succeeds(&workshop, RUN "seed=1 adapter.routing=per_token evaluation.patch_images=2");
    program_succeeds(&workshop, RUN "seed=1 method.name=joint evaluation.per_image=bits");
    program_succeeds(&workshop, "eval results.db 2 --quiet --selector gaussian");
    execute("results.db", "PRAGMA journal_mode = DELETE");
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    workshop_close(&workshop);
    return 0;
}

static void copy(const char *name)
{
    struct error error;
    struct bytes bytes;
    char *from = workshop_path(&workshop, "results.db"), *to = workshop_path(&workshop, name);
    if (file_read(from, FILE_LIMIT, &bytes, &error) != OK || file_write(to, bytes.data, bytes.size, &error) != OK)
        fail_msg("%s", error.message);
    bytes_free(&bytes);
    free(from);
    free(to);
}

static const struct edit {
    const char *sql, *what, *where;
} edits[] = {
    /* what a run is */
    {"UPDATE runs SET method = 'finetune' WHERE run = 2", "runs", "method"},
    {"INSERT INTO skipped_steps VALUES (2, 0, 3)", "skipped steps", "task 0"},
    {"UPDATE runs SET policy = 'random' WHERE run = 2", "runs", "policy"},
    {"UPDATE runs SET setting = 'x_tail' WHERE run = 2", "runs", "setting"},
    {"UPDATE runs SET selector = 'text' WHERE run = 2", "runs", "selector"},
    {"UPDATE runs SET selection = 'per_batch' WHERE run = 2", "runs", "selection"},
    {"UPDATE runs SET task_order = 'I' WHERE run = 2", "runs", "order"},
    {"UPDATE runs SET model = 'ViT-B-16' WHERE run = 2", "runs", "model"},
    {"UPDATE runs SET \"precision\" = 'bf16' WHERE run = 2", "runs", "precision"},
    {"UPDATE runs SET backend = 'cuda' WHERE run = 2", "runs", "backend"},
    {"UPDATE runs SET seed = 7 WHERE run = 2", "runs", "seed"},
    {"UPDATE runs SET tasks = 4 WHERE run = 2", "runs", "tasks"},
    {"UPDATE runs SET program_version = '9.9' WHERE run = 2", "runs", "program_version"},
    {"UPDATE runs SET settings_hash = suite_hash WHERE run = 2", "identity", "settings_hash"},
    {"UPDATE runs SET suite_hash = settings_hash WHERE run = 2", "identity", "suite_hash"},
    {"UPDATE runs SET suite_text = replace(suite_text, 'batch: 8', 'batch: 9') WHERE run = 2", "settings",
     "training.batch"},
    {"UPDATE runs SET suite_text = replace(suite_text, 'batch: 8', 'batch: 9') WHERE run = 2; UPDATE "
     "settings SET value = 9 WHERE run = 2 AND key = 'training.batch'",
     "identity", "settings_hash"},
    {"UPDATE settings SET value = 0.3 WHERE run = 2 AND key = 'training.label_smoothing'", "settings",
     "training.label_smoothing"},
    {"UPDATE settings SET value = 3 WHERE run = 2 AND key = 'run.checkpoint_every' OR run = 2 AND key = "
     "'run.threads'",
     "settings", "run.threads"},
    {"DELETE FROM settings WHERE run = 2 AND key = 'merge.moments'", "settings", "merge.moments"},
    {"INSERT INTO settings VALUES (2, 'merge.colour', 'red', 'text')", "settings", "merge.colour"},
    {"DELETE FROM settings WHERE run = 2", "settings", "rows"},
    {"UPDATE inputs SET digest = replace(digest, 'a', 'b') WHERE run = 2 AND kind = 'weights'", "identity",
     "suite_hash"},
    {"DELETE FROM inputs WHERE run = 2 AND task = 1 AND kind = 'test'", "identity", "suite_hash"},
    {"UPDATE steps SET loss = (SELECT loss FROM steps AS other WHERE other.run = 1 AND other.task = "
     "steps.task AND other.iteration = steps.iteration) WHERE run = 2",
     "seeds", "steps"},
    /* its times */
    {"UPDATE runs SET finished = NULL WHERE run = 2", "runs", "status finished"},
    {"UPDATE runs SET status = 'running' WHERE run = 2", "runs", "status running"},
    {"UPDATE runs SET finished = '2001-01-01T00:00:00Z' WHERE run = 2", "times", "end"},
    {"UPDATE runs SET started = 'yesterday' WHERE run = 2", "times", "end"},
    {"UPDATE sessions SET started = '2001-01-01T00:00:00Z' WHERE run = 2", "times", "session 2"},
    {"UPDATE timings SET seconds = -1 WHERE run = 2 AND task = 1 AND phase = 'train'", "times", "train, task 1"},
    {"UPDATE timings SET task = 9 WHERE run = 2 AND task = 1 AND phase = 'evaluate'", "times", "evaluate, task 9"},
    {"UPDATE timings SET iterations = 99 WHERE run = 2 AND task = 1 AND phase = 'train'", "times", "train, task 1"},
    /* its tasks */
    {"DELETE FROM tasks WHERE run = 2 AND task = 2", "tasks", "rows"},
    {"DELETE FROM tasks WHERE run = 2 AND task = 0", "foreign keys", "steps"},
    {"UPDATE tasks SET name = 'flowers' WHERE run = 2 AND task = 1", "tasks", "names"},
    {"UPDATE tasks SET task = 3 WHERE run = 2 AND task = 2", "tasks", "task 3"},
    {"UPDATE tasks SET test_images = test_images + 1 WHERE run = 2 AND task = 1", "evaluations",
     "task 1, after task -1"},
    {"UPDATE tasks SET test_images = 7 WHERE run = 2 AND task = 1; UPDATE evaluations SET images = 7, "
     "correct = 0 WHERE run = 2 AND task = 1",
     "inputs", "task 1, test"},
    {"UPDATE tasks SET classes = 99 WHERE run = 2 AND task = 1", "classes", "task 1"},
    {"UPDATE tasks SET test_digest = 'x' WHERE run = 2 AND task = 1", "inputs", "task 1, test"},
    {"DELETE FROM task_classes WHERE run = 2 AND task = 1 AND class = 0", "classes", "task 1"},
    {"DELETE FROM task_classes WHERE run = 2 AND task = 1", "classes", "task 1"},
    {"DELETE FROM task_classes WHERE run = 2", "classes", "task 0"},
    {"DELETE FROM task_classes WHERE run = 4", "classes", "task 0"},
    {"DELETE FROM runs WHERE run = 2", "foreign keys", "tasks"},
    /* the matrix */
    {"DELETE FROM per_image WHERE run = 2; DELETE FROM evaluations WHERE run = 2 AND task = 2 AND "
     "after_task = 1",
     "matrix", "task 2, after task 1"},
    {"INSERT INTO evaluations VALUES (2, 0, 9, 1, 200)", "evaluations", "task 0, after task 9"},
    {"UPDATE evaluations SET images = images + 1 WHERE run = 2 AND task = 1 AND after_task = 2", "evaluations",
     "task 1, after task 2"},
    {"UPDATE evaluations SET correct = correct - 1 WHERE run = 2 AND task = 1 AND after_task = 2", "images",
     "task 1, after task 2"},
    {"UPDATE per_image SET data = zeroblob(length(data)) WHERE run = 2 AND task = 1 AND after_task = 0", "images",
     "task 1, after task 0"},
    {"UPDATE per_image SET data = x'0102' WHERE run = 2 AND task = 1 AND after_task = 0", "images",
     "task 1, after task 0"},
    {"DELETE FROM per_image WHERE run = 2 AND task = 1 AND after_task = 0", "images", "task 1, after task 0"},
    {"UPDATE per_image SET kind = 'bits' WHERE run = 2 AND task = 1 AND after_task = 0", "images",
     "task 1, after task 0"},
    {"DELETE FROM test_labels WHERE run = 2 AND task = 1", "labels", "task 1"},
    {"UPDATE test_labels SET labels = CAST(x'0900' || substr(labels, 3) AS BLOB) WHERE run = 2 AND task = "
     "1",
     "labels that contradict predictions", "task 1, after task 2"},
    {"UPDATE test_labels SET labels = x'0102' WHERE run = 2 AND task = 1", "labels", "task 1, after task 2"},
    /* PREDICTIONS: of the first image, behind the bits */
    {"UPDATE per_image SET data = CAST(substr(data, 1, (SELECT (images + 7) / 8 FROM evaluations WHERE "
     "run = 2 AND task = 1 AND after_task = 2)) || x'ff7f' || substr(data, 3 + (SELECT (images + 7) / 8 "
     "FROM evaluations WHERE run = 2 AND task = 1 AND after_task = 2)) AS BLOB) WHERE run = 2 AND task = "
     "1 AND after_task = 2",
     "classes that no task has", "task 1, after task 2"},
    {"UPDATE per_image SET data = (SELECT other.data FROM per_image AS other WHERE run = 2 AND task = 1 "
     "AND after_task = 0) WHERE run = 2 AND task = 1 AND after_task = 2",
     "routers", "task 1, after task 2"},
    {"UPDATE per_image SET data = CAST(substr(data, 1, length(data) - 2) || x'0200' AS BLOB) WHERE run = "
     "2 AND task = 1 AND after_task = 1",
     "images with a router that was not trained", "task 1, after task 1"},
    {"UPDATE per_image SET data = CAST(substr(data, 1, length(data) - 2 * images) || "
     "replace(hex(zeroblob(images)), '0', x'ff') AS BLOB) FROM evaluations AS of WHERE of.run = 2 AND "
     "of.task = 1 AND of.after_task = 2 AND per_image.run = 2 AND per_image.task = 1 AND "
     "per_image.after_task = 2",
     "images without a router that differ from zero-shot CLIP", "task 1, after task 2"},
    /* routers */
    {"UPDATE router_choices SET count = count + 1 WHERE run = 2 AND task = 1 AND after_task = 2", "routers",
     "task 1, after task 2"},
    {"UPDATE router_choices SET router = 77 WHERE run = 2 AND task = 1 AND after_task = 0 AND router = -1", "routers",
     "task 1, after task 0"},
    {"UPDATE router_choices SET router = 2 WHERE run = 2 AND task = 1 AND after_task = 0 AND router = -1", "routers",
     "task 1, after task 0"},
    {"DELETE FROM router_choices WHERE run = 2 AND task = 1 AND after_task = 1", "routers", "task 1, after task 1"},
    {"INSERT INTO router_choices VALUES (4, 2, 1, 0, 1)", "routers", "rows"},
    {"DELETE FROM selector_thresholds WHERE run = 2 AND task = 1", "thresholds", "rows"},
    {"UPDATE selector_thresholds SET threshold = -1 WHERE run = 2 AND task = 1", "thresholds", "task 1"},
    {"INSERT INTO selector_thresholds VALUES (4, 1, 0.5)", "thresholds", "rows"},
    /* experts */
    {"DELETE FROM expert_counts WHERE run = 2 AND task = 1 AND expert = 0", "experts", "task 1, image block 1"},
    {"DELETE FROM expert_counts WHERE run = 2 AND task = 1", "experts", "rows"},
    {"DELETE FROM expert_counts WHERE run = 2", "experts", "rows"},
    {"UPDATE expert_counts SET count = count + 200 WHERE run = 2 AND task = 1 AND block = 1 AND expert = 1", "experts",
     "task 1, image block 1"},
    {"UPDATE expert_counts SET count = 0 WHERE run = 2 AND task = 1 AND block = 1", "experts", "task 1, image block 1"},
    {"UPDATE class_experts SET class = 99 WHERE run = 2 AND task = 1 AND block = 1 AND (class, expert) = "
     "(SELECT class, expert FROM class_experts WHERE run = 2 AND task = 1 AND block = 1)",
     "class experts", "task 1, after task 2, block 1"},
    {"UPDATE class_experts SET count = count + 1 WHERE run = 2 AND task = 1 AND block = 1", "class experts",
     "task 1, after task 2, block 1"},
    {"UPDATE class_experts SET gate = 1.5 WHERE run = 2 AND task = 1 AND block = 1", "class experts",
     "task 1, after task 2, block 1"},
    {"UPDATE class_experts SET expert = 9 WHERE run = 2 AND task = 1 AND block = 1 AND (class, expert) = "
     "(SELECT class, expert FROM class_experts WHERE run = 2 AND task = 1 AND block = 1)",
     "class experts", "task 1, after task 2, block 1"},
    /* events */
    {"UPDATE expert_events SET target = 6 WHERE run = 2 AND task = 1 AND event = 'merge'", "events", "task 1, image"},
    {"UPDATE expert_events SET t1 = -2 WHERE run = 2 AND task = 1 AND event = 'merge'", "events", "task 1, image"},
    {"UPDATE expert_events SET mixture = '[[0, 0.5], [9, 0.5]]' WHERE run = 2 AND task = 1 AND event = "
     "'merge'",
     "events", "task 1, image"},
    {"UPDATE expert_events SET mixture = '[[' WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image"},
    {"UPDATE expert_events SET event = 'skip' WHERE run = 2 AND task = 1 AND event = 'merge'", "events",
     "task 1, image"},
    {"UPDATE expert_events SET position = 4 WHERE run = 2 AND task = 1 AND event = 'merge'", "events", "task 1, image"},
    {"UPDATE expert_events SET iteration = 3 WHERE run = 2 AND task = 1 AND iteration = 2", "events", "task 1, image"},
    {"UPDATE expert_events SET iteration = 99 WHERE run = 2 AND task = 1 AND iteration = 2", "events", "task 1, image"},
    {"DELETE FROM expert_events WHERE run = 2 AND task = 1 AND iteration = 4", "events", "task 1, image"},
    {"DELETE FROM expert_events WHERE run = 2 AND event = 'merge'", "events", "task 2, image"},
    {"DELETE FROM expert_events WHERE run = 2 AND task = 1 AND event = 'freeze'", "events", "task 1, image"},
    {"UPDATE expert_events SET iteration = 7 WHERE run = 2 AND task = 1 AND event = 'freeze'", "events",
     "task 1, image"},
    {"UPDATE expert_events SET target = (SELECT target FROM expert_events AS first WHERE first.run = 2 "
     "AND first.task = 0 AND event = 'freeze' AND encoder = 'image' AND block = 1) WHERE run = 2 AND task "
     "= 2 AND event = 'merge' AND encoder = 'image' AND block = 1",
     "frozen", "task 2, image block 1"},
    {"UPDATE merge_effects SET iteration = 3 WHERE run = 2 AND task = 1 AND iteration = 2", "effects",
     "task 1, image block 1, iteration 3"},
    {"DELETE FROM merge_effects WHERE run = 2 AND task = 1 AND iteration = 2", "effects", "task 1, image"},
    {"UPDATE merge_effects SET distance = 1.5 WHERE run = 2 AND task = 1 AND iteration = 2", "effects",
     "task 1, image"},
    {"UPDATE merge_effects SET choices = choices + 200 WHERE run = 2 AND task = 1 AND iteration = 2", "effects",
     "task 1, image"},
    {"UPDATE merge_effects SET iterations = 40 WHERE run = 2 AND task = 1 AND iteration = 2", "effects",
     "task 1, image"},
    /* steps */
    {"UPDATE steps SET learning_rate = 2 * learning_rate WHERE run = 2 AND task = 1 AND iteration = 3", "steps",
     "task 1, iteration 3"},
    {"UPDATE steps SET learning_rate = -1 WHERE run = 2 AND task = 1 AND iteration = 3", "steps",
     "task 1, iteration 3"},
    {"DELETE FROM steps WHERE run = 2 AND task = 1 AND iteration = 8", "steps", "task 1, last step"},
    {"DELETE FROM steps WHERE run = 2 AND task = 1 AND iteration = 3", "steps", "task 1, rows"},
    {"DELETE FROM steps WHERE run = 2", "steps", "task 1, last step"},
    {"DELETE FROM steps WHERE run = 4", "steps", "task 2, last step"},
    {"UPDATE settings SET value = 7 WHERE run = 2 AND key = 'training.iterations'", "steps", "task 0, last step"},
    /* trials */
    {"UPDATE trials SET images = images + 1 WHERE run = 2 AND task = 1", "trials", "trial 1, task 1"},
    {"UPDATE trials SET routers = json_set(routers, '$.1', json_extract(routers, '$.1') + 1) WHERE run = 2 AND task = "
     "1",
     "trials", "trial 1, task 1"},
    {"UPDATE trials SET routers = replace(routers, '\"1\"', '\"8\"') WHERE run = 2 AND task = 1", "trials",
     "trial 1, task 1"},
    {"DELETE FROM trials WHERE run = 2 AND task = 1", "trials", "trial 1, after task 2"},
    {"UPDATE trials SET routers = '{}' WHERE run = 2 AND task = 1", "trials", "trial 1, task 1"},
    {"UPDATE trials SET selector = 'text' WHERE run = 2", "trials", "trial 1"},
    {"UPDATE trials SET selection = 'per_batch' WHERE run = 2", "trials", "trial 1"},
    {"UPDATE trials SET selection = 'per_batch' WHERE run = 2 AND task = 1", "trials", "trial 1, after task 2"},
    /* files */
    {"DELETE FROM artifacts WHERE run = 2", "files", "rows"},
    {"UPDATE artifacts SET digest = NULL WHERE run = 2", "files", "adapters, task -1"},
    {"UPDATE artifacts SET path = '' WHERE run = 2", "files", "adapters, task -1"},
    {"UPDATE artifacts SET digest = (SELECT digest FROM artifacts WHERE run = 1) WHERE run = 2", "files",
     "seed2/adapters.safetensors"},
    {"UPDATE artifacts SET path = (SELECT path FROM artifacts WHERE run = 1) WHERE run = 2", "files",
     "adapters, task -1"},
    {"DROP TABLE merge_effects", "schema", "merge_effects"},
    {"UPDATE artifacts SET bytes = bytes + 1 WHERE run = 2", "files", "seed2/adapters.safetensors"},
    /* the file itself */
    {"DROP VIEW metrics; CREATE VIEW metrics AS SELECT run, avg(transfer) AS transfer, avg(average) AS "
     "average, avg(last) + 1 AS last, avg(forgetting) AS forgetting, avg(backward_transfer) AS "
     "backward_transfer, avg(forward_transfer) AS forward_transfer, avg(gain) AS gain, avg(zero_shot) AS "
     "zero_shot FROM task_metrics GROUP BY run",
     "schema", "metrics"},
    {"DROP VIEW leaderboard; CREATE VIEW leaderboard AS SELECT suite_hash, avg(transfer) AS transfer, 1 "
     "AS transfer_variance, avg(average) AS average, 1 AS average_variance, avg(last) AS last, 1 AS "
     "last_variance, avg(forgetting) AS forgetting, avg(backward_transfer) AS backward_transfer, "
     "avg(gain) AS gain FROM runs JOIN metrics USING (run) GROUP BY suite_hash",
     "schema", "leaderboard"},
    {"DROP VIEW selector; CREATE VIEW selector AS SELECT run, task, after_task, 7.0 AS share FROM "
     "router_choices",
     "schema", "selector"},
    {"DROP VIEW frozen_counts", "schema", "frozen_counts"},
    {"CREATE TRIGGER quiet AFTER INSERT ON steps BEGIN DELETE FROM steps; END", "schema", "quiet"},
    {"CREATE TABLE notes (note TEXT)", "schema", "notes"},
    {"CREATE INDEX mine ON steps (loss)", "schema", "mine"},
    {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'count >= 0', 'count >= "
     "1') WHERE name = 'expert_counts'",
     "schema", "expert_counts"},
    {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '''text''', '''te xt''') "
     "WHERE name = 'expert_events'",
     "schema", "expert_events"},
    /* patches */
    {"UPDATE patch_experts SET image = 2000 WHERE run = 3 AND task = 1 AND block = 1 AND image = (SELECT "
     "max(image) FROM patch_experts WHERE run = 3 AND task = 1)",
     "patch experts", "task 1, image 2000"},
    {"UPDATE patch_experts SET width = 3 WHERE run = 3 AND task = 1 AND block = 1", "patch experts", "task 1, image"},
    {"UPDATE patch_experts SET experts = '[5,0,' WHERE run = 3 AND task = 1", "patch experts", "task 1, image"},
    {"UPDATE patch_experts SET experts = '[]' WHERE run = 3 AND task = 1", "patch experts", "task 1, image"},
    {"UPDATE patch_experts SET experts = '[4,0,0,0]' WHERE run = 3 AND task = 1", "patch experts", "task 1, image"},
    {"UPDATE patch_experts SET experts = '[0,0,null,0]' WHERE run = 3 AND task = 1", "patch experts", "task 1, image"},
    {"UPDATE class_experts SET count = count + 1 WHERE run = 3 AND task = 1 AND block = 1 AND (class, "
     "expert) = (SELECT class, expert FROM class_experts WHERE run = 3 AND task = 1 AND block = 1)",
     "class experts", "task 1, after task 2, block 1"},
};

/* Some line says so; those of a run name the edited one. */
static bool names(char *lines, const struct edit *edit)
{
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        size_t run = strcspn(line, ","), what = strlen(edit->what);
        if (strncmp(line + run + 1, edit->what, what) == 0 && line[run + 1 + what] == ',' &&
            strstr(line + run, edit->where) != NULL && line[0] != '1')
            return true;
    }
    return false;
}

TEST(every_edit_is_named)
{
    size_t missed = 0;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        copy("copy.db");
        execute("copy.db", edits[i].sql);
        struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = "verify copy.db --format csv"});
        char *lines = strdup(outcome.out.data != NULL ? outcome.out.data : "");
        if (outcome.exit_status != 1 || !names(lines, &edits[i])) {
            missed++;
            print_error("%s: expected %s, %s, found:\n%.600s%s\n", edits[i].sql, edits[i].what, edits[i].where,
                        outcome.out.data, outcome.errors.data);
        }
        free(lines);
        outcome_free(&outcome);
    }
    assert_int_equal(missed, 0);
}

TEST(sound_databases_have_no_faults)
{
    program_succeeds(&workshop, "verify results.db");
    program_succeeds(&workshop, "verify results.db 2");
    copy("copy.db"); /* comments are those of another program */
    execute("copy.db",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '-- UTC, ', '-- of the "
            "clock, not ')");
    program_succeeds(&workshop, "verify copy.db");
    execute("copy.db", "UPDATE evaluations SET correct = correct - 1 WHERE run = 2");
    program_succeeds(&workshop, "verify copy.db 1");
    struct outcome outcome = program_ends(&workshop, "verify copy.db 9", 2);
    assert_non_null(strstr(outcome.errors.data, "no run 9"));
    outcome_free(&outcome);
}

TEST(files_are_compared_with_their_digests)
{
    struct error error;
    struct bytes bytes;
    char *file = workshop_find(&workshop, "runs/*/seed2/adapters.safetensors");
    assert_int_equal(file_read(file, FILE_LIMIT, &bytes, &error), OK);
    bytes.data[bytes.size - 1] ^= 1;
    assert_int_equal(file_write(file, bytes.data, bytes.size, &error), OK);
    struct outcome outcome = program_ends(&workshop, "verify results.db --format csv", 1);
    assert_int_equal(words_count(outcome.out.data, "\n2,files,"), 1);
    outcome_free(&outcome);
    assert_int_equal(truncate(file, 5), 0);
    outcome = program_ends(&workshop, "verify results.db --format csv", 1);
    assert_non_null(strstr(outcome.out.data, "5 bytes"));
    outcome_free(&outcome);
    unlink(file);
    program_succeeds(&workshop, "verify results.db");
    bytes_free(&bytes);
    free(file);
}

/* A page of a table is noise. */
TEST(a_damaged_file_is_a_fault)
{
    copy("copy.db");
    char *path = workshop_path(&workshop, "copy.db");
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096L * 30, SEEK_SET), 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, file);
    fclose(file);
    struct outcome outcome = program_ends(&workshop, "verify copy.db", 1);
    assert_non_null(outcome.out.data);
    outcome_free(&outcome);
    free(path);
}

TEST_GROUP(create, destroy)
