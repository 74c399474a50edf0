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
ALBUM_TEST(damaged_files_are_made_anew)
{
    struct survey_settings settings = album_survey_settings();
    struct survey whole, found;
    struct bytes bytes;
    assert_ok(dataset_survey(&whole, album.dataset, &settings, &error));
    const char *path = album_file(SEEN_FILE);
    assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
    for (size_t i = 0; i < bytes.size; i += i < 24 ? 5 : 1499) { /* the header, then here and there; and cut there */
        bytes.data[i] ^= 4;
        assert_ok(file_write(path, bytes.data, i % 2 == 0 ? bytes.size : i, &error));
        bytes.data[i] ^= 4;
        assert_ok(dataset_survey(&found, album.dataset, &settings, &error));
        assert_memory_equal(&found, &whole, sizeof found);
        assert_int_equal(album_decodes(), 0);
        assert_int_equal(album_files(), 1);
    }
    bytes_free(&bytes);
}

ALBUM_TEST(a_file_of_something_else_is_told)
{
    scratch_write_text(&album.scratch, "cache/mtil/" SEEN_FILE, "This is no database, however many words it may have.");
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album.warnings, 1);
    assert_non_null(strstr(album.warning, SEEN_FILE));
    assert_int_equal(album_decodes(), 0);
    assert_int_equal(album.warnings, 1);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

/* Removes the file now and then, so that all of them write it. */
static int survey_often(void)
{
    char *path = path_format("%s/%s", album.folder, SEEN_FILE);
    for (int i = 0; i < 20; i++) {
        if (i % 4 == 0)
            unlink(path);
        album_decodes();
    }
    free(path);
    return album.warnings == 0 ? 0 : 1;
}

ALBUM_TEST(processes_share_a_file)
{
    album_run_children(4, survey_often);
    assert_int_equal(album_decodes(), 0);
    assert_int_equal(album_files(), 1);
}

/* --- where it cannot be written ----------------------------------------------------------------------------------- */

/* Twice, as of two datasets of a run. */
static int warns_once(void)
{
    bool warned = false;
    struct survey_settings settings = album_survey_settings();
    settings.warned = &warned;
    bool right = album_decodes_with(&settings) == IMAGES && album_decodes_with(&settings) == IMAGES;
    if (right && warned && album.warnings == 1 && strstr(album.warning, "cannot be stored") != NULL)
        return 0;
    fprintf(stderr, "%zu warnings, the last: %s\n", album.warnings, album.warning);
    return 1;
}

static int on_full_disk(void)
{
    album_limit_files(1000);
    return warns_once();
}

ALBUM_TEST(a_full_disk_is_told_once)
{
    album_run_children(1, on_full_disk);
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_decodes(), 0);
}

static int without_rights(void)
{
    album_drop_rights();
    return warns_once();
}

ALBUM_TEST(a_read_only_folder_is_told_once)
{
    assert_ok(directory_create(album.folder, &error));
    assert_int_equal(chmod(album.scratch.path, 0755), 0);
    assert_int_equal(chmod(album.folder, 0555), 0);
    album_run_children(1, without_rights);
    assert_int_equal(chmod(album.folder, 0755), 0);
}

/* The name of the folder is taken by a file. */
ALBUM_TEST(no_folder_is_told_once)
{
    scratch_write_text(&album.scratch, "cache", "a file");
    assert_int_equal(warns_once(), 0);
}
