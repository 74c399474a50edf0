/* Every method in every setting, and on two GPUs: its run has the cells and metrics that it should have, and a stop anywhere is not
 * seen in the results, nor in what the method keeps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/methods/methods.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/train/image_pass.h"
#include "results/query.h"
#include "results/store/repeat.h"
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
                                             {"average_every", "2"}, {"sentences", "7"}, {"steps", "20"},
                                             {"epochs", "4"}};

static bool goes_with(const struct setting *setting, const struct method *method)
{
    if (method->own != NULL) /* a program, whose stops are in end_to_end/scripts/external.txt */
        return false;
    if (method->head != NULL || (setting->one_space && method->alone)) /* refused (refusals.txt) */
        return false;
    if (strstr(setting->words[0], "run.gpus") != NULL)
        return method->begin_task != NULL && small_run_gpus() >= 2;
    return strstr(setting->words[0], "shared_classes") == NULL || method->check != frozen_classes_once;
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
    if (setting->one_space && (strcmp(method->name, "diki") == 0 || strcmp(method->name, "dpw") == 0))
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

/* --- One more task --- */

/* In "shorter.db", which has the first two. */
static status extend(struct small_run *run)
{
    struct store *store;
    must(store_open(&store, small_run_file(run, "shorter.db"), STORE_WRITE, &error));
    status result = sequence_run(&(struct sequence){.run = run->experiment, .store = store, .extends = true}, &error);
    store_close(store);
    return result;
}

static void expect_same_rows(const struct small_run *run)
{
    struct repeat repeat = {.first_run = 1, .second_run = 2};
    struct table table = {0};
    char number[TABLE_NUMBER];
    must(store_open(&repeat.first, small_run_file(run, "whole.db"), STORE_READ, &error));
    must(store_open(&repeat.second, small_run_file(run, "shorter.db"), STORE_READ, &error));
    must(repeat_compare(&repeat, &table, &error));
    for (size_t i = 0; !repeat.agrees && i < table.count; i++)
        print_message("%s ", table_cell_text(&table.cell[i], 9, number));
    assert_true(repeat.agrees);
    table_free(&table);
    text_free(&repeat.machines);
    store_close(repeat.first);
    store_close(repeat.second);
    expect_text(run, "shorter.db", "SELECT group_concat(task || kind || digest) FROM artifacts WHERE run = 2",
                whole_run_text(run, "whole.db", "SELECT group_concat(task || kind || digest) FROM artifacts"));
}

static bool can_extend(const struct method *method)
{
    return !method->joint && !method->alone && !method->counts_tasks && !method->two_deltas;
}

static void check_extension(struct small_run *run, const struct setting *setting, const struct method *method)
{
    const char *words[WORDS_MOST], *shorter[WORDS_MOST];
    size_t count = 0;
    choose(words, run, setting, method);
    while (words[count] != NULL)
        count++;
    words[count++] = "run.checkpoints=states";
    memcpy(shorter, words, sizeof words);
    shorter[count] = "data.order=first,second";
    small_run_reopen(run, 1, shorter);
    must(whole_run(run, "shorter.db", NULL));
    small_run_reopen(run, 1, words);
    if (can_extend(method)) {
        must(extend(run));
        small_run_reopen(run, 1, words);
        must(whole_run(run, "whole.db", NULL));
        expect_same_rows(run);
        remove_database(run, "whole.db");
    } else {
        must_refuse(extend(run), ERROR_ARGUMENT, "--extend", "its method");
    }
    remove_database(run, "shorter.db");
}

/* Of a finished run, with its states, of these settings; the refused run is another one afterwards. */
RUN_TEST(what_cannot_go_on, NULL)
{
    static const struct {
        const char *before, *after[2], *words[4];
    } cases[] = {
        {"run.checkpoints=all", {"run.checkpoints=states"}, {"--extend", "left no state after task 1", "=states"}},
        {"run.checkpoints=states", {"training.iterations=7"}, {"--extend", "no finished run", "leave --extend out"}},
        {"run.checkpoints=states", {"data.order=second,first,third"}, {"no finished run of the first tasks"}},
        {"run.checkpoints=states", {"evaluation.label_space=all"}, {"--extend", "all every test compares"}},
        {"run.checkpoints=states", {"merge.policy=ewa", "merge.ramp=run"}, {"--extend", "merge.ramp: run rises"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_run_reopen(run, 1, WORDS("data.order=first,second", cases[i].before));
        must(whole_run(run, "shorter.db", NULL));
        small_run_reopen(run, 1, WORDS("run.checkpoints=states", cases[i].after[0], cases[i].after[1]));
        check_refusal(extend(run), ERROR_ARGUMENT, cases[i].words);
        expect_number(run, "shorter.db", "SELECT count(*) FROM runs", 1);
        remove_database(run, "shorter.db");
    }
    scratch_write_text(&run->scratch, "described.json", "{}");
    const char *descriptions = small_run_format("method.descriptions=%s/described.json", run->scratch.path);
    small_run_reopen(run, 1, WORDS("run.checkpoints=states", "method.name=engine", descriptions));
    must_refuse(extend(run), ERROR_ARGUMENT, "--extend", "pairs of all classes");
}

/* One of another seed. */
RUN_TEST(a_foreign_state_is_refused_before_the_run_begins, NULL)
{
    small_run_reopen(run, 1, WORDS("run.checkpoints=states", "data.order=first,second"));
    must(whole_run(run, "shorter.db", NULL));
    char *folder = run_folder(run->experiment), *state = run_state_file(folder, 1);
    small_run_reopen(run, 2, WORDS("run.checkpoints=states", "data.order=first,second"));
    must(checkpoint_save(run->experiment, NULL, state, &(struct checkpoint_place){.task = 2, .lasts = true}, &error));
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must_refuse(extend(run), ERROR_FORMAT, "expected a state of run 1", "leave --extend out");
    expect_number(run, "shorter.db", "SELECT count(*) FROM runs", 1);
    free(folder);
    free(state);
}

static status extend_watched(struct small_run *run, struct backend_spy *spy)
{
    struct store *store;
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    small_run_watch(run, spy);
    must(store_open_stoppable(&store, small_run_file(run, "shorter.db"), STORE_WRITE, spy->stop, &error));
    status result = sequence_run(
        &(struct sequence){.run = run->experiment, .store = store, .stop = spy->stop, .extends = true}, &error);
    store_close(store);
    return result;
}

/* None of the tasks of the shorter run is trained again; a run that is finished does not ask for that one. */
RUN_TEST(a_stop_before_the_further_task_begins_anew, NULL)
{
    struct stop stop;
    struct backend_spy spy;
    size_t at = 0;
    small_run_reopen(run, 1, WORDS("run.checkpoints=states", "data.order=first,second"));
    must(whole_run(run, "shorter.db", NULL));
    char *folder = run_folder(run->experiment), *state = run_state_file(folder, 0);
    do {
        stop = (struct stop){0};
        spy = (struct backend_spy){.stop = &stop, .stop_at_encoding = ++at};
    } while (extend_watched(run, &spy) == ERROR_STOPPED && spy.updates == 0);
    assert_true(at > 3);
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must(extend(run));
    expect_number(run, "shorter.db", "SELECT count(*) FROM timings WHERE run = 2 AND phase = 'train' AND task < 2", 0);
    assert_int_equal(unlink(state), 0);
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must(extend(run));
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must(whole_run(run, "whole.db", NULL));
    expect_same_rows(run);
    free(folder);
    free(state);
}

/* A run that was stopped after it went on resumes without the shorter one. */
RUN_TEST(a_longer_run_is_resumed, "run.checkpoints=states", NULL)
{
    struct stop stop = {0};
    struct backend_spy spy = {.stop = &stop, .stop_at_update = 3};
    small_run_reopen(run, 1, WORDS("run.checkpoints=states", "data.order=first,second"));
    must(whole_run(run, "shorter.db", NULL));
    assert_int_equal(extend_watched(run, &spy), ERROR_STOPPED);
    expect_number(run, "shorter.db", "SELECT count(DISTINCT task) FROM steps WHERE run = 2", 3);
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must(whole_run(run, "shorter.db", NULL));
    small_run_reopen(run, 1, WORDS("run.checkpoints=states"));
    must(whole_run(run, "whole.db", NULL));
    expect_same_rows(run);
}

/* A list with a number for each task, and a coder that is kept behind those of the tasks. */
RUN_TEST(shots_and_unrelated_images_go_on, NULL)
{
    draw_references(run);
    const char *images = small_run_format("selector.unrelated=%s/pictures", run->scratch.path);
    const char *const *whole = WORDS("run.checkpoints=states", "data.task_shots=1,2,1", "selector.kind=clip", images);
    small_run_reopen(run, 1,
                     WORDS("run.checkpoints=states", "data.order=first,second", "data.task_shots=1,2",
                           "selector.kind=clip", images));
    must(whole_run(run, "shorter.db", NULL));
    small_run_reopen(run, 1, whole);
    must(extend(run));
    small_run_reopen(run, 1, whole);
    must(whole_run(run, "whole.db", NULL));
    expect_same_rows(run);
}

RUN_TEST(every_method_goes_on_with_one_more_task, NULL)
{
    static const struct setting extended[] = {
        {.words = {"run.gpus=1"}},
        {.words = {"evaluation.label_space=seen", ONE_ROUTER}, .one_space = true},
        {.words = {"data.shared_classes=yes", "tasks.second.classes=2", "tasks.third.classes=2", ONE_ROUTER},
         .one_space = true},
        {.words = {"evaluation.label_space=open", "merge.policy=random", "merge.every=2"}, .one_space = true}};
    draw_references(run);
    for (size_t s = 0; s < sizeof extended / sizeof *extended; s++)
        for (size_t i = 0; method_at(i) != NULL; i++)
            if (goes_with(&extended[s], method_at(i))) {
                print_message("%s, %s\n", extended[s].words[0], method_at(i)->name);
                check_extension(run, &extended[s], method_at(i));
            }
}
