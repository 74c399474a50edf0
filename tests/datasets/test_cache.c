/* With a cache or without, and whatever damages its files: the same bytes. What is kept, for how long, and when it is made anew.
 * Processes that share a folder, full disks and read-only folders are those of end_to_end/scripts/cache.txt. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "datasets/cache/cache_file.h"
#include "tests/datasets/album.h"
#include "tests/test.h"

static const enum cache_kind kinds[] = {CACHE_NONE, CACHE_MEMORY, CACHE_DISK};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Of drawn PNGs, of the fixtures' JPEGs, of samples that are no files, and of generated images: only what is decoded is kept on disk. */
ALBUM_TEST(caches_change_no_byte)
{
    static const struct {
        const char *reader, *root;
        size_t files;
    } cases[] = {{"folder", NULL, 2},
                 {"food", FIXTURES "/data/roots/food", 2},
                 {"mnist", FIXTURES "/data/roots/mnist", 1},
                 {"toy", NULL, 0}};
    for (size_t i = 0, files = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *root = cases[i].root != NULL ? cases[i].root : album.root;
        dataset_close(album.dataset);
        assert_ok(dataset_open(&album.dataset, cases[i].reader, root, NULL, NULL, &error));
        for (size_t life = 0; life < 2 * KINDS; life++) { /* of the cache: files outlast it */
            struct cache *cache = album_cache(kinds[life / 2]);
            album_check(cache); /* fills it */
            album_check(cache);
            cache_destroy(cache);
        }
        files += cases[i].files;
        assert_int_equal(album_files(), files);
    }
    assert_int_equal(album.log.warnings, 0);
}

/* Only a number of bytes that are available allows to keep any. */
TEST(half_of_what_is_available_is_spared)
{
    static const struct {
        uint64_t available, spare, limit;
    } cases[] = {{0, 0, 0}, {1, 1, SIZE_MAX}, {8 << 20, 4 << 20, SIZE_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cache_settings settings = {0};
        cache_settings_spare(&settings, cases[i].available);
        assert_int_equal(settings.memory_spare, cases[i].spare);
        assert_int_equal(settings.memory_limit, cases[i].limit);
    }
}

/* The limit is one for all parts; nothing is kept where too little memory would be left. */
ALBUM_TEST(memory_has_a_limit)
{
    enum { R = ALBUM_RESOLUTION };
    static const struct {
        uint64_t spare;
        size_t kept;
    } cases[] = {{0, 5}, {1, 5}, {UINT64_MAX / 2, 0}};
    album.cache.memory_limit = 5 * (R * R * 3 + 16); /* a few bytes of its own beside an image's */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        album.cache.memory_spare = cases[i].spare;
        struct cache *cache = album_cache(CACHE_MEMORY);
        album_check(cache);
        assert_int_equal(album_kept(cache, SPLIT_TEST, R), cases[i].kept);
        assert_int_equal(album_kept(cache, SPLIT_TRAIN, CACHE_WHOLE), 0);
        cache_destroy(cache);
    }
}

/* Crops stay for the next loader, whole images go with the last one that uses them and leave room again. */
ALBUM_TEST(whole_images_are_let_go)
{
    album.cache.memory_limit = 5 * 4 * 3 + 16; /* of one image */
    struct cache *cache = album_cache(CACHE_MEMORY);
    struct cache_part *first, *second;
    struct image image, found;
    assert_ok(image_create(&image, 5, 4, &error));
    memset(image.pixels, 7, 5 * 4 * 3);
    assert_ok(cache_open(cache, album.dataset, SPLIT_TRAIN, CACHE_WHOLE, &first, &error));
    assert_ok(cache_open(cache, album.dataset, SPLIT_TRAIN, CACHE_WHOLE, &second, &error));
    cache_keep(first, 3, &image);
    cache_keep(first, 3, &image);
    cache_keep(first, 4, &image);
    cache_close(first);
    assert_int_equal(album_kept(cache, SPLIT_TRAIN, CACHE_WHOLE), 1);
    assert_true(cache_find(second, 3, &found));
    assert_int_equal(found.width, 5);
    assert_memory_equal(found.pixels, image.pixels, 5 * 4 * 3);
    cache_close(second);
    assert_int_equal(album_kept(cache, SPLIT_TRAIN, CACHE_WHOLE), 0);
    assert_ok(cache_open(cache, album.dataset, SPLIT_TRAIN, CACHE_WHOLE, &first, &error));
    cache_keep(first, 4, &image);
    assert_int_equal(album_kept(cache, SPLIT_TRAIN, CACHE_WHOLE), 1);
    cache_close(first);
    image_free(&image);
    cache_destroy(cache);
}

/* The cache's file of test images after another check. */
static ino_t file_of_test(void)
{
    struct stat information;
    album_check_anew();
    assert_int_equal(stat(album_file("test-12"), &information), 0);
    return information.st_ino;
}

/* A file that is up to date is used; any change to what it was made from makes another. */
ALBUM_TEST(changed_files_are_decoded_again)
{
    static const char *const changes[] = {
        "cp data/train/a/00.png data/test/a/12.png",                               /* other pixels */
        "touch -r data/test/a/14.png -d '0.000000001 seconds' data/test/a/14.png", /* the time alone */
        "cp -p data/test/a/14.png other && mv other data/test/a/14.png"};          /* neither: another file */
    ino_t before = file_of_test(), now = file_of_test();
    assert_int_equal(now, before);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++, before = now) {
        scratch_run(&album.scratch, changes[i]);
        now = file_of_test();
        assert_int_not_equal(now, before);
    }
    scratch_run(&album.scratch, "cp data/test/a/14.png data/test/a/20.png"); /* another list */
    album_reopen();
    album_check_anew();
    assert_int_equal(album.log.warnings, 0);
}

ALBUM_TEST(images_that_cannot_be_read_say_so_as_ever)
{
    scratch_write_text(&album.scratch, "data/test/a/12.png", "broken");
    album_reopen();
    for (size_t k = 0; k < KINDS; k++) {
        struct cache *cache = album_cache(kinds[k]);
        struct loader_settings settings = album_loader(cache, SPLIT_TEST);
        struct loader *loader;
        struct error reason;
        settings.batch = 1;
        assert_ok(loader_create(&loader, &settings, &error));
        for (size_t step = 0; step < ALBUM_TEST; step++) {
            uint8_t pixels[ALBUM_RESOLUTION * ALBUM_RESOLUTION * 3];
            int32_t label;
            size_t count;
            status result = loader_read(loader, step, pixels, &label, NULL, NULL, &count, &reason);
            if (result != OK)
                assert_non_null(strstr(reason.message, "test/a/12.png"));
            assert_int_equal(result, step == 0 ? ERROR_FORMAT : OK);
        }
        loader_destroy(loader);
        cache_destroy(cache);
    }
    assert_int_equal(album.log.warnings, 0);
}

static void progress(void *told, const char *dataset, size_t done, size_t total)
{
    assert_string_equal(dataset, "folder");
    assert_between(done, 1, total);
    ++*(size_t *)told;
}

ALBUM_TEST(making_a_file_is_watched_and_stops)
{
    struct cache *cache = album_cache(CACHE_DISK);
    struct stop stop = {.signal = SIGINT};
    size_t told = 0;
    struct loader_settings settings = album_loader(cache, SPLIT_TEST);
    struct loader *loader;
    cache_watch(cache, (struct cache_watcher){.stop = &stop, .progress = progress, .context = &told});
    assert_fails(loader_create(&loader, &settings, &error), ERROR_STOPPED, "folder");
    assert_int_equal(album_files(), 0);
    assert_int_equal(told, 0);
    atomic_store(&stop.signal, 0);
    album_check(cache);
    assert_true(told >= 2);
    assert_int_equal(album_files(), 2);
    assert_int_equal(album.log.warnings, 0);
    cache_destroy(cache);
}

/* --- The folder --- */

TEST(the_folder_is_the_user_s)
{
    static const struct {
        const char *cache, *home, *expected;
    } cases[] = {{"/var/cache/me", "/home/me", "/var/cache/me/mtil"},
                 {NULL, "/home/me", "/home/me/.cache/mtil"},
                 {"relative", "/home/me", "/home/me/.cache/mtil"},
                 {"", "/home/me", "/home/me/.cache/mtil"},
                 {NULL, NULL, "none"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cache *cache = NULL;
        struct error error = {0};
        cases[i].cache != NULL ? setenv("XDG_CACHE_HOME", cases[i].cache, 1) : unsetenv("XDG_CACHE_HOME");
        cases[i].home != NULL ? setenv("HOME", cases[i].home, 1) : unsetenv("HOME");
        char *folder = cache_folder_default();
        assert_int_equal(cache_create(&cache, &(struct cache_settings){.kind = CACHE_DISK}, &error),
                         folder != NULL ? OK : ERROR_ARGUMENT);
        assert_string_equal(folder != NULL ? folder : "none", cases[i].expected);
        cache_destroy(cache);
        free(folder);
    }
}

/* How many files are removed. */
static size_t clear(const char *root)
{
    struct cache_listing listing;
    assert_ok(cache_folder_clear(&listing, album.folder, root, &error));
    size_t count = listing.count;
    cache_listing_free(&listing);
    return count;
}

/* Those of killed writers go, also of features, and take no room; those of living ones stay. */
ALBUM_TEST(left_overs_go_when_another_file_is_written)
{
    struct cache_writer writer;
    struct cache_label label = {.dataset = "dtd"};
    scratch_write_text(&album.scratch, "cache/mtil/dtd-test-224-4567.pixels.new", "left over");
    scratch_write_text(&album.scratch, "cache/mtil/dtd-test-4567.features.tmp-mtil-01234567", "left over");
    assert_ok(cache_writer_open(&writer, scratch_file(&album.scratch, "cache/mtil/living.pixels"), &label, 1, 1 << 20,
                                &error));
    album_check_anew();
    assert_int_equal(album_files(), 3); /* two whole ones, and living.pixels.new */
    cache_writer_abandon(&writer);
    assert_int_equal(album_files(), 2);
}

/* In a folder that others may write to. */
ALBUM_TEST(links_to_other_files_are_not_followed)
{
    struct cache_writer writer;
    struct cache_label label = {0};
    scratch_run(&album.scratch, "mkdir -p cache/mtil && printf precious >victim && "
                                "ln -s ../../victim cache/mtil/x.pixels" CACHE_FILE_UNFINISHED);
    assert_fails(
        cache_writer_open(&writer, scratch_file(&album.scratch, "cache/mtil/x.pixels"), &label, 1, 1 << 20, &error),
        ERROR_IO, "a symbolic link");
    scratch_run(&album.scratch, "grep -qx precious victim");
}

/* Who uses a file that is removed does not notice; who writes one keeps it. */
ALBUM_TEST(clearing_disturbs_nobody)
{
    struct cache *cache = album_cache(CACHE_DISK);
    struct cache_part *part;
    struct cache_writer writer;
    struct cache_label label = {.dataset = "dtd"};
    struct image image;
    album_check(cache);
    assert_ok(cache_open(cache, album.dataset, SPLIT_TEST, ALBUM_RESOLUTION, &part, &error));
    assert_ok(
        cache_writer_open(&writer, scratch_file(&album.scratch, "cache/mtil/x.pixels"), &label, 1, 1 << 20, &error));
    char *roundabout = path_format("%s/../data", album.root);
    assert_int_equal(clear("/nowhere"), 0);
    assert_int_equal(clear(roundabout), 2);
    free(roundabout);
    assert_true(cache_find(part, 0, &image));
    cache_release(part, &image);
    album_check(cache);
    assert_ok(cache_writer_finish(&writer, &error));
    album_file("x.pixels");
    cache_close(part);
    cache_destroy(cache);
}

/* --- damaged files and rivals ------------------------------------------------------------------------------------- */

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
