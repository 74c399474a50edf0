#include "tests/datasets/album.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/file.h"
#include "tests/test.h"

struct album album;

void album_draw(const char *name, int width, int height, uint32_t seed)
{
    struct image image;
    struct rng rng = rng_make(seed, RNG_TEST, 0, 0);
    assert_ok(image_create(&image, width, height, &error));
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        image.pixels[i] = (uint8_t)rng_below(&rng, i, 256);
    scratch_write_text(&album.scratch, name, ""); /* and its folder */
    assert_ok(image_write_png(scratch_file(&album.scratch, name), &image, &error));
    image_free(&image);
}

/* Long after the test has written its files. */
static int64_t tomorrow(void)
{
    return ((int64_t)time(NULL) + 86400) * 1000000000;
}

void album_reopen(void)
{
    dataset_close(album.dataset);
    assert_ok(dataset_open(&album.dataset, "folder", album.root, NULL, NULL, &error));
}

int album_setup(void **state)
{
    album = (struct album){0};
    root_log_start(&album.log);
    scratch_create(&album.scratch);
    album.root = path_format("%s/data", album.scratch.path);
    album.folder = path_format("%s/cache/mtil", album.scratch.path);
    album.survey = (struct survey_settings){.folder = album.folder, .log = &album.log.log, .clock = tomorrow};
    album.cache = (struct cache_settings){.folder = album.folder,
                                          .memory_limit = (uint64_t)1 << 30,
                                          .disk_limit = (uint64_t)1 << 40,
                                          .threads = 2,
                                          .log = &album.log.log};
    for (int i = 0; i < ALBUM_TRAIN + ALBUM_TEST; i++) {
        char name[64];
        snprintf(name, sizeof name, "data/%s/%c/%02d.png", i < ALBUM_TRAIN ? "train" : "test", "ab"[i % 2], i);
        album_draw(name, 20 + 3 * i, 60 - 2 * i, (uint32_t)i);
    }
    album_reopen();
    assert_int_equal(dataset_size(album.dataset, SPLIT_TRAIN), ALBUM_TRAIN);
    return 0;
}

int album_teardown(void **state)
{
    dataset_close(album.dataset);
    scratch_remove(&album.scratch);
    free(album.root);
    free(album.folder);
    return 0;
}

struct cache *album_cache(enum cache_kind kind)
{
    struct cache *cache;
    album.cache.kind = kind;
    assert_ok(cache_create(&cache, &album.cache, &error));
    return cache;
}

struct loader_settings album_loader(struct cache *cache, enum split split)
{
    return (struct loader_settings){.dataset = album.dataset,
                                    .split = split,
                                    .resolution = ALBUM_RESOLUTION,
                                    .batch = 4,
                                    .shuffle = split == SPLIT_TRAIN,
                                    .augment = split == SPLIT_TRAIN,
                                    .seed = 3,
                                    .ahead = 2,
                                    .cache = cache};
}

enum { BYTES = 2 * 64 * ALBUM_RESOLUTION * ALBUM_RESOLUTION * 3 };

/* Returns how many bytes there are. */
static size_t read_split(struct cache *cache, enum split split, size_t threads, uint8_t pixels[BYTES])
{
    struct loader_settings settings = album_loader(cache, split);
    struct loader *loader;
    size_t used = 0;
    settings.threads = threads;
    assert_ok(loader_create(&loader, &settings, &error));
    for (size_t step = 0; step < (split == SPLIT_TRAIN ? 2 * ((ALBUM_TRAIN + 3) / 4) : (ALBUM_TEST + 3) / 4); step++) {
        size_t count, each = (size_t)ALBUM_RESOLUTION * ALBUM_RESOLUTION * 3;
        int32_t labels[4];
        assert_true(used + 4 * each <= BYTES);
        assert_ok(loader_read(loader, step, pixels + used, labels, NULL, NULL, &count, &error));
        used += count * each;
    }
    loader_destroy(loader);
    return used;
}

void album_check(struct cache *cache)
{
    static uint8_t expected[BYTES], found[BYTES];
    static size_t checks;
    size_t threads = checks++ % 4;
    for (int split = 0; split < SPLITS; split++) {
        size_t size = read_split(NULL, (enum split)split, 0, expected);
        assert_int_equal(read_split(cache, (enum split)split, threads, found), size);
        assert_memory_equal(found, expected, size);
    }
}

void album_check_anew(void)
{
    struct cache *cache = album_cache(CACHE_DISK);
    album_check(cache);
    cache_destroy(cache);
}

size_t album_decodes(void)
{
    struct survey_images images;
    album_reopen();
    assert_ok(survey_images_look(&images, album.dataset, &album.survey, &error));
    size_t decoded = images.count - images.known;
    survey_images_free(&images);
    return decoded;
}

const char *album_file(const char *part)
{
    static char paths[4][512];
    static size_t calls;
    char *path = paths[calls++ % 4];
    struct directory directory;
    size_t found = 0;
    assert_ok(directory_list(&directory, album.folder, &error));
    for (size_t i = 0; i < directory.count; i++)
        if (strstr(directory.names[i], part) != NULL && found++ == 0)
            snprintf(path, sizeof *paths, "%s/%s", album.folder, directory.names[i]);
    directory_free(&directory);
    if (found != 1)
        fail_msg("%zu files have \"%s\" in their names", found, part);
    return path;
}

size_t album_files(void)
{
    struct directory directory;
    if (!file_exists(album.folder))
        return 0;
    assert_ok(directory_list(&directory, album.folder, &error));
    size_t count = directory.count;
    directory_free(&directory);
    return count;
}

size_t album_kept(struct cache *cache, enum split split, int resolution)
{
    size_t kept = 0;
    struct cache_part *part;
    struct image image;
    assert_ok(cache_open(cache, album.dataset, split, resolution, &part, &error));
    for (size_t i = 0; i < dataset_size(album.dataset, split); i++)
        if (cache_find(part, i, &image)) {
            cache_release(part, &image);
            kept++;
        }
    cache_close(part);
    return kept;
}
