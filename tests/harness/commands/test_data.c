/* mtil data check, show and cache, from their command lines to their answers. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"
#include "datasets/cache/cache.h"
#include "datasets/image/image.h"
#include "harness/commands/command.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static struct scratch scratch;

/* What a command answered, and the warnings and notes that it gave. */
struct outcome {
    status result;
    char *out;
    struct text log;
    struct error error;
};

static void keep_message(void *context, enum log_level level, const char *message)
{
    text_add(context, "%s%s\n", level == LOG_WARN ? "warning: " : "", message);
}

/* Runs the command line, split at blanks; "ROOT" stands for the scratch folder. */
static struct outcome run(const char *words, struct stop *stop)
{
    struct outcome outcome = {.result = OK};
    char copy[512], *arguments[16], *rest;
    size_t used, size;
    int count = 0;
    const struct command *command;
    struct command_line line;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        arguments[count++] = strcmp(word, "ROOT") == 0 ? scratch.path : word;
    arguments[count] = NULL;
    assert_int_equal(command_find((const char *const *)arguments, (size_t)count, &command, &used, &outcome.error), OK);
    outcome.result = command_parse(command, count - (int)used + 1, arguments + used - 1, &line, &outcome.error);
    FILE *out = open_memstream(&outcome.out, &size);
    struct log log = {.write = keep_message, .context = &outcome.log, .least = LOG_INFO};
    text_add(&outcome.log, "%s", "");
    if (outcome.result == OK) {
        struct command_call call = {.options = line.options,
                                    .arguments = line.arguments,
                                    .argument_count = line.argument_count,
                                    .out = out,
                                    .log = &log,
                                    .stop = stop};
        outcome.result = command->run(&call, &outcome.error);
        command_line_free(&line);
    }
    fclose(out);
    return outcome;
}

static void free_outcome(struct outcome *outcome)
{
    free(outcome->out);
    text_free(&outcome->log);
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected \"%s\" in: %s", part, text);
}

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    scratch_write_png(&scratch, "food-101/images/ash/1.jpg", 4, 4, 1);
    scratch_write_png(&scratch, "food-101/images/ash/2.jpg", 4, 4, 2);
    scratch_write_text(&scratch, "food-101/meta/train.json", "{\"ash\": [\"ash/1\"]}");
    scratch_write_text(&scratch, "food-101/meta/test.json", "{\"ash\": [\"ash/2\"]}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

TEST_WITH(other_sizes_alone_are_told_but_fit, set_up, tear_down)
{
    struct outcome outcome = run("data check ROOT --format csv", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "food,food-101,torchvision,train,1,1,75750,1,1,1,0,0,0,,0,differs");
    expect_in(outcome.out, "food,food-101,torchvision,test,1,1,25250,1,1,1,0,0,0,0,0,differs");
    expect_in(outcome.log.data, "food: published 101 classes, 75750 + 25250 images; found 1 classes, 1 + 1\n");
    free_outcome(&outcome);
    outcome = run("data check ROOT --strict", NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    expect_in(outcome.error.message, "1 of 1 datasets differ");
    free_outcome(&outcome);
}

TEST_WITH(unfit_datasets_fail_with_their_names, set_up, tear_down)
{
    scratch_write_text(&scratch, "food-101/images/ash/2.jpg", "no image");
    scratch_write_text(&scratch, "dtd/classnames.txt", "x\n");
    struct outcome outcome = run("data check ROOT", NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    expect_in(outcome.error.message, "2 of 2 datasets are unfit: dtd, food");
    expect_in(outcome.log.data, "warning: food: ");
    expect_in(outcome.log.data, "food-101/images/ash/2.jpg: expected a JPEG, PNG, GIF, WebP or BMP image");
    expect_in(outcome.log.data, "dtd/labels/train1.txt: cannot open for reading");
    expect_in(outcome.out, "unfit");
    free_outcome(&outcome);
    outcome = run("data check ROOT --dataset dtd", NULL);
    expect_in(outcome.error.message, "1 of 1 datasets are unfit: dtd;");
    free_outcome(&outcome);
}

TEST_WITH(problems_are_a_table_of_their_own, set_up, tear_down)
{
    json_error_t wrong;
    scratch_write_png(&scratch, "food-101/images/ash/2.jpg", 4, 4, 1);
    struct outcome outcome = run("data check ROOT --problems --json", NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    json_t *rows = json_loads(outcome.out, 0, &wrong);
    assert_int_equal(json_array_size(rows), 2);
    const json_t *row = json_array_get(rows, 0);
    assert_string_equal(json_string_value(json_object_get(row, "dataset")), "food");
    assert_string_equal(json_string_value(json_object_get(row, "part")), "test");
    assert_string_equal(json_string_value(json_object_get(row, "problem")), "duplicate");
    assert_string_equal(json_string_value(json_object_get(row, "what")), "food-101/images/ash/2.jpg");
    assert_string_equal(json_string_value(json_object_get(row, "detail")), "food-101/images/ash/1.jpg");
    assert_null(strstr(outcome.log.data, "warning"));
    json_decref(rows);
    free_outcome(&outcome);
}

TEST_WITH(clipped_greys_are_counted, set_up, tear_down)
{
    struct bytes gray;
    struct error error;
    assert_int_equal(file_read(FIXTURES "/../fuzz/corpus/image/gray16.png", 1 << 20, &gray, &error), OK);
    scratch_write(&scratch, "food-101/images/ash/1.jpg", gray.data, gray.size);
    scratch_write(&scratch, "own/train/ash/1.png", gray.data, gray.size);
    scratch_write_png(&scratch, "own/test/ash/2.png", 4, 4, 1);
    bytes_free(&gray);
    struct outcome outcome = run("data check ROOT --format csv", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "food,food-101,torchvision,train,1,1,75750,1,1,1,0,0,0,,1,differs");
    expect_in(outcome.log.data, "warning: food: 1 images are 16-bit grey");
    expect_in(outcome.log.data, "warning: own: 1 images are 16-bit grey");
    free_outcome(&outcome);
}

TEST_WITH(class_folders_are_found, set_up, tear_down)
{
    for (unsigned i = 0; i < 10; i++) {
        char name[64];
        snprintf(name, sizeof name, "pets/%s/%u.png", i % 2 == 0 ? "cat" : "dog", i);
        scratch_write_png(&scratch, name, 4, 4, i);
    }
    scratch_write_png(&scratch, "parts/train/cat/1.png", 4, 4, 1);
    scratch_write_png(&scratch, "parts/test/cat/2.png", 4, 4, 1); /* its pixels are in train */
    scratch_write_png(&scratch, "album/1.png", 4, 4, 1);          /* no classes */
    scratch_write_png(&scratch, "dtd.download/a/1.png", 4, 4, 1);
    scratch_write_png(&scratch, "dtd.download/b/1.png", 4, 4, 1);
    struct outcome outcome = run("data check ROOT --format csv", NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    expect_in(outcome.error.message, "1 of 3 datasets are unfit: parts;");
    expect_in(outcome.out, "folder,pets,torchvision,train,2,8,");
    expect_in(outcome.log.data, "warning: parts: the test image parts/test/cat/2.png has the pixels");
    assert_null(strstr(outcome.out, "album"));
    expect_in(outcome.log.data, "train and test with such: album\n");
    assert_null(strstr(outcome.out, "download"));
    free_outcome(&outcome);
    char words[512];
    snprintf(words, sizeof words, "data check %s --format csv", scratch_file(&scratch, "pets"));
    outcome = run(words, NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "folder,.,torchvision,train,2,8,");
    free_outcome(&outcome);
}

TEST_WITH(coop_splits_are_checked_where_they_are_asked_for_or_alone, set_up, tear_down)
{
    scratch_write_png(&scratch, "dtd/images/ash/1.jpg", 4, 4, 1);
    scratch_write_png(&scratch, "dtd/images/ash/2.jpg", 4, 4, 2);
    scratch_write_text(
        &scratch, "dtd/split_zhou_DescribableTextures.json",
        "{\"train\": [[\"ash/1.jpg\", 0, \"ash\"]], \"val\": [], \"test\": [[\"ash/2.jpg\", 0, \"ash\"]]}");
    struct outcome outcome = run("data check ROOT --format csv", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "dtd,dtd,coop,train,1,1,2820,");
    expect_in(outcome.out, "food,food-101,torchvision,");
    free_outcome(&outcome);
    outcome = run("data check ROOT --split torchvision", NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    expect_in(outcome.error.message, "unfit: dtd;");
    free_outcome(&outcome);
}

TEST_WITH(mistakes_are_explained, set_up, tear_down)
{
    struct outcome outcome = run("data check ROOT --dataset foood", NULL);
    assert_int_equal(outcome.result, ERROR_ARGUMENT);
    expect_in(outcome.error.message, "did you mean \"food\"?");
    free_outcome(&outcome);
    outcome = run("data show mnist --split coop", NULL);
    assert_int_equal(outcome.result, ERROR_ARGUMENT);
    expect_in(outcome.error.message, "the dataset mnist has no option split, found \"coop\"");
    free_outcome(&outcome);
    outcome = run("data check /dev/null", NULL);
    assert_int_equal(outcome.result, ERROR_IO);
    expect_in(outcome.error.message, "/dev/null: expected a folder with datasets, found no folder");
    free_outcome(&outcome);
}

TEST_WITH(page_shows_images_with_labels_and_prompts, set_up, tear_down)
{
    scratch_write_text(&scratch, "food-101/classnames.txt", "p\xc3\xa2t\xc3\xa9\n");
    char words[512];
    struct image page;
    struct error error;
    snprintf(words, sizeof words, "data show food --root ROOT --part test --format csv --out %s",
             scratch_file(&scratch, "page.png"));
    struct outcome outcome = run(words, NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out,
              "0,food-101/images/ash/2.jpg,0,p\xc3\xa2t\xc3\xa9,\"a photo of a p\xc3\xa2t\xc3\xa9, a type of food.\"");
    assert_int_equal(image_decode_file(&page, scratch_file(&scratch, "page.png"), &error), OK);
    assert_true(page.width > 240 && page.height > 240);
    image_free(&page);
    free_outcome(&outcome);
    scratch_write_text(&scratch, "food-101/images/ash/1.jpg", "no image");
    snprintf(words, sizeof words, "data show food --root ROOT --out %s", scratch_file(&scratch, "none.png"));
    outcome = run(words, NULL);
    assert_int_equal(outcome.result, ERROR_FORMAT);
    expect_in(outcome.error.message, "food-101/images/ash/1.jpg");
    assert_false(file_exists(scratch_file(&scratch, "none.png")));
    free_outcome(&outcome);
}

/* The scratch folder is the data's root and the cache's folder at once. */
static void make_cache_file(void)
{
    struct cache_settings settings = {.kind = CACHE_DISK, .folder = scratch.path, .disk_limit = 1 << 30, .threads = 1};
    struct dataset *dataset;
    struct cache *cache;
    struct cache_part *part;
    struct error error;
    assert_int_equal(dataset_open(&dataset, "food", scratch.path, NULL, NULL, &error), OK);
    assert_int_equal(cache_create(&cache, &settings, &error), OK);
    assert_int_equal(cache_open(cache, dataset, SPLIT_TEST, 8, &part, &error), OK);
    cache_close(part);
    cache_destroy(cache);
    dataset_close(dataset);
}

TEST_WITH(cache_files_are_shown_and_cleared, set_up, tear_down)
{
    make_cache_file();
    scratch_write_text(&scratch, "notes.txt", "mine");
    struct outcome outcome = run("data cache show --format csv --folder ROOT", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "food,test,8,1,");
    expect_in(outcome.out, "complete");
    expect_in(outcome.log.data, "1 file,");
    free_outcome(&outcome);
    outcome = run("data cache clear /elsewhere --folder ROOT", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "removed 0 files");
    free_outcome(&outcome);
    outcome = run("data cache clear ROOT --folder ROOT", NULL);
    assert_int_equal(outcome.result, OK);
    expect_in(outcome.out, "removed 1 file,");
    free_outcome(&outcome);
    assert_true(file_exists(scratch_file(&scratch, "notes.txt")));
    outcome = run("data cache show --folder ROOT", NULL);
    expect_in(outcome.log.data, "0 files");
    free_outcome(&outcome);
}

TEST(no_cache_folder_is_told)
{
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    struct outcome outcome = run("data cache clear", NULL);
    assert_int_equal(outcome.result, ERROR_ARGUMENT);
    expect_in(outcome.error.message, "--folder");
    free_outcome(&outcome);
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
}

TEST_WITH(stopped_commands_have_no_answer, set_up, tear_down)
{
    char words[512];
    struct stop stop;
    atomic_init(&stop.signal, 2);
    struct outcome outcome = run("data check ROOT", &stop);
    assert_int_equal(outcome.result, ERROR_STOPPED);
    assert_string_equal(outcome.out, "");
    free_outcome(&outcome);
    snprintf(words, sizeof words, "data show food --root ROOT --out %s", scratch_file(&scratch, "none.png"));
    outcome = run(words, &stop);
    assert_int_equal(outcome.result, ERROR_STOPPED);
    assert_false(file_exists(scratch_file(&scratch, "none.png")));
    free_outcome(&outcome);
}
