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

/* What the last command answered, and the warnings and notes that it gave. */
static struct {
    char *out;
    struct text log;
    struct error error;
} said;

static void keep_message(void *context, enum log_level level, const char *message)
{
    text_add(context, "%s%s\n", level == LOG_WARN ? "warning: " : "", message);
}

static void forget(void)
{
    free(said.out);
    said.out = NULL;
    text_free(&said.log);
}

/* Runs the command line, split at blanks; "ROOT" in front of a word stands for the scratch folder. */
static status run(const char *words, struct stop *stop)
{
    char copy[512], paths[16][512], *arguments[16], *rest;
    size_t used, size;
    int count = 0;
    const struct command *command;
    struct command_line line;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        bool root = strncmp(word, "ROOT", 4) == 0;
        snprintf(paths[count], sizeof *paths, "%s%s", root ? scratch.path : "", root ? word + 4 : word);
        arguments[count] = paths[count];
        count++;
    }
    arguments[count] = NULL;
    forget();
    assert_int_equal(command_find((const char *const *)arguments, (size_t)count, &command, &used, &said.error), OK);
    status result = command_parse(command, count - (int)used + 1, arguments + used - 1, &line, &said.error);
    FILE *out = open_memstream(&said.out, &size);
    struct log log = {.write = keep_message, .context = &said.log, .least = LOG_INFO};
    text_add(&said.log, "%s", "");
    if (result == OK) {
        struct command_call call = {.options = line.options,
                                    .arguments = line.arguments,
                                    .argument_count = line.argument_count,
                                    .out = out,
                                    .log = &log,
                                    .stop = stop};
        result = command->run(&call, &said.error);
        command_line_free(&line);
    }
    fclose(out);
    return result;
}

static void expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected \"%s\" in: %s", part, text);
}

/* The command succeeds, or fails with that status and message. */
static void must_answer(const char *words)
{
    if (run(words, NULL) != OK)
        fail_msg("%s: %s", words, said.error.message);
}

static void must_refuse(const char *words, status expected, const char *message)
{
    assert_int_equal(run(words, NULL), expected);
    expect_in(said.error.message, message);
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
    forget();
    scratch_remove(&scratch);
    return 0;
}

#define SCRATCH_TEST(name) TEST_WITH(name, set_up, tear_down)

SCRATCH_TEST(other_sizes_alone_are_told_but_fit)
{
    must_answer("data check ROOT --format csv");
    expect_in(said.out, "food,food-101,torchvision,train,1,1,75750,1,1,1,0,0,0,,0,differs");
    expect_in(said.out, "food,food-101,torchvision,test,1,1,25250,1,1,1,0,0,0,0,0,differs");
    expect_in(said.log.data, "food: published 101 classes, 75750 + 25250 images; found 1 classes, 1 + 1\n");
    must_refuse("data check ROOT --strict", ERROR_FORMAT, "1 of 1 datasets differ");
}

SCRATCH_TEST(unfit_datasets_fail_with_their_names)
{
    scratch_write_text(&scratch, "food-101/images/ash/2.jpg", "no image");
    scratch_write_text(&scratch, "dtd/classnames.txt", "x\n");
    must_refuse("data check ROOT", ERROR_FORMAT, "2 of 2 datasets are unfit: dtd, food");
    expect_in(said.log.data, "warning: food: ");
    expect_in(said.log.data, "food-101/images/ash/2.jpg: expected a JPEG, PNG, GIF, WebP or BMP image");
    expect_in(said.log.data, "dtd/labels/train1.txt: cannot open for reading");
    expect_in(said.out, "unfit");
    must_refuse("data check ROOT --dataset dtd", ERROR_FORMAT, "1 of 1 datasets are unfit: dtd;");
}

SCRATCH_TEST(problems_are_a_table_of_their_own)
{
    json_error_t wrong;
    scratch_write_png(&scratch, "food-101/images/ash/2.jpg", 4, 4, 1);
    must_refuse("data check ROOT --problems --json", ERROR_FORMAT, "unfit: food");
    json_t *rows = json_loads(said.out, 0, &wrong);
    assert_int_equal(json_array_size(rows), 2);
    const json_t *row = json_array_get(rows, 0);
    assert_string_equal(json_string_value(json_object_get(row, "dataset")), "food");
    assert_string_equal(json_string_value(json_object_get(row, "part")), "test");
    assert_string_equal(json_string_value(json_object_get(row, "problem")), "duplicate");
    assert_string_equal(json_string_value(json_object_get(row, "what")), "food-101/images/ash/2.jpg");
    assert_string_equal(json_string_value(json_object_get(row, "detail")), "food-101/images/ash/1.jpg");
    assert_null(strstr(said.log.data, "warning"));
    json_decref(rows);
}

SCRATCH_TEST(clipped_greys_are_counted)
{
    struct bytes gray;
    struct error error;
    assert_int_equal(file_read(FIXTURES "/../fuzz/corpus/image/gray16.png", 1 << 20, &gray, &error), OK);
    scratch_write(&scratch, "food-101/images/ash/1.jpg", gray.data, gray.size);
    scratch_write(&scratch, "own/train/ash/1.png", gray.data, gray.size);
    scratch_write_png(&scratch, "own/test/ash/2.png", 4, 4, 1);
    bytes_free(&gray);
    must_answer("data check ROOT --format csv");
    expect_in(said.out, "food,food-101,torchvision,train,1,1,75750,1,1,1,0,0,0,,1,differs");
    expect_in(said.log.data, "warning: food: 1 images are 16-bit grey");
    expect_in(said.log.data, "warning: own: 1 images are 16-bit grey");
}

SCRATCH_TEST(class_folders_are_found)
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
    must_refuse("data check ROOT --format csv", ERROR_FORMAT, "1 of 3 datasets are unfit: parts;");
    expect_in(said.out, "folder,pets,torchvision,train,2,8,");
    expect_in(said.log.data, "warning: parts: the test image parts/test/cat/2.png has the pixels");
    assert_null(strstr(said.out, "album"));
    expect_in(said.log.data, "train and test with such: album\n");
    assert_null(strstr(said.out, "download"));
    must_answer("data check ROOT/pets --format csv");
    expect_in(said.out, "folder,.,torchvision,train,2,8,");
}

SCRATCH_TEST(coop_splits_are_checked_where_they_are_asked_for_or_alone)
{
    scratch_write_png(&scratch, "dtd/images/ash/1.jpg", 4, 4, 1);
    scratch_write_png(&scratch, "dtd/images/ash/2.jpg", 4, 4, 2);
    scratch_write_text(
        &scratch, "dtd/split_zhou_DescribableTextures.json",
        "{\"train\": [[\"ash/1.jpg\", 0, \"ash\"]], \"val\": [], \"test\": [[\"ash/2.jpg\", 0, \"ash\"]]}");
    must_answer("data check ROOT --format csv");
    expect_in(said.out, "dtd,dtd,coop,train,1,1,2820,");
    expect_in(said.out, "food,food-101,torchvision,");
    must_refuse("data check ROOT --split torchvision", ERROR_FORMAT, "unfit: dtd;");
}

SCRATCH_TEST(mistakes_are_explained)
{
    must_refuse("data check ROOT --dataset foood", ERROR_ARGUMENT, "did you mean \"food\"?");
    must_refuse("data show mnist --split coop", ERROR_ARGUMENT,
                "the dataset mnist has no option split, found \"coop\"");
    must_refuse("data check /dev/null", ERROR_IO, "/dev/null: expected a folder with datasets, found no folder");
}

SCRATCH_TEST(page_shows_images_with_labels_and_prompts)
{
    scratch_write_text(&scratch, "food-101/classnames.txt", "p\xc3\xa2t\xc3\xa9\n");
    struct image page;
    struct error error;
    must_answer("data show food --root ROOT --part test --format csv --out ROOT/page.png");
    expect_in(said.out,
              "0,food-101/images/ash/2.jpg,0,p\xc3\xa2t\xc3\xa9,\"a photo of a p\xc3\xa2t\xc3\xa9, a type of food.\"");
    assert_int_equal(image_decode_file(&page, scratch_file(&scratch, "page.png"), &error), OK);
    assert_true(page.width > 240 && page.height > 240);
    image_free(&page);
    scratch_write_text(&scratch, "food-101/images/ash/1.jpg", "no image");
    must_refuse("data show food --root ROOT --out ROOT/none.png", ERROR_FORMAT, "food-101/images/ash/1.jpg");
    assert_false(file_exists(scratch_file(&scratch, "none.png")));
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

SCRATCH_TEST(cache_files_are_shown_and_cleared)
{
    make_cache_file();
    scratch_write_text(&scratch, "notes.txt", "mine");
    must_answer("data cache show --format csv --folder ROOT");
    expect_in(said.out, "food,test,8,1,");
    expect_in(said.out, "complete");
    expect_in(said.log.data, "1 file,");
    must_answer("data cache clear /elsewhere --folder ROOT");
    expect_in(said.out, "removed 0 files");
    must_answer("data cache clear ROOT --folder ROOT");
    expect_in(said.out, "removed 1 file,");
    assert_true(file_exists(scratch_file(&scratch, "notes.txt")));
    must_answer("data cache show --folder ROOT");
    expect_in(said.log.data, "0 files");
}

TEST(no_cache_folder_is_told)
{
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    must_refuse("data cache clear", ERROR_ARGUMENT, "--folder");
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
}

SCRATCH_TEST(stopped_commands_have_no_answer)
{
    struct stop stop;
    atomic_init(&stop.signal, 2);
    assert_int_equal(run("data check ROOT", &stop), ERROR_STOPPED);
    assert_string_equal(said.out, "");
    assert_int_equal(run("data show food --root ROOT --out ROOT/none.png", &stop), ERROR_STOPPED);
    assert_false(file_exists(scratch_file(&scratch, "none.png")));
}
