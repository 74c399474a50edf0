/* Damaged files, rivals, full disks and read-only folders: the bytes stay what they are, and the file is made anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/cache/cache_file.h"
#include "tests/datasets/album.h"

/* --- Damage --- */

/* After damage that opening finds: right bytes at once, and a whole file. The order of its images is free. */
static void expect_made_anew(const char *path, const struct bytes *good)
{
    struct cache_file file;
    struct image image;
    album_check_anew();
    const struct cache_header *header = (const struct cache_header *)(const void *)good->data;
    assert_ok(cache_file_open(&file, path, &header->label, &error));
    uint64_t size;
    assert_ok(file_size(path, &size, &error));
    assert_int_equal(size, good->size);
    for (size_t i = 0; i < ALBUM_TEST; i++) {
        assert_int_equal(cache_file_find(&file, i, &image), CACHE_FOUND);
        image_free(&image);
    }
    cache_file_close(&file);
}

ALBUM_TEST(cut_and_grown_files_are_made_anew)
{
    struct bytes good;
    album_check_anew();
    const char *path = album_file("test-12");
    assert_ok(file_read(path, FILE_LIMIT, &good, &error));
    size_t sizes[] = {0, 1, 100, CACHE_HEADER - 1, CACHE_HEADER, CACHE_HEADER + 30, good.size / 2, good.size - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_ok(file_write(path, good.data, sizes[i], &error));
        expect_made_anew(path, &good);
    }
    uint8_t *longer = calloc(1, good.size + 4096);
    memcpy(longer, good.data, good.size);
    assert_ok(file_write(path, longer, good.size + 4096, &error));
    expect_made_anew(path, &good);
    memset(longer, 0, good.size);
    assert_ok(file_write(path, longer, good.size, &error)); /* what a power cut may leave */
    expect_made_anew(path, &good);
    assert_int_equal(album.warnings, 0);
    free(longer);
    bytes_free(&good);
}

/* One wrong byte anywhere: never a wrong pixel, and the second cache after it finds a whole file. */
ALBUM_TEST(no_wrong_byte_is_believed)
{
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    struct bytes good;
    album_check_anew();
    const char *path = album_file("train-whole");
    assert_ok(file_read(path, FILE_LIMIT, &good, &error));
    size_t index_end = CACHE_HEADER + ALBUM_TRAIN * sizeof(struct cache_entry);
    size_t regions[][2] = {{0, sizeof(struct cache_header)}, {CACHE_HEADER, index_end}, {index_end, good.size}};
    for (uint32_t trial = 0; trial < 60; trial++) {
        const size_t *region = regions[trial % 3];
        size_t at = region[0] + rng_below(&rng, 2 * trial, (uint32_t)(region[1] - region[0]));
        good.data[at] ^= (uint8_t)(1 + rng_below(&rng, 2 * trial + 1, 255));
        assert_ok(file_write(path, good.data, good.size, &error));
        album_check_anew();
        album_check_anew();
        bytes_free(&good);
        assert_ok(file_read(path, FILE_LIMIT, &good, &error));
    }
    bytes_free(&good);
}

/* A pixel's damage shows when the image is used: told once, and the file is gone for the next run. */
ALBUM_TEST(damaged_pixels_are_told)
{
    struct bytes bytes;
    album_check_anew();
    const char *path = album_file("test-12");
    assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
    for (size_t at = (size_t)cache_pixels_start(ALBUM_TEST); at < bytes.size; at += 200)
        bytes.data[at]++;
    assert_ok(file_write(path, bytes.data, bytes.size, &error));
    struct cache *cache = album_cache(CACHE_DISK);
    struct cache_part *part;
    struct image image;
    assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
    for (size_t i = 0; i < ALBUM_TEST; i++)
        assert_false(cache_find(part, i, &image));
    assert_int_equal(album.warnings, 1);
    assert_non_null(strstr(album.warning, path));
    assert_false(file_exists(path));
    cache_close(part);
    assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
    for (size_t i = 0; i < ALBUM_TEST; i++) {
        assert_true(cache_find(part, i, &image));
        cache_release(part, &image);
    }
    cache_close(part);
    album_check(cache);
    assert_int_equal(album.warnings, 1);
    cache_destroy(cache);
    bytes_free(&bytes);
}

/* By another program, while it is in use. */
ALBUM_TEST(files_that_shrink_are_told)
{
    struct cache_part *part;
    struct image image;
    struct cache *cache = album_cache(CACHE_DISK);
    album_check(cache);
    assert_int_equal(album.warnings, 0);
    assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
    const char *path = album_file("test-12");
    assert_int_equal(truncate(path, CACHE_HEADER), 0);
    for (size_t i = 0; i < ALBUM_TEST; i++)
        assert_false(cache_find(part, i, &image));
    assert_int_equal(album.warnings, 1);
    assert_non_null(strstr(album.warning, path));
    cache_close(part);
    album_check(cache);
    assert_true(file_exists(path));
    assert_int_equal(album.warnings, 1);
    cache_destroy(cache);
}

/* All checksums right, and yet an index that leads out of the file. */
ALBUM_TEST(entries_that_lie_are_refused)
{
    struct bytes bytes;
    album_check_anew();
    const char *path = album_file("train-whole");
    assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
    struct cache_header *header = (struct cache_header *)(void *)bytes.data, was = *header;
    struct cache_entry *entries = (struct cache_entry *)(void *)(bytes.data + CACHE_HEADER), first = entries[0];
    struct cache_file damaged;
    entries[0].offset = 0; /* an image that is absent, but the index's checksum knows of one */
    assert_ok(file_write(path, bytes.data, bytes.size, &error));
    assert_fails(cache_file_open(&damaged, path, &was.label, &error), ERROR_FORMAT, "index");
    struct cache_entry lies[] = {
        {.offset = bytes.size, .width = 1, .height = 1},
        {.offset = UINT64_MAX, .width = 1, .height = 1},
        {.offset = first.offset, .width = UINT32_MAX, .height = UINT32_MAX},
        {.offset = first.offset, .width = 0, .height = 5},
        {.offset = first.offset, .width = 60000, .height = 2},
        {.offset = 8, .width = 1, .height = 1},
    };
    for (size_t i = 0; i <= sizeof lies / sizeof *lies; i++) {
        struct cache_file file;
        struct error reason = {0};
        bool truth = i == sizeof lies / sizeof *lies;
        entries[0] = truth ? first : lies[i];
        header->index_checksum = cache_checksum(entries, ALBUM_TRAIN * sizeof *entries);
        header->checksum = cache_header_checksum(header);
        assert_ok(file_write(path, bytes.data, bytes.size, &error));
        assert_int_equal(cache_file_open(&file, path, &was.label, &reason), truth ? OK : ERROR_FORMAT);
        assert_true(truth || strstr(reason.message, "image 0") != NULL);
        cache_file_close(&file);
    }
    header->count = UINT64_MAX / 2;
    header->checksum = cache_header_checksum(header);
    assert_ok(file_write(path, bytes.data, bytes.size, &error));
    album_check_anew();
    bytes_free(&bytes);
}

/* --- Other processes --- */

static int complain(const char *what)
{
    fprintf(stderr, "%s: %zu warnings, the last: %s\n", what, album.warnings, album.warning);
    return 1;
}

static int read_everything(void)
{
    static uint8_t expected[ALBUM_BYTES], found[ALBUM_BYTES];
    struct cache *cache = album_cache(CACHE_DISK);
    bool same = true;
    for (int round = 0; round < 3; round++) {
        for (int split = 0; split < SPLITS; split++) {
            size_t size = album_read(NULL, (enum split)split, 0, expected);
            same = same && album_read(cache, (enum split)split, 1, found) == size && memcmp(found, expected, size) == 0;
        }
    }
    cache_destroy(cache);
    return same && album.warnings == 0 ? 0 : complain("reading");
}

ALBUM_TEST(processes_share_files)
{
    album_run_children(6, read_everything);
    assert_int_equal(album_files(), 2);
    assert_int_equal(read_everything(), 0);
}

/* While somebody else writes the file, nobody waits: it is looked for again when the next loader opens. */
ALBUM_TEST(a_rival_s_file_is_not_waited_for)
{
    struct cache_writer rival;
    struct cache_label label = {.dataset = "folder"};
    struct cache_part *part;
    struct image image;
    album_check_anew();
    const char *path = album_file("test-12");
    assert_int_equal(unlink(path), 0);
    assert_ok(cache_writer_open(&rival, path, &label, ALBUM_TEST, 1 << 20, &error));
    struct cache *cache = album_cache(CACHE_DISK);
    album_check(cache);
    assert_false(file_exists(path));
    cache_writer_abandon(&rival);
    album_check(cache);
    assert_true(file_exists(path));
    assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
    assert_true(cache_find(part, 0, &image));
    cache_release(part, &image);
    assert_int_equal(album.warnings, 0);
    cache_close(part);
    cache_destroy(cache);
}

/* --- Where files cannot be written --- */

static int read_on_full_disk(void)
{
    album_limit_files(10000);
    struct cache *cache = album_cache(CACHE_DISK);
    album_check(cache);
    album_check(cache);
    cache_destroy(cache);
    return album.warnings == 1 && strstr(album.warning, "decoded every time") != NULL ? 0 : complain("full disk");
}

ALBUM_TEST(a_full_disk_is_reported_once)
{
    album_run_children(1, read_on_full_disk);
    assert_int_equal(album_files(), 0);
}

ALBUM_TEST(the_limit_holds_for_all_files_together)
{
    struct cache_settings settings = album_settings(CACHE_DISK);
    struct stat information;
    album_check_anew();
    const char *train = album_file("train-whole"), *test = album_file("test-12");
    assert_int_equal(stat(train, &information), 0);
    settings.disk_limit = (uint64_t)information.st_size + 8192; /* the training images, and not the other file too */
    for (size_t round = 0; round < 2; round++) {
        struct cache *cache;
        assert_int_equal(unlink(test), 0);
        if (round == 1)
            assert_int_equal(unlink(train), 0);
        assert_ok(cache_create(&cache, &settings, &error));
        album_check(cache); /* training first */
        assert_true(file_exists(train));
        assert_false(file_exists(test));
        assert_int_equal(album.warnings, round + 1);
        cache_destroy(cache);
        album_check_anew();
    }
}

static int read_from_read_only_folder(void)
{
    album_drop_rights();
    struct cache *cache = album_cache(CACHE_DISK);
    struct cache_part *part = NULL;
    struct error error;
    struct image image;
    album_check(cache);
    bool right = album.warnings == 1;
    right = right && cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error) == OK &&
            cache_find(part, 0, &image);
    if (right)
        cache_release(part, &image);
    cache_close(part);
    cache_destroy(cache);
    return right ? 0 : complain("read-only folder");
}

ALBUM_TEST(a_read_only_folder_can_be_used)
{
    album_check_anew();
    const char *train = album_file("train-whole");
    assert_int_equal(unlink(train), 0);
    assert_int_equal(chmod(album.scratch.path, 0755), 0);
    assert_int_equal(chmod(album.folder, 0555), 0);
    album_run_children(1, read_from_read_only_folder);
    assert_int_equal(chmod(album.folder, 0755), 0);
    assert_int_equal(album_files(), 1);
}

/* The name of the folder is taken by a file. */
ALBUM_TEST(no_folder_is_told_once)
{
    scratch_write_text(&album.scratch, "cache", "a file");
    struct cache *cache = album_cache(CACHE_DISK);
    album_check(cache);
    album_check(cache);
    assert_int_equal(album.warnings, 1);
    assert_non_null(strstr(album.warning, "cannot create this folder"));
    cache_destroy(cache);
}
