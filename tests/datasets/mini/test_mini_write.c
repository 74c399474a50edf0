#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "datasets/dataset.h"
#include "datasets/mini/mini.h"
#include "datasets/mini/suite.h"
#include "tests/test.h"

struct root {
    char path[64];
    struct threads *threads;
    size_t reports;  /* calls of progress */
    size_t patience; /* reports until it asks to stop; 0: never */
};

static void count_reports(void *context, const char *dataset, size_t done, size_t total)
{
    assert_non_null(dataset);
    assert_true(done <= total);
    ((struct root *)context)->reports++;
}

static bool lost_patience(void *context)
{
    const struct root *root = context;
    return root->patience > 0 && root->reports >= root->patience;
}

static status write_root(struct root *root, uint64_t seed, struct error *error)
{
    struct mini_settings settings = {
        .seed = seed, .threads = root->threads, .progress = count_reports, .stopped = lost_patience, .context = root};
    root->reports = 0;
    return mini_write(root->path, &settings, error);
}

static void remove_root(const struct root *root)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root->path);
    assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
    static struct root root;
    struct error error = {0};
    strcpy(root.path, "/tmp/mtil-mini-XXXXXX");
    if (mkdtemp(root.path) == NULL || threads_create(&root.threads, 0, &error) != OK)
        return 1;
    if (write_root(&root, 1, &error) != OK) {
        print_error("%s\n", error.message);
        return 1;
    }
    *state = &root;
    return 0;
}

static int teardown(void **state)
{
    struct root *root = *state;
    remove_root(root);
    threads_destroy(root->threads);
    return 0;
}

static struct dataset *open_domain(const struct root *root, const struct domain *domain)
{
    struct dataset *dataset = NULL;
    assert_ok(dataset_open(&dataset, domain->name, root->path, NULL, NULL, &error));
    return dataset;
}

TEST(every_reader_finds_its_classes_and_sizes)
{
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        const struct domain *domain = &suite_domains[k];
        struct dataset *dataset = open_domain(*state, domain);
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), domain->train);
        assert_int_equal(dataset_size(dataset, SPLIT_TEST), domain->test);
        assert_int_equal(dataset_classes(dataset), domain->classes);
        for (int i = 0; i < domain->classes; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s", domain->class_names[i]);
            for (char *c = name; *c != '\0'; c++)
                *c = *c == '_' ? ' ' : *c;
            assert_string_equal(dataset_class_name(dataset, (size_t)i), name);
        }
        dataset_close(dataset);
    }
}

/* CoOp's splits: the same test pictures, and four fifths of the training pictures. */
TEST(splits_of_coop_are_written)
{
    const struct root *root = *state;
    static const struct option table[] = {
        OPTION_SPLIT, {.name = "on_missing", .type = OPTION_TEXT, .fallback = "error"}, {0}};
    struct options *options;
    size_t splits = 0;
    assert_ok(options_create(&options, table, &error));
    assert_ok(options_set(options, "split", "coop", "test", &error));
    for (int k = 0; k < SUITE_DOMAINS; k++) {
        const struct domain *domain = &suite_domains[k];
        const struct dataset_reader *reader;
        struct dataset *dataset;
        assert_ok(dataset_reader_find(&reader, domain->name, &error));
        if (reader->coop == NULL)
            continue;
        assert_ok(dataset_open(&dataset, domain->name, root->path, options, NULL, &error));
        bool own = strcmp(domain->name, "aircraft") == 0;
        size_t each = (size_t)(domain->train / domain->classes), validated = own ? 0 : each / 5;
        assert_in_range(dataset_size(dataset, SPLIT_TRAIN),
                        (size_t)domain->train - (validated + 1) * (size_t)domain->classes,
                        (size_t)domain->train - validated * (size_t)domain->classes);
        assert_int_equal(dataset_size(dataset, SPLIT_TEST), domain->test);
        assert_int_equal(dataset_classes(dataset), domain->classes);
        dataset_close(dataset);
        splits++;
    }
    assert_int_equal(splits, 9);
    options_destroy(options);
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
        const struct domain *domain = suite_domains;
        while (strcmp(domain->name, ordered[k].name) != 0)
            domain++;
        struct dataset *dataset = open_domain(*state, domain);
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

TEST(splits_by_permutation_are_balanced)
{
    static const char *const names[] = {"caltech101", "eurosat", "sun397"};
    for (size_t k = 0; k < 3; k++) {
        const struct domain *domain = suite_domains;
        while (strcmp(domain->name, names[k]) != 0)
            domain++;
        struct dataset *dataset = open_domain(*state, domain);
        size_t counts[12] = {0};
        for (size_t i = 0; i < dataset_size(dataset, SPLIT_TRAIN); i++)
            counts[dataset_label(dataset, SPLIT_TRAIN, i)]++;
        for (int i = 0; i < domain->classes; i++)
            assert_in_range(counts[i], domain->train / domain->classes / 2, 2 * domain->train / domain->classes);
        dataset_close(dataset);
    }
}

TEST(digits_are_the_real_ones)
{
    struct dataset *dataset = open_domain(*state, &suite_domains[7]);
    static const int counts[10] = {27, 31, 27, 30, 33, 30, 30, 30, 28, 31};
    int found[10] = {0};
    for (size_t i = 0; i < dataset_size(dataset, SPLIT_TEST); i++)
        found[dataset_label(dataset, SPLIT_TEST, i)]++;
    assert_memory_equal(found, counts, sizeof counts);
    dataset_close(dataset);
}

TEST(complete_suite_is_left_alone)
{
    struct root *root = *state;
    assert_ok(write_root(root, 1, &error));
    assert_int_equal(root->reports, 0);
}

TEST(another_seed_is_refused)
{
    struct root *root = *state;
    struct error reason = {0};
    assert_int_equal(write_root(root, 2, &reason), ERROR_ARGUMENT);
    assert_non_null(strstr(reason.message, "\"seed\": 1"));
    assert_non_null(strstr(reason.message, "\"seed\": 2"));
    assert_int_equal(root->reports, 0);
}

TEST(foreign_data_is_refused)
{
    struct root root = {.path = "/tmp/mtil-mini-XXXXXX"};
    char path[96];
    assert_non_null(mkdtemp(root.path));
    snprintf(path, sizeof path, "%s/food-101", root.path);
    assert_ok(directory_create(path, &error));
    assert_fails(write_root(&root, 1, &error), ERROR_ARGUMENT, "food-101");
    assert_int_equal(root.reports, 0);
    remove_root(&root);
}

/* An interrupted run: no mini.json, mini.unfinished in its place, a picture cut short. One that is stopped leaves it so,
 * the next one mends it. */
TEST(interrupted_suite_is_written_again)
{
    struct root *root = *state;
    char complete[96], unfinished[96], picture[128];
    struct bytes before, after;
    snprintf(complete, sizeof complete, "%s/mini.json", root->path);
    snprintf(unfinished, sizeof unfinished, "%s/mini.unfinished", root->path);
    snprintf(picture, sizeof picture, "%s/caltech101/101_ObjectCategories/cup/image_0003.jpg", root->path);
    assert_ok(file_read(picture, FILE_LIMIT, &before, &error));
    assert_int_equal(rename(complete, unfinished), 0);
    assert_int_equal(truncate(picture, 100), 0);
    root->patience = 3;
    assert_fails(write_root(root, 1, &error), ERROR_STOPPED, "");
    assert_int_equal(root->reports, 3);
    assert_false(file_exists(complete));
    assert_true(file_exists(unfinished));
    root->patience = 0;
    assert_ok(write_root(root, 1, &error));
    assert_true(root->reports > SUITE_DOMAINS);
    assert_true(file_exists(complete));
    assert_false(file_exists(unfinished));
    assert_ok(file_read(picture, FILE_LIMIT, &after, &error));
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    bytes_free(&before);
    bytes_free(&after);
}

TEST(failure_names_the_file)
{
    struct root *root = *state;
    struct error error = {0};
    char path[96];
    snprintf(path, sizeof path, "%s/mini.json", root->path);
    struct root below = {.threads = NULL};
    snprintf(below.path, sizeof below.path, "%.32s/mini.json", root->path); /* a file, where a folder is needed */
    assert_int_not_equal(write_root(&below, 1, &error), OK);
    assert_non_null(strstr(error.message, path));
}

TEST_GROUP(setup, teardown)
