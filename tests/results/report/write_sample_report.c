/* Writes a database to report on, of made-up but fixed numbers and names that mean harm: two sequences of tasks, five
 * configurations, one of them unfinished. With a suite, adds the runs of that one: rows and colours have a single task.
 *
 *     write_sample_report results.db
 *     write_sample_report results.db rows
 */
#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "core/rng.h"
#include "tests/results/sample.h"

/* A name that would end an element, an attribute, or a string of JavaScript, if anything let it. */
#define HARM "<script>alert(1)</script>\"' onload=x `touch harm` %s %d \\'; system('touch harm') # \x01\xff&amp;"

enum { IMAGES = 200, CLASSES = 10 };

static const char *const mtil_names[] = {"aircraft", "caltech101", "cifar100",   "dtd",           "eurosat", "flowers",
                                         "food",     "mnist",      "oxford_pet", "stanford_cars", "sun397"};
static const char *const other_names[] = {HARM, "a task whose name is longer than anybody would like it to be",
                                          "third"};

struct kind {
    const char *suite, *policy, *settings; /* settings: YAML below merge */
    const char *const *names;
    int64_t tasks, seeds, bonus; /* bonus: images more that are right once a task was trained */
    bool finished;
    const char *row; /* of a suite of rows; NULL: it has none */
};

static const struct kind kinds[] = {
    {"mini", "most_used", "every: 20", mtil_names, 11, 5, 0, true, NULL},
    {"mini", "none", "every: 20", mtil_names, 11, 5, -6, true, NULL},
    {"mini", "most_used", "every: 50", mtil_names, 11, 1, -10, true, NULL},
    {HARM, HARM, "every: 20", other_names, 3, 2, 0, true, NULL},
    {"other", "none", "every: 5", other_names, 3, 1, 0, false, NULL},
    {0},
};

static const struct kind more_kinds[] = {
    {"single", "most_used", "every: 20", mtil_names, 1, 2, 0, true, NULL},
    {"single", "none", "every: 20", mtil_names, 1, 2, -6, true, NULL},
    {"rows", "most_used", "every: 20", mtil_names, 1, 1, 0, true, "Merging"},
    {"rows", "none", "every: 20", mtil_names, 1, 1, -6, true, "No merging"},
    {"colours", "coactivated", "every: 20", mtil_names, 1, 1, 0, true, NULL},
    {"colours", "coactivated", "every: 50", mtil_names, 1, 1, -3, true, NULL},
    {"colours", "random", "every: 30", mtil_names, 1, 1, -6, true, NULL},
    {0},
};

/* The accuracy in images after a task (−1: none) on a task, of the first configuration. */
static int64_t correct_of(int64_t seed, int64_t after_task, int64_t task)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)(after_task + 1));
    int64_t noise = rng_below(&rng, 0, 9), zero_shot = 50 + 11 * (task * 5 % 7);
    if (after_task < task)
        return zero_shot - (after_task + 1) + noise;
    return zero_shot + 60 - 2 * (after_task - task) + noise;
}

/* Image i is of class i mod 10; the first ones are right, the others taken for the next class. */
static status write_evaluation(struct store *store, int64_t run, int64_t after_task, int64_t task, int64_t correct,
                               struct error *error)
{
    uint8_t right[IMAGES];
    uint16_t predicted[IMAGES];
    int16_t router[IMAGES] = {0};
    for (size_t i = 0; i < IMAGES; i++) {
        right[i] = (int64_t)i < correct;
        predicted[i] = (uint16_t)((i + !right[i]) % CLASSES);
    }
    struct per_image kept = {
        .kind = PER_IMAGE_PREDICTIONS, .images = IMAGES, .right = right, .predicted = predicted, .router = router};
    return store_add_evaluation(
        store, run,
        &(struct evaluation_row){
            .after_task = after_task, .task = task, .correct = correct, .images = IMAGES, .per_image = &kept},
        error);
}

static status write_evaluations(struct store *store, int64_t run, const struct kind *kind, int64_t seed,
                                int64_t after_task, struct error *error)
{
    for (int64_t task = 0; task < kind->tasks; task++) {
        int64_t correct = correct_of(seed, after_task, task) + (after_task >= task ? kind->bonus : 0);
        TRY(write_evaluation(store, run, after_task, task, correct, error));
    }
    return OK;
}

/* Encoders and blocks after each trained task. */
#define PLACES " FROM evaluations JOIN encoders JOIN n AS block WHERE run = ?1 AND after_task = task AND block.i < 3 "

/* What follows from the tasks that a run was trained on. ?1: run, ?2: its seed, ?3: whether it merges, ?4: a harmful name. */
static const char *const derived[] = {
    "CREATE TEMP TABLE IF NOT EXISTS n AS SELECT value AS i FROM json_each('[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]')",
    "CREATE TEMP TABLE IF NOT EXISTS encoders AS SELECT value AS encoder FROM json_each('[\"image\", \"text\"]')",
    "INSERT INTO task_classes "
    "SELECT run, task, key, iif(key = 2, ?4, value) FROM tasks JOIN json_each('[\"apple\", \"bird\", \"\", \"dog\", "
    "\"elk\", \"fox\", \"goat\", \"hen\", \"ibis\", \"jay\"]') WHERE run = ?1",
    "INSERT INTO steps (run, task, iteration, loss, learning_rate, balance_loss) "
    "SELECT run, task, i, 3.0 / (1 + 0.05 * i) + 0.002 * ((?2 * 7919 + task * 104729 + i * 1299709) % 101), 0.001, "
    "iif(?3, 1.0 / i, NULL) FROM (SELECT run, task, 12 * five.i + n.i + 1 AS i FROM evaluations JOIN n AS five JOIN n "
    "WHERE run = ?1 AND after_task = task AND five.i < 5)",
    "INSERT INTO timings (run, task, iteration, phase, seconds, iterations, images, peak_bytes) "
    "SELECT run, task, 60, 'train', 15.0, 60, 3840, 300 << 20 FROM evaluations WHERE run = ?1 AND after_task = task",
    "INSERT INTO router_choices "
    "SELECT run, after_task, task, i - 1, CASE i WHEN 0 THEN 10 WHEN task + 1 THEN 150 ELSE (i - 1 + task) % 5 END "
    "FROM evaluations JOIN n "
    "WHERE run = ?1 AND i <= after_task + 1 AND (i IN (0, task + 1) OR (i - 1 + task) % 5 > 0)",
    "INSERT INTO expert_counts "
    "SELECT run, task, encoder, block, expert, (expert + task + block + ?2) * 7 % 13 * 10 "
    "FROM (SELECT run, task, encoder, block.i AS block" PLACES ") JOIN (SELECT i AS expert FROM n)",
    "INSERT INTO expert_events "
    "SELECT run, task, 30, encoder, block.i, 0, iif(task % 4 = 3, 'skip', 'merge'), 3, 1, 2, NULL, "
    "iif(task % 4 = 3, 'no expert is free', NULL)" PLACES "AND ?3",
    "INSERT INTO expert_events "
    "SELECT run, task, 60, encoder, block.i, 0, 'freeze', (task + block.i) % 12, NULL, NULL, NULL, NULL" PLACES,
    "INSERT INTO merge_effects "
    "SELECT run, task, 30, encoder, block.i, 0, 60, 30, iif(block.i = 0, 0, 10 + run % 5), 200, 2, 1, 0.25" PLACES
    "AND ?3 AND task % 4 <> 3",
    /* In block b images of each class choose b + 1 experts, other ones than those of the next class. The last block has none
     * of its own, and is not counted in training. */
    "INSERT INTO class_experts "
    "SELECT run, task, tasks - 1, block.i, class.i, (class.i + n.i + task) % 12, 12 / (block.i + 1), 0.75 "
    "FROM runs JOIN tasks USING (run) JOIN n AS block JOIN n AS class JOIN n ON n.i <= block.i "
    "WHERE run = ?1 AND status = 'finished' AND block.i < 4 AND class.i < 10",
    /* In block 0 the patches of the left half choose expert 2 and the others expert 7, in block 1 those of each row one of 8. */
    "INSERT INTO patch_experts "
    "SELECT run, 0, tasks - 1, 100 * image.i, block.i, iif(image.i, ?4, 'zebra 1.png'), 8, "
    "(SELECT json_group_array(iif(block.i, y.i, iif(x.i < 4, 2, 7))) FROM n AS y JOIN n AS x "
    "WHERE y.i < 8 AND x.i < 8) "
    "FROM runs JOIN n AS image JOIN n AS block "
    "WHERE run = ?1 AND status = 'finished' AND image.i < 2 AND block.i < 2",
};

static status write_rows(struct store *store, int64_t run, const struct kind *kind, int64_t seed, struct error *error)
{
    uint16_t labels[IMAGES];
    for (size_t i = 0; i < IMAGES; i++)
        labels[i] = (uint16_t)(i % CLASSES);
    for (int64_t task = 0; task < kind->tasks; task++) {
        struct sample_task row = {
            .task = task, .name = kind->names[task], .classes = 10, .training_images = 1000, .test_images = IMAGES};
        TRY(sample_add_task(store, run, &row, error));
        TRY(store_add(store, run, "test_labels",
                      NAMED({"task", value_integer(task)}, {"labels", value_blob(labels, sizeof labels)}), error));
    }
    for (int64_t task = -1; task < (kind->finished ? kind->tasks : 1); task++)
        TRY(write_evaluations(store, run, kind, seed, task, error));
    return OK;
}

static status write_run(struct store *store, const struct kind *kind, int64_t seed, struct error *error)
{
    char text[256], hash[DIGEST_SIZE], identity[1024];
    snprintf(text, sizeof text, "merge:\n  %s\nrun:\n  threads: %d\n%s%s%s", kind->settings, (int)seed,
             kind->row ? "  row: " : "", kind->row ? kind->row : "", kind->row ? "\n" : "");
    snprintf(identity, sizeof identity, "%s %s %s", kind->suite, kind->policy, kind->settings);
    digest_text(identity, hash);
    struct run_description description = sample_description(seed);
    description.suite = kind->suite;
    description.suite_hash = description.settings_hash = hash;
    description.folder = NULL;
    description.input_count = 0;
    description.method = "moe_adapters";
    description.policy = kind->policy;
    description.model = "mini";
    description.tasks = kind->tasks;
    description.trainable_parameters = 0;
    sample_tell(&description, text);
    struct run_start start;
    TRY(store_run_start(store, &description, &start, error));
    store_begin(store);
    TRY(write_rows(store, start.run, kind, seed, error));
    TRY(store_commit(store, error));
    TRY(store_run_end(store, start.run, kind->finished ? RUN_FINISHED : RUN_STOPPED, NULL, error));
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        TRY(database_run(store_database(store), derived[i],
                         VALUES(value_integer(start.run), value_integer(seed),
                                value_integer(strcmp(kind->policy, "none") != 0), value_text(HARM)),
                         error));
    return OK;
}

/* Of one suite, NULL: of all. */
static status write_kinds(struct store *store, const struct kind *kind, const char *suite, struct error *error)
{
    for (; kind->suite != NULL; kind++)
        for (int64_t seed = 1; seed <= kind->seeds && (suite == NULL || strcmp(suite, kind->suite) == 0); seed++)
            TRY(write_run(store, kind, seed, error));
    return OK;
}

int main(int argc, char **argv)
{
    struct store *store;
    struct error error;
    if (argc != 2 && argc != 3) {
        fputs("usage: write_sample_report FILE [single|rows|colours]\n", stderr);
        return 2;
    }
    status result = store_open(&store, argv[1], STORE_WRITE, &error);
    if (result == OK) {
        result = write_kinds(store, argc == 2 ? kinds : more_kinds, argv[2], &error);
        store_close(store);
    }
    if (result != OK)
        fprintf(stderr, "write_sample_report: %s\n", error.message);
    return result == OK ? 0 : 1;
}
