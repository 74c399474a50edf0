/* What is found in roots that are broken in one way each. */
#include <stdio.h>
#include <string.h>

#include "datasets/check.h"
#include "datasets/readers/published.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

struct trial {
    struct threads *threads;
    size_t reports, last_total;
    bool stop;
};

static int set_up(void **state)
{
    static struct trial trial;
    struct error error;
    trial = (struct trial){0};
    root_setup(NULL);
    *state = &trial;
    return threads_create(&trial.threads, 3, &error) == OK ? 0 : 1;
}

static int tear_down(void **state)
{
    struct trial *trial = *state;
    threads_destroy(trial->threads);
    root_teardown(NULL);
    return 0;
}

static void count_report(void *context, size_t done, size_t total)
{
    struct trial *trial = context;
    assert_true(done <= total);
    trial->reports++;
    trial->last_total = done == total ? total : 0;
}

static bool is_stopped(void *context)
{
    return ((struct trial *)context)->stop;
}

static status check(struct trial *trial, const char *name, const char *root, struct check *found, struct error *error)
{
    bool listed = strcmp(name, "food") == 0;
    struct dataset *dataset = root_open(name, root, listed ? "on_missing=skip" : NULL);
    struct survey_settings settings = {
        .threads = trial->threads, .progress = count_report, .stopped = is_stopped, .context = trial};
    status result = check_dataset(found, dataset, &settings, error);
    dataset_close(dataset);
    return result;
}

static struct check check_well(struct trial *trial, const char *name, const char *root)
{
    struct check found;
    assert_ok(check(trial, name, root, &found, &error));
    return found;
}

static void expect_finding(const struct check_finding *finding, enum check_kind kind, enum split split,
                           const char *subject, const char *detail)
{
    assert_int_equal(finding->kind, kind);
    assert_int_equal(finding->split, split);
    assert_string_equal(finding->subject, subject);
    if (detail == NULL)
        assert_null(finding->detail);
    else if (strstr(finding->detail, detail) == NULL)
        assert_string_equal(finding->detail, detail);
}

/* Two classes, two training images and one test image each, all different. */
static void write_root(void)
{
    static const char *const names[] = {"train/ash/1.png", "train/ash/2.png", "train/oak/3.png",
                                        "train/oak/4.png", "test/ash/5.png",  "test/oak/6.png"};
    for (unsigned i = 0; i < 6; i++)
        scratch_write_png(&scratch, names[i], 8, 6, 0x203040 + i);
}

TEST_WITH(sound_dataset_has_no_findings, set_up, tear_down)
{
    struct trial *trial = *state;
    write_root();
    struct check found = check_well(trial, "folder", scratch.path);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.splits[SPLIT_TRAIN].images, 4);
    assert_int_equal(found.splits[SPLIT_TRAIN].least, 2);
    assert_true(found.splits[SPLIT_TRAIN].median == 2);
    assert_int_equal(found.splits[SPLIT_TEST].most, 1);
    assert_int_equal(trial->last_total, 6);
    check_free(&found);
}

TEST_WITH(unreadable_images_say_why, set_up, tear_down)
{
    struct trial *trial = *state;
    write_root();
    scratch_write_text(&scratch, "train/oak/3.png", "<html>");
    scratch_write(&scratch, "test/ash/5.png", "\x89PNG\r\n\x1a\n", 8);
    struct check found = check_well(trial, "folder", scratch.path);
    assert_int_equal(found.count, 2);
    expect_finding(&found.findings[0], CHECK_UNREADABLE, SPLIT_TRAIN, "./train/oak/3.png", "expected a JPEG, PNG");
    expect_finding(&found.findings[1], CHECK_UNREADABLE, SPLIT_TEST, "./test/ash/5.png", "cannot decode this PNG");
    assert_int_equal(found.splits[SPLIT_TRAIN].of[CHECK_UNREADABLE], 1);
    check_free(&found);
}

/* The pixels count, not the files: another size of the same bytes is another image, another name is not. */
TEST_WITH(duplicates_are_the_same_pixels, set_up, tear_down)
{
    struct trial *trial = *state;
    write_root();
    scratch_write_png(&scratch, "test/oak/copy.png", 8, 6, 0x203040);
    scratch_write_png(&scratch, "test/oak/shape.png", 6, 8, 0x203041);
    scratch_write_png(&scratch, "test/oak/again.png", 8, 6, 0x203044); /* twice in test: no harm */
    struct check found = check_well(trial, "folder", scratch.path);
    assert_int_equal(found.count, 1);
    expect_finding(&found.findings[0], CHECK_DUPLICATE, SPLIT_TEST, "./test/oak/copy.png", "./train/ash/1.png");
    check_free(&found);
}

TEST_WITH(missing_files_and_empty_classes_are_named, set_up, tear_down)
{
    struct trial *trial = *state;
    static const char *const folders[] = {"images/elm/4.jpg", "images/ash/1.jpg", "images/ash/2.jpg"};
    for (unsigned i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "food-101/%s", folders[i]);
        scratch_write_png(&scratch, name, 4, 4, i);
    }
    scratch_write_text(&scratch, "food-101/meta/train.json",
                       "{\"ash\": [\"ash/1\", \"ash/7\"], \"elm\": [\"elm/4\"], \"oak_tree\": [\"oak_tree/9\"]}");
    scratch_write_text(&scratch, "food-101/meta/test.json", "{\"ash\": [\"ash/2\", \"ash/8\"]}");
    struct check found = check_well(trial, "food", scratch.path);
    assert_int_equal(found.count, 6);
    expect_finding(&found.findings[0], CHECK_MISSING, SPLIT_TRAIN, "food-101/images/ash/7.jpg", NULL);
    expect_finding(&found.findings[1], CHECK_MISSING, SPLIT_TRAIN, "food-101/images/oak_tree/9.jpg", NULL);
    expect_finding(&found.findings[2], CHECK_EMPTY_CLASS, SPLIT_TRAIN, "oak tree", NULL);
    expect_finding(&found.findings[3], CHECK_MISSING, SPLIT_TEST, "food-101/images/ash/8.jpg", NULL);
    expect_finding(&found.findings[4], CHECK_EMPTY_CLASS, SPLIT_TEST, "elm", NULL);
    expect_finding(&found.findings[5], CHECK_EMPTY_CLASS, SPLIT_TEST, "oak tree", NULL);
    const struct check_split *train = &found.splits[SPLIT_TRAIN];
    assert_true(train->least == 0 && train->median == 1 && train->most == 1 && train->of[CHECK_MISSING] == 2);
    check_free(&found);
}

TEST_WITH(raw_images_are_checked_too, set_up, tear_down)
{
    struct check found = check_well(*state, "mnist", ROOTS "mnist_gz");
    assert_int_equal(found.splits[SPLIT_TRAIN].of[CHECK_UNREADABLE] + found.splits[SPLIT_TEST].of[CHECK_UNREADABLE], 0);
    assert_int_equal(found.splits[SPLIT_TEST].of[CHECK_DUPLICATE], 0);
    check_free(&found);
}

TEST_WITH(a_stop_request_is_heard, set_up, tear_down)
{
    struct trial *trial = *state;
    struct check found;
    write_root();
    trial->stop = true;
    assert_fails(check(trial, "folder", scratch.path, &found, &error), ERROR_STOPPED, "");
    assert_int_equal(found.count, 0);
}

TEST(published_sizes_are_known_for_every_listed_reader)
{
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++) {
        assert_true((published_find(readers[i]->name, "torchvision") != NULL) == (readers[i]->folders[0] != NULL));
        assert_true((published_find(readers[i]->name, "coop") != NULL) == (readers[i]->coop != NULL));
    }
}
