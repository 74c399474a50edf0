/* A small dataset of drawn files around each test and a folder for a cache, to see that a cache changes nothing.
 *
 *     ALBUM_TEST(a_cache_changes_nothing)
 *     {
 *         struct cache *cache = album_cache(CACHE_DISK);
 *         album_check(cache); // the bytes that are read without a cache, train and test
 *         cache_destroy(cache);
 *     }
 */
#pragma once

#include "datasets/loader.h"
#include "datasets/survey.h"
#include "tests/datasets/root.h"

enum { ALBUM_RESOLUTION = 12, ALBUM_TRAIN = 11, ALBUM_TEST = 7 };

struct album {
    struct scratch scratch;
    char *root, *folder; /* of the files; of the cache */
    struct dataset *dataset;
    struct cache_settings cache;   /* of new caches */
    struct survey_settings survey; /* believes every file, since its clock is a day ahead */
    struct root_log log;
};

extern struct album album; /* of the test that runs */
int album_setup(void **state);
int album_teardown(void **state);
#define ALBUM_TEST(name) TEST_WITH(name, album_setup, album_teardown)

/* A PNG of noise that seed decides, "data/train/a/1.png"; written again, it is another file. */
void album_draw(const char *name, int width, int height, uint32_t seed);
void album_reopen(void); /* the dataset, after files have changed */

struct cache *album_cache(enum cache_kind kind);
struct loader_settings album_loader(struct cache *cache, enum split split);

/* Compares both splits, two epochs of training and one of test, with what is read without a cache; with 0 to 3 threads in
 * turn. */
void album_check(struct cache *cache);

void album_check_anew(void); /* with a new cache on disk */

size_t album_decodes(void); /* how many images a survey has to decode */

/* The cache's only file whose name has part in it, until the fourth call after it. Fails the test when there is not just one. */
const char *album_file(const char *part);
size_t album_files(void); /* of any name in the cache's folder */

/* How many images of a split a cache has. */
size_t album_kept(struct cache *cache, enum split split, int resolution);
