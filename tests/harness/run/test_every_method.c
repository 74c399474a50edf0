/* Every method in every setting, and on two GPUs: its run has the cells and metrics that it should have, and a stop anywhere is not
 * seen in the results, nor in what the method keeps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/methods/methods.h"
#include "results/query.h"
#include "results/store/store_internal.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/whole_run.h"
#include "tests/results/matrix.h"

enum { WORDS_MOST = 32 };

/* Six classes: two, and twice two more. */
#define CLASSES                                                                                                        \
    "data.order=third", "tasks.third.classes=6", "data.split_by=order", "data.class_order=5 0 3 4 1 2",                \
        "data.first=2", "data.parts=2"
#define ONE_ROUTER "adapter.routers=one", "selector.kind=none", "adapter.freeze_top_k=0"

static const struct setting {
    const char *name, *words[WORDS_MOST / 2];
    bool one_space;    /* of all tasks so far, of which a model that is trained on its task alone knows nothing */
    bool stops;        /* of every method; otherwise of moe_adapters */
    int64_t images[3]; /* where means are over them: test images of the tasks */
} settings[] = {
    {"x_tail", {"evaluation.label_space=all", "data.shots=4"}, .stops = true},
    {"full_shot", {"run.gpus=2"}, .stops = true},
    {"class_incremental", {CLASSES, "evaluation.label_space=seen", "selector.kind=oracle"}, .one_space = true},
    {"domain_incremental", {"data.shared_classes=yes", ONE_ROUTER}, .one_space = true, .images = {6, 9, 12}},
    {"open_domain", {"evaluation.label_space=open", ONE_ROUTER}, .one_space = true},
};

/* What a method asks for, or is quicker or shows more with. */
static const char *const own_options[][2] = {{"exemplars", "9"},     {"hidden", "30"},   {"fisher_iterations", "4"},
                                             {"average_every", "2"}, {"sentences", "7"}, {"steps", "20"}};

static bool goes_with(const struct setting *setting, const struct method *method)
{
    if (method->own != NULL) /* a program, whose stops are in end_to_end/scripts/external.txt */
        return false;
    if (method->head != NULL || (setting->one_space && method->alone)) /* refused (refusals.txt) */
        return false;
    if (strstr(setting->words[0], "run.gpus") != NULL)
        return method->begin_task != NULL && small_run_gpus() >= 2;
    return strstr(setting->words[0], "shared_classes") == NULL || strcmp(method->name, "lada") != 0;
}

static void choose(const char *words[WORDS_MOST], const struct small_run *run, const struct setting *setting,
                   const struct method *method)
{
    size_t count = 0;
    memset(words, 0, WORDS_MOST * sizeof *words);
    words[count++] = small_run_format("method.name=%s", method->name);
    words[count++] = "run.log_every=1";
    for (size_t i = 0; setting->words[i] != NULL; i++)
        words[count++] = setting->words[i];
    for (size_t i = 0; i < sizeof own_options / sizeof *own_options; i++)
        if (options_find(method->options, own_options[i][0]) != NULL)
            words[count++] = small_run_format("method.%s=%s", own_options[i][0], own_options[i][1]);
    if (options_find(method->options, "reference_images") != NULL) {
        words[count++] = small_run_format("method.reference_images=%s/pictures", run->scratch.path);
        words[count++] = small_run_format("method.reference_texts=%s/texts.txt", run->scratch.path);
    }
    if (setting->one_space && strcmp(method->name, "diki") == 0)
        words[count++] = "selector.kind=task_gaussian";
}

/* The views' metrics are those of the functions. */
static void expect_metrics(const struct small_run *run, const struct setting *setting)
{
    static const char *const names[] = {"transfer", "average", "last", "forgetting", "gain"};
    struct store *store;
    struct run_matrix read;
    must(store_open(&store, small_run_file(run, "whole.db"), STORE_READ, &error));
    must(run_matrix_read(store, 1, &read, &error));
    store_close(store);
    read.matrix.images = setting->images[0] > 0 ? setting->images : NULL;
    read.matrix.later = setting->images[0] > 0;
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        const char *found =
            whole_run_text(run, "whole.db", small_run_format("SELECT printf('%%.6f', %s) FROM metrics", names[m]));
        assert_true(fabs(strtod(found, NULL) - metric_mean(metric_find(names[m]), &read.matrix)) < 1e-5);
    }
    run_matrix_free(&read);
}

static void check(struct small_run *run, const struct setting *setting, const struct method *method)
{
    struct backend_spy count = {0};
    const char *words[WORDS_MOST];
    choose(words, run, setting, method);
    small_run_reopen(run, 1, words);
    must(whole_run(run, "whole.db", &count));
    const char *expected = whole_run_results(run, "whole.db");
    expect_text(run, "whole.db", "SELECT setting FROM runs", setting->name);
    assert_int_equal(whole_run_faults(run, "whole.db", whole_run_cells), 0);
    if (setting->one_space && !method->joint && strcmp(setting->name, "class_incremental") != 0)
        expect_metrics(run, setting);
    bool adapters = strcmp(method->name, "moe_adapters") == 0;
    for (size_t at = 2; (setting->stops || adapters) && at < count.updates;
         at += test_every() * (count.updates / 2 + 1))
        expect_resumed(run, words, (struct backend_spy){.stop_at_update = at}, expected);
    bool one_gpu = strstr(setting->words[0], "run.gpus") == NULL;
    for (size_t at = 2; setting->stops && (one_gpu || adapters) && at < count.encodings;
         at += test_every() * (count.encodings / 2 + 1))
        expect_resumed(run, words, (struct backend_spy){.stop_at_encoding = at}, expected);
    for (size_t at = 1; adapters && at < count.predictions; at += test_every() * (count.predictions / 3 + 1))
        expect_resumed(run, words, (struct backend_spy){.stop_at_prediction = at}, expected);
    remove_database(run, "whole.db");
}

/* What zscl asks for besides the tasks. */
static void draw_references(const struct small_run *run)
{
    for (unsigned i = 0; i < 5; i++)
        scratch_write_png(&run->scratch, small_run_format("pictures/%u.png", i), 8, 8, 0x203040 * i);
    scratch_write_text(&run->scratch, "texts.txt", "a red square\na green photo\nblue and yellow\n");
}

RUN_TEST(every_method_runs_and_goes_on_after_a_stop, NULL)
{
    draw_references(run);
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (size_t i = 0; method_at(i) != NULL; i++)
            if (goes_with(&settings[s], method_at(i))) {
                print_message("%s, %s\n", settings[s].name, method_at(i)->name);
                check(run, &settings[s], method_at(i));
            }
}

/* --- Every iteration --- */

static void save_iteration(struct small_training *training)
{
    small_run_save(training->run, "resume", 1, training->count);
}

/* Two tasks at once, and with a resume file after every iteration of the second, also before the task ends. */
static void goes_on_after_every_iteration(struct small_run *run, const char *const *words, size_t gpus)
{
    struct small_training part = {.every = SIZE_MAX, .look = save_iteration};
    small_run_reopen(run, 1, words);
    must(small_run_train(run, 0, NULL));
    small_run_save(run, "resume", 1, 0);
    must(small_run_train(run, 1, NULL));
    small_run_save(run, "whole", 2, 0);
    small_run_go_on(run, 1, 0, words);
    size_t iterations = run->experiment->model.groups != GROUPS_NONE ? 6 : 0;
    while (part.count < iterations) {
        part.stop_at = part.count + 1;
        status trained = small_run_train(run, 1, &part);
        assert_int_equal(trained, part.count < iterations ? ERROR_STOPPED : OK);
        small_run_go_on(run, 1, part.count, words);
    }
    must(small_run_train(run, 1, &part));
    if (run->experiment->model.work.replicas != NULL)
        expect_same_ranks(run, gpus);
    small_run_save(run, "parts", 2, 0);
    small_run_expect_same(small_run_format("%s/parts", run->scratch.path), small_run_file(run, "whole"));
}

RUN_TEST(every_method_goes_on_after_every_iteration, NULL)
{
    static const struct setting gpus[] = {{.words = {"run.gpus=1"}}, {.words = {"run.gpus=2"}}};
    draw_references(run);
    for (size_t g = 0; g < (small_run_gpus() < 2 ? 1 : 2); g++)
        for (size_t i = 0; method_at(i) != NULL; i++) {
            const char *words[WORDS_MOST];
            if (method_at(i)->head != NULL || method_at(i)->joint || method_at(i)->own != NULL)
                continue;
            print_message("%s, %s\n", gpus[g].words[0], method_at(i)->name);
            choose(words, run, &gpus[g], method_at(i));
            goes_on_after_every_iteration(run, words, g + 1);
        }
}
