/* Registry, prompts, generated and published datasets, digests. What readers find in files is in roots.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"
#include <unistd.h>

#include "datasets/dataset.h"
#include "datasets/formats/strings.h"
#include "datasets/prompts.h"
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
        assert_true((dataset_published_find(reader->name, "torchvision") != NULL) == (reader->folders[0] != NULL));
        assert_true((dataset_published_find(reader->name, "coop") != NULL) == (reader->coop != NULL));
    }
    assert_fails(dataset_reader_find(&reader, "caltech11", &error), ERROR_ARGUMENT, "did you mean \"caltech101\"");
    assert_fails(dataset_reader_find(&reader, "imagenet-22k-full", &error), ERROR_ARGUMENT, "oxford_pet");
}

ROOT_TEST(test_found)
{
    const struct dataset_reader *reader;
    assert_ok(dataset_reader_find(&reader, "dtd", &error));
    assert_true(dataset_found(reader, ROOTS "dtd"));
    assert_false(dataset_found(reader, ROOTS "food"));
    assert_false(dataset_found(reader, "/dev/null"));
    assert_int_equal(symlink("dtd", scratch_file(&scratch, "dtd")), 0); /* nobody can look there */
    assert_true(dataset_found(reader, scratch.path));
}

TEST(test_toy)
{
    struct dataset *dataset = root_open("toy", NULL, NULL);
    struct image image, other;
    int label;
    assert_int_equal(dataset_classes(dataset), 4);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 32);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 16);
    assert_string_equal(dataset_template(dataset, 0), "a photo of a {}.");
    assert_ok(dataset_read(dataset, SPLIT_TEST, 6, &image, &label, &error));
    assert_ok(dataset_read(dataset, SPLIT_TRAIN, 6, &other, NULL, &error));
    assert_int_equal(label, 2);
    assert_int_equal(label, dataset_label(dataset, SPLIT_TEST, 6));
    assert_memory_not_equal(image.pixels, other.pixels, 16 * 16 * 3);
    image_free(&image);
    image_free(&other);
    assert_fails(dataset_read(dataset, SPLIT_TEST, 16, &image, &label, &error), ERROR_ARGUMENT, "");
    dataset_close(dataset);
}

/* Those of datasets that have no root among the fixtures of replay_data. */
TEST(test_prompts)
{
    struct strings templates = {0};
    prompts_add_templates("cifar10", &templates);
    prompts_add_templates("cifar100", &templates);
    assert_int_equal(templates.count, 18 + 18);
    char *prompt = prompt_format(templates.items[0], "7 - seven");
    assert_string_equal(prompt, "a photo of a 7 - seven.");
    free(prompt);
    strings_free(&templates);
}

TEST(names_that_read_the_same_are_found)
{
    static const struct {
        size_t count, first, second, size;
        const char *names[6];
    } cases[] = {{0, 0, 0, 0, {NULL}},
                 {0, 0, 0, 6, {"a", "b", "a b", "ab", "\xc3\xa5", "\xff"}},
                 {2, 1, 2, 4, {"b", "a", "a ", "\tA"}},
                 {1, 0, 2, 3, {"e  y", "c", "e\xc2\xa0y"}},
                 {1, 0, 1, 2, {"\xc3\x85ngstr\xc3\xb6m", "A\xcc\x8angstro\xcc\x88m"}},
                 {1, 0, 1, 2, {"\xff", "\xff"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct same_names same;
        prompts_find_same_names(&same, cases[i].names, cases[i].size);
        assert_int_equal(same.count, cases[i].count);
        assert_int_equal(same.first, cases[i].first);
        assert_int_equal(same.second, cases[i].second);
    }
}

enum { TINY_CLASSES = 200 };

/* The public code's ids, names and order. Another order of the same ids is the root's own, with a warning. */
ROOT_TEST(test_tiny_imagenet_as_published)
{
    static char wnids[TINY_CLASSES][16], names[TINY_CLASSES][64];
    char line[128];
    struct root_log log;
    size_t count = 0;
    FILE *file = fopen(FIXTURES "/cil/tinyimagenet_classes.txt", "r");
    assert_non_null(file);
    for (; count < TINY_CLASSES && fgets(line, sizeof line, file) != NULL; count++)
        assert_int_equal(sscanf(line, "%*u\t%15[^\t]\t%63[^\n]", wnids[count], names[count]), 2);
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(count, TINY_CLASSES);
    scratch_run(&scratch,
                "ids=$(cut -f 2 " FIXTURES "/cil/tinyimagenet_classes.txt) && mkdir tiny-imagenet-200 && "
                "cd tiny-imagenet-200 && mkdir -p val/images $(printf 'train/%s/images ' $ids) && for id in $ids; do "
                ": >train/$id/images/${id}_0.JPEG; : >val/images/$id.JPEG; echo $id >>order; "
                "printf \"$id.JPEG\\t$id\\t0\\t0\\t3\\t3\\n\" >>val/val_annotations.txt; done");
    for (int reversed = 0; reversed < 2; reversed++) {
        struct dataset *dataset;
        scratch_run(&scratch, reversed ? "tac tiny-imagenet-200/order >tiny-imagenet-200/wnids.txt"
                                       : "cp tiny-imagenet-200/order tiny-imagenet-200/wnids.txt");
        root_log_start(&log);
        assert_ok(dataset_open(&dataset, "tiny_imagenet", scratch.path, NULL, &log.log, &error));
        assert_int_equal(dataset_classes(dataset), TINY_CLASSES);
        for (size_t i = 0; i < TINY_CLASSES; i++) {
            size_t published = reversed ? TINY_CLASSES - 1 - i : i;
            char *item = dataset_item_name(dataset, SPLIT_TRAIN, i);
            assert_string_equal(dataset_class_name(dataset, i), names[published]);
            assert_non_null(strstr(item, wnids[published]));
            assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, i), i);
            assert_int_equal(dataset_label(dataset, SPLIT_TEST, i), published);
            free(item);
        }
        dataset_close(dataset);
        assert_true((strstr(log.warning, "200 of its classes are on another line") != NULL) == reversed);
    }
}

static void digest_of(const char *name, const char *root, char digest[DIGEST_SIZE])
{
    struct dataset *dataset = root_open(name, root, NULL);
    dataset_digest_items(dataset, SPLIT_TEST, digest);
    dataset_close(dataset);
}

/* The same items, wherever they lie and packed or not; others when a list changes. */
ROOT_TEST(test_digest_of_items)
{
    char plain[DIGEST_SIZE], packed[DIGEST_SIZE], before[DIGEST_SIZE], after[DIGEST_SIZE], changed[DIGEST_SIZE];
    digest_of("mnist", ROOTS "mnist", plain);
    digest_of("mnist", ROOTS "mnist_gz", packed);
    assert_string_equal(plain, packed);
    digest_of("dtd", ROOTS "dtd", before);
    scratch_run(&scratch, "cp -r " ROOTS "dtd/. .");
    digest_of("dtd", scratch.path, after);
    assert_string_equal(before, after);
    scratch_write_text(&scratch, "dtd/dtd/labels/test1.txt", "braided/braided_0080.jpg\n");
    digest_of("dtd", scratch.path, changed);
    assert_string_not_equal(changed, after);
}
