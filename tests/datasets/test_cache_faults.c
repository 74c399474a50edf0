/* Damaged files and rivals: the bytes stay what they are, and the file is made anew. Processes that share a folder, full disks and
 * read-only folders are those of end_to_end/scripts/cache.txt. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file_writer.h"
#include "datasets/cache/cache_file.h"
#include "tests/datasets/album.h"
#include "tests/test.h"

/* Opening finds it: a whole file at once, without a word. */
ALBUM_TEST(cut_and_grown_files_are_made_anew)
{
    uint64_t size, found;
    album_check_anew();
    const char *path = album_file("test-12");
    assert_ok(file_size(path, &size, &error));
    const uint64_t sizes[] = {0, CACHE_HEADER - 1, CACHE_HEADER + 30, size / 2, size - 1, size + 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(path, (off_t)sizes[i]), 0);
        album_check_anew();
        assert_ok(file_size(path, &found, &error));
        assert_int_equal(found, size);
    }
    assert_int_equal(album.log.warnings, 0);
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

/* By another program, while it is in use, in its pixels and in its length: told once, and the file is made anew. */
ALBUM_TEST(damage_in_use_is_told)
{
    for (size_t shrinks = 0; shrinks < 2; shrinks++) {
        struct cache_part *part;
        struct cache *cache = album_cache(CACHE_DISK);
        album_check(cache);
        assert_int_equal(album.log.warnings, shrinks);
        assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
        const char *path = album_file("test-12");
        char *zeros = path_format("dd if=/dev/zero of='%s' bs=1 seek=%llu count=3024 conv=notrunc status=none", path,
                                  (unsigned long long)cache_pixels_start(ALBUM_TEST));
        scratch_run(&album.scratch, shrinks ? "truncate -s 8192 cache/mtil/*-test-12-*" : zeros);
        assert_int_equal(album_kept(cache, SPLIT_TEST, ALBUM_RESOLUTION), 0); /* by way of the open part */
        assert_int_equal(album.log.warnings, shrinks + 1);
        assert_non_null(strstr(album.log.warning, path));
        assert_false(file_exists(path));
        cache_close(part);
        assert_int_equal(album_kept(cache, SPLIT_TEST, ALBUM_RESOLUTION), ALBUM_TEST);
        album_check(cache);
        assert_int_equal(album.log.warnings, shrinks + 1);
        cache_destroy(cache);
        free(zeros);
    }
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

/* While somebody else writes the file, nobody waits: it is looked for again when the next loader opens. */
ALBUM_TEST(a_rival_s_file_is_not_waited_for)
{
    struct cache_writer rival;
    struct cache_label label = {.dataset = "folder"};
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
    assert_int_equal(album_kept(cache, SPLIT_TEST, ALBUM_RESOLUTION), ALBUM_TEST);
    assert_int_equal(album.log.warnings, 0);
    cache_destroy(cache);
}

ALBUM_TEST(the_limit_holds_for_all_files_together)
{
    album_check_anew();
    const char *train = album_file("train-whole"), *test = album_file("test-12");
    assert_ok(file_size(train, &album.cache.disk_limit, &error));
    album.cache.disk_limit += 8192; /* the training images, and not the other file too */
    for (size_t round = 0; round < 2; round++) {
        assert_int_equal(unlink(round == 0 ? test : train), 0);
        album_check_anew(); /* training first */
        assert_true(file_exists(train));
        assert_false(file_exists(test));
        assert_int_equal(album.log.warnings, round + 1);
    }
}
