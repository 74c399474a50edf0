/* A small dataset of drawn files and a folder for a cache, to see that a cache changes nothing.
 *
 *     struct album album;
 *     album_create(&album);
 *     struct cache *cache = album_cache(&album, CACHE_DISK);
 *     album_check(&album, cache);                     // the bytes that are read without a cache, train and test
 *     cache_destroy(cache);
 *     album_remove(&album);
 */
#pragma once

#include <sys/types.h>

#include "datasets/loader.h"
#include "datasets/survey/survey_images.h"
#include "tests/datasets/scratch.h"

enum { ALBUM_RESOLUTION = 12, ALBUM_TRAIN = 11, ALBUM_TEST = 7, ALBUM_MOST = 16 };

struct album {
    struct scratch scratch;
    char *root, *folder; /* of the files; of the cache */
    struct dataset *dataset;
    struct log log;
    size_t warnings;
    char warning[1024]; /* the last one */
};

void album_create(struct album *album);
void album_remove(struct album *album);

/* The same around a test, whose state the album is. */
int album_setup(void **state);
int album_teardown(void **state);

/* A PNG of noise that seed decides, below the root; written again, it has another time. */
void album_draw(const struct album *album, const char *name, int width, int height, uint32_t seed);
void album_reopen(struct album *album); /* the dataset, after files have changed */

struct cache_settings album_settings(const struct album *album, enum cache_kind kind);
struct cache *album_cache(const struct album *album, enum cache_kind kind);

/* The pixels of a split, two epochs of training and one of test; returns their bytes. */
enum { ALBUM_BYTES = 2 * ALBUM_MOST * ALBUM_RESOLUTION * ALBUM_RESOLUTION * 3 };
size_t album_read(const struct album *album, struct cache *cache, enum split split, size_t threads,
                  uint8_t pixels[ALBUM_BYTES]);

/* Compares both splits with what is read without a cache. */
void album_check(const struct album *album, struct cache *cache);

void album_check_anew(const struct album *album); /* with a new cache on disk */

/* Surveys that believe every file, since their clock is a day ahead; how many images one has to decode. */
struct survey_settings album_survey_settings(const struct album *album);
size_t album_decodes_with(struct album *album, const struct survey_settings *settings);
size_t album_decodes(struct album *album);

/* Runs work in a process of its own; it is to return 0. */
pid_t album_start_child(int (*work)(struct album *album), struct album *album);
void album_expect_success(pid_t child);

/* In such a process: a user without rights to folders of others, for root would not notice; files of at most size bytes,
 * as on a disk without room. */
void album_drop_rights(void);
void album_limit_files(size_t size);

/* The cache's only file whose name has part in it; the caller frees. Fails the test when there is not just one. */
char *album_file(const struct album *album, const char *part);
size_t album_files(const struct album *album); /* of any name in the cache's folder */
