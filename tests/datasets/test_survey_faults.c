/* What was found in images and kept: damaged, foreign, shared by processes, and without room. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/seen.h"
#include "datasets/survey/survey_images.h"
#include "tests/datasets/album.h"
#include "tests/test.h"

enum { IMAGES = ALBUM_TRAIN + ALBUM_TEST };

/* Long after the test has written its files. */
static int64_t tomorrow(void)
{
    return ((int64_t)time(NULL) + 86400) * 1000000000;
}

static struct survey_settings settings_of(const struct album *album)
{
    return (struct survey_settings){.folder = album->folder, .log = &album->log, .clock = tomorrow};
}

/* How many images a survey has to decode. */
static size_t decodes_with(struct album *album, const struct survey_settings *settings)
{
    struct survey_images images;
    assert_ok(survey_images_look(&images, album->dataset, settings, &error));
    size_t decoded = images.count - images.known;
    survey_images_free(&images);
    return decoded;
}

static size_t decodes(struct album *album)
{
    struct survey_settings settings = settings_of(album);
    return decodes_with(album, &settings);
}

/* Whatever the damage, images are decoded again and what they show is the same; the file is made anew. */
TEST_WITH(damaged_files_are_made_anew, album_setup, album_teardown)
{
    struct album *album = *state;
    struct survey_settings settings = settings_of(album);
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
        assert_int_equal(decodes(album), 0);
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
    assert_int_equal(decodes(album), IMAGES);
    assert_int_equal(album->warnings, 1);
    assert_non_null(strstr(album->warning, SEEN_FILE));
    assert_int_equal(decodes(album), 0);
    assert_int_equal(album->warnings, 1);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

static pid_t start_child(int (*work)(struct album *album), struct album *album)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(work(album));
    assert_true(child > 0);
    return child;
}

static void expect_success(pid_t child)
{
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        fail_msg("the child ended with %d", ended);
}

/* Removes the file now and then, so that all of them write it. */
static int survey_often(struct album *album)
{
    char *path = path_format("%s/%s", album->folder, SEEN_FILE);
    for (int i = 0; i < 20; i++) {
        if (i % 4 == 0)
            unlink(path);
        decodes(album);
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
        children[i] = start_child(survey_often, album);
    for (int i = 0; i < CHILDREN; i++)
        expect_success(children[i]);
    assert_int_equal(decodes(album), 0);
    assert_int_equal(album_files(album), 1);
}

/* --- where it cannot be written ----------------------------------------------------------------------------------- */

/* Twice, as of two datasets of a run. */
static int warns_once(struct album *album)
{
    bool warned = false;
    struct survey_settings settings = settings_of(album);
    settings.warned = &warned;
    bool right = decodes_with(album, &settings) == IMAGES && decodes_with(album, &settings) == IMAGES;
    if (right && warned && album->warnings == 1 && strstr(album->warning, "cannot be stored") != NULL)
        return 0;
    fprintf(stderr, "%zu warnings, the last: %s\n", album->warnings, album->warning);
    return 1;
}

static int on_full_disk(struct album *album)
{
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
    return warns_once(album);
}

TEST_WITH(a_full_disk_is_told_once, album_setup, album_teardown)
{
    expect_success(start_child(on_full_disk, *state));
    assert_int_equal(decodes(*state), IMAGES);
    assert_int_equal(decodes(*state), 0);
}

/* As a user without rights to the folder; root would not notice. */
static int without_rights(struct album *album)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 2;
    return warns_once(album);
}

TEST_WITH(a_read_only_folder_is_told_once, album_setup, album_teardown)
{
    struct album *album = *state;
    assert_ok(directory_create(album->folder, &error));
    assert_int_equal(chmod(album->scratch.path, 0755), 0);
    assert_int_equal(chmod(album->folder, 0555), 0);
    expect_success(start_child(without_rights, album));
    assert_int_equal(chmod(album->folder, 0755), 0);
}

/* The name of the folder is taken by a file. */
TEST_WITH(no_folder_is_told_once, album_setup, album_teardown)
{
    struct album *album = *state;
    scratch_write_text(&album->scratch, "cache", "a file");
    assert_int_equal(warns_once(album), 0);
}
