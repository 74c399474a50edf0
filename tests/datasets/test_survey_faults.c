/* What was found in images and kept: damaged, foreign, shared by processes, and without room. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/seen.h"
#include "tests/datasets/album.h"
#include "tests/test.h"

enum { IMAGES = ALBUM_TRAIN + ALBUM_TEST };

/* Whatever the damage, images are decoded again and what they show is the same; the file is made anew. */
TEST_WITH(damaged_files_are_made_anew, album_setup, album_teardown)
{
    struct album *album = *state;
    struct survey_settings settings = album_survey_settings(album);
    struct survey whole, found;
    struct bytes bytes;
    assert_ok(dataset_survey(&whole, album->dataset, &settings, &error));
    char *path = album_file(album, SEEN_FILE);
    assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
    for (size_t i = 0; i < bytes.size; i += i < 24 ? 5 : 1499) { /* the header, then here and there; and cut there */
        bytes.data[i] ^= 4;
        assert_ok(file_write(path, bytes.data, i % 2 == 0 ? bytes.size : i, &error));
        bytes.data[i] ^= 4;
        assert_ok(dataset_survey(&found, album->dataset, &settings, &error));
        assert_memory_equal(&found, &whole, sizeof found);
        assert_int_equal(album_decodes(album), 0);
        assert_int_equal(album_files(album), 1);
    }
    bytes_free(&bytes);
    free(path);
}

TEST_WITH(a_file_of_something_else_is_told, album_setup, album_teardown)
{
    struct album *album = *state;
    scratch_write_text(&album->scratch, "cache/mtil/" SEEN_FILE,
                       "This is no database, however many words it may have.");
    assert_int_equal(album_decodes(album), IMAGES);
    assert_int_equal(album->warnings, 1);
    assert_non_null(strstr(album->warning, SEEN_FILE));
    assert_int_equal(album_decodes(album), 0);
    assert_int_equal(album->warnings, 1);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

/* Removes the file now and then, so that all of them write it. */
static int survey_often(struct album *album)
{
    char *path = path_format("%s/%s", album->folder, SEEN_FILE);
    for (int i = 0; i < 20; i++) {
        if (i % 4 == 0)
            unlink(path);
        album_decodes(album);
    }
    free(path);
    return album->warnings == 0 ? 0 : 1;
}

TEST_WITH(processes_share_a_file, album_setup, album_teardown)
{
    enum { CHILDREN = 4 };
    struct album *album = *state;
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++)
        children[i] = album_start_child(survey_often, album);
    for (int i = 0; i < CHILDREN; i++)
        album_expect_success(children[i]);
    assert_int_equal(album_decodes(album), 0);
    assert_int_equal(album_files(album), 1);
}

/* --- where it cannot be written ----------------------------------------------------------------------------------- */

/* Twice, as of two datasets of a run. */
static int warns_once(struct album *album)
{
    bool warned = false;
    struct survey_settings settings = album_survey_settings(album);
    settings.warned = &warned;
    bool right = album_decodes_with(album, &settings) == IMAGES && album_decodes_with(album, &settings) == IMAGES;
    if (right && warned && album->warnings == 1 && strstr(album->warning, "cannot be stored") != NULL)
        return 0;
    fprintf(stderr, "%zu warnings, the last: %s\n", album->warnings, album->warning);
    return 1;
}

static int on_full_disk(struct album *album)
{
    album_limit_files(1000);
    return warns_once(album);
}

TEST_WITH(a_full_disk_is_told_once, album_setup, album_teardown)
{
    album_expect_success(album_start_child(on_full_disk, *state));
    assert_int_equal(album_decodes(*state), IMAGES);
    assert_int_equal(album_decodes(*state), 0);
}

static int without_rights(struct album *album)
{
    album_drop_rights();
    return warns_once(album);
}

TEST_WITH(a_read_only_folder_is_told_once, album_setup, album_teardown)
{
    struct album *album = *state;
    assert_ok(directory_create(album->folder, &error));
    assert_int_equal(chmod(album->scratch.path, 0755), 0);
    assert_int_equal(chmod(album->folder, 0555), 0);
    album_expect_success(album_start_child(without_rights, album));
    assert_int_equal(chmod(album->folder, 0755), 0);
}

/* The name of the folder is taken by a file. */
TEST_WITH(no_folder_is_told_once, album_setup, album_teardown)
{
    struct album *album = *state;
    scratch_write_text(&album->scratch, "cache", "a file");
    assert_int_equal(warns_once(album), 0);
}
