#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "datasets/mini/mini.h"
#include "datasets/mini/suite.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

static struct threads *threads;
static size_t reports;  /* calls of progress */
static size_t patience; /* reports until it asks to stop; 0: never */
static struct stop stop;

static void count_reports(void *context, const char *dataset, size_t done, size_t total)
{
    assert_non_null(dataset);
    assert_true(done <= total);
    if (++reports == patience)
        atomic_store(&stop.signal, SIGINT);
}

static status write_root(const char *path, uint64_t seed, struct error *error)
{
    struct mini_settings settings = {.seed = seed, .threads = threads, .progress = count_reports, .stop = &stop};
    reports = 0;
    atomic_store(&stop.signal, 0);
    return mini_write(path, &settings, error);
}

static int setup(void **state)
{
    int made = root_setup(state);
    assert_ok(threads_create(&threads, 0, &error));
    assert_ok(write_root("suite", 1, &error));
    return made;
}

static int teardown(void **state)
{
    threads_destroy(threads);
    return root_teardown(state);
}

static const struct domain *domain_of(const char *name)
{
    const struct domain *domain = suite_domains;
    while (strcmp(domain->name, name) != 0)
        domain++;
    return domain;
}

static void expect_names(const struct dataset *dataset, const struct domain *domain)
{
    assert_int_equal(dataset_classes(dataset), domain->classes);
    for (int i = 0; i < domain->classes; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", domain->class_names[i]);
        for (char *c = name; *c != '\0'; c++)
            *c = *c == '_' ? ' ' : *c;
        assert_string_equal(dataset_class_name(dataset, (size_t)i), name);
    }
}

/* CoOp's splits have the same test pictures, and four fifths of the training pictures, but for its lists of aircraft. */
TEST(every_reader_finds_its_classes_and_sizes)
{
    size_t splits = 0;
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        const struct domain *domain = &suite_domains[k];
        const struct dataset_reader *reader;
        assert_ok(dataset_reader_find(&reader, domain->name, &error));
        for (int coop = 0; coop <= (reader->coop != NULL); coop++, splits++) {
            struct dataset *dataset = root_open(domain->name, "suite", coop ? "split=coop" : NULL);
            bool validates = coop && strcmp(domain->name, "aircraft") != 0;
            int most = domain->train - (validates ? domain->train / domain->classes / 5 * domain->classes : 0);
            assert_between(dataset_size(dataset, SPLIT_TRAIN), most - (coop ? domain->classes : 0), most);
            assert_int_equal(dataset_size(dataset, SPLIT_TEST), domain->test);
            expect_names(dataset, domain);
            dataset_close(dataset);
        }
    }
    assert_int_equal(splits, SUITE_DOMAINS + 9);
}

/* Of the datasets in the order of their lists, item i is drawing i; JPEG costs a few levels, the pickle none. */
TEST(read_pictures_are_the_drawn_ones)
{
    static const struct {
        const char *name;
        double most;
    } ordered[] = {{"aircraft", 12}, {"cifar100", 0},    {"dtd", 20},          {"flowers", 14},
                   {"food", 14},     {"oxford_pet", 14}, {"stanford_cars", 20}};
    for (size_t k = 0; k < sizeof ordered / sizeof ordered[0]; k++) {
        const struct domain *domain = domain_of(ordered[k].name);
        struct dataset *dataset = root_open(domain->name, "suite", NULL);
        for (int split = 0; split < SPLITS; split++) {
            /* food's lists go class by class; the first item is the first drawing all the same */
            size_t index = strcmp(domain->name, "food") == 0 ? 0 : 13,
                   item = index + (split == SPLIT_TEST ? (size_t)domain->train : 0);
            uint8_t drawn[SUITE_PIXELS];
            struct image image;
            int label, expected = (int)(item % (size_t)domain->classes);
            assert_ok(dataset_read(dataset, (enum split)split, index, &image, &label, &error));
            assert_int_equal(label, expected);
            assert_int_equal(image.width, domain->side);
            assert_int_equal(image.height, domain->side);
            suite_drawing(domain, 1, item, label, drawn);
            double difference = 0;
            size_t size = 3 * (size_t)(domain->side * domain->side);
            for (size_t i = 0; i < size; i++)
                difference += (double)abs(image.pixels[i] - drawn[i]) / (double)size;
            image_free(&image);
            if (difference > ordered[k].most)
                fail_msg("%s: %.2f levels from its drawing", domain->name, difference);
        }
        dataset_close(dataset);
    }
}

TEST(complete_suite_is_left_alone)
{
    assert_ok(write_root("suite", 1, &error));
    assert_int_equal(reports, 0);
}

/* Another seed, and data of others. */
TEST(what_is_there_is_not_mixed_with)
{
    assert_fails(write_root("suite", 2, &error), ERROR_ARGUMENT, "\"seed\": 1");
    assert_fails(write_root("suite", 2, &error), ERROR_ARGUMENT, "\"seed\": 2");
    assert_ok(directory_create("foreign/food-101", &error));
    assert_fails(write_root("foreign", 1, &error), ERROR_ARGUMENT, "food-101");
    assert_int_equal(reports, 0);
}

/* An interrupted run: no mini.json, mini.unfinished in its place, a picture cut short. One that is stopped leaves it so,
 * the next one mends it. */
TEST(interrupted_suite_is_written_again)
{
    static const char complete[] = "suite/mini.json", unfinished[] = "suite/mini.unfinished",
                      picture[] = "suite/caltech101/101_ObjectCategories/cup/image_0003.jpg";
    struct bytes before, after;
    assert_ok(file_read(picture, FILE_LIMIT, &before, &error));
    assert_int_equal(rename(complete, unfinished), 0);
    assert_int_equal(truncate(picture, 100), 0);
    patience = 3;
    assert_fails(write_root("suite", 1, &error), ERROR_STOPPED, "");
    assert_int_equal(reports, 3);
    assert_true(!file_exists(complete) && file_exists(unfinished));
    patience = 0;
    assert_ok(write_root("suite", 1, &error));
    assert_true(reports > SUITE_DOMAINS);
    assert_true(file_exists(complete) && !file_exists(unfinished));
    assert_ok(file_read(picture, FILE_LIMIT, &after, &error));
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    bytes_free(&before);
    bytes_free(&after);
}

TEST(failure_names_the_file)
{
    /* a file, where a folder is needed */
    assert_fails(write_root("suite/mini.json", 1, &error), ERROR_IO, "suite/mini.json");
}

/* All drawings are those that were always drawn. */
TEST(drawings_have_a_known_digest)
{
    struct digest digest = digest_begin();
    char hash[DIGEST_SIZE];
    for (int k = 0; k < SUITE_DOMAINS; k++)
        for (int i = 0; suite_domains[k].draw != NULL && i < 40; i++) {
            uint8_t pixels[SUITE_PIXELS];
            suite_drawing(&suite_domains[k], 1, (uint64_t)i, i % suite_domains[k].classes, pixels);
            digest_add(&digest, pixels, 3 * (size_t)(suite_domains[k].side * suite_domains[k].side));
        }
    digest_end(&digest, hash);
    assert_string_equal(hash, "f4f18102388fd80abd91c65af1b97d846cee496009a94431adaa3862cb2e85f2");
}

TEST_GROUP(setup, teardown)
