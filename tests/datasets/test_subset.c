/* Few-shot: which training images stay. Parts of a dataset: some classes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/dataset.h"
#include "datasets/readers/reader.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

static struct dataset *open_toy(size_t train)
{
    char option[32];
    snprintf(option, sizeof option, "train=%zu", train);
    return root_open("toy", NULL, option);
}

/* How often each of the toy's images is drawn, where there are `train` per class. Without repeats they stay in order. */
static void drawn(size_t train, size_t shots, bool repeat, uint64_t seed, size_t *times)
{
    struct dataset *dataset = open_toy(train);
    dataset_keep_shots(dataset, shots, repeat, seed);
    memset(times, 0, 4 * train * sizeof *times);
    for (size_t i = 0, last = 0; i < dataset_size(dataset, SPLIT_TRAIN); i++) {
        uint32_t position = dataset->items[SPLIT_TRAIN].items[i].position;
        assert_true(repeat || i == 0 || position > last);
        assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, i), position % 4);
        times[position]++;
        last = position;
    }
    for (size_t label = 0; label < 4; label++)
        assert_int_equal(root_count(dataset, SPLIT_TRAIN, label), shots);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 16);
    dataset_close(dataset);
}

TEST(the_seed_alone_decides)
{
    size_t first[160], again[160], other[160];
    drawn(40, 5, false, 1, first);
    drawn(40, 5, false, 1, again);
    drawn(40, 5, false, 2, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

/* The first n of a shuffle: more shots keep what fewer kept; and classes do not all keep the same places. */
TEST(more_shots_keep_what_fewer_kept)
{
    size_t few[160], many[160], apart = 0;
    drawn(40, 4, false, 3, few);
    drawn(40, 9, false, 3, many);
    for (size_t i = 0; i < 160; i++) {
        assert_true(few[i] <= many[i] && many[i] <= 1);
        apart += few[i] != few[i / 4 * 4];
    }
    assert_true(apart > 0);
}

TEST(a_class_with_fewer_keeps_all_and_says_so)
{
    struct root_log log;
    root_log_start(&log);
    for (size_t train = 5; train >= 3; train -= 2) {
        struct dataset *dataset = open_toy(train);
        dataset->log = &log.log;
        dataset_keep_shots(dataset, 5, false, 1);
        assert_true((*log.warning == 0) == (train == 5));
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 4 * train);
        dataset_close(dataset);
    }
    assert_non_null(strstr(log.warning, "toy: 4 of 4 classes have fewer than 5 training images"));
    assert_non_null(strstr(log.warning, "red (3), green (3), blue (3), …"));
}

/* As random.choices: each draw takes any of the class's images, so that some come more often and some, at times, never. */
TEST(a_class_with_fewer_is_filled_up)
{
    size_t times[32], again[32], total[3] = {0}, never = 0;
    drawn(3, 16, true, 1, times);
    drawn(3, 16, true, 1, again);
    assert_memory_equal(times, again, 12 * sizeof *times);
    drawn(3, 16, true, 2, again);
    assert_memory_not_equal(times, again, 12 * sizeof *times);
    for (uint64_t seed = 0; seed < 500; seed++) {
        drawn(3, 4, true, seed, times);
        for (size_t i = 0; i < 12; i++) {
            total[i / 4] += times[i];
            never += times[i] == 0;
        }
    }
    for (size_t i = 0; i < 3; i++)
        assert_between(total[i], 8000 / 3 - 200, 8000 / 3 + 200);
    assert_between(never, 1185 - 100, 1185 + 100); /* 500 · 12 · (2/3)^4 */
    drawn(8, 6, true, 1, times);
    for (size_t i = 0; i < 32; i++)
        assert_true(times[i] <= 1); /* enough images: without replacement */
}

/* Datasets whose items are files, in a root with classes of different sizes. A repeated file is read like any other. */
TEST(files_are_dropped_and_repeated)
{
    static const size_t shots[] = {1, 40};
    for (size_t k = 0; k < 2; k++) {
        struct dataset *dataset = root_open("food", ROOTS "food", NULL);
        dataset_keep_shots(dataset, shots[k], shots[k] == 40, 1);
        for (size_t label = 0; label < dataset_classes(dataset); label++)
            assert_int_equal(root_count(dataset, SPLIT_TRAIN, label), shots[k]);
        for (size_t i = 0; i < dataset_size(dataset, SPLIT_TRAIN); i++) {
            struct image image;
            assert_ok(dataset_read(dataset, SPLIT_TRAIN, i, &image, NULL, &error));
            image_free(&image);
        }
        dataset_close(dataset);
    }
}

/* --- Some classes of a dataset --- */

static void expect_same_image(const struct dataset *part, size_t i, const struct dataset *whole, size_t j)
{
    struct image image, expected;
    assert_ok(dataset_read(part, SPLIT_TEST, i, &image, NULL, &error));
    assert_ok(dataset_read(whole, SPLIT_TEST, j, &expected, NULL, &error));
    assert_int_equal(image.width, expected.width);
    assert_memory_equal(image.pixels, expected.pixels, (size_t)image.width * (size_t)image.height * 3);
    image_free(&image);
    image_free(&expected);
}

/* Every image of the classes, in order, under the new labels: from files, from raw images and generated. */
TEST(a_part_has_the_images_of_its_classes)
{
    static const struct {
        const char *name, *root;
    } datasets[] = {{"food", ROOTS "food"}, {"mnist", ROOTS "mnist"}, {"toy", NULL}};
    static const size_t classes[] = {2, 0};
    for (size_t d = 0; d < sizeof datasets / sizeof *datasets; d++) {
        struct dataset *whole = root_open(datasets[d].name, datasets[d].root, NULL), *part;
        size_t next = 0;
        part = dataset_select(whole, classes, 2);
        assert_int_equal(dataset_classes(part), 2);
        assert_string_equal(dataset_class_name(part, 0), dataset_class_name(whole, 2));
        assert_string_equal(dataset_class_name(part, 1), dataset_class_name(whole, 0));
        assert_string_equal(dataset_template(part, 0), dataset_template(whole, 0));
        assert_string_equal(dataset_name(part), datasets[d].name);
        for (size_t i = 0; i < dataset_size(whole, SPLIT_TEST); i++) {
            int label = dataset_label(whole, SPLIT_TEST, i);
            if (label != 0 && label != 2)
                continue;
            assert_int_equal(dataset_label(part, SPLIT_TEST, next), label == 2 ? 0 : 1);
            expect_same_image(part, next++, whole, i);
        }
        assert_int_equal(dataset_size(part, SPLIT_TEST), next);
        assert_true(next > 0);
        dataset_keep_shots(part, 1, false, 1);
        assert_int_equal(dataset_size(part, SPLIT_TRAIN), 2);
        dataset_close(part);
        dataset_close(whole);
    }
}

/* A part misses what its classes miss. */
ROOT_TEST(files_that_are_missing_go_with_their_class)
{
    scratch_run(&scratch, "cp -r " ROOTS "food/. .");
    assert_int_equal(remove(scratch_file(&scratch, "food-101/images/pho/3093884.jpg")), 0);
    struct dataset *whole = root_open("food", scratch.path, "on_missing=skip"), *part;
    for (size_t c = 0; c < dataset_classes(whole); c++) {
        part = dataset_select(whole, &c, 1);
        assert_int_equal(dataset_missing(part), strcmp(dataset_class_name(whole, c), "pho") == 0);
        dataset_close(part);
    }
    dataset_close(whole);
}

TEST(one_template_replaces_all)
{
    struct dataset *dataset = open_toy(4);
    assert_ok(dataset_set_template(dataset, "a drawing of a {}.", &error));
    assert_int_equal(dataset_templates(dataset), 1);
    assert_string_equal(dataset_template(dataset, 0), "a drawing of a {}.");
    assert_fails(dataset_set_template(dataset, "a drawing", &error), ERROR_ARGUMENT, "");
    assert_fails(dataset_set_template(dataset, "{} and {}", &error), ERROR_ARGUMENT, "one {}");
    assert_string_equal(dataset_template(dataset, 0), "a drawing of a {}.");
    dataset_close(dataset);
}
