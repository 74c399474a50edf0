/* Registry, overrides, splits, and what readers say about roots that are not as they should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"
#include <unistd.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/formats/strings.h"
#include "datasets/prompts.h"
#include "datasets/same_names.h"
#include "datasets/split/split.h"
#include "tests/datasets/scratch.h"

#define ROOTS FIXTURES "/data/roots/"

static struct scratch scratch;

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static struct dataset *open_dataset(const char *name, const char *root)
{
    struct dataset *dataset;
    assert_ok(dataset_open(&dataset, name, root, NULL, NULL, &error));
    return dataset;
}

static void expect_refused(const char *name, const char *words)
{
    struct dataset *dataset;
    struct error error;
    assert_int_not_equal(dataset_open(&dataset, name, scratch.path, NULL, NULL, &error), OK);
    assert_null(dataset);
    if (strstr(error.message, words) == NULL)
        fail_msg("expected \"%s\" in: %s", words, error.message);
}

TEST(test_registry)
{
    const struct dataset_reader *reader;
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(readers[i - 1]->name, readers[i]->name) < 0);
        assert_ok(dataset_reader_find(&reader, readers[i]->name, &error));
        assert_ptr_equal(reader, readers[i]);
        assert_non_null(reader->open);
        assert_true((!reader->listed && reader->coop == NULL) || options_find(reader->options, "on_missing") != NULL);
    }
    assert_fails(dataset_reader_find(&reader, "caltech11", &error), ERROR_ARGUMENT, "did you mean \"caltech101\"");
    assert_fails(dataset_reader_find(&reader, "imagenet-22k-full", &error), ERROR_ARGUMENT, "oxford_pet");
}

TEST(test_found)
{
    const struct dataset_reader *reader;
    assert_ok(dataset_reader_find(&reader, "dtd", &error));
    assert_true(dataset_found(reader, ROOTS "dtd"));
    assert_false(dataset_found(reader, ROOTS "food"));
    assert_false(dataset_found(reader, "/dev/null"));
}

TEST(test_toy)
{
    struct dataset *dataset = open_dataset("toy", NULL);
    struct image image, again;
    int label;
    assert_int_equal(dataset_classes(dataset), 4);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 32);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 16);
    assert_string_equal(dataset_template(dataset, 0), "a photo of a {}.");
    assert_ok(dataset_read(dataset, SPLIT_TEST, 6, &image, &label, &error));
    assert_ok(dataset_read(dataset, SPLIT_TEST, 6, &again, NULL, &error));
    assert_int_equal(label, 2);
    assert_int_equal(label, dataset_label(dataset, SPLIT_TEST, 6));
    assert_memory_equal(image.pixels, again.pixels, 16 * 16 * 3);
    image_free(&again);
    assert_ok(dataset_read(dataset, SPLIT_TRAIN, 6, &again, NULL, &error));
    assert_memory_not_equal(image.pixels, again.pixels, 16 * 16 * 3);
    image_free(&image);
    image_free(&again);
    assert_fails(dataset_read(dataset, SPLIT_TEST, 16, &image, &label, &error), ERROR_ARGUMENT, "");
    dataset_close(dataset);
}

TEST(test_prompts)
{
    static const struct {
        const char *name;
        size_t templates, classes;
    } expected[] = {{"aircraft", 2, 0},   {"caltech101", 34, 101}, {"cifar100", 18, 0}, {"dtd", 8, 0},
                    {"eurosat", 3, 10},   {"flowers", 1, 102},     {"food", 1, 0},      {"mnist", 1, 10},
                    {"oxford_pet", 1, 0}, {"stanford_cars", 9, 0}, {"sun397", 2, 0},    {"cifar10", 18, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct strings templates = {0}, classes = {0};
        prompts_add_templates(expected[i].name, &templates);
        prompts_add_classes(expected[i].name, &classes);
        assert_int_equal(templates.count, expected[i].templates);
        assert_int_equal(classes.count, expected[i].classes);
        strings_free(&templates);
        strings_free(&classes);
    }
    struct strings templates = {0};
    prompts_add_templates("mnist", &templates);
    char *prompt = prompt_format(templates.items[0], "7 - seven");
    strings_free(&templates);
    assert_string_equal(prompt, "a photo of the number: \"7 - seven\".");
    free(prompt);
}

TEST(test_split)
{
    uint32_t order[10];
    static const uint32_t expected[10] = {2, 6, 1, 8, 4, 5, 0, 9, 3, 7};
    split_permutation(42, 10, order);
    assert_memory_equal(order, expected, sizeof order);
    split_permutation(42 + ((uint64_t)1 << 32), 10, order);
    assert_memory_equal(order, expected, sizeof order);
    split_permutation(42, 1, order);
    assert_int_equal(order[0], 0);
    split_permutation(42, 0, order);
    assert_int_equal(split_train_count(8677), 6941);
    assert_int_equal(split_train_count(1), 0);
}

static void remember_warning(void *context, enum log_level level, const char *message)
{
    if (level == LOG_WARN)
        snprintf(context, 512, "%s", message);
}

/* --- overrides --------------------------------------------------------------------------------------------------- */

TEST_WITH(test_class_names_override, set_up, tear_down)
{
    scratch_copy(&scratch, ROOTS "dtd");
    scratch_write_text(&scratch, "dtd/classnames.txt", "Braid\nInter_lace\nDots\nPores\nStain\n");
    scratch_write_text(&scratch, "dtd/templates.txt", "\xef\xbb\xbfsome {} there\r\n{}\r\n");
    struct dataset *dataset = open_dataset("dtd", scratch.path);
    assert_string_equal(dataset_class_name(dataset, 1), "Inter_lace");
    assert_int_equal(dataset_templates(dataset), 2);
    assert_string_equal(dataset_template(dataset, 0), "some {} there");
    dataset_close(dataset);
    scratch_write_text(&scratch, "dtd/templates.txt", "some {} there {}\n");
    expect_refused("dtd", "templates.txt:1");
    scratch_write_text(&scratch, "dtd/classnames.txt", "Braid\n\nDots\nPores\nStain\n");
    expect_refused("dtd", "classnames.txt:2");
    scratch_write_text(&scratch, "dtd/classnames.txt", "Braid\nDots\n");
    expect_refused("dtd", "expected 5 names");
}

static void expect_same(size_t count, size_t first, size_t second, const char *const *names, size_t size)
{
    struct same_names same;
    same_names_find(&same, names, size);
    assert_int_equal(same.count, count);
    assert_int_equal(same.first, first);
    assert_int_equal(same.second, second);
}

TEST(names_that_read_the_same_are_found)
{
    expect_same(0, 0, 0, NULL, 0);
    expect_same(0, 0, 0, (const char *const[]){"a", "b", "a b", "ab", "\xc3\xa5", "\xff"}, 6);
    expect_same(2, 1, 2, (const char *const[]){"b", "a", "a ", "\tA"}, 4);
    expect_same(1, 0, 2,
                (const char *const[]){"a  b", "c",
                                      "a\xc2\xa0"
                                      "b"},
                3);
    expect_same(1, 0, 1, (const char *const[]){"\xc3\x85ngstr\xc3\xb6m", "A\xcc\x8angstro\xcc\x88m"}, 2);
    expect_same(1, 0, 1, (const char *const[]){"\xff", "\xff"}, 2);
}

/* The user's names are an error, with both lines; the dataset's own a warning. */
TEST_WITH(classes_of_one_name_are_reported, set_up, tear_down)
{
    char warning[512] = "";
    struct log log = {.write = remember_warning, .context = warning};
    struct dataset *dataset;
    scratch_copy(&scratch, ROOTS "dtd");
    scratch_write_text(&scratch, "dtd/classnames.txt", "braid\nlace\nDots\nPores\nbraid \n");
    expect_refused("dtd", "/dtd/classnames.txt:5: the class name \"braid \" is that of line 1, \"braid\"");
    scratch_write_png(&scratch, "train/red_fox/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "train/red fox/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "test/red fox/1.png", 2, 2, 0);
    assert_ok(dataset_open(&dataset, "folder", scratch.path, NULL, &log, &error));
    dataset_close(dataset);
    assert_non_null(strstr(warning, "1 of 2 class names repeat those of earlier classes"));
    assert_non_null(strstr(warning, "\"red fox\" (labels 0 and 1)"));
    scratch_write_text(&scratch, "classnames.txt", "fox\nFox\n");
    expect_refused("folder", "classnames.txt:2: ");
}

/* Where names go by position, classnames.txt says how many classes there are. */
TEST_WITH(test_positional_class_names, set_up, tear_down)
{
    for (int class = 'a'; class <= 'c'; class ++) {
        char name[64];
        for (int i = 1; i <= 4; i++) {
            snprintf(name, sizeof name, "caltech101/101_ObjectCategories/%c/image_%04d.jpg", class, i);
            scratch_write_png(&scratch, name, 4, 4, 0x102030U * (unsigned)i);
            snprintf(name, sizeof name, "eurosat/2750/%c/%d.jpg", class, i);
            scratch_write_png(&scratch, name, 4, 4, 0x102030U * (unsigned)i);
        }
    }
    expect_refused("caltech101", "expected 101 category folders, found 3");
    expect_refused("eurosat", "expected 10 class folders, found 3");
    scratch_write_text(&scratch, "caltech101/classnames.txt", "an a\na b\na c\n");
    scratch_write_text(&scratch, "eurosat/classnames.txt", "an a\na b\na c\n");
    for (const char *const *name = (const char *const[]){"caltech101", "eurosat", NULL}; *name != NULL; name++) {
        struct dataset *dataset = open_dataset(*name, scratch.path);
        assert_int_equal(dataset_classes(dataset), 3);
        assert_string_equal(dataset_class_name(dataset, 2), "a c");
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 9);
        assert_int_equal(dataset_size(dataset, SPLIT_TEST), 3);
        dataset_close(dataset);
    }
    scratch_write_text(&scratch, "eurosat/2750/d/readme.txt", "no image");
    scratch_write_text(&scratch, "eurosat/classnames.txt", "an a\na b\na c\nempty\n");
    expect_refused("eurosat", "\"empty\"");
    scratch_copy(&scratch, ROOTS "mnist");
    scratch_write_text(&scratch, "MNIST/classnames.txt", "zero\none\n");
    expect_refused("mnist", "below 2");
}

/* --- what can be wrong ------------------------------------------------------------------------------------------- */

TEST_WITH(test_missing_folder, set_up, tear_down)
{
    const struct dataset_reader *reader;
    assert_ok(dataset_reader_find(&reader, "dtd", &error));
    expect_refused("dtd", "expected a folder \"dtd\" for the dataset dtd, found none");
    assert_int_equal(symlink("dtd", scratch_file(&scratch, "dtd")), 0); /* nobody can look there */
    assert_true(dataset_found(reader, scratch.path));
    expect_refused("dtd", "/dtd: cannot look for the dataset dtd here: Too many levels of symbolic links");
    expect_refused("sun397", "expected a folder \"SUN397\"");
    expect_refused("cifar100", "\"cifar-100-python\" or \"cifar-100-binary\"");
}

TEST_WITH(test_missing_images, set_up, tear_down)
{
    char warning[512] = "";
    struct log log = {.write = remember_warning, .context = warning};
    struct dataset *dataset;
    struct options *options;
    scratch_copy(&scratch, ROOTS "food");
    assert_int_equal(unlink(scratch_file(&scratch, "food-101/images/pho/3093884.jpg")), 0);
    expect_refused("food", "1 of 36 listed images of food are missing: food-101/images/pho/3093884.jpg");
    const struct dataset_reader *reader;
    assert_ok(dataset_reader_find(&reader, "food", &error));
    assert_ok(options_create(&options, reader->options, &error));
    assert_ok(options_set(options, "on_missing", "skip", "test", &error));
    assert_ok(dataset_open(&dataset, "food", scratch.path, options, &log, &error));
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 20);
    assert_int_equal(dataset_missing(dataset), 1);
    assert_non_null(strstr(warning, "3093884"));
    dataset_close(dataset);
    options_destroy(options);
}

TEST_WITH(test_lists_that_climb_out, set_up, tear_down)
{
    scratch_copy(&scratch, ROOTS "dtd");
    scratch_write_text(&scratch, "dtd/dtd/labels/train1.txt", "braided/../../../../secret.jpg\n");
    expect_refused("dtd", "leads out of the folder");
    scratch_copy(&scratch, ROOTS "aircraft");
    scratch_write_text(&scratch, "fgvc-aircraft-2013b/data/images_variant_train.txt", "../x BAE 146-300\n");
    expect_refused("aircraft", "images_variant_train.txt:1");
}

TEST_WITH(test_wrong_lists, set_up, tear_down)
{
    scratch_copy(&scratch, ROOTS "oxford_pet");
    scratch_write_text(&scratch, "oxford-iiit-pet/annotations/trainval.txt", "boxer_1 1 2 1\nbeagle_1 3 2 1\n");
    expect_refused("oxford_pet", "but not 2");
    scratch_write_text(&scratch, "oxford-iiit-pet/annotations/trainval.txt", "boxer_1 1 2 1\nbeagle 2 2 1\n");
    expect_refused("oxford_pet", "line 2");
    scratch_write_text(&scratch, "oxford-iiit-pet/annotations/trainval.txt",
                       "boxer_1 1 2 1\nbeagle_1 4294967298 2 1\n");
    expect_refused("oxford_pet", "line 2");
    scratch_write_text(&scratch, "oxford-iiit-pet/annotations/trainval.txt", "boxer_1 1 2 1\nbeagle_1 2 2\n");
    expect_refused("oxford_pet", "line 2");
    scratch_write_text(&scratch, "oxford-iiit-pet/annotations/trainval.txt", "");
    expect_refused("oxford_pet", "label below 0");
    scratch_copy(&scratch, ROOTS "aircraft");
    scratch_write_text(&scratch, "fgvc-aircraft-2013b/data/images_variant_test.txt", "0204644 Concorde\n");
    expect_refused("aircraft", "Concorde");
    scratch_copy(&scratch, ROOTS "sun397");
    scratch_write_text(&scratch, "SUN397/ClassName.txt", "/a/aquarium\n/p/pulpit\n");
    expect_refused("sun397", "no class \"/a/apartment_building/outdoor\"");
    scratch_write_text(&scratch, "SUN397/ClassName.txt", "aquarium\n");
    expect_refused("sun397", "ClassName.txt:1");
}

TEST_WITH(test_unreadable_image, set_up, tear_down)
{
    struct image image;
    scratch_copy(&scratch, ROOTS "food");
    scratch_write_text(&scratch, "food-101/images/cheese_plate/2953928.jpg", "<html>");
    struct dataset *dataset = open_dataset("food", scratch.path);
    assert_fails(dataset_read(dataset, SPLIT_TRAIN, 0, &image, NULL, &error), ERROR_FORMAT,
                 "food-101/images/cheese_plate/2953928.jpg");
    dataset_close(dataset);
}

static struct error parts_error;

/* --- plain folders ----------------------------------------------------------------------------------------------- */

static struct dataset *open_folder(const char *path, status expected, struct error *error)
{
    const struct dataset_reader *reader;
    struct options *options;
    struct dataset *dataset;
    assert_int_equal(dataset_reader_find(&reader, "folder", error), OK);
    assert_int_equal(options_create(&options, reader->options, error), OK);
    assert_int_equal(options_set(options, "path", path, "test", error), OK);
    assert_int_equal(dataset_open(&dataset, "folder", scratch.path, options, NULL, error), expected);
    options_destroy(options);
    return dataset;
}

TEST_WITH(test_folder_with_parts, set_up, tear_down)
{
    struct error error;
    scratch_write_png(&scratch, "shapes/train/big_square/1.PNG", 3, 3, 0xff0000);
    scratch_write_png(&scratch, "shapes/train/circle/1.png", 3, 3, 0x00ff00);
    scratch_write_png(&scratch, "shapes/train/circle/2.png", 3, 3, 0x00ff00);
    scratch_write_text(&scratch, "shapes/train/circle/notes.txt", "");
    scratch_write_png(&scratch, "shapes/test/circle/1.png", 3, 3, 0x00ff00);
    struct dataset *dataset = open_folder("shapes", OK, &error);
    assert_string_equal(dataset_class_name(dataset, 0), "big square");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 3);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 1);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    char *name = dataset_item_name(dataset, SPLIT_TEST, 0);
    assert_string_equal(name, "shapes/test/circle/1.png");
    free(name);
    dataset_close(dataset);
    scratch_write_png(&scratch, "shapes/test/triangle/1.png", 3, 3, 0x00ff00);
    assert_null(open_folder("shapes", ERROR_FORMAT, &error));
    assert_non_null(strstr(error.message, "triangle"));
    scratch_write_text(&scratch, "shapes/train/triangle/notes.txt", "");
    assert_null(open_folder("shapes", ERROR_FORMAT, &error));
    assert_non_null(strstr(error.message, "\"triangle\" (label 2) of folder has no images to train on"));
}

TEST_WITH(test_folder_without_parts, set_up, tear_down)
{
    struct error error;
    for (int i = 0; i < 10; i++) {
        char name[64];
        snprintf(name, sizeof name, "whole/%s/%d.png", i < 5 ? "a" : "b", i);
        scratch_write_png(&scratch, name, 2, 2, 0);
    }
    struct dataset *dataset = open_folder("whole", OK, &error);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 8);
    char *name = dataset_item_name(dataset, SPLIT_TRAIN, 0); /* item 2 of the permutation of seed 42 */
    assert_string_equal(name, "whole/a/2.png");
    free(name);
    dataset_close(dataset);
    assert_int_equal(symlink(".", scratch_file(&scratch, "whole/a/loop")), 0);
    assert_null(open_folder("whole", ERROR_FORMAT, &error));
    assert_non_null(strstr(error.message, "folders deep"));
}

static size_t count_label(const struct dataset *dataset, enum split split, int label)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset_size(dataset, split); i++)
        count += dataset_label(dataset, split, i) == label;
    return count;
}

TEST_WITH(folder_is_split_by_class, set_up, tear_down)
{
    struct error error;
    char name[64];
    for (int i = 0; i < 61; i++) {
        snprintf(name, sizeof name, "whole/%c/%d.png", 'a' + i / 20, i);
        scratch_write_png(&scratch, name, 2, 2, (unsigned)i);
    }
    struct dataset *dataset = open_folder("whole", OK, &error);
    for (int label = 0; label < 3; label++) {
        assert_int_equal(count_label(dataset, SPLIT_TRAIN, label), 16);
        assert_int_equal(count_label(dataset, SPLIT_TEST, label), 4);
    }
    assert_int_equal(count_label(dataset, SPLIT_TRAIN, 3), 1); /* an only image */
    assert_int_equal(count_label(dataset, SPLIT_TEST, 3), 0);
    dataset_close(dataset);
}

TEST_WITH(folder_reads_or_names_every_file, set_up, tear_down)
{
    static const uint8_t gif[] = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00"
                                 "\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";
    struct error error;
    struct image image;
    scratch_write(&scratch, "all/a/1.gif", gif, sizeof gif - 1);
    scratch_write(&scratch, "all/a/2.GIF", gif, sizeof gif - 1);
    scratch_write_png(&scratch, "all/b/no ending", 2, 2, 0);
    scratch_write_png(&scratch, "all/b/2.png", 2, 2, 0);
    scratch_write_text(&scratch, "all/b/notes.txt", "no image");
    scratch_write_png(&scratch, "all/loose.png", 2, 2, 0);
    scratch_write_png(&scratch, "all/.ipynb_checkpoints/loose-checkpoint.png", 2, 2, 0); /* an editor's: no class */
    scratch_write_png(&scratch, "all/b/.ipynb_checkpoints/2-checkpoint.png", 2, 2, 0);
    scratch_write_text(&scratch, "all/classnames.txt", "x\ny\n");
    struct dataset *dataset = open_folder("all", OK, &error);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN) + dataset_size(dataset, SPLIT_TEST), 4);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++) {
            assert_ok(dataset_read(dataset, (enum split)split, i, &image, NULL, &error));
            image_free(&image);
        }
    assert_string_equal(dataset_left_out(dataset, 0), "loose.png");
    assert_string_equal(dataset_left_out(dataset, 1), "b/notes.txt");
    assert_null(dataset_left_out(dataset, 2));
    dataset_close(dataset);
    scratch_write_text(&scratch, "all/a/3.gif", "<html>"); /* it says that it is an image: reading it is an error */
    assert_int_equal(symlink("absent.png", scratch_file(&scratch, "all/a/4.png")), 0); /* as git-annex leaves it */
    dataset = open_folder("all", OK, &error);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN) + dataset_size(dataset, SPLIT_TEST), 6);
    dataset_close(dataset);
}

static void expect_folder_refused(const char *path, status expected, const char *words)
{
    struct error error;
    assert_null(open_folder(path, expected, &error));
    if (strstr(error.message, words) == NULL)
        fail_msg("expected \"%s\" in: %s", words, error.message);
}

/* The folder is named, what is expected, and what was found. */
TEST_WITH(folders_without_classes_are_refused, set_up, tear_down)
{
    scratch_write_png(&scratch, "my/flat/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "my/flat/2.png", 2, 2, 0);
    expect_folder_refused("my/flat", ERROR_FORMAT,
                          "/my/flat: expected a folder for each class, with its images; found 2 images");
    scratch_write_text(&scratch, "my/empty/notes.txt", "");
    expect_folder_refused("my/empty", ERROR_FORMAT,
                          "/my/empty: expected a folder for each class, with its images; found no folder");
    expect_folder_refused("mi", ERROR_IO, "there is no folder \"mi\" (did you mean \"my\"?)");
    for (const char *const *image = (const char *const[]){"a/1.png", "a/2.png", "b/1.png", "b/2.png", NULL}; *image;
         image++) {
        char name[64];
        snprintf(name, sizeof name, "more/whole/%s", *image);
        scratch_write_png(&scratch, name, 2, 2, 0);
    }
    scratch_write_png(&scratch, "more/parts/train/a/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "more/parts/test/a/1.png", 2, 2, 0);
    expect_folder_refused(
        "more", ERROR_FORMAT,
        "/more: expected a folder for each class, with its images; found class folders within \"parts\"");
    expect_folder_refused("more", ERROR_FORMAT, "path: more/parts");
    scratch_write_png(&scratch, "half/train/a/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "half/val/a/1.png", 2, 2, 0);
    expect_folder_refused("half", ERROR_FORMAT, "found train without test beside it");
    expect_folder_refused("more/../half", ERROR_ARGUMENT, "path: expected a folder below the data root");
    expect_folder_refused(scratch_file(&scratch, "half"), ERROR_ARGUMENT,
                          "path: expected a folder below the data root");
}

static struct dataset *open_parts(const char *path, const char *train, const char *test, status expected)
{
    struct dataset *dataset;
    struct options *options;
    const struct dataset_reader *reader;
    struct error error;
    assert_ok(dataset_reader_find(&reader, "folder", &error));
    assert_ok(options_create(&options, reader->options, &error));
    options_set(options, "path", path, NULL, &error);
    options_set(options, "train", train, NULL, &error);
    options_set(options, "test", test, NULL, &error);
    assert_int_equal(dataset_open(&dataset, "folder", scratch.path, options, NULL, &parts_error), expected);
    options_destroy(options);
    return dataset;
}

static void expect_parts_refused(const char *path, const char *train, const char *test, const char *words)
{
    struct dataset *dataset = open_parts(path, train, test, ERROR_FORMAT);
    assert_null(dataset);
    if (strstr(parts_error.message, words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, parts_error.message);
}

/* CORe50's layout: a folder for each session, with one for each object. */
TEST_WITH(folders_of_several_sessions, set_up, tear_down)
{
    static const char *const sessions[] = {"s1", "s2", "s3", "s10"};
    for (int s = 0; s < 4; s++)
        for (int object = 1; object <= 11; object++) {
            char name[64];
            snprintf(name, sizeof name, "core50/%s/o%d/C_%d_%02d.png", sessions[s], object, s, object);
            scratch_write_png(&scratch, name, 4, 4, 0x102030);
        }
    struct dataset *dataset = open_parts("core50", "s1", "s3,s10", OK);
    assert_int_equal(dataset_classes(dataset), 11);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 11);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 22);
    assert_string_equal(dataset_class_name(dataset, 1), "o10"); /* in byte order */
    for (size_t i = 0; i < 22; i++) {
        char *name = dataset_item_name(dataset, SPLIT_TEST, i), folder[32];
        snprintf(folder, sizeof folder, "/%s/",
                 dataset_class_name(dataset, (size_t)dataset_label(dataset, SPLIT_TEST, i)));
        assert_non_null(strstr(name, folder));
        assert_non_null(strstr(name, i < 11 ? "core50/s3/" : "core50/s10/"));
        free(name);
    }
    dataset_close(dataset);
    /* names by folder, in any order and with others that are not there */
    scratch_write_text(
        &scratch, "core50/classnames.txt",
        "o12 none\no11 glasses 1\no10 cup\no9 c9\no8 c8\no7 c7\no6 c6\no5 c5\no4 c4\no3 c3\no2 c2\no1 plug\n");
    dataset = open_parts("core50", "s1", "s3", OK);
    assert_string_equal(dataset_class_name(dataset, 0), "plug");
    assert_string_equal(dataset_class_name(dataset, 2), "glasses 1");
    dataset_close(dataset);
    assert_null(open_parts("core50", "s1", "s4", ERROR_IO));
    assert_non_null(strstr(parts_error.message, "core50/s4: expected a folder"));
    assert_null(open_parts("core50", "s1", "../core50/s2", ERROR_ARGUMENT));
    assert_null(open_parts("core50", "s1", "", ERROR_ARGUMENT));
    assert_non_null(strstr(parts_error.message, "found train alone"));
    scratch_write_png(&scratch, "core50/s2/o12/a.png", 4, 4, 0x102030);
    expect_parts_refused("core50", "s1", "s2", "the class \"o12\" has test images but no train folder");
}

/* DomainNet's layout: lists of files and numbers beside the folders of the domains. */
TEST_WITH(lists_of_files, set_up, tear_down)
{
    scratch_write_png(&scratch, "domainnet/clipart/zebra/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "domainnet/clipart/The_Mona_Lisa/b.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "domainnet/clipart/zebra/c d.png", 4, 4, 0x102030);
    scratch_write_text(&scratch, "domainnet/clipart_train.txt",
                       "clipart/zebra/a.png 1\nclipart/The_Mona_Lisa/b.png 0\n");
    scratch_write_text(&scratch, "domainnet/clipart_test.txt", "clipart/zebra/c d.png 1\n");
    struct dataset *dataset = open_parts("domainnet", "clipart_train.txt", "clipart_test.txt", OK);
    assert_int_equal(dataset_classes(dataset), 2);
    assert_string_equal(dataset_class_name(dataset, 0), "The Mona Lisa");
    assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 0), 1);
    assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 1), 0);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    scratch_write_text(&scratch, "domainnet/bad.txt", "clipart/zebra/a.png 1\nclipart/The_Mona_Lisa/b.png 1\n");
    expect_parts_refused("domainnet", "bad.txt", "clipart_test.txt", "bad.txt:2: expected a number of its own");
    scratch_write_text(&scratch, "domainnet/bad.txt", "clipart/zebra/a.png 1\nclipart/zebra/c d.png 2\n");
    expect_parts_refused("domainnet", "bad.txt", "clipart_test.txt", "bad.txt:2: expected the number 1");
    scratch_write_text(&scratch, "domainnet/bad.txt", "a.png 1\n");
    expect_parts_refused("domainnet", "bad.txt", "clipart_test.txt", "bad.txt:1: expected CLASS/FILE");
    scratch_write_text(&scratch, "domainnet/bad.txt", "../zebra/a.png 1\n");
    expect_parts_refused("domainnet", "bad.txt", "clipart_test.txt", "leads out of the folder");
    scratch_write_text(&scratch, "domainnet/gone.txt", "clipart/zebra/a.png 1\nclipart/zebra/gone.png 1\n");
    assert_null(open_parts("domainnet", "clipart_train.txt", "gone.txt", ERROR_IO));
    assert_non_null(strstr(parts_error.message, "1 of 4 listed images"));
}

/* CUB's folders begin with numbers. A folder of test images may have another name. */
TEST_WITH(numbered_folders, set_up, tear_down)
{
    scratch_write_png(&scratch, "cub/train/001.Black_footed_Albatross/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "cub/train/002.Laysan_Albatross/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "cub/val/002.Laysan_Albatross/b.png", 4, 4, 0x102030);
    struct dataset *dataset = open_parts("cub", "train", "val", OK);
    assert_string_equal(dataset_class_name(dataset, 0), "Black footed Albatross");
    assert_string_equal(dataset_class_name(dataset, 1), "Laysan Albatross");
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    scratch_write_png(&scratch, "cub/train/747-200/a.png", 4, 4, 0x102030);
    dataset = open_parts("cub", "train", "val", OK);
    assert_string_equal(dataset_class_name(dataset, 0), "001.Black footed Albatross");
    dataset_close(dataset);
}

TEST_WITH(test_images_of_a_folder, set_up, tear_down)
{
    struct dataset *dataset;
    scratch_write_png(&scratch, "any/2.png", 3, 3, 0xff0000);
    scratch_write_png(&scratch, "any/deep/er/1.PNG", 3, 3, 0xff0000);
    scratch_write_text(&scratch, "any/notes.txt", "");
    assert_ok(dataset_of_images(&dataset, scratch_file(&scratch, "any"), &error));
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 0);
    char *name = dataset_item_name(dataset, SPLIT_TRAIN, 1);
    assert_string_equal(name, "./deep/er/1.PNG");
    free(name);
    dataset_close(dataset);
    assert_fails(dataset_of_images(&dataset, scratch_file(&scratch, "nowhere"), &error), ERROR_IO,
                 "there is no folder");
    scratch_write_text(&scratch, "none/notes.txt", "");
    assert_fails(dataset_of_images(&dataset, scratch_file(&scratch, "none"), &error), ERROR_FORMAT, "found none");
}

static void expect_second_name(const char *spelling, const char *name)
{
    static const struct option table[] = {
        {.name = "version", .type = OPTION_CHOICE, .choices = "any|python|binary", .fallback = "any"},
        OPTION_CLASS_NAMES,
        {0}};
    struct options *options;
    struct dataset *dataset;
    assert_ok(options_create(&options, table, &error));
    assert_ok(options_set(options, "class_names", spelling, "test", &error));
    assert_ok(dataset_open(&dataset, "cifar100", scratch.path, options, NULL, &error));
    assert_string_equal(dataset_class_name(dataset, 1), name);
    dataset_close(dataset);
    options_destroy(options);
}

/* MTIL's prompts have spaces, those of class-incremental learning the names of the file. */
TEST_WITH(test_spelling_of_class_names, set_up, tear_down)
{
    static const uint8_t record[2 + 3072]; /* one image of class 0 */
    scratch_write(&scratch, "cifar-100-binary/train.bin", record, sizeof record);
    scratch_write(&scratch, "cifar-100-binary/test.bin", record, sizeof record);
    scratch_write_text(&scratch, "cifar-100-binary/fine_label_names.txt", "apple\naquarium_fish\n");
    expect_second_name("spaced", "aquarium fish");
    expect_second_name("original", "aquarium_fish");
}

TEST_WITH(test_tiny_imagenet, set_up, tear_down)
{
    scratch_write_text(&scratch, "tiny-imagenet-200/wnids.txt", "n02\nn01\n");
    scratch_write_text(&scratch, "tiny-imagenet-200/words.txt",
                       "n01\tgoldfish, Carassius\nn011\tother\nn02\tbull_frog, Rana\n");
    scratch_write_png(&scratch, "tiny-imagenet-200/train/n01/images/n01_0.JPEG", 4, 4, 0);
    scratch_write_png(&scratch, "tiny-imagenet-200/train/n02/images/n02_0.JPEG", 4, 4, 0);
    scratch_write_png(&scratch, "tiny-imagenet-200/val/images/val_0.JPEG", 4, 4, 0);
    scratch_write_text(&scratch, "tiny-imagenet-200/val/val_annotations.txt", "val_0.JPEG\tn01\t0\t0\t3\t3\n");
    struct dataset *dataset = open_dataset("tiny_imagenet", scratch.path);
    assert_string_equal(dataset_class_name(dataset, 0), "bull frog"); /* as listed, not by WordNet id */
    assert_string_equal(dataset_class_name(dataset, 1), "goldfish");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    scratch_write_text(&scratch, "tiny-imagenet-200/val/val_annotations.txt", "val_0.JPEG\tn03\t0\t0\t3\t3\n");
    expect_refused("tiny_imagenet", "val_annotations.txt:1");
}

enum { TINY_CLASSES = 200 };

/* An archive with these classes in this order, an image each for training and testing. */
static void write_tiny_imagenet(char wnids[][16], const size_t *order)
{
    struct text list = {0}, annotations = {0};
    for (size_t i = 0; i < TINY_CLASSES; i++) {
        const char *wnid = wnids[order[i]];
        char name[96];
        snprintf(name, sizeof name, "tiny-imagenet-200/train/%s/images/%s_0.JPEG", wnid, wnid);
        scratch_write_png(&scratch, name, 4, 4, 0);
        snprintf(name, sizeof name, "tiny-imagenet-200/val/images/%s.JPEG", wnid);
        scratch_write_png(&scratch, name, 4, 4, 0);
        text_add(&list, "%s\n", wnid);
        text_add(&annotations, "%s.JPEG\t%s\t0\t0\t3\t3\n", wnid, wnid);
    }
    scratch_write_text(&scratch, "tiny-imagenet-200/wnids.txt", list.data);
    scratch_write_text(&scratch, "tiny-imagenet-200/val/val_annotations.txt", annotations.data);
    text_free(&list);
    text_free(&annotations);
}

static void keep_warning(void *context, enum log_level level, const char *message)
{
    if (level == LOG_WARN)
        snprintf(context, 512, "%s", message);
}

/* The public code's ids, names and order. Another order of the same ids is the root's own, with a warning. */
TEST_WITH(test_tiny_imagenet_as_published, set_up, tear_down)
{
    static char wnids[TINY_CLASSES + 1][16], names[TINY_CLASSES + 1][64];
    char line[128], warning[512] = "";
    struct log log = {.write = keep_warning, .context = warning};
    size_t count = 0, order[TINY_CLASSES];
    FILE *file = fopen(FIXTURES "/cil/tinyimagenet_classes.txt", "r");
    assert_non_null(file);
    while (count <= TINY_CLASSES && fgets(line, sizeof line, file) != NULL)
        count += sscanf(line, "%*u\t%15[^\t]\t%63[^\n]", wnids[count], names[count]) == 2;
    fclose(file);
    assert_int_equal(count, TINY_CLASSES);
    for (int reversed = 0; reversed < 2; reversed++) {
        struct dataset *dataset;
        for (size_t i = 0; i < TINY_CLASSES; i++)
            order[i] = reversed ? TINY_CLASSES - 1 - i : i;
        write_tiny_imagenet(wnids, order);
        assert_ok(dataset_open(&dataset, "tiny_imagenet", scratch.path, NULL, &log, &error));
        assert_int_equal(dataset_classes(dataset), TINY_CLASSES);
        for (size_t i = 0; i < TINY_CLASSES; i++) {
            char *item = dataset_item_name(dataset, SPLIT_TRAIN, i);
            assert_string_equal(dataset_class_name(dataset, i), names[order[i]]);
            assert_non_null(strstr(item, wnids[order[i]]));
            assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, i), i);
            assert_int_equal(dataset_label(dataset, SPLIT_TEST, i), i);
            free(item);
        }
        dataset_close(dataset);
        assert_true((strstr(warning, "200 of its classes are on another line") != NULL) == reversed);
    }
}

/* --- digests ----------------------------------------------------------------------------------------------------- */

static void digest_of(const char *name, const char *root, char digest[DIGEST_SIZE])
{
    struct dataset *dataset = open_dataset(name, root);
    dataset_digest_items(dataset, SPLIT_TEST, digest);
    dataset_close(dataset);
}

/* The same items, wherever they lie and packed or not; others when a list changes. */
TEST_WITH(test_digest_of_items, set_up, tear_down)
{
    char plain[DIGEST_SIZE], packed[DIGEST_SIZE], before[DIGEST_SIZE], after[DIGEST_SIZE], changed[DIGEST_SIZE];
    digest_of("mnist", ROOTS "mnist", plain);
    digest_of("mnist", ROOTS "mnist_gz", packed);
    assert_string_equal(plain, packed);
    digest_of("dtd", ROOTS "dtd", before);
    scratch_copy(&scratch, ROOTS "dtd");
    digest_of("dtd", scratch.path, after);
    assert_string_equal(before, after);
    scratch_write_text(&scratch, "dtd/dtd/labels/test1.txt", "braided/braided_0080.jpg\n");
    digest_of("dtd", scratch.path, changed);
    assert_string_not_equal(changed, after);
}
