/* Stop and go on: whatever the instant of a kill and whatever the number of threads, a run ends with the same bits. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/rng.h"

enum { STARTS_MOST = 200, INTERRUPTIONS_LEAST = 3, ROUNDS_MOST = 5 };

/* What a run leaves: its rows, and the weights it trained. */
struct result {
    struct text rows;
    struct bytes weights;
};

static void wait_seconds(double seconds)
{
    time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* The run is finished, its database whole, and nothing is left of its stops. */
static void read_result(const struct workshop *workshop, struct result *result)
{
    struct error error;
    struct text standing = {0}, health = {0};
    char *database = workshop_path(workshop, "results.db"),
         *weights = workshop_find(workshop, "runs/*/seed1/[aw]*.safetensors");
    rows_query(database, "SELECT run, status FROM runs", &standing);
    rows_query(database, "PRAGMA integrity_check", &health);
    assert_string_equal(standing.data, "1,finished\n");
    assert_string_equal(health.data, "ok\n");
    assert_null(workshop_find(workshop, "runs/*/seed1/resume.safetensors"));
    assert_non_null(weights);
    *result = (struct result){0};
    rows_read(database, &result->rows);
    assert_int_equal(file_read(weights, FILE_LIMIT, &result->weights, &error), OK);
    text_free(&standing);
    text_free(&health);
    free(database);
    free(weights);
}

static void free_result(struct result *result)
{
    text_free(&result->rows);
    bytes_free(&result->weights);
}

/* The first line that differs says more than the whole. */
static void expect_same_rows(const char *expected, const char *found)
{
    size_t line = 0;
    for (size_t i = 0; expected[i] != 0 || found[i] != 0; i++) {
        if (expected[i] != found[i])
            fail_msg("rows differ: expected %.*s, found %.*s", (int)strcspn(expected + line, "\n"), expected + line,
                     (int)strcspn(found + line, "\n"), found + line);
        line = expected[i] == '\n' ? i + 1 : line;
    }
}

static void expect_same(const struct result *expected, const struct result *found)
{
    expect_same_rows(expected->rows.data, found->rows.data);
    assert_int_equal(found->weights.size, expected->weights.size);
    assert_memory_equal(found->weights.data, expected->weights.data, expected->weights.size);
}

/* --- Interruptions --- */

/* After INT and TERM the run has stopped by itself. */
static void expect_interrupted(const struct outcome *outcome, int signal_number)
{
    if (signal_number == SIGKILL) {
        assert_int_equal(outcome->signal, SIGKILL);
        return;
    }
    if (outcome->signal == signal_number) /* before the program could ask for signals */
        return;
    if (outcome->exit_status != 128 + signal_number)
        fail_msg("expected exit status %d, found %d: %s", 128 + signal_number, outcome->exit_status,
                 outcome->errors.data);
    assert_null(strstr(outcome->errors.data, "error:"));
}

/* Starts the run and sends it a signal after the delay; true when it had finished before. */
static bool run_for(const struct workshop *workshop, const char *arguments, double delay, int signal_number)
{
    struct process process;
    program_start(&process, workshop, &(struct launch){.arguments = arguments});
    wait_seconds(delay);
    kill(process.id, signal_number);
    struct outcome outcome = program_wait(&process);
    bool finished = outcome.exit_status == 0;
    if (!finished)
        expect_interrupted(&outcome, signal_number);
    outcome_free(&outcome);
    return finished;
}

/* Runs to the end with interruptions at random instants; returns how many there were. */
static int run_interrupted(const struct workshop *workshop, const char *arguments, double seconds,
                           const struct rng *rng, uint64_t round, bool gently)
{
    for (int i = 0; i < STARTS_MOST; i++) {
        double longest = seconds * (0.6 + 0.05 * i); /* the machine may have become slower */
        uint64_t draw = round * STARTS_MOST + (uint64_t)i;
        int signal_number = !gently ? SIGKILL : i % 2 == 0 ? SIGINT : SIGTERM;
        if (run_for(workshop, arguments, longest * (double)rng_uniform(rng, draw), signal_number))
            return i;
    }
    fail_msg("%s: not finished after %d starts", arguments, STARTS_MOST);
    return 0;
}

static void run_whole(const char *arguments, struct result *result, double *seconds)
{
    struct workshop workshop;
    workshop_open(&workshop);
    double start = clock_seconds();
    program_succeeds(&workshop, arguments);
    *seconds = clock_seconds() - start;
    read_result(&workshop, result);
    workshop_close(&workshop);
}

/* Rounds until there were enough interruptions; a finished run may have been lucky. */
static void expect_same_bits_after(const char *arguments, bool gently)
{
    struct result whole, interrupted;
    double seconds;
    int interruptions = 0;
    run_whole(arguments, &whole, &seconds);
    struct rng rng = rng_make(gently ? 1 : 2, RNG_ORDER, 0, 0);
    for (uint64_t round = 0; round < ROUNDS_MOST && interruptions < INTERRUPTIONS_LEAST; round++) {
        struct workshop workshop;
        workshop_open(&workshop);
        interruptions += run_interrupted(&workshop, arguments, seconds, &rng, round, gently);
        read_result(&workshop, &interrupted);
        expect_same(&whole, &interrupted);
        free_result(&interrupted);
        workshop_close(&workshop);
    }
    assert_true(interruptions >= INTERRUPTIONS_LEAST);
    free_result(&whole);
}

#define ADAPTERS "run tiny.yaml --quiet training.iterations=30 "
#define WEIGHTS "run tiny.yaml --quiet method.name=continual_ft training.iterations=15 training.learning_rate=1e-3"
#define ALONE "run tiny.yaml --quiet method.name=finetune method.train=adapters training.iterations=15"

TEST(adapters_survive_kills)
{
    expect_same_bits_after(ADAPTERS, false);
}

TEST(adapters_survive_stops)
{
    expect_same_bits_after(ADAPTERS, true);
}

TEST(whole_models_survive_kills)
{
    expect_same_bits_after(WEIGHTS, false);
}

TEST(tasks_alone_survive_kills)
{
    expect_same_bits_after(ALONE, false);
}

TEST(threads_change_nothing)
{
    static const char *const arguments[] = {ADAPTERS "run.threads=1", ADAPTERS "run.threads=3",
                                            ADAPTERS "run.threads=2 run.evaluation_batch=7 run.cache=none",
                                            ADAPTERS "run.cache=disk run.cache_folder=cache"};
    struct result expected, found;
    double seconds;
    run_whole(arguments[0], &expected, &seconds);
    for (size_t i = 1; i < sizeof arguments / sizeof *arguments; i++) {
        run_whole(arguments[i], &found, &seconds);
        expect_same(&expected, &found);
        free_result(&found);
    }
    free_result(&expected);
}

TEST(settings_change_something)
{
    struct result one, other;
    double seconds;
    run_whole(ALONE, &one, &seconds);
    run_whole(ALONE " training.label_smoothing=0.1", &other, &seconds);
    assert_int_equal(one.weights.size, other.weights.size);
    assert_memory_not_equal(one.weights.data, other.weights.data, one.weights.size);
    free_result(&one);
    free_result(&other);
}

/* --- A resume file that is damaged --- */

static void flip_a_bit(struct bytes *bytes)
{
    bytes->data[bytes->size / 2] ^= 0x10;
}

static void edit_the_place(struct bytes *bytes)
{
    uint8_t *at = memmem(bytes->data, bytes->size, "\"task\":\"", 8);
    assert_non_null(at);
    at[8] ^= 1;
}

static void cut(struct bytes *bytes)
{
    bytes->size = 1000;
}

/* Afterwards the file is as it was. */
static void damage_and_fail(const struct workshop *workshop, const char *path, void (*damage)(struct bytes *))
{
    struct bytes good, bad;
    struct error error;
    assert_int_equal(file_read(path, FILE_LIMIT, &good, &error), OK);
    assert_int_equal(file_read(path, FILE_LIMIT, &bad, &error), OK);
    damage(&bad);
    assert_int_equal(file_write(path, bad.data, bad.size, &error), OK);
    program_fails(workshop, &(struct launch){.arguments = ADAPTERS},
                  (const char *const[]){"resume.safetensors", "delete", NULL});
    assert_int_equal(file_write(path, good.data, good.size, &error), OK);
    bytes_free(&good);
    bytes_free(&bad);
}

TEST(damaged_resume_files_are_told_and_can_be_deleted)
{
    struct workshop workshop;
    struct process process;
    struct result whole, afresh;
    double seconds;
    workshop_open(&workshop);
    run_whole(ADAPTERS, &whole, &seconds);
    program_start(&process, &workshop, &(struct launch){.arguments = ADAPTERS});
    char *resume = program_wait_for_file(&process, &workshop, "runs/*/seed1/resume.safetensors");
    kill(process.id, SIGINT);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    outcome_free(&outcome);
    damage_and_fail(&workshop, resume, flip_a_bit);
    damage_and_fail(&workshop, resume, edit_the_place);
    damage_and_fail(&workshop, resume, cut);
    assert_int_equal(unlink(resume), 0);
    program_succeeds(&workshop, ADAPTERS);
    read_result(&workshop, &afresh);
    expect_same(&whole, &afresh);
    free_result(&whole);
    free_result(&afresh);
    free(resume);
    workshop_close(&workshop);
}
