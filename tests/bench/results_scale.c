/* Times a results database of the size that a laboratory fills: 10,000 runs of eleven tasks, an accuracy before the
 * first and after each task on each (1.32 million rows), a bit per test image for 100 of the runs.
 *
 *     build/tests/results_scale [FILE] [RUNS]
 *
 * Without FILE the database goes away at the end. Accuracies are made up; suites, tables and the test sets' sizes are the
 * real ones, and the questions are asked by the program itself. Nothing is asserted: the figures are for people. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/rng.h"
#include "datasets/dataset.h"
#include "datasets/mini/suite.h"
#include "harness/run/settings.h"
#include "results/store/store_internal.h"
#include "tests/bench/bench.h"
#include "tests/results/sample.h"

enum { TASKS = SUITE_DOMAINS, SEEDS = 10, RUNS = 10000, RUNS_WITH_BITS = 100 };
enum { RUNS_AT_ONCE = 200, REPEATS = 5 };

static const struct dataset_published *tasks[TASKS];

static const char *const policies[] = {"random", "most_used"};

#define POLICIES (sizeof policies / sizeof *policies)

struct written {
    double own_transactions, shared; /* seconds in which rows were written */
    size_t own_rows, shared_rows;
};

/* --- Writing --- */

/* A configuration's quality, a seed's luck and the images': trained tasks are good, later ones as they were. */
static int64_t correct(size_t configuration, size_t seed, int64_t after_task, size_t task)
{
    struct rng rng =
        rng_make(seed, RNG_TEST, (uint32_t)configuration, (uint32_t)(after_task + 1) * TASKS + (uint32_t)task);
    double base = after_task >= (int64_t)task ? 0.82 : 0.55;
    size_t policy = configuration % POLICIES, every = configuration / POLICIES;
    double quality = 0.02 * (double)policy + 0.00005 * (double)every;
    double share = base + quality + 0.03 * ((double)rng_uniform(&rng, 0) - 0.5);
    return (int64_t)lrint(share * (double)tasks[task]->test);
}

/* The images that are right follow one another, from another one on in each row. */
static void write_bits(struct evaluation_row *row, struct per_image *kept, size_t seed)
{
    size_t first = 1000 * seed + (size_t)(row->after_task + 1) * 100;
    for (size_t i = 0; i < kept->images; i++)
        kept->right[(first + i) % kept->images] = (int64_t)i < row->correct;
    row->per_image = kept;
}

/* What a run commits after a task; -1: zero-shot CLIP's accuracies. */
static size_t write_checkpoint(struct store *store, int64_t run, size_t configuration, size_t seed, int64_t after_task,
                               bool bits)
{
    static uint8_t right[TASKS][1 << 15]; /* more than any test set has */
    store_begin(store);
    for (size_t task = 0; task < TASKS; task++) {
        struct evaluation_row row = {.after_task = after_task,
                                     .task = (int64_t)task,
                                     .correct = correct(configuration, seed, after_task, task),
                                     .images = (int64_t)tasks[task]->test};
        struct per_image kept = {.kind = PER_IMAGE_BITS, .images = (size_t)row.images, .right = right[task]};
        if (bits)
            write_bits(&row, &kept, seed);
        must(store_add_evaluation(store, run, &row, &error));
    }
    must(store_commit(store, &error));
    return bits ? 2 * TASKS : TASKS;
}

static size_t write_run(struct store *store, const struct run_description *about, size_t configuration, bool bits)
{
    struct run_start start;
    static const uint16_t labels[1 << 15]; /* all of the first class */
    size_t rows = 0;
    must(store_run_start(store, about, &start, &error));
    for (size_t task = 0; task < TASKS; task++) {
        const struct dataset_published *p = tasks[task];
        must(sample_add_task(store, start.run,
                             &(struct sample_task){.task = (int64_t)task,
                                                   .name = p->reader,
                                                   .classes = (int64_t)p->classes,
                                                   .training_images = (int64_t)p->train,
                                                   .test_images = (int64_t)p->test},
                             &error));
        for (size_t class = 0; bits && class < p->classes; class ++)
            must(store_add(store, start.run, "task_classes",
                           NAMED({"task", value_integer((int64_t)task)}, {"class", value_integer((int64_t) class)},
                                 {"name", value_text("a class")}),
                           &error));
        if (bits)
            must(store_add(store, start.run, "test_labels",
                           NAMED({"task", value_integer((int64_t)task)}, {"labels", value_blob(labels, 2 * p->test)}),
                           &error));
    }
    for (int64_t after_task = -1; after_task < TASKS; after_task++)
        rows += write_checkpoint(store, start.run, configuration, (size_t)about->seed, after_task, bits);
    must(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
    return rows + TASKS + 1;
}

static struct suite *configure(struct run_description *about, size_t configuration)
{
    struct suite *suite;
    static char hash[DIGEST_SIZE];
    char policy[64], every[64], identity[128];
    const char *images =
        configuration * SEEDS < RUNS_WITH_BITS ? "evaluation.per_image=bits" : "evaluation.per_image=none";
    snprintf(policy, sizeof policy, "merge.policy=%s", policies[configuration % POLICIES]);
    snprintf(every, sizeof every, "merge.every=%zu", 1 + configuration / POLICIES);
    struct setting_row *settings;
    size_t count;
    const char *const words[] = {policy, every, images, "adapter.routers=one", "selector.kind=none", "seed=1..10"};
    must(suite_load(&suite, "mtil", settings_sections, words, sizeof words / sizeof *words, &error));
    suite_settings(suite, &settings, &count);
    snprintf(identity, sizeof identity, "settings %s\n", suite_settings_hash(suite)); /* and no inputs */
    digest_text(identity, hash);
    *about = (struct run_description){.suite = suite_name(suite),
                                      .suite_text = suite_text(suite),
                                      .settings = settings,
                                      .setting_count = count,
                                      .suite_hash = hash,
                                      .settings_hash = suite_settings_hash(suite),
                                      .setting = "full_shot",
                                      .method = "moe_adapters",
                                      .policy = policies[configuration % POLICIES],
                                      .selector = "none",
                                      .selection = "none",
                                      .order = "I",
                                      .model = "ViT-B-16",
                                      .backend = "cpu",
                                      .precision = "f32",
                                      .program_version = MTIL_VERSION,
                                      .tasks = TASKS}; /* no parameters: rows of training are left out */
    return suite;
}

/* The runs with bits each write like a run that is alone; the others share transactions, so that it ends soon. */
static void write_runs(struct store *store, size_t runs, struct written *figures)
{
    bool began = false;
    struct run_description about = {0};
    struct suite *suite = NULL;
    for (size_t run = 0; run < runs; run++) {
        bool bits = run < RUNS_WITH_BITS;
        if (run % SEEDS == 0) {
            suite_settings_free((struct setting_row *)about.settings, about.setting_count);
            suite_destroy(suite);
            suite = configure(&about, run / SEEDS);
        }
        about.seed = (int64_t)(run % SEEDS + 1);
        double start = clock_seconds();
        if (!bits && !began)
            must(database_begin(store->database, &began, &error));
        size_t rows = write_run(store, &about, run / SEEDS, bits);
        if (began && (run % RUNS_AT_ONCE == RUNS_AT_ONCE - 1 || run == runs - 1)) {
            must(database_end(store->database, true, OK, &error));
            began = false;
        }
        *(bits ? &figures->own_transactions : &figures->shared) += clock_seconds() - start;
        *(bits ? &figures->own_rows : &figures->shared_rows) += rows;
    }
    suite_settings_free((struct setting_row *)about.settings, about.setting_count);
    suite_destroy(suite);
}

/* --- Asking --- */

static const struct {
    const char *what, *command, *options; /* before and after the database */
} questions[] = {
    {"leaderboard", "query", "leaderboard"},
    {"leaderboard, a dataset", "query", "leaderboard --dataset dtd"},
    {"leaderboard, a policy", "query", "leaderboard --policy most_used"},
    {"metrics of a seed", "query", "metrics --seed 3"},
    {"metrics", "query", "metrics"},
    {"matrix of a run", "query", "matrix --run 1"},
    {"verify", "verify", ""},
    {"compare by policy", "compare", "--by policy --metric transfer,average,last"},
};

/* The answer is thrown away. */
static void ask(const char *what, const char *command)
{
    struct effort first = effort_of(command), best = first;
    for (int i = 1; i < REPEATS && best.ended == 0; i++) {
        struct effort again = effort_of(command);
        best = again.ended != 0 || again.seconds < best.seconds ? again : best;
    }
    if (best.ended != 0)
        printf("  %-24s failed\n", what);
    else
        printf("  %-24s %.2f s (the first time %.2f s), %.2f s of a core\n", what, best.seconds, first.seconds,
               best.of_a_core);
    fflush(stdout);
}

static void ask_everything(const char *path)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        char *command =
            path_format("exec '" PROGRAM "' %s '%s' %s >/dev/null", questions[i].command, path, questions[i].options);
        ask(questions[i].what, command);
        free(command);
    }
}

static void report(const char *path, size_t runs, const struct written *figures)
{
    uint64_t bytes;
    must(file_size(path, &bytes, &error));
    printf("%zu runs x %d evaluations, bits of %zu runs\n", runs, (TASKS + 1) * TASKS,
           runs < RUNS_WITH_BITS ? runs : (size_t)RUNS_WITH_BITS);
    printf("  %-24s %.0f MB\n", "file", (double)bytes / 1e6);
    printf("  %-24s %.3f ms (a transaction per task, bits included)\n", "a row",
           1e3 * figures->own_transactions / (double)figures->own_rows);
    if (figures->shared_rows > 0)
        printf("  %-24s %.4f ms (%d runs in a transaction)\n", "a row, at once",
               1e3 * figures->shared / (double)figures->shared_rows, RUNS_AT_ONCE);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t runs = argc > 2 ? strtoul(argv[2], NULL, 10) : RUNS;
    if (argc > 3 || runs == 0) {
        fprintf(stderr, "usage: results_scale [FILE] [RUNS]\n");
        return 2;
    }
    char *path = argc > 1 ? strdup(argv[1]) : sample_path("results.db");
    struct written figures = {0};
    struct store *store;
    for (size_t task = 0; task < TASKS; task++)
        tasks[task] = dataset_published_find(suite_domains[task].name, "torchvision");
    if (!file_exists(path)) {
        must(store_open(&store, path, STORE_WRITE, &error));
        write_runs(store, runs, &figures);
        store_close(store);
        report(path, runs, &figures);
    }
    ask_everything(path);
    if (argc < 2)
        sample_remove(path);
    else
        free(path);
    return 0;
}
