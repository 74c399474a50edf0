/* run.cache: whatever it is, whoever shares it and whatever happens to its files, a run ends with the same bits. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define RUN "run tiny.yaml --quiet "
#define DISK " run.cache=disk run.cache_folder=cache"
#define EVAL "eval tiny.yaml --quiet --format csv --adapters adapters.safetensors --router position"
#define SHOW "data cache show --quiet --format csv --folder cache"

/* --- Runs --- */

struct result {
    struct text rows;
    struct bytes weights;
};

/* Of the run whose database and folder have this name. */
static void read_result(const struct workshop *workshop, const char *name, struct result *result)
{
    struct error error;
    char *pattern = path_format("%s/*/seed1/adapters*.safetensors", name), *weights = workshop_find(workshop, pattern),
         *database = path_format("%s/%s.db", workshop->scratch.path, name);
    assert_non_null(weights);
    *result = (struct result){0};
    rows_read(database, &result->rows);
    assert_int_equal(file_read(weights, FILE_LIMIT, &result->weights, &error), OK);
    free(pattern);
    free(weights);
    free(database);
}

static void free_result(struct result *result)
{
    text_free(&result->rows);
    bytes_free(&result->weights);
}

static void expect_result(const struct workshop *workshop, const char *name, const struct result *expected)
{
    struct result found;
    read_result(workshop, name, &found);
    assert_string_equal(found.rows.data, expected->rows.data);
    assert_int_equal(found.weights.size, expected->weights.size);
    assert_memory_equal(found.weights.data, expected->weights.data, expected->weights.size);
    free_result(&found);
}

/* A run with a database and a folder of its own; the caller frees. */
static char *run_called(const char *name, const char *cache)
{
    char *arguments = path_format(RUN "run.database=%s.db run.folder=%s %s", name, name, cache);
    assert_non_null(arguments);
    return arguments;
}

static void run(const struct workshop *workshop, const char *name, const char *cache)
{
    char *arguments = run_called(name, cache);
    program_succeeds(workshop, arguments);
    free(arguments);
}

/* --- Answers and the cache's folder --- */

/* The program ends well, having said this and warned so often. */
static void expect_answer(const struct workshop *workshop, const struct launch *launch, const char *expected,
                          size_t warnings)
{
    struct outcome outcome = program_run(workshop, launch);
    if (outcome.exit_status != 0 || strcmp(outcome.out.data, expected) != 0 ||
        words_count(outcome.errors.data, "mtil: ") != warnings ||
        words_count(outcome.errors.data, "warning: ") != warnings)
        fail_msg("mtil %s: expected %zu warnings and %s, found exit status %d, %s, %s", launch->arguments, warnings,
                 expected, outcome.exit_status, outcome.errors.data, outcome.out.data);
    outcome_free(&outcome);
}

static char *answer(const struct workshop *workshop, const char *arguments)
{
    struct outcome outcome = program_run(workshop, &(struct launch){.arguments = arguments});
    assert_int_equal(outcome.exit_status, 0);
    char *out = strdup(outcome.out.data);
    assert_non_null(out);
    outcome_free(&outcome);
    return out;
}

/* How many files of images are in this state; features have files, too. */
static size_t files(const struct workshop *workshop, const char *state)
{
    char *list = answer(workshop, SHOW), *rest;
    size_t count = 0;
    for (char *line = strtok_r(list, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        count += strstr(line, ".pixels") != NULL && strstr(line, state) != NULL;
    free(list);
    return count;
}

static size_t files_of_any_kind(const struct workshop *workshop)
{
    char *list = answer(workshop, SHOW);
    size_t count = words_count(list, "cache/");
    free(list);
    return count;
}

/* --- The tests --- */

TEST(every_cache_gives_the_same_rows)
{
    struct workshop workshop;
    struct result expected;
    workshop_open(&workshop);
    run(&workshop, "none", "run.cache=none");
    read_result(&workshop, "none", &expected);
    run(&workshop, "memory", "run.cache=memory");
    expect_result(&workshop, "memory", &expected);
    run(&workshop, "little", "run.cache=memory run.cache_megabytes=0");
    expect_result(&workshop, "little", &expected);
    run(&workshop, "cold", DISK);
    expect_result(&workshop, "cold", &expected);
    assert_int_equal(files(&workshop, ",complete,"), 5); /* MNIST's training images are there without decoding */
    run(&workshop, "warm", DISK " run.threads=2");
    expect_result(&workshop, "warm", &expected);
    free_result(&expected);
    workshop_close(&workshop);
}

TEST(processes_that_start_together_share_a_cold_cache)
{
    enum { PROCESSES = 3 };
    static const char *const names[PROCESSES] = {"first", "second", "third"};
    struct process processes[PROCESSES];
    struct workshop workshop;
    struct result expected;
    workshop_open(&workshop);
    run(&workshop, "none", "run.cache=none");
    read_result(&workshop, "none", &expected);
    for (size_t i = 0; i < PROCESSES; i++) {
        char *arguments = run_called(names[i], DISK);
        program_start(&processes[i], &workshop, &(struct launch){.arguments = arguments});
        free(arguments);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        struct outcome outcome = program_wait(&processes[i]);
        assert_string_equal(outcome.errors.data, "");
        assert_int_equal(outcome.exit_status, 0);
        outcome_free(&outcome);
        expect_result(&workshop, names[i], &expected);
    }
    assert_int_equal(files(&workshop, ",complete,"), 5);
    assert_int_equal(files(&workshop, ""), 5);
    free_result(&expected);
    workshop_close(&workshop);
}

/* Of another image, and of the same bytes with another time. */
TEST(changed_images_are_decoded_again)
{
    struct workshop workshop;
    struct result before, after;
    struct stat first, second;
    workshop_open(&workshop);
    workshop_own_data(&workshop, "eurosat");
    run(&workshop, "before", DISK " data.order=eurosat");
    read_result(&workshop, "before", &before);
    char *cached = workshop_find(&workshop, "cache/eurosat-train-whole-*.pixels");
    assert_non_null(cached);
    assert_int_equal(stat(cached, &first), 0);
    char *command = path_format("cd '%s/data/eurosat/2750' && cat SeaLake/SeaLake_1.jpg | tee Forest/*.jpg >copy && "
                                "rm copy && touch -d 2001-01-01 Forest/*.jpg",
                                workshop.scratch.path);
    assert_int_equal(system(command), 0);
    run(&workshop, "none", "run.cache=none data.order=eurosat");
    read_result(&workshop, "none", &after);
    assert_string_not_equal(before.rows.data, after.rows.data);
    run(&workshop, "after", DISK " data.order=eurosat");
    expect_result(&workshop, "after", &after);
    assert_int_equal(stat(cached, &second), 0);
    assert_int_not_equal(first.st_ino, second.st_ino);
    assert_int_equal(files(&workshop, ",complete,"), 2);
    free(command);
    free(cached);
    free_result(&before);
    free_result(&after);
    workshop_close(&workshop);
}

TEST(what_is_cleared_is_decoded_again)
{
    struct workshop workshop;
    workshop_open(&workshop);
    char *expected = answer(&workshop, EVAL " run.cache=none");
    for (int i = 0; i < 2; i++) {
        expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK}, expected, 0);
        assert_int_equal(files(&workshop, ",complete,"), 3);
        program_succeeds(&workshop, "data cache clear elsewhere --folder cache --quiet");
        assert_int_equal(files(&workshop, ",complete,"), 3);
        program_succeeds(&workshop, "data cache clear data --folder cache --quiet");
        assert_int_equal(files_of_any_kind(&workshop), 0);
    }
    free(expected);
    workshop_close(&workshop);
}

TEST(damaged_files_are_written_anew)
{
    static const char *const names[] = {"mnist-test-32-", "eurosat-test-32-", "dtd-test-32-"};
    struct workshop workshop;
    workshop_open(&workshop);
    char *expected = answer(&workshop, EVAL " run.cache=none");
    expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK}, expected, 0);
    for (size_t i = 0; i < 3; i++) { /* half of one, the head alone of another, nothing of the third */
        char *pattern = path_format("cache/%s*.pixels", names[i]), *path = workshop_find(&workshop, pattern);
        assert_non_null(path);
        assert_int_equal(truncate(path, i == 0 ? 20000 : i == 1 ? 8192 : 0), 0);
        free(pattern);
        free(path);
    }
    assert_int_equal(files(&workshop, ",damaged,"), 3);
    expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK}, expected, 0);
    assert_int_equal(files(&workshop, ",complete,"), 3);
    free(expected);
    workshop_close(&workshop);
}

/* Once of images, once of features. */
TEST(without_room_a_warning_says_so_once)
{
    struct workshop workshop;
    workshop_open(&workshop);
    char *expected = answer(&workshop, EVAL " run.cache=none");
    expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK, .file_limit = 10000}, expected, 2);
    assert_int_equal(files(&workshop, ""), 0);
    expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK " run.cache_disk_megabytes=0"}, expected, 2);
    assert_int_equal(files(&workshop, ""), 0);
    scratch_write_text(&workshop.scratch, "file", "no folder");
    expect_answer(&workshop, &(struct launch){.arguments = EVAL " run.cache=disk run.cache_folder=file/x"}, expected,
                  2);
    free(expected);
    workshop_close(&workshop);
}

/* The program runs as nobody, who may not see the folder that the project is in. */
TEST(a_read_only_folder_is_used_and_told_once)
{
    struct workshop workshop;
    workshop_open(&workshop);
    workshop_own_data(&workshop, "MNIST");
    workshop_own_data(&workshop, "eurosat");
    workshop_own_data(&workshop, "dtd");
    char *expected = answer(&workshop, EVAL " run.cache=none");
    expect_answer(&workshop, &(struct launch){.arguments = EVAL DISK}, expected, 0);
    assert_int_equal(chmod(scratch_file(&workshop.scratch, "cache"), 0555), 0);
    struct launch launch = {.arguments = EVAL DISK, .unprivileged = true};
    expect_answer(&workshop, &launch, expected, 0);
    assert_int_equal(chmod(scratch_file(&workshop.scratch, "cache"), 0755), 0);
    char *cached = workshop_find(&workshop, "cache/dtd-test-32-*.pixels");
    assert_int_equal(unlink(cached), 0);
    assert_int_equal(chmod(scratch_file(&workshop.scratch, "cache"), 0555), 0);
    expect_answer(&workshop, &launch, expected, 1);
    assert_int_equal(chmod(scratch_file(&workshop.scratch, "cache"), 0755), 0);
    assert_int_equal(files(&workshop, ""), 2);
    free(cached);
    free(expected);
    workshop_close(&workshop);
}

/* Enough images that a file is seen while it is written. */
static void add_images(const struct workshop *workshop)
{
    char *command = path_format("cd '%s/data/eurosat/2750/Forest' && for i in $(seq 4000); do "
                                "ln -s Forest_1.jpg more_$i.jpg; done",
                                workshop->scratch.path);
    workshop_own_data(workshop, "eurosat");
    assert_int_equal(system(command), 0);
    free(command);
}

TEST(kills_while_a_file_is_written_leave_no_wrong_one)
{
    enum { KILLS = 5 };
    struct workshop workshop;
    size_t unfinished = 0;
    workshop_open(&workshop);
    add_images(&workshop);
    char *expected = answer(&workshop, EVAL " data.order=eurosat run.cache=none");
    for (long i = 0; i < KILLS; i++) {
        struct process process;
        program_start(&process, &workshop, &(struct launch){.arguments = EVAL " data.order=eurosat" DISK});
        free(program_wait_for_file(&process, &workshop, "cache/eurosat-test-32-*"));
        nanosleep(&(struct timespec){.tv_nsec = i * 4000000}, NULL);
        assert_int_equal(kill(process.id, SIGKILL), 0);
        struct outcome outcome = program_wait(&process);
        outcome_free(&outcome);
        unfinished += files(&workshop, ",unfinished,");
        assert_int_equal(files(&workshop, ",damaged,"), 0);
        if (i + 1 < KILLS)
            program_succeeds(&workshop, "data cache clear --folder cache --quiet");
    }
    assert_true(unfinished > 0);
    expect_answer(&workshop, &(struct launch){.arguments = EVAL " data.order=eurosat" DISK}, expected, 0);
    assert_int_equal(files(&workshop, ",complete,"), 1);
    assert_int_equal(files(&workshop, ""), 1);
    free(expected);
    workshop_close(&workshop);
}
