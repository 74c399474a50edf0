/* Decoding, writing and the two transforms. Pillow's own pixels are compared by replay_data. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/image/resample.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

#define SEEDS FIXTURES "/../fuzz/corpus/image/"

static struct image random_image(int width, int height, uint32_t seed)
{
    struct image image;
    struct rng rng = rng_make(seed, RNG_TEST, 0, 0);
    assert_ok(image_create(&image, width, height, &error));
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        image.pixels[i] = (uint8_t)rng_below(&rng, i, 256);
    return image;
}

static void expect_refused(const uint8_t *data, size_t size, const char *words)
{
    struct image image;
    assert_fails(image_decode(&image, data, size, "file.xyz", &error), ERROR_FORMAT, words);
    assert_null(image.pixels);
}

static void expect_pixels(const uint8_t *data, size_t size, int width, const uint8_t *expected, size_t count)
{
    struct image image;
    assert_ok(image_decode(&image, data, size, "a", &error));
    assert_int_equal(image.width, width);
    assert_int_equal((size_t)image.width * (size_t)image.height * 3, count);
    assert_memory_equal(image.pixels, expected, count);
    image_free(&image);
}

TEST(test_what_is_written_comes_back)
{
    struct image image, back;
    assert_ok(image_create(&image, 64, 48, &error));
    for (size_t i = 0; i < 64 * 48; i++)
        memcpy(image.pixels + 3 * i, (uint8_t[]){(uint8_t)(i % 64 * 3), (uint8_t)(i / 64 * 4), 90}, 3);
    for (int jpeg = 0; jpeg < 2; jpeg++) {
        assert_ok(jpeg ? image_write_jpeg("a.png", &image, 95, &error) : image_write_png("a.png", &image, &error));
        assert_ok(image_decode_file(&back, "a.png", &error));
        assert_int_equal(back.width, 64);
        assert_int_equal(back.height, 48);
        for (size_t i = 0; i < 64 * 48 * 3; i++)
            assert_true(abs(back.pixels[i] - image.pixels[i]) <= (jpeg ? 12 : 0));
        image_free(&back);
    }
    assert_fails(image_write_png("/nonexistent/a.png", &image, &error), ERROR_IO, "/nonexistent/a.png");
    assert_fails(image_write_jpeg("/nonexistent/a.jpg", &image, 90, &error), ERROR_IO, "/nonexistent/a.jpg");
    image_free(&image);
}

/* A small file that claims a large image costs neither memory nor time. */
TEST(test_jpeg_claims_too_much)
{
    struct image image = random_image(16, 16, 3);
    struct bytes file;
    assert_ok(image_write_jpeg("a.jpg", &image, 10, &error));
    assert_ok(file_read("a.jpg", 1 << 20, &file, &error));
    uint8_t *frame = memmem(file.data, file.size, "\xff\xc0", 2);
    assert_non_null(frame);
    memcpy(frame + 5, (uint8_t[]){0x30, 0x00, 0x30, 0x00}, 4); /* 12288×12288 */
    expect_refused(file.data, file.size, "it claims 12288×12288 pixels, more than");
    bytes_free(&file);
    image_free(&image);
}

/* 2×2 pixels, rows from the bottom, blue first, padded to 8 bytes. */
static const uint8_t bmp[] = {'B', 'M', 70, 0, 0,  0, 0, 0, 0, 0,  54, 0,  0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 2, 0,
                              0,   0,   1,  0, 24, 0, 0, 0, 0, 0,  16, 0,  0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0,
                              0,   0,   0,  0, 0,  0, 7, 8, 9, 10, 11, 12, 0, 0, 1,  2, 3, 4, 5, 6, 0, 0};

TEST(test_bmp)
{
    static const uint8_t expected[] = {3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10},
                         flipped[] = {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4};
    uint8_t copy[sizeof bmp];
    expect_pixels(bmp, sizeof bmp, 2, expected, sizeof expected);
    memcpy(copy, bmp, sizeof bmp);
    memset(copy + 22, 0xff, 4);
    copy[22] = 0xfe; /* height −2: rows from the top */
    expect_pixels(copy, sizeof bmp, 2, flipped, sizeof flipped);
    expect_refused(bmp, sizeof bmp - 1, "ends early");
    expect_refused(bmp, 30, "cut off");
    copy[28] = 8;
    expect_refused(copy, sizeof bmp, "24 bits");
}

/* The first frame, 1×1, lies at (1, 0) of a screen of 2×1; the other pixel has the background's index 0. */
TEST(test_gif_frame_is_placed_on_its_screen)
{
    static const uint8_t gif[] = {'G', 'I', 'F', '8', '9', 'a', 2, 0, 1, 0, 0x80, 0, 0, 10,   20,   30, 40, 50,
                                  60,  ',', 1,   0,   0,   0,   1, 0, 1, 0, 0,    2, 2, 0x4c, 0x01, 0,  ';'};
    static const uint8_t expected[] = {10, 20, 30, 40, 50, 60};
    expect_pixels(gif, sizeof gif, 2, expected, sizeof expected);
    expect_refused(gif, 24, "ends early");
    expect_refused(gif, 13 + 6, "GIF");
}

/* With alpha, and the first of two frames. */
TEST(test_webp)
{
    static const uint8_t alpha[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 40, 50, 60, 70, 80, 90},
                         animated[] = {0, 255, 0, 40, 215, 1, 80, 175, 2, 120, 135, 3, 160, 95, 4, 200, 55, 5};
    struct bytes with_alpha, two_frames;
    assert_ok(file_read(SEEDS "alpha.webp", 1 << 20, &with_alpha, &error));
    assert_ok(file_read(SEEDS "animated.webp", 1 << 20, &two_frames, &error));
    expect_pixels(with_alpha.data, with_alpha.size, 3, alpha, sizeof alpha);
    expect_pixels(two_frames.data, two_frames.size, 3, animated, sizeof animated);
    expect_refused(with_alpha.data, with_alpha.size - 9, "cannot decode this WebP");
    expect_refused(two_frames.data, 80, "cannot decode this WebP");
    expect_refused(with_alpha.data, 12, "ends early");
    bytes_free(&with_alpha);
    bytes_free(&two_frames);
}

TEST(test_no_image)
{
    struct image image;
    expect_refused((const uint8_t *)"", 0, "empty");
    expect_refused((const uint8_t *)"hello", 5, "68 65 6c 6c 6f");
    expect_refused((const uint8_t *)"\xff\xd8\xff", 3, "ends early");
    expect_refused((const uint8_t *)"\x89PNG\r\n\x1a\n", 8, "ends early");
    assert_fails(image_decode_file(&image, "/nonexistent.jpg", &error), ERROR_IO, "");
    assert_fails(image_create(&image, 0, 5, &error), ERROR_FORMAT, "");
    assert_fails(image_create(&image, 65500, 65500, &error), ERROR_FORMAT, "");
}

/* --- resampling -------------------------------------------------------------------------------------------------- */

TEST(test_filters_agree)
{
    struct rng rng = rng_make(5, RNG_TEST, 1, 0);
    for (uint32_t k = 0; k < 60; k++) {
        int width = 1 + (int)rng_below(&rng, 8 * k, 90), height = 1 + (int)rng_below(&rng, 8 * k + 1, 90);
        struct image image = random_image(width, height, k);
        struct image_box box = {.width = 1 + (int)rng_below(&rng, 8 * k + 2, (uint32_t)width),
                                .height = 1 + (int)rng_below(&rng, 8 * k + 3, (uint32_t)height)};
        box.left = (int)rng_below(&rng, 8 * k + 4, (uint32_t)(width - box.width + 1));
        box.top = (int)rng_below(&rng, 8 * k + 5, (uint32_t)(height - box.height + 1));
        int m = 1 + (int)rng_below(&rng, 8 * k + 6, 70), n = 1 + (int)rng_below(&rng, 8 * k + 7, 70);
        struct resampling plain = {&image, box, m, n, {0, 0, m, n}, &filters_plain}, other = plain;
        uint8_t *one = malloc((size_t)(m * n) * 3), *two = malloc((size_t)(m * n) * 3);
        resample(&plain, one);
        for (size_t i = 0; (other.filters = filters_at(i)) != NULL; i++) {
            resample(&other, two);
            assert_memory_equal(one, two, (size_t)(m * n) * 3);
        }
        free(one);
        free(two);
        image_free(&image);
    }
}

/* A part of the result is the same as that part of the whole result. */
TEST(test_wanted_part)
{
    struct image image = random_image(70, 50, 9), whole;
    struct image_box box = {3, 4, 60, 40}, wanted = {7, 5, 20, 11};
    uint8_t part[20 * 11 * 3];
    assert_ok(image_resize(&image, box, 33, 90, &whole, &error));
    struct resampling resampling = {&image, box, 33, 90, wanted, NULL};
    resample(&resampling, part);
    for (int y = 0; y < wanted.height; y++)
        assert_memory_equal(part + y * 60, whole.pixels + ((y + wanted.top) * 33 + wanted.left) * 3, 60);
    image_free(&image);
    image_free(&whole);
}

TEST(test_same_size_is_untouched)
{
    struct image image = random_image(24, 31, 4);
    uint8_t pixels[24 * 24 * 3];
    assert_ok(image_evaluation_crop(&image, 24, pixels, &error));
    assert_memory_equal(pixels, image.pixels + 4 * 24 * 3, sizeof pixels); /* (31 − 24) / 2 = 3.5, to the even 4 */
    image_free(&image);
}

TEST(test_an_image_too_long_is_refused)
{
    struct image image = random_image(10000000, 1, 4);
    static uint8_t pixels[224 * 224 * 3];
    assert_fails(image_evaluation_crop(&image, 224, pixels, &error), ERROR_ARGUMENT, "10000000×1");
    assert_fails(image_squash(&image, 224, pixels, &error), ERROR_ARGUMENT, "10000000×1");
    image_free(&image);
}

TEST(test_drawn_boxes)
{
    struct rng rng = rng_make(42, RNG_CROP, 3, 1);
    int moved = 0;
    double least = 1, sum = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        struct image_box small = image_draw_box(1000, 900, 0.05, &rng, i);
        double share = small.width * small.height / 900000.0;
        least = share < least ? share : least;
        sum += share;
    }
    assert_true(least > 0.049 && least < 0.06 && sum / 2000 > 0.45 && sum / 2000 < 0.53); /* uniform; few do not fit */
    for (uint64_t i = 0; i < 2000; i++) {
        struct image_box box = image_draw_box(100, 90, IMAGE_CROP_SCALE, &rng, i),
                         again = image_draw_box(100, 90, IMAGE_CROP_SCALE, &rng, i);
        assert_memory_equal(&box, &again, sizeof box);
        assert_true(box.left >= 0 && box.top >= 0 && box.left + box.width <= 100 && box.top + box.height <= 90);
        double ratio = (double)box.width / box.height, area = box.width * box.height / 9000.0;
        assert_true(ratio > 0.74 && ratio < 1.35 && area > 0.88 && area <= 1);
        moved += box.left != 0;
    }
    assert_true(moved > 500);
}

/* A photo of 3:2 never fits a box of at most 4:3 with nine tenths of its area: always the centre. */
TEST(test_wide_images_fall_back)
{
    struct rng rng = rng_make(7, RNG_CROP, 0, 0);
    static const struct {
        int width, height;
        struct image_box box;
    } cases[] = {{320, 213, {18, 0, 284, 213}},
                 {187, 281, {0, 16, 187, 249}},
                 {900, 60, {410, 0, 80, 60}},
                 {48, 700, {0, 318, 48, 64}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image_box box = image_draw_box(cases[i].width, cases[i].height, IMAGE_CROP_SCALE, &rng, i);
        assert_memory_equal(&box, &cases[i].box, sizeof box);
    }
}

TEST_GROUP(root_setup, root_teardown)
