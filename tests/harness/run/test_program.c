#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "harness/commands/command.h"
#include "harness/run/program.h"
#include "results/query.h"
#include "tests/test.h"

/* What the program said and how it ended, started by a shell as a user would. */
struct outcome {
    int exit_status;
    struct text out, errors;
};

static void read_all(const char *path, struct text *text)
{
    char part[4096];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text_add(text, "%s", "");
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        text_add_bytes(text, part, got);
    fclose(file);
}

static struct outcome run(const char *arguments)
{
    struct outcome outcome = {0};
    char folder[] = "/tmp/mtil-program-XXXXXX", command[1024], out[64], errors[64];
    assert_non_null(mkdtemp(folder));
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(errors, sizeof errors, "%s/errors", folder);
    snprintf(command, sizeof command, "%s >%s 2>%s %s", PROGRAM, out, errors, arguments);
    int ended = system(command);
    assert_true(WIFEXITED(ended));
    outcome.exit_status = WEXITSTATUS(ended);
    read_all(out, &outcome.out);
    read_all(errors, &outcome.errors);
    unlink(out);
    unlink(errors);
    rmdir(folder);
    return outcome;
}

static void free_outcome(struct outcome *outcome)
{
    text_free(&outcome->out);
    text_free(&outcome->errors);
}

/* Succeeds, says nothing on standard error and has part in its answer. */
static void expect_answer(const char *arguments, const char *part)
{
    struct outcome outcome = run(arguments);
    assert_string_equal(outcome.errors.data, "");
    assert_int_equal(outcome.exit_status, 0);
    if (strstr(outcome.out.data, part) == NULL)
        assert_string_equal(outcome.out.data, part);
    free_outcome(&outcome);
}

/* Status 0, and standard error is that. */
static void expect_note(const char *arguments, const char *note)
{
    struct outcome outcome = run(arguments);
    assert_int_equal(outcome.exit_status, 0);
    assert_string_equal(outcome.errors.data, note);
    free_outcome(&outcome);
}

/* Fails with the status, nothing on standard output, and one line "mtil: error: …" that has part in it. */
static void expect_error(const char *arguments, int exit_status, const char *part)
{
    static const char prefix[] = "mtil: error: ";
    struct outcome outcome = run(arguments);
    assert_int_equal(outcome.exit_status, exit_status);
    assert_string_equal(outcome.out.data, "");
    assert_memory_equal(outcome.errors.data, prefix, sizeof prefix - 1);
    assert_ptr_equal(strchr(outcome.errors.data, '\n'), outcome.errors.data + outcome.errors.size - 1);
    if (strstr(outcome.errors.data, part) == NULL)
        assert_string_equal(outcome.errors.data, part);
    free_outcome(&outcome);
}

TEST(overview_lists_every_command)
{
    expect_answer("--version", *program_commit() != 0 ? "mtil " MTIL_VERSION " (" : "mtil " MTIL_VERSION "\n");
    expect_answer("--version", program_commit());
    for (size_t i = 0; commands[i] != NULL; i++) {
        expect_answer("--help", commands[i]->name);
        expect_answer("help", commands[i]->summary);
    }
    struct outcome outcome = run("");
    assert_int_equal(outcome.exit_status, 2);
    assert_string_equal(outcome.out.data, "");
    assert_non_null(strstr(outcome.errors.data, "Usage: mtil COMMAND"));
    free_outcome(&outcome);
}

/* A quotation that is not closed in its line is a string of the source that was cut in the wrong place. */
static void expect_closed_quotations(const char *arguments)
{
    struct outcome outcome = run(arguments);
    bool open = false;
    for (const char *p = outcome.out.data; *p != 0; p++) {
        open ^= *p == '"';
        if (*p == '\n' && open)
            fail_msg("%s: a quotation is not closed before: %.60s", arguments, p);
    }
    free_outcome(&outcome);
}

static void expect_help(const struct command *command)
{
    char arguments[64];
    snprintf(arguments, sizeof arguments, "%s --help", command->name);
    expect_answer(arguments, "Example:\n");
    expect_answer(arguments, command->summary);
    expect_closed_quotations(arguments);
    snprintf(arguments, sizeof arguments, "help %s", command->name);
    expect_answer(arguments, "Example:\n");
    snprintf(arguments, sizeof arguments, "%s --no-such-option", command->name);
    expect_error(arguments, 2, "unknown option \"no-such-option\"");
}

TEST(every_command_has_help_with_an_example)
{
    for (size_t i = 0; commands[i] != NULL; i++) {
        expect_help(commands[i]);
        for (size_t j = 0; commands[i]->subcommands != NULL && commands[i]->subcommands[j] != NULL; j++) {
            char arguments[64];
            snprintf(arguments, sizeof arguments, "%s --help", commands[i]->name);
            expect_answer(arguments, commands[i]->subcommands[j]->summary);
            expect_help(commands[i]->subcommands[j]);
        }
    }
    expect_error("help qurey", 2, "did you mean \"query\"?");
}

TEST(mistakes_are_usage_errors)
{
    expect_error("qurey", 2, "unknown command \"qurey\" (did you mean \"query\"?)");
    expect_error("list", 2, "see mtil list --help");
    expect_error("list suite", 2, "did you mean \"suites\"?");
    expect_error("data", 2, "see mtil data --help");
    expect_error("data --quiet mini", 2, "right after it");
    expect_error("data mini", 2, "see mtil data mini --help");
    expect_error("data mnii somewhere", 2, "did you mean \"mini\"?");
    expect_error("query matrix x.sqlite --format xml", 2, "expected one of table|csv|json|markdown|latex");
}

TEST(lists_come_in_every_format)
{
    expect_answer("list policies", "most_used");
    expect_answer("list policies", "coactivated");
    expect_answer("list policies", "downstream");
    expect_answer("list policies --format json", "\"most_used\"");
    expect_answer("list datasets --format csv", "\nmnist,");
    expect_answer("list suites", "name");
    expect_answer("list suites", "CoOp's splits, no CIFAR-100"); /* the end of a long line: there is no terminal */
    expect_answer("list methods -v", "loss = cross-entropy + l2 · Σ (θ − θ_{t−1})²");
    expect_answer("list methods -v", "method.exemplars");
    expect_answer("list policies -v", "whole number from 2 to 16, default 2: number of the most used experts");
    expect_answer("list combiners -v --format csv", "ties,combine.density,\"number from 0 to 1, default 0.2: ");
    expect_answer("list datasets -v", "tasks.NAME.");
    expect_answer("list suites -v", "table    Park");
    expect_answer("list selectors -v", "selector.quantile");
    expect_answer("help list", "combiners|datasets|experts|freezing|heads|keys|methods|models|optimizers|policies|"
                               "questions|routers|schedules|selectors|suites");
    expect_error("list suites mini", 2, "expected nothing after suites, found \"mini\"");
}

TEST(keys_are_listed_with_type_range_and_default)
{
    expect_answer("list keys training --format csv",
                  "\ntraining.batch,whole number,1 to 65536,64,,images per iteration\r");
    expect_answer("list keys method --format csv", "\"name: ");
    expect_answer("list keys data --format csv", "\ndata.first,whole number,0 to 65535,0,split_by: order,");
    expect_answer("list keys --format csv", "\ntasks.NAME.batch,whole number,1 to 65536,training.batch,,");
    expect_answer("list keys --format csv",
                  "\nmerge.target,choice,least_used|least_used_any|least_used_ever|random_free|noise,least_used,");
    expect_answer("list keys --format csv", "\nselector.alexnet,file,,,,");
    expect_error("list keys mereg", 2, "did you mean \"merge\"?");
}

/* Without data and weights. */
TEST(a_dry_run_shows_settings)
{
    expect_answer("run mtil --dry-run model.weights=/no/clip.safetensors", "\n  weights: /no/clip.safetensors\n");
    expect_answer(
        "run mini --dry-run model.weights=/no/clip.safetensors data.root=.",
        "\n# time, memory and disk cannot be estimated: model.weights: there is no file /no/clip.safetensors");
    expect_answer(
        "run mini --dry-run selector=alexnet selector.alexnet=/no/alexnet.pth data.root=.",
        "cannot be estimated: selector.alexnet: there is no file /no/alexnet.pth; expected AlexNet's weights");
    expect_answer("run mini --dry-run data.root=/no/data",
                  "cannot be estimated: data.root: there is no folder /no/data");
    expect_error("run mini --dry-run data.root=/no/data adapter.top_k=23", 2, "top_k");
    expect_error("run mini data.root=/no/data", 1, "data.root");
}

TEST(keys_have_short_names)
{
    expect_answer("run mini --dry-run data.root=/no/data seed=7", "\n  seeds: [7]\n");
    expect_answer("run mini --dry-run data.root=/no/data seed=7,8 policy=random every=3", "\n  seeds: [7, 8]\n");
    expect_answer("run mini --dry-run data.root=/no/data policy=random every=3", "\n  policy: random\n  every: 3\n");
    expect_note("run mini --dry-run data.root=/no/data policy=none every=3 seed=4",
                "mtil: merge.every changes nothing: nothing reads it with these settings\n");
    expect_answer("run mini --dry-run data.root=/no/data method=continual_ft epochs=2 training.iterations=1000",
                  "\n  epochs: 2\n");
    expect_error("run mini batch=3", 2, "batch is a key of training and of selector; expected training.batch or");
    expect_error("data get mnist there --from /mnt/data", 2, "expected an address, as http://server/data, found");
    expect_error("run mini seed=1..3 --dry-run", 2, "mtil sweep takes 1..3");
    expect_error("run mini lr=1e-3", 2, "unknown section or key \"lr\" (did you mean \"training.learning_rate\"?)");
    expect_error("run mini learning_rte=1e-3", 2, "(did you mean \"training.learning_rate\"?)");
    expect_error("run mini training.lr=1e-3", 2, "training: unknown key \"lr\" (did you mean \"learning_rate\"?)");
    expect_error("run mini bs=8", 2, "\"training.batch\"?");
    expect_error("run mini LR=8", 2, "\"training.learning_rate\"?");
    expect_error("run mini wd=8", 2, "\"training.weight_decay\"?");
    expect_error("run mini num_epochs=8", 2, "\"training.epochs\"?");
    expect_error("run mini num_experts=8", 2, "\"adapter.experts\"?");
    expect_error("run mini topk=8", 2, "\"adapter.top_k\"?");
    expect_error("run mini merg=8", 2, "\"merge\"?");
    expect_error("sweep mini --grid lr=1,2", 2, "unknown key \"lr\" (did you mean \"training.learning_rate\"?)");
}

TEST(doctor_knows_its_libraries)
{
    expect_answer("doctor", "oneDNN");
    expect_answer("doctor", "OpenBLAS");
    expect_answer("doctor", "  cpu            cpu (");
    expect_answer("doctor", "  cpu in bf16    cpu"); /* its unit, or that there is none */
    expect_answer("doctor", "  cuda           ");    /* a device, or why there is none */
    expect_error("doctor --data /no/such/folder", 1, "/no/such/folder");
    expect_error("data get dtd flowers", 2, "found flowers, which is a dataset");
    setenv("MTIL_ISA", "baseline", 1);
    expect_answer("doctor", "  cpu            cpu (baseline, ");
    expect_answer("doctor",
                  "bf16 needs a processor with AMX or AVX-512 BF16, and MTIL_ISA allows no more than baseline");
    setenv("MTIL_ISA", "portable", 1);
    expect_answer("doctor", "  cpu in bf16    cpu (baseline, bf16 on portable, ");
    setenv("MTIL_ISA", "avx9", 1);
    expect_answer("doctor", "MTIL_ISA: expected an instruction set of this machine");
    unsetenv("MTIL_ISA");
    expect_error("data mini /dev/null/mini", 1, "/dev/null");
}

TEST(files_that_are_no_databases_are_named)
{
    char path[] = "/tmp/mtil-program-XXXXXX.sqlite", arguments[128];
    int file = mkstemps(path, 7);
    assert_true(file >= 0 && write(file, "this is not a database, and longer than a header of one ........", 64) == 64);
    close(file);
    snprintf(arguments, sizeof arguments, "query matrix %s", path);
    expect_error(arguments, 1, path);
    unlink(path);
    expect_error(arguments, 1, path);
}

/* An empty results database; the caller unlinks it. */
static void create_database(char *path)
{
    struct error error = {.code = OK};
    struct store *store;
    close(mkstemps(path, 7));
    if (store_open(&store, path, STORE_WRITE, &error) != OK)
        fail_msg("%s", error.message);
    store_close(store);
}

static void remove_database(const char *path)
{
    char lock[128];
    snprintf(lock, sizeof lock, "%s-lock", path);
    unlink(path);
    unlink(lock);
}

TEST(exports_say_what_they_lack)
{
    char path[] = "/tmp/mtil-program-XXXXXX.sqlite", arguments[160];
    create_database(path);
    snprintf(arguments, sizeof arguments, "export %s", path);
    expect_error(arguments, 2, "expected --csv FOLDER, found no folder");
    snprintf(arguments, sizeof arguments, "export %s --csv %s-csv", path, path);
    expect_error(arguments, 2, "no run is chosen");
    remove_database(path);
    expect_error("export /no/such/file --csv csv", 1, "/no/such/file");
}

TEST(queries_take_database_and_question_in_either_order)
{
    char path[] = "/tmp/mtil-program-XXXXXX.sqlite", arguments[160];
    static const char *const asked[] = {"query %s runs --format csv --quiet", "query runs %s --format csv --quiet",
                                        "query %s 'SELECT 1 AS run' --format csv",
                                        "query 'SELECT 1 AS run' %s --format csv"};
    create_database(path);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        snprintf(arguments, sizeof arguments, asked[i], path);
        expect_answer(arguments, "run");
    }
    static const char *const mistaken[] = {"query %s rnus", "query rnus %s"};
    for (size_t i = 0; i < sizeof mistaken / sizeof *mistaken; i++) {
        snprintf(arguments, sizeof arguments, mistaken[i], path);
        expect_error(arguments, 2, "unknown question \"rnus\" (did you mean \"runs\"?)");
    }
    snprintf(arguments, sizeof arguments, "query %s", path);
    expect_error(arguments, 2, "WHAT is a question such as leaderboard");
    snprintf(arguments, sizeof arguments, "query %s 'DELETE FROM runs'", path);
    expect_error(arguments, 2, "a query only reads");
    snprintf(arguments, sizeof arguments, "query %s 'SELECT 1' --suite mini", path);
    expect_error(arguments, 2, "--suite is for questions that read chosen");
    remove_database(path);
    expect_error("query", 2, "expected [DATABASE] WHAT");
    expect_error("query runs /no/such/file", 1, "/no/such/file");
    expect_error("query /no/such/file runs", 1, "/no/such/file");
}

TEST(published_numbers_need_no_database)
{
    expect_answer("query --published", "MA, published (Park, Tables 2 and 3)");
    expect_answer("query --published --format latex", "\\midrule\nLast & MA, published");
    expect_answer("query --published \"SELECT count(*) AS accuracies FROM published WHERE source = 'ZSCL, Table 3'\" "
                  "--format csv",
                  "accuracies\r\n264\r\n");
    char path[] = "/tmp/mtil-program-XXXXXX.sqlite", arguments[160];
    create_database(path);
    snprintf(arguments, sizeof arguments, "query %s --published", path);
    expect_answer(arguments, "Park, published");
    remove_database(path);
}

TEST(databases_are_joined)
{
    char one[] = "/tmp/mtil-program-XXXXXX.sqlite", other[] = "/tmp/mtil-program-XXXXXX.sqlite", arguments[200];
    create_database(one);
    create_database(other);
    snprintf(arguments, sizeof arguments, "merge-db %s %s --format csv", one, other);
    expect_answer(arguments, "database,runs,added,already there,completed,conflicts\r\n/tmp/mtil-program-");
    snprintf(arguments, sizeof arguments, "merge-db %s %s", one, one);
    expect_error(arguments, 2, "is the output and an input as well");
    snprintf(arguments, sizeof arguments, "merge-db %s /no/such/file", one);
    expect_error(arguments, 1, "/no/such/file");
    snprintf(arguments, sizeof arguments, "merge-db %s", one);
    expect_error(arguments, 2, "expected OUT IN...");
    remove_database(one);
    remove_database(other);
}

TEST(full_disk_is_an_error)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    struct outcome outcome = run("doctor >/dev/full");
    assert_int_equal(outcome.exit_status, 1);
    assert_string_equal(outcome.errors.data,
                        "mtil: error: standard output: could not be written to the end: No space left on device\n");
    free_outcome(&outcome);
}
