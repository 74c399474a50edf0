/* Bad input, bad disks, rivals and Ctrl-C: one message that names what is wrong, an exit status that is not zero, and no
 * file that is only half there. */
#include "tests/end_to_end/rows.h"

#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

#define RUN "run tiny.yaml --quiet "
#define EVAL "eval tiny.yaml --quiet "
#define EMBED "embed --quiet --weights clip.safetensors --vocab vocabulary.txt --out x.safetensors "
#define BRAIDED "data/dtd/dtd/images/braided/"
#define LARGE_FILES "adapter.experts=32 adapter.bottleneck=64 "

/* --- What is done to the workshop --- */

static bool rename_weight(struct safetensor *tensor)
{
    if (strcmp(tensor->name, "visual.class_embedding") == 0)
        tensor->name = "visual.class_embeding";
    return true;
}

static bool drop_weight(struct safetensor *tensor)
{
    return strcmp(tensor->name, "visual.transformer.resblocks.1.mlp.c_fc.bias") != 0;
}

static bool reshape_weight(struct safetensor *tensor)
{
    if (strcmp(tensor->name, "ln_final.weight") == 0)
        tensor->shape[0] -= 1;
    return true;
}

static bool retype_weight(struct safetensor *tensor)
{
    if (strcmp(tensor->name, "text_projection") == 0)
        tensor->type = SAFETENSOR_I32;
    return true;
}

static bool overflow_scale(struct safetensor *tensor)
{
    static const float huge = 1000.0f;
    if (strcmp(tensor->name, "logit_scale") == 0)
        tensor->data = &huge;
    return true;
}

/* Finite in the file, but not what is computed with them. */
static float overflowing[64 * 3 * 16 * 16];

static bool overflow(struct safetensor *tensor, const char *name)
{
    for (size_t i = 0; i < sizeof overflowing / sizeof *overflowing; i++)
        overflowing[i] = (i * 2654435761u & 0x10000) != 0 ? 1e38f : -1e38f;
    if (strcmp(tensor->name, name) == 0)
        tensor->data = overflowing;
    return true;
}

static bool overflow_patches(struct safetensor *tensor)
{
    return overflow(tensor, "visual.conv1.weight");
}

static bool overflow_texts(struct safetensor *tensor)
{
    return overflow(tensor, "text_projection");
}

static bool spoil_expert(struct safetensor *tensor)
{
    static float spoilt[16 * 64];
    spoilt[77] = NAN;
    if (strcmp(tensor->name, "visual.transformer.resblocks.1.adaptmlp_list.3.down_proj.weight") == 0)
        tensor->data = spoilt;
    return true;
}

static bool reshape_expert(struct safetensor *tensor)
{
    if (strcmp(tensor->name, "transformer.resblocks.0.adaptmlp_list.2.up_proj.bias") == 0)
        tensor->shape[0] /= 2;
    return true;
}

static bool drop_router(struct safetensor *tensor)
{
    return strstr(tensor->name, "router_list.1") == NULL;
}

static void weight_renamed(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", rename_weight);
}

static void weight_dropped(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", drop_weight);
}

static void weight_reshaped(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", reshape_weight);
}

static void weight_retyped(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", retype_weight);
}

static void scale_overflows(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", overflow_scale);
}

static void expert_reshaped(const struct workshop *w)
{
    workshop_rewrite(w, "adapters.safetensors", "adapters.safetensors", reshape_expert);
}

static void router_dropped(const struct workshop *w)
{
    workshop_rewrite(w, "adapters.safetensors", "adapters.safetensors", drop_router);
}

static void patches_overflow(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", overflow_patches);
}

static void texts_overflow(const struct workshop *w)
{
    workshop_rewrite(w, "clip.safetensors", "clip.safetensors", overflow_texts);
}

static void expert_spoilt(const struct workshop *w)
{
    workshop_rewrite(w, "adapters.safetensors", "adapters.safetensors", spoil_expert);
}

static void weights_cut(const struct workshop *w)
{
    workshop_cut(w, "clip.safetensors", 500);
}

static void adapters_cut(const struct workshop *w)
{
    workshop_cut(w, "adapters.safetensors", 999);
}

static void overwrite(const struct workshop *w, const char *name, long offset, const void *data, size_t size)
{
    FILE *file = fopen(scratch_file(&w->scratch, name), "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void weights_flipped(const struct workshop *w)
{
    overwrite(w, "clip.safetensors", 100000, "\x55", 1);
}

static void adapters_flipped(const struct workshop *w)
{
    overwrite(w, "adapters.safetensors", 60000, "\x55", 1);
}

static void weights_header_overwritten(const struct workshop *w)
{
    overwrite(w, "clip.safetensors", 20, "\x01\x02\x03", 3);
}

static void weights_length_overwritten(const struct workshop *w)
{
    overwrite(w, "clip.safetensors", 0, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
}

static void vocabulary_cut(const struct workshop *w)
{
    workshop_cut(w, "vocabulary.txt", 500);
}

static void test_image_cut(const struct workshop *w)
{
    workshop_own_data(w, "dtd");
    workshop_put_corrupted(w, "truncated_half.jpg", BRAIDED "braided_0080.jpg");
}

static void training_image_is_text(const struct workshop *w)
{
    workshop_own_data(w, "dtd");
    workshop_put_corrupted(w, "html_error_page.jpg", BRAIDED "braided_0040.jpg");
}

static void image_claims_to_be_huge(const struct workshop *w)
{
    workshop_own_data(w, "dtd");
    workshop_put_corrupted(w, "huge_dimensions_2.png", BRAIDED "braided_0080.jpg");
}

static void image_missing(const struct workshop *w)
{
    workshop_own_data(w, "dtd");
    assert_int_equal(unlink(scratch_file(&w->scratch, BRAIDED "braided_0080.jpg")), 0);
}

static void idx_cut(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    workshop_cut(w, "data/MNIST/raw/t10k-images-idx3-ubyte", 900);
}

static void idx_of_another_type(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    workshop_put_corrupted(w, "wrong-magic-idx3-ubyte", "data/MNIST/raw/train-images-idx3-ubyte");
}

static void idx_claims_to_be_huge(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    workshop_put_corrupted(w, "huge-images-idx3-ubyte", "data/MNIST/raw/train-images-idx3-ubyte");
}

static void put_pickles(const struct workshop *w, const char *corrupted)
{
    static const char *const names[] = {"train", "test", "meta"};
    for (size_t i = 0; i < 3; i++) {
        char *name = path_format("data/cifar-100-python/%s", names[i]);
        workshop_put_corrupted(w, corrupted, name);
        free(name);
    }
}

static void pickle_cut(const struct workshop *w)
{
    put_pickles(w, "truncated_pickle");
}

static void pickle_with_code(const struct workshop *w)
{
    put_pickles(w, "foreign_global_pickle");
}

static void cifar_cut(const struct workshop *w)
{
    workshop_put_corrupted(w, "cut_record_train.bin", "data/cifar-100-binary/train.bin");
    workshop_put_corrupted(w, "cut_record_train.bin", "data/cifar-100-binary/test.bin");
}

static void class_emptied(const struct workshop *w)
{
    workshop_own_data(w, "eurosat");
    char command[512];
    snprintf(command, sizeof command, "rm %s/data/eurosat/2750/Forest/*", w->scratch.path);
    assert_int_equal(system(command), 0);
}

static void class_without_a_label(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    scratch_write_text(&w->scratch, "data/MNIST/classnames.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n");
}

static void class_not_utf8(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    scratch_write_text(&w->scratch, "data/MNIST/classnames.txt", "0\n1\n2\n3\nfo\xffr\n5\n6\n7\n8\n9\n");
}

static void class_of_a_megabyte(const struct workshop *w)
{
    class_not_utf8(w);
    assert_int_equal(workshop_shell(w, "{ seq 0 8; printf '%01000000d\\n' 9; } >data/MNIST/classnames.txt"), 0);
}

static void class_missing(const struct workshop *w)
{
    class_emptied(w);
    assert_int_equal(rmdir(scratch_file(&w->scratch, "data/eurosat/2750/Forest")), 0);
}

static void yaml_list_open(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "tiny.yaml", "data:\n  root: data\n  order: [mnist, eurosat\nmerge:\n  every: 2\n");
}

static void yaml_with_tab(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "tiny.yaml", "data:\n\troot: data\n");
}

static void yaml_of_zeros(const struct workshop *w)
{
    static const char zeros[64];
    scratch_write(&w->scratch, "tiny.yaml", zeros, sizeof zeros);
}

static void yaml_with_unknown_key(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "tiny.yaml", "data:\n  root: data\nmerge:\n  evry: 50\n");
}

static void yaml_with_word_for_number(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "tiny.yaml", "merge:\n  every: often\n");
}

static void yaml_that_never_merges(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "tiny.yaml", "merge:\n  policy: most_used\n  every: 0\n");
}

static void database_is_text(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "results.db",
                       "this is no database, and it is longer than the header of one would be: 100 bytes "
                       "and then some more of them");
}

static void finish_a_run(const struct workshop *w)
{
    program_succeeds(w, RUN "data.order=mnist training.iterations=2 training.warmup=0");
}

static void database_cut(const struct workshop *w)
{
    finish_a_run(w);
    workshop_cut(w, "results.db", 500);
}

static void change_database(const struct workshop *w, const char *sql)
{
    sqlite3 *database;
    finish_a_run(w);
    assert_int_equal(sqlite3_open(scratch_file(&w->scratch, "results.db"), &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void database_is_newer(const struct workshop *w)
{
    change_database(w, "PRAGMA user_version = 99");
}

static void database_looks_older(const struct workshop *w)
{
    change_database(w, "PRAGMA user_version = 3");
}

static void database_looks_new(const struct workshop *w)
{
    change_database(w, "PRAGMA user_version = 0");
}

static void database_is_a_folder(const struct workshop *w)
{
    assert_int_equal(mkdir(scratch_file(&w->scratch, "results.db"), 0755), 0);
}

static void folder_is_a_file(const struct workshop *w)
{
    scratch_write_text(&w->scratch, "runs", "a file");
}

/* The test itself may be root, for whom nothing is read-only: the program then runs as nobody, who may not see the
 * folder that the project is in. */
static void read_only(const struct workshop *w)
{
    workshop_own_data(w, "MNIST");
    workshop_own_data(w, "eurosat");
    workshop_own_data(w, "dtd");
    assert_int_equal(mkdir(scratch_file(&w->scratch, "open"), 0755), 0);
    assert_int_equal(chmod(scratch_file(&w->scratch, "open"), 0777), 0);
    assert_int_equal(chmod(w->scratch.path, 0555), 0);
}

/* --- The faults --- */

static const struct fault {
    void (*prepare)(const struct workshop *workshop);
    struct launch launch;
    const char *words[4];
} faults[] = {
    /* weights */
    {NULL, {.arguments = RUN "model.weights=absent.safetensors"}, {"model.weights", "absent.safetensors", "mini"}},
    {weight_renamed, {.arguments = RUN}, {"clip.safetensors", "visual.class_embed"}},
    {weight_dropped, {.arguments = RUN}, {"clip.safetensors", "visual.transformer.resblocks.1.mlp.c_fc.bias"}},
    {weight_reshaped, {.arguments = RUN}, {"clip.safetensors", "ln_final.weight", "63"}},
    {weight_retyped, {.arguments = RUN}, {"clip.safetensors", "text_projection", "I32"}},
    {scale_overflows, {.arguments = RUN}, {"mnist", "loss", "training.learning_rate"}},
    {weights_cut, {.arguments = RUN}, {"clip.safetensors"}},
    {weights_flipped, {.arguments = RUN}, {"clip.safetensors", "damaged or edited"}},
    {patches_overflow, {.arguments = RUN "method.name=zero_shot"}, {"mnist", "image", "not finite"}},
    {texts_overflow, {.arguments = RUN "method.name=zero_shot"}, {"mnist", "class", "not finite"}},
    {patches_overflow, {.arguments = EMBED "--images " BRAIDED}, {BRAIDED, ".jpg", "not finite"}},
    {texts_overflow, {.arguments = EMBED "--texts vocabulary.txt"}, {"vocabulary.txt:1", "not finite"}},
    {weights_header_overwritten, {.arguments = RUN}, {"clip.safetensors"}},
    {weights_length_overwritten, {.arguments = RUN}, {"clip.safetensors"}},
    {NULL, {.arguments = RUN "model.weights=adapters.safetensors"}, {"adapters.safetensors"}},
    {NULL, {.arguments = RUN "model.weights=data"}, {"data"}},
    {NULL, {.arguments = RUN "model.vocabulary=absent.txt"}, {"model.vocabulary", "absent.txt", "mini"}},
    {NULL, {.arguments = RUN "model.vocabulary=tiny.yaml"}, {"tiny.yaml"}},
    {vocabulary_cut, {.arguments = RUN}, {"vocabulary.txt"}},
    /* data */
    {NULL, {.arguments = RUN "data.root=absent"}, {"absent", "data.root"}},
    {test_image_cut, {.arguments = RUN}, {"braided_0080.jpg"}},
    {training_image_is_text, {.arguments = RUN}, {"braided_0040.jpg"}},
    {image_claims_to_be_huge, {.arguments = RUN}, {"braided_0080.jpg"}},
    {image_missing, {.arguments = RUN}, {"braided_0080.jpg"}},
    {idx_cut, {.arguments = RUN}, {"t10k-images-idx3-ubyte"}},
    {idx_of_another_type, {.arguments = RUN}, {"train-images-idx3-ubyte"}},
    {idx_claims_to_be_huge, {.arguments = RUN}, {"train-images-idx3-ubyte"}},
    {pickle_cut, {.arguments = RUN "data.order=cifar100"}, {"cifar-100-python/"}},
    {pickle_with_code, {.arguments = RUN "data.order=cifar100"}, {"cifar-100-python/"}},
    {cifar_cut, {.arguments = RUN "data.order=cifar100"}, {"cifar-100-binary/"}},
    {class_emptied, {.arguments = RUN}, {"eurosat", "forest", "no images"}},
    {class_not_utf8, {.arguments = RUN}, {"data/MNIST/classnames.txt:5", "byte 3", "UTF-8"}},
    {class_of_a_megabyte, {.arguments = RUN}, {"data/MNIST/classnames.txt:10", "1000000"}},
    {class_without_a_label, {.arguments = RUN}, {"mnist", "\"ten\"", "no images"}},
    {class_missing, {.arguments = RUN}, {"eurosat", "class folders", "9"}},
    /* suites */
    {NULL, {.arguments = "run tini --quiet"}, {"tini", "did you mean \"mini\""}},
    {NULL, {.arguments = "run absent.yaml --quiet"}, {"absent.yaml", "there is no such suite"}},
    {yaml_list_open, {.arguments = RUN}, {"tiny.yaml:"}},
    {yaml_with_tab, {.arguments = RUN}, {"tiny.yaml:"}},
    {yaml_of_zeros, {.arguments = RUN}, {"tiny.yaml"}},
    {yaml_with_unknown_key, {.arguments = RUN}, {"tiny.yaml:4", "evry", "every"}},
    {yaml_with_word_for_number, {.arguments = RUN}, {"tiny.yaml:2", "every", "often"}},
    {yaml_that_never_merges, {.arguments = RUN}, {"tiny.yaml:3", "every", "from 1"}},
    {NULL, {.arguments = RUN "merge.every=0"}, {"merge", "every", "\"0\""}},
    {NULL, {.arguments = RUN "merge.polcy=none"}, {"polcy", "did you mean \"policy\""}},
    {NULL, {.arguments = RUN "data.order=mnist,mmnist"}, {"mmnist", "did you mean \"mnist\""}},
    {NULL, {.arguments = RUN "data.order=mnist,mnist"}, {"mnist"}},
    {NULL, {.arguments = RUN "adapter.experts=2 adapter.top_k=3"}, {"adapter.top_k", "3", "2 experts"}},
    {NULL, {.arguments = RUN "adapter.experts=2 adapter.freeze_top_k=3"}, {"adapter.freeze_top_k", "3", "2 experts"}},
    {NULL,
     {.arguments = RUN "training.on_nan=skip merge.policy=similar"},
     {"training.on_nan=skip", "similar", "on_nan=stop"}},
    {NULL, {.arguments = RUN "adapter.bottleneck=10"}, {"adapter.bottleneck", "10"}},
    {NULL, {.arguments = RUN "--backend gpu"}, {"backend", "gpu", "cuda"}},
    /* results */
    {database_is_text, {.arguments = RUN}, {"results.db"}},
    {database_cut, {.arguments = RUN}, {"results.db"}},
    {database_is_newer, {.arguments = RUN}, {"results.db", "newer", "99"}},
    {database_is_newer, {.arguments = "query matrix results.db"}, {"results.db", "newer", "99"}},
    {database_looks_older, {.arguments = RUN}, {"error: results.db", "expected schema 1, found 3", "another program"}},
    {database_looks_older,
     {.arguments = "query results.db runs"},
     {"error: results.db", "expected schema 1, found 3", "backup"}},
    {database_looks_new,
     {.arguments = "query results.db runs"},
     {"error: results.db", "expected schema 1, found 0", "backup"}},
    {database_is_a_folder, {.arguments = RUN}, {"results.db"}},
    {folder_is_a_file, {.arguments = RUN}, {"runs"}},
    {NULL, {.arguments = RUN "run.database=/proc/results.db"}, {"/proc/results.db"}},
    {NULL, {.arguments = RUN "run.folder=/proc/runs"}, {"/proc/runs"}},
    {read_only, {.arguments = RUN, .unprivileged = true}, {"results.db", "read-only"}},
    {read_only, {.arguments = RUN "run.database=open/results.db", .unprivileged = true}, {"runs", "Permission denied"}},
    {read_only,
     {.arguments = "embed --weights clip.safetensors --images " BRAIDED " --out x.safetensors", .unprivileged = true},
     {"x.safetensors"}},
    {read_only, {.arguments = "data mini small --quiet", .unprivileged = true}, {"small", "Permission denied"}},
    {NULL, {.arguments = RUN, .file_limit = 16384}, {"results.db"}},
    {NULL, {.arguments = RUN LARGE_FILES, .file_limit = 2 << 20}, {"resume.safetensors"}},
    {NULL, {.arguments = RUN LARGE_FILES "run.checkpoint_every=0", .file_limit = 2 << 20}, {".safetensors"}},
    {NULL, {.arguments = "data mini small --quiet", .file_limit = 100000}, {"small"}},
    /* eval */
    {NULL, {.arguments = EVAL}, {"--adapters", "--weights", "neither"}},
    {NULL,
     {.arguments = EVAL "--adapters adapters.safetensors --weights clip.safetensors"},
     {"--adapters", "--weights", "both"}},
    {NULL, {.arguments = EVAL "--adapters absent.safetensors --router own"}, {"absent.safetensors"}},
    {NULL, {.arguments = EVAL "--adapters adapters.safetensors"}, {"--router", "own", "0, 1, 2"}},
    {NULL, {.arguments = EVAL "--adapters adapters.safetensors --router 7"}, {"router 7", "0, 1, 2"}},
    {NULL, {.arguments = EVAL "--weights clip.safetensors --router 1"}, {"--router 1", "--adapters"}},
    {NULL, {.arguments = EVAL "--weights adapters.safetensors"}, {"adapters.safetensors"}},
    {NULL,
     {.arguments = EVAL "--adapters adapters.safetensors --router own"},
     {"does not name the tasks of its routers", "0, 1, 2", "--router position"}},
    {NULL, {.arguments = EVAL "--adapters adapters.safetensors --router auto"}, {"no selector", "auto"}},
    {adapters_cut, {.arguments = EVAL "--adapters adapters.safetensors --router position"}, {"adapters.safetensors"}},
    {adapters_flipped,
     {.arguments = EVAL "--adapters adapters.safetensors --router position"},
     {"adapters.safetensors", "damaged or edited"}},
    {expert_spoilt,
     {.arguments = EVAL "--adapters adapters.safetensors --router position"},
     {"adapters.safetensors", "visual.transformer.resblocks.1.adaptmlp_list.3.down_proj.weight", "nan"}},
    {patches_overflow, {.arguments = EVAL "--weights clip.safetensors"}, {"mnist", "image", "not finite"}},
    {expert_reshaped,
     {.arguments = EVAL "--adapters adapters.safetensors --router position"},
     {"adapters.safetensors", "list.2.up_proj.bias"}},
    {router_dropped,
     {.arguments = EVAL "--adapters adapters.safetensors --router position"},
     {"adapters.safetensors", "router 1", "0, 2"}},
};

static void is_told_once(void **state)
{
    const struct fault *fault = *state;
    struct workshop workshop;
    workshop_open(&workshop);
    if (fault->prepare != NULL)
        fault->prepare(&workshop);
    program_fails(&workshop, &fault->launch, fault->words);
    chmod(workshop.scratch.path, 0755);
    workshop_close(&workshop);
}

__attribute__((constructor)) static void faults_are_listed(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        test_list(__LINE__, (struct CMUnitTest){.name = faults[i].launch.arguments,
                                                .test_func = is_told_once,
                                                .initial_state = (void *)&faults[i]});
}

/* --- More than one process, and more than one try --- */

static void expect_stopped(const struct workshop *w, struct process *process, int signal_number)
{
    kill(process->id, signal_number);
    struct outcome outcome = program_wait(process);
    if (outcome.exit_status != 128 + signal_number)
        fail_msg("expected exit status %d, found %d, ended by signal %d: %s", 128 + signal_number, outcome.exit_status,
                 outcome.signal, outcome.errors.data);
    assert_null(strstr(outcome.errors.data, "error:"));
    assert_non_null(strstr(outcome.errors.data, "stopped"));
    assert_int_equal(workshop_leftovers(w), 0);
    outcome_free(&outcome);
    outcome = program_run(w, &(struct launch){.arguments = "query runs results.db --format csv"});
    assert_int_equal(outcome.exit_status, 0);
    assert_non_null(strstr(outcome.out.data, "stopped"));
    outcome_free(&outcome);
}

#define LONG RUN "training.iterations=1000000 training.learning_rate=1e-6"

static void stops_cleanly(int signal_number)
{
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = LONG});
    free(program_wait_for_file(&process, &workshop, "runs/*/seed1/resume.safetensors"));
    program_complains(&workshop, &(struct launch){.arguments = LONG},
                      (const char *const[]){"results.db", "in use", NULL});
    expect_stopped(&workshop, &process, signal_number);
    workshop_close(&workshop);
}

TEST(a_rival_is_refused_and_interrupt_stops)
{
    stops_cleanly(SIGINT);
}

TEST(a_rival_is_refused_and_termination_stops)
{
    stops_cleanly(SIGTERM);
}

TEST(a_loss_that_is_not_finite_is_no_mistake_of_the_command_line)
{
    struct workshop workshop;
    workshop_open(&workshop);
    scale_overflows(&workshop);
    struct outcome outcome = program_ends(&workshop, RUN, 1);
    assert_int_equal(words_count(outcome.errors.data, "training.learning_rate"), 1);
    outcome_free(&outcome);
    workshop_close(&workshop);
}

TEST(what_overflows_is_no_result)
{
    struct workshop workshop;
    workshop_open(&workshop);
    patches_overflow(&workshop);
    program_fails(&workshop, &(struct launch){.arguments = RUN "method.name=zero_shot"},
                  (const char *const[]){"not finite", NULL});
    rows_expect(&workshop, "results.db", "SELECT status, (SELECT count(*) FROM evaluations) FROM runs", "failed,0\n");
    workshop_close(&workshop);
}

TEST(a_class_may_be_a_name_alone)
{
    struct workshop workshop;
    workshop_open(&workshop);
    class_without_a_label(&workshop);
    struct outcome outcome =
        program_run(&workshop, &(struct launch){.arguments = "run tiny.yaml data.on_missing=skip --dry-run"});
    assert_int_equal(outcome.exit_status, 0);
    assert_non_null(strstr(outcome.errors.data, "1 of 11 classes"));
    assert_non_null(strstr(outcome.errors.data, "\"ten\""));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

static void expect_healthy(const struct workshop *w)
{
    struct text health = {0};
    char *path = workshop_path(w, "results.db");
    rows_query(path, "PRAGMA integrity_check", &health);
    assert_string_equal(health.data, "ok\n");
    text_free(&health);
    free(path);
}

TEST(a_full_disk_that_is_emptied_does_no_harm)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_fails(&workshop, &(struct launch){.arguments = RUN LARGE_FILES, .file_limit = 2 << 20},
                  (const char *const[]){NULL});
    expect_healthy(&workshop);
    struct outcome outcome =
        program_run(&workshop, &(struct launch){.arguments = "query runs results.db --format csv"});
    assert_non_null(strstr(outcome.out.data, "failed"));
    outcome_free(&outcome);
    program_succeeds(&workshop, RUN LARGE_FILES);
    outcome = program_run(&workshop, &(struct launch){.arguments = "query runs results.db --format csv"});
    assert_non_null(strstr(outcome.out.data, "finished"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}
