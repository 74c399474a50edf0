/* The loader gives the same bytes for any number of threads, in order or not, and passes errors on. */
#include <stdlib.h>
#include <string.h>

#include "datasets/loader.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

enum { R = 12, BATCH = 7 };

struct batch {
    uint8_t pixels[BATCH * R * R * 3];
    int32_t labels[BATCH];
    size_t count;
    int32_t partners[BATCH]; /* of a mixed one */
    float own;
};

static struct dataset *toy;

static int set_up(void **state)
{
    toy = root_open("toy", NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    dataset_close(toy);
    return 0;
}

static struct loader *create(const struct loader_settings *settings)
{
    struct loader *loader;
    assert_ok(loader_create(&loader, settings, &error));
    return loader;
}

static void read_batch(struct loader *loader, uint64_t step, struct batch *batch)
{
    memset(batch, 0, sizeof *batch);
    assert_ok(
        loader_read(loader, step, batch->pixels, batch->labels, batch->partners, &batch->own, &batch->count, &error));
}

/* Of a loader that lives as long. */
static void read_one(const struct loader_settings *settings, uint64_t step, struct batch *batch)
{
    struct loader *loader = create(settings);
    read_batch(loader, step, batch);
    loader_destroy(loader);
}

static struct loader_settings training(size_t threads)
{
    return (struct loader_settings){.dataset = toy,
                                    .split = SPLIT_TRAIN,
                                    .resolution = R,
                                    .batch = BATCH,
                                    .shuffle = true,
                                    .augment = true,
                                    .seed = 11,
                                    .task = 2,
                                    .threads = threads,
                                    .ahead = 3};
}

TEST(test_threads_change_nothing)
{
    enum { STEPS = 25 };
    static struct batch expected[STEPS], batch;
    for (size_t threads = 0; threads < 5; threads++) {
        struct loader_settings settings = training(threads);
        struct loader *loader = create(&settings);
        for (uint64_t step = 0; step < STEPS; step++) {
            read_batch(loader, step, threads == 0 ? &expected[step] : &batch);
            if (threads > 0)
                assert_memory_equal(&batch, &expected[step], sizeof batch);
        }
        loader_destroy(loader);
    }
    for (size_t step = 0; step < STEPS; step++)
        assert_int_equal(expected[step].count, step % 5 < 4 ? BATCH : 32 - 4 * BATCH);
}

static int compare_images(const void *a, const void *b)
{
    return memcmp(a, b, R * R * 3);
}

/* The pixels of the images of an epoch of 5 batches, in an order that does not depend on that of the epoch. */
static void read_epoch(const struct loader_settings *settings, uint64_t epoch, uint8_t (*pixels)[R * R * 3])
{
    static struct batch batch;
    struct loader *loader = create(settings);
    for (uint64_t step = 5 * epoch, first = 0; step < 5 * epoch + 5; step++, first += batch.count) {
        read_batch(loader, step, &batch);
        memcpy(pixels[first], batch.pixels, batch.count * R * R * 3);
    }
    qsort(pixels, 32, sizeof *pixels, compare_images);
    loader_destroy(loader);
}

/* Each epoch has all images, in an order of its own. */
TEST(test_epochs_are_permutations)
{
    static uint8_t all[32][R * R * 3], found[32][R * R * 3];
    static struct batch first, second;
    struct loader_settings settings = training(1);
    settings.augment = settings.shuffle = false;
    read_epoch(&settings, 0, all);
    settings.shuffle = true;
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        read_epoch(&settings, epoch, found);
        assert_memory_equal(found, all, sizeof all);
        read_one(&settings, 5 * epoch, &first);
        read_one(&settings, 5 * epoch + 5, &second);
        assert_memory_not_equal(first.pixels, second.pixels, sizeof first.pixels);
    }
}

/* With one_crop every epoch has the crops of the first, in an order of its own; otherwise new ones. A crop of less of the image is
 * another one. */
TEST(test_crops)
{
    static uint8_t usual[32][R * R * 3], other[32][R * R * 3];
    static const struct {
        struct augmentation augmentation;
        uint64_t epoch;
        bool same;
    } cases[] = {{{.one_crop = true}, 3, true},
                 {{.one_crop = false}, 3, false},
                 {{.crop_scale = IMAGE_CROP_SCALE}, 0, true},
                 {{.crop_scale = 0.05}, 0, false}};
    struct loader_settings settings = training(1);
    read_epoch(&settings, 0, usual);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        settings.augmentation = cases[i].augmentation;
        read_epoch(&settings, cases[i].epoch, other);
        assert_int_equal(memcmp(usual, other, sizeof usual) == 0, cases[i].same);
    }
}

/* Of 32 images 28 fill batches of 7; another purpose is another order. */
TEST(test_full_batches)
{
    struct loader_settings settings = training(0);
    static struct batch usual, batch;
    read_one(&settings, 0, &usual);
    settings.full = true;
    settings.order = RNG_REFERENCE;
    struct loader *loader = create(&settings);
    for (uint64_t step = 0; step < 9; step++) {
        assert_int_equal(loader_batch_size(loader, step), BATCH);
        read_batch(loader, step, &batch);
        assert_int_equal(batch.count, BATCH);
        if (step == 0)
            assert_memory_not_equal(batch.pixels, usual.pixels, sizeof batch.pixels);
    }
    loader_destroy(loader);
    settings.items = (const uint32_t[]){3, 1, 2};
    settings.item_count = 3; /* fewer than fill one: each batch has all */
    loader = create(&settings);
    for (uint64_t step = 0; step < 3; step++)
        assert_int_equal(loader_batch_size(loader, step), 3);
    loader_destroy(loader);
}

TEST(test_evaluation_in_order_and_subset)
{
    static const uint32_t subset[] = {9, 2, 15};
    static struct batch batch;
    struct loader_settings settings = {
        .dataset = toy, .split = SPLIT_TEST, .resolution = R, .batch = BATCH, .threads = 1, .ahead = 2};
    struct image image;
    uint8_t pixels[R * R * 3];
    read_one(&settings, 1, &batch);
    assert_int_equal(batch.labels[0], dataset_label(toy, SPLIT_TEST, BATCH));
    assert_ok(dataset_read(toy, SPLIT_TEST, BATCH, &image, NULL, &error));
    assert_ok(image_evaluation_crop(&image, R, pixels, &error));
    assert_memory_equal(batch.pixels, pixels, sizeof pixels);
    image_free(&image);
    settings.items = subset;
    settings.item_count = 3;
    read_one(&settings, 0, &batch);
    assert_int_equal(batch.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(batch.labels[i], dataset_label(toy, SPLIT_TEST, subset[i]));
}

static const struct augmentation everything = {
    .operations = 2, .magnitude = 15, .erasing = 0.5, .mixup = 1, .cutmix = 1};

/* Each image with the one before it, the first with the last; the augmented images are those of unmixed batches. */
TEST(test_mixed_with_the_one_before)
{
    static struct batch plain, mixed;
    struct loader_settings settings = training(0), unmixed = settings, crops = settings;
    settings.augmentation = unmixed.augmentation = everything;
    unmixed.augmentation.mixup = unmixed.augmentation.cutmix = 0;
    struct loader *loader = create(&settings), *before = create(&unmixed), *cropped = create(&crops);
    size_t cuts = 0, changed = 0;
    for (uint64_t step = 0; step < 20; step++) {
        struct mixing mixing = augment_draw_mixing(&everything, settings.seed, settings.task, step, R);
        read_batch(cropped, step, &mixed);
        read_batch(before, step, &plain);
        changed += memcmp(mixed.pixels, plain.pixels, sizeof plain.pixels) != 0;
        read_batch(loader, step, &mixed);
        assert_int_equal(mixed.count, plain.count);
        assert_memory_equal(mixed.labels, plain.labels, sizeof plain.labels);
        assert_true(mixed.own <= mixing.own && mixed.own >= mixing.own);
        cuts += mixing.cut;
        for (size_t i = 0; i < plain.count; i++) {
            size_t partner = (i + plain.count - 1) % plain.count;
            uint8_t expected[R * R * 3];
            assert_int_equal(mixed.partners[i], plain.labels[partner]);
            augment_mix(&mixing, R, plain.pixels + i * sizeof expected, plain.pixels + partner * sizeof expected,
                        expected);
            assert_memory_equal(mixed.pixels + i * sizeof expected, expected, sizeof expected);
        }
    }
    assert_true(cuts > 2 && cuts < 18);
    assert_int_equal(changed, 20);
    loader_destroy(loader);
    loader_destroy(before);
    loader_destroy(cropped);
}

/* Loaders with a share each read together what one reads: mixed or not, with any number of threads, at any step. */
TEST(test_shares)
{
    enum { PARTS = 4, IMAGE = R * R * 3 };
    static struct batch whole, share;
    for (int mixed = 0; mixed < 2; mixed++) {
        struct loader_settings settings = training(0);
        settings.augmentation = mixed ? everything : settings.augmentation;
        struct loader *loader = create(&settings), *parts[PARTS];
        settings.parts = PARTS;
        for (settings.part = 0; settings.part < PARTS; settings.part++) {
            settings.threads = settings.part;
            parts[settings.part] = create(&settings);
        }
        for (uint64_t round = 0; round < 15; round++) {
            uint64_t step = round < 10 ? round : round < 14 ? 7 * round % 13 : 100000000;
            size_t read = 0;
            read_batch(loader, step, &whole);
            for (size_t part = 0; part < PARTS; part++) {
                read_batch(parts[part], step, &share);
                size_t count = share.count;
                assert_int_equal(loader_batch_size(parts[part], step), whole.count);
                assert_int_equal(loader_share_of(whole.count, part, PARTS).first, read);
                assert_memory_equal(share.labels, whole.labels + read, count * sizeof *share.labels);
                assert_memory_equal(share.partners, whole.partners + read, count * sizeof *share.partners);
                assert_memory_equal(share.pixels, whole.pixels + read * IMAGE, count * IMAGE);
                assert_memory_equal(&share.own, &whole.own, count > 0 ? sizeof share.own : 0);
                read += count;
            }
            assert_int_equal(read, whole.count);
        }
        for (size_t part = 0; part < PARTS; part++)
            loader_destroy(parts[part]);
        loader_destroy(loader);
    }
    assert_int_equal(loader_share_of(2, 0, 3).count, 1); /* the first share is empty last */
    assert_int_equal(loader_share_of(2, 2, 3).count, 0);
    assert_int_equal(loader_share_of(7, 0, 0).count, 7);
}

TEST(test_wrong_settings)
{
    static const uint32_t beyond[] = {16};
    const struct loader_settings right = {.dataset = toy, .split = SPLIT_TEST, .resolution = R, .batch = BATCH};
    struct loader_settings wrong[] = {right, right, right};
    static const char *const words[] = {"no test images", "image 16 of 16", "mixup"};
    struct loader *loader;
    wrong[0].items = wrong[1].items = beyond;
    wrong[1].item_count = 1;
    wrong[2].augmentation.mixup = 1; /* of images that are not cropped at random */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(loader_create(&loader, &wrong[i], &error), ERROR_ARGUMENT, words[i]);
}

/* The first broken image of the batch is named, its batch alone fails, and again when read again. */
ROOT_TEST(test_background_errors)
{
    static struct batch batch;
    scratch_run(&scratch, "cp -r " ROOTS "food/. .");
    scratch_write_text(&scratch, "food-101/images/cheesecake/2051340.jpg", "broken");
    scratch_write_text(&scratch, "food-101/images/beignets/530224.jpg", "broken");
    struct dataset *dataset = root_open("food", scratch.path, NULL);
    for (size_t threads = 0; threads < 4; threads++) {
        struct loader_settings settings = {
            .dataset = dataset, .split = SPLIT_TRAIN, .resolution = R, .batch = 5, .threads = threads, .ahead = 2};
        struct loader *loader = create(&settings);
        read_batch(loader, 0, &batch);
        for (int again = 0; again < 2; again++) {
            size_t count;
            assert_fails(loader_read(loader, 1, batch.pixels, batch.labels, NULL, NULL, &count, &error), ERROR_FORMAT,
                         "2051340.jpg");
            assert_int_equal(count, 0);
        }
        read_batch(loader, 2, &batch);
        loader_destroy(loader);
    }
    dataset_close(dataset);
}

TEST_GROUP(set_up, tear_down)
