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
#include "tests/datasets/root.h"

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
    struct dataset *dataset = root_open("toy", NULL, NULL);
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

/* --- overrides --------------------------------------------------------------------------------------------------- */

TEST_WITH(test_class_names_override, root_setup, root_teardown)
{
    static const struct root_refusal refusals[] = {
        {"dtd", NULL, "dtd/templates.txt", "some {} there {}\n", "templates.txt:1"},
        {"dtd", NULL, "dtd/classnames.txt", "Braid\n\nDots\nPores\nStain\n", "classnames.txt:2"},
        {"dtd", NULL, "dtd/classnames.txt", "Braid\nDots\n", "expected 5 names"},
        {0}};
    scratch_copy(&scratch, ROOTS "dtd");
    scratch_write_text(&scratch, "dtd/classnames.txt", "Braid\nInter_lace\nDots\nPores\nStain\n");
    scratch_write_text(&scratch, "dtd/templates.txt", "\xef\xbb\xbfsome {} there\r\n{}\r\n");
    struct dataset *dataset = root_open("dtd", scratch.path, NULL);
    assert_string_equal(dataset_class_name(dataset, 1), "Inter_lace");
    assert_int_equal(dataset_templates(dataset), 2);
    assert_string_equal(dataset_template(dataset, 0), "some {} there");
    dataset_close(dataset);
    root_refuse_all(refusals);
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
TEST_WITH(classes_of_one_name_are_reported, root_setup, root_teardown)
{
    struct root_log log;
    struct dataset *dataset;
    root_log_start(&log);
    scratch_copy(&scratch, ROOTS "dtd");
    scratch_write_text(&scratch, "dtd/classnames.txt", "braid\nlace\nDots\nPores\nbraid \n");
    root_refused("dtd", NULL, "/dtd/classnames.txt:5: the class name \"braid \" is that of line 1, \"braid\"");
    scratch_write_png(&scratch, "train/red_fox/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "train/red fox/1.png", 2, 2, 0);
    scratch_write_png(&scratch, "test/red fox/1.png", 2, 2, 0);
    assert_ok(root_try(&dataset, "folder", scratch.path, NULL, &log.log, &error));
    dataset_close(dataset);
    assert_non_null(strstr(log.warning, "1 of 2 class names repeat those of earlier classes"));
    assert_non_null(strstr(log.warning, "\"red fox\" (labels 0 and 1)"));
    scratch_write_text(&scratch, "classnames.txt", "fox\nFox\n");
    root_refused("folder", NULL, "classnames.txt:2: ");
}

/* Where names go by position, classnames.txt says how many classes there are. */
TEST_WITH(test_positional_class_names, root_setup, root_teardown)
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
    root_refused("caltech101", NULL, "expected 101 category folders, found 3");
    root_refused("eurosat", NULL, "expected 10 class folders, found 3");
    scratch_write_text(&scratch, "caltech101/classnames.txt", "an a\na b\na c\n");
    scratch_write_text(&scratch, "eurosat/classnames.txt", "an a\na b\na c\n");
    for (const char *const *name = (const char *const[]){"caltech101", "eurosat", NULL}; *name != NULL; name++) {
        struct dataset *dataset = root_open(*name, scratch.path, NULL);
        assert_int_equal(dataset_classes(dataset), 3);
        assert_string_equal(dataset_class_name(dataset, 2), "a c");
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 9);
        assert_int_equal(dataset_size(dataset, SPLIT_TEST), 3);
        dataset_close(dataset);
    }
    scratch_write_text(&scratch, "eurosat/2750/d/readme.txt", "no image");
    scratch_write_text(&scratch, "eurosat/classnames.txt", "an a\na b\na c\nempty\n");
    root_refused("eurosat", NULL, "\"empty\"");
    scratch_copy(&scratch, ROOTS "mnist");
    scratch_write_text(&scratch, "MNIST/classnames.txt", "zero\none\n");
    root_refused("mnist", NULL, "below 2");
}

/* --- what can be wrong ------------------------------------------------------------------------------------------- */

TEST_WITH(test_missing_folder, root_setup, root_teardown)
{
    const struct dataset_reader *reader;
    assert_ok(dataset_reader_find(&reader, "dtd", &error));
    root_refused("dtd", NULL, "expected a folder \"dtd\" for the dataset dtd, found none");
    assert_int_equal(symlink("dtd", scratch_file(&scratch, "dtd")), 0); /* nobody can look there */
    assert_true(dataset_found(reader, scratch.path));
    root_refused("dtd", NULL, "/dtd: cannot look for the dataset dtd here: Too many levels of symbolic links");
    root_refused("sun397", NULL, "expected a folder \"SUN397\"");
    root_refused("cifar100", NULL, "\"cifar-100-python\" or \"cifar-100-binary\"");
}

TEST_WITH(test_missing_images, root_setup, root_teardown)
{
    struct root_log log;
    struct dataset *dataset;
    root_log_start(&log);
    scratch_copy(&scratch, ROOTS "food");
    assert_int_equal(unlink(scratch_file(&scratch, "food-101/images/pho/3093884.jpg")), 0);
    root_refused("food", NULL, "1 of 36 listed images of food are missing: food-101/images/pho/3093884.jpg");
    assert_ok(root_try(&dataset, "food", scratch.path, "on_missing=skip", &log.log, &error));
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 20);
    assert_int_equal(dataset_missing(dataset), 1);
    assert_non_null(strstr(log.warning, "3093884"));
    dataset_close(dataset);
}

TEST_WITH(test_wrong_lists, root_setup, root_teardown)
{
#define PETS "oxford_pet", NULL, "oxford-iiit-pet/annotations/trainval.txt"
    static const struct root_refusal refusals[] = {
        {PETS, "boxer_1 1 2 1\nbeagle_1 3 2 1\n", "but not 2"},
        {PETS, "boxer_1 1 2 1\nbeagle 2 2 1\n", "line 2"},
        {PETS, "boxer_1 1 2 1\nbeagle_1 4294967298 2 1\n", "line 2"},
        {PETS, "boxer_1 1 2 1\nbeagle_1 2 2\n", "line 2"},
        {PETS, "", "label below 0"},
        {"aircraft", NULL, "fgvc-aircraft-2013b/data/images_variant_test.txt", "0204644 Concorde\n", "Concorde"},
        {"aircraft", NULL, "fgvc-aircraft-2013b/data/images_variant_train.txt", "../x BAE 146-300\n",
         "images_variant_train.txt:1"},
        {"sun397", NULL, "SUN397/ClassName.txt", "/a/aquarium\n/p/pulpit\n",
         "no class \"/a/apartment_building/outdoor\""},
        {"sun397", NULL, "SUN397/ClassName.txt", "aquarium\n", "ClassName.txt:1"},
        {"dtd", NULL, "dtd/dtd/labels/train1.txt", "braided/../../../../secret.jpg\n", "leads out of the folder"},
        {0}};
#undef PETS
    scratch_copy(&scratch, ROOTS "oxford_pet");
    scratch_copy(&scratch, ROOTS "aircraft");
    scratch_copy(&scratch, ROOTS "sun397");
    scratch_copy(&scratch, ROOTS "dtd");
    root_refuse_all(refusals);
}

TEST_WITH(test_unreadable_image, root_setup, root_teardown)
{
    struct image image;
    scratch_copy(&scratch, ROOTS "food");
    scratch_write_text(&scratch, "food-101/images/cheese_plate/2953928.jpg", "<html>");
    struct dataset *dataset = root_open("food", scratch.path, NULL);
    assert_fails(dataset_read(dataset, SPLIT_TRAIN, 0, &image, NULL, &error), ERROR_FORMAT,
                 "food-101/images/cheese_plate/2953928.jpg");
    dataset_close(dataset);
}

/* --- plain folders ----------------------------------------------------------------------------------------------- */

TEST_WITH(test_folder_with_parts, root_setup, root_teardown)
{
    static const struct root_refusal refusals[] = {
        {"folder", "path=shapes", "shapes/test/triangle/1.png", "", "triangle"},
        {"folder", "path=shapes", "shapes/train/triangle/notes.txt", "",
         "\"triangle\" (label 2) of folder has no images to train on"},
        {0}};
    scratch_write_png(&scratch, "shapes/train/big_square/1.PNG", 3, 3, 0xff0000);
    scratch_write_png(&scratch, "shapes/train/circle/1.png", 3, 3, 0x00ff00);
    scratch_write_png(&scratch, "shapes/train/circle/2.png", 3, 3, 0x00ff00);
    scratch_write_text(&scratch, "shapes/train/circle/notes.txt", "");
    scratch_write_png(&scratch, "shapes/test/circle/1.png", 3, 3, 0x00ff00);
    struct dataset *dataset = root_open("folder", scratch.path, "path=shapes");
    assert_string_equal(dataset_class_name(dataset, 0), "big square");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 3);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 1);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    root_expect_item(dataset, SPLIT_TEST, 0, "shapes/test/circle/1.png");
    dataset_close(dataset);
    root_refuse_all(refusals);
}

TEST_WITH(test_folder_without_parts, root_setup, root_teardown)
{
    for (int i = 0; i < 10; i++) {
        char name[64];
        snprintf(name, sizeof name, "whole/%s/%d.png", i < 5 ? "a" : "b", i);
        scratch_write_png(&scratch, name, 2, 2, 0);
    }
    struct dataset *dataset = root_open("folder", scratch.path, "path=whole");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 8);
    root_expect_item(dataset, SPLIT_TRAIN, 0, "whole/a/2.png"); /* item 2 of the permutation of seed 42 */
    dataset_close(dataset);
    assert_int_equal(symlink(".", scratch_file(&scratch, "whole/a/loop")), 0);
    root_refused("folder", "path=whole", "folders deep");
}

static size_t count_label(const struct dataset *dataset, enum split split, int label)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset_size(dataset, split); i++)
        count += dataset_label(dataset, split, i) == label;
    return count;
}

TEST_WITH(folder_is_split_by_class, root_setup, root_teardown)
{
    char name[64];
    for (int i = 0; i < 61; i++) {
        snprintf(name, sizeof name, "whole/%c/%d.png", 'a' + i / 20, i);
        scratch_write_png(&scratch, name, 2, 2, (unsigned)i);
    }
    struct dataset *dataset = root_open("folder", scratch.path, "path=whole");
    for (int label = 0; label < 3; label++) {
        assert_int_equal(count_label(dataset, SPLIT_TRAIN, label), 16);
        assert_int_equal(count_label(dataset, SPLIT_TEST, label), 4);
    }
    assert_int_equal(count_label(dataset, SPLIT_TRAIN, 3), 1); /* an only image */
    assert_int_equal(count_label(dataset, SPLIT_TEST, 3), 0);
    dataset_close(dataset);
}

TEST_WITH(folder_reads_or_names_every_file, root_setup, root_teardown)
{
    static const uint8_t gif[] = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00"
                                 "\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";
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
    struct dataset *dataset = root_open("folder", scratch.path, "path=all");
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
    dataset = root_open("folder", scratch.path, "path=all");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN) + dataset_size(dataset, SPLIT_TEST), 6);
    dataset_close(dataset);
}

/* The folder is named, what is expected, and what was found. */
TEST_WITH(folders_without_classes_are_refused, root_setup, root_teardown)
{
    static const char *const images[] = {
        "my/flat/1.png",      "my/flat/2.png",      "more/whole/a/1.png",       "more/whole/a/2.png",
        "more/whole/b/1.png", "more/whole/b/2.png", "more/parts/train/a/1.png", "more/parts/test/a/1.png",
        "half/train/a/1.png", "half/val/a/1.png"};
    static const struct root_refusal refusals[] = {
        {.options = "path=my/flat",
         .words = "/my/flat: expected a folder for each class, with its images; found 2 images"},
        {.options = "path=my/empty",
         .words = "/my/empty: expected a folder for each class, with its images; found no folder"},
        {.options = "path=mi", .words = "there is no folder \"mi\" (did you mean \"my\"?)"},
        {.options = "path=more",
         .words = "/more: expected a folder for each class, with its images; found class folders within \"parts\""},
        {.options = "path=more", .words = "path: more/parts"},
        {.options = "path=half", .words = "found train without test beside it"},
        {.options = "path=more/../half", .words = "path: expected a folder below the data root"},
        {.options = "path=/tmp", .words = "path: expected a folder below the data root"},
    };
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        scratch_write_png(&scratch, images[i], 2, 2, 0);
    scratch_write_text(&scratch, "my/empty/notes.txt", "");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        root_refused("folder", refusals[i].options, refusals[i].words);
}

/* CORe50's layout: a folder for each session, with one for each object. */
TEST_WITH(folders_of_several_sessions, root_setup, root_teardown)
{
    static const char *const sessions[] = {"s1", "s2", "s3", "s10"};
    static const struct root_refusal refusals[] = {
        {"folder", "path=core50 train=s1 test=s4", NULL, NULL, "core50/s4: expected a folder"},
        {"folder", "path=core50 train=s1 test=../core50/s2", NULL, NULL, "expected a folder or list below"},
        {"folder", "path=core50 train=s1", NULL, NULL, "found train alone"},
        {"folder", "path=core50 train=s1 test=s2", NULL, NULL, "the class \"o12\" has test images but no train folder"},
        {0}};
    for (int s = 0; s < 4; s++)
        for (int object = 1; object <= 11; object++) {
            char name[64];
            snprintf(name, sizeof name, "core50/%s/o%d/C_%d_%02d.png", sessions[s], object, s, object);
            scratch_write_png(&scratch, name, 4, 4, 0x102030);
        }
    struct dataset *dataset = root_open("folder", scratch.path, "path=core50 train=s1 test=s3,s10");
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
    dataset = root_open("folder", scratch.path, "path=core50 train=s1 test=s3");
    assert_string_equal(dataset_class_name(dataset, 0), "plug");
    assert_string_equal(dataset_class_name(dataset, 2), "glasses 1");
    dataset_close(dataset);
    scratch_write_png(&scratch, "core50/s2/o12/a.png", 4, 4, 0x102030);
    root_refuse_all(refusals);
}

/* DomainNet's layout: lists of files and numbers beside the folders of the domains. */
TEST_WITH(lists_of_files, root_setup, root_teardown)
{
#define BAD "folder", "path=domainnet train=bad.txt test=clipart_test.txt", "domainnet/bad.txt"
    static const struct root_refusal refusals[] = {
        {BAD, "clipart/zebra/a.png 1\nclipart/The_Mona_Lisa/b.png 1\n", "bad.txt:2: expected a number of its own"},
        {BAD, "clipart/zebra/a.png 1\nclipart/zebra/c d.png 2\n", "bad.txt:2: expected the number 1"},
        {BAD, "a.png 1\n", "bad.txt:1: expected CLASS/FILE"},
        {BAD, "../zebra/a.png 1\n", "leads out of the folder"},
        {"folder", "path=domainnet train=clipart_train.txt test=gone.txt", "domainnet/gone.txt",
         "clipart/zebra/a.png 1\nclipart/zebra/gone.png 1\n", "1 of 4 listed images"},
        {0}};
#undef BAD
    scratch_write_png(&scratch, "domainnet/clipart/zebra/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "domainnet/clipart/The_Mona_Lisa/b.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "domainnet/clipart/zebra/c d.png", 4, 4, 0x102030);
    scratch_write_text(&scratch, "domainnet/clipart_train.txt",
                       "clipart/zebra/a.png 1\nclipart/The_Mona_Lisa/b.png 0\n");
    scratch_write_text(&scratch, "domainnet/clipart_test.txt", "clipart/zebra/c d.png 1\n");
    struct dataset *dataset =
        root_open("folder", scratch.path, "path=domainnet train=clipart_train.txt test=clipart_test.txt");
    assert_int_equal(dataset_classes(dataset), 2);
    assert_string_equal(dataset_class_name(dataset, 0), "The Mona Lisa");
    assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 0), 1);
    assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 1), 0);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    root_refuse_all(refusals);
}

/* CUB's folders begin with numbers. A folder of test images may have another name. */
TEST_WITH(numbered_folders, root_setup, root_teardown)
{
    scratch_write_png(&scratch, "cub/train/001.Black_footed_Albatross/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "cub/train/002.Laysan_Albatross/a.png", 4, 4, 0x102030);
    scratch_write_png(&scratch, "cub/val/002.Laysan_Albatross/b.png", 4, 4, 0x102030);
    struct dataset *dataset = root_open("folder", scratch.path, "path=cub train=train test=val");
    assert_string_equal(dataset_class_name(dataset, 0), "Black footed Albatross");
    assert_string_equal(dataset_class_name(dataset, 1), "Laysan Albatross");
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    scratch_write_png(&scratch, "cub/train/747-200/a.png", 4, 4, 0x102030);
    dataset = root_open("folder", scratch.path, "path=cub train=train test=val");
    assert_string_equal(dataset_class_name(dataset, 0), "001.Black footed Albatross");
    dataset_close(dataset);
}

TEST_WITH(test_images_of_a_folder, root_setup, root_teardown)
{
    struct dataset *dataset;
    scratch_write_png(&scratch, "any/2.png", 3, 3, 0xff0000);
    scratch_write_png(&scratch, "any/deep/er/1.PNG", 3, 3, 0xff0000);
    scratch_write_text(&scratch, "any/notes.txt", "");
    assert_ok(dataset_of_images(&dataset, scratch_file(&scratch, "any"), &error));
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 0);
    root_expect_item(dataset, SPLIT_TRAIN, 1, "./deep/er/1.PNG");
    dataset_close(dataset);
    assert_fails(dataset_of_images(&dataset, scratch_file(&scratch, "nowhere"), &error), ERROR_IO,
                 "there is no folder");
    scratch_write_text(&scratch, "none/notes.txt", "");
    assert_fails(dataset_of_images(&dataset, scratch_file(&scratch, "none"), &error), ERROR_FORMAT, "found none");
}

/* MTIL's prompts have spaces, those of class-incremental learning the names of the file. */
TEST_WITH(test_spelling_of_class_names, root_setup, root_teardown)
{
    static const uint8_t record[2 + 3072]; /* one image of class 0 */
    scratch_write(&scratch, "cifar-100-binary/train.bin", record, sizeof record);
    scratch_write(&scratch, "cifar-100-binary/test.bin", record, sizeof record);
    scratch_write_text(&scratch, "cifar-100-binary/fine_label_names.txt", "apple\naquarium_fish\n");
    for (int spaced = 0; spaced < 2; spaced++) {
        struct dataset *dataset =
            root_open("cifar100", scratch.path, spaced ? "class_names=spaced" : "class_names=original");
        assert_string_equal(dataset_class_name(dataset, 1), spaced ? "aquarium fish" : "aquarium_fish");
        dataset_close(dataset);
    }
}

TEST_WITH(test_tiny_imagenet, root_setup, root_teardown)
{
    scratch_write_text(&scratch, "tiny-imagenet-200/wnids.txt", "n02\nn01\n");
    scratch_write_text(&scratch, "tiny-imagenet-200/words.txt",
                       "n01\tgoldfish, Carassius\nn011\tother\nn02\tbull_frog, Rana\n");
    scratch_write_png(&scratch, "tiny-imagenet-200/train/n01/images/n01_0.JPEG", 4, 4, 0);
    scratch_write_png(&scratch, "tiny-imagenet-200/train/n02/images/n02_0.JPEG", 4, 4, 0);
    scratch_write_png(&scratch, "tiny-imagenet-200/val/images/val_0.JPEG", 4, 4, 0);
    scratch_write_text(&scratch, "tiny-imagenet-200/val/val_annotations.txt", "val_0.JPEG\tn01\t0\t0\t3\t3\n");
    struct dataset *dataset = root_open("tiny_imagenet", scratch.path, NULL);
    assert_string_equal(dataset_class_name(dataset, 0), "bull frog"); /* as listed, not by WordNet id */
    assert_string_equal(dataset_class_name(dataset, 1), "goldfish");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
    scratch_write_text(&scratch, "tiny-imagenet-200/val/val_annotations.txt", "val_0.JPEG\tn03\t0\t0\t3\t3\n");
    root_refused("tiny_imagenet", NULL, "val_annotations.txt:1");
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

/* The public code's ids, names and order. Another order of the same ids is the root's own, with a warning. */
TEST_WITH(test_tiny_imagenet_as_published, root_setup, root_teardown)
{
    static char wnids[TINY_CLASSES + 1][16], names[TINY_CLASSES + 1][64];
    char line[128];
    struct root_log log;
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
        root_log_start(&log);
        assert_ok(dataset_open(&dataset, "tiny_imagenet", scratch.path, NULL, &log.log, &error));
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
        assert_true((strstr(log.warning, "200 of its classes are on another line") != NULL) == reversed);
    }
}

/* --- digests ----------------------------------------------------------------------------------------------------- */

static void digest_of(const char *name, const char *root, char digest[DIGEST_SIZE])
{
    struct dataset *dataset = root_open(name, root, NULL);
    dataset_digest_items(dataset, SPLIT_TEST, digest);
    dataset_close(dataset);
}

/* The same items, wherever they lie and packed or not; others when a list changes. */
TEST_WITH(test_digest_of_items, root_setup, root_teardown)
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
