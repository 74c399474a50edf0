/* Digests of what images show, what is kept of them, and when it is believed. How it is stored is in tests/core/test_seen.c; what
 * a run does with broken images, in end_to_end/scripts/unreadable.txt. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/datasets/album.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

enum { IMAGES = ALBUM_TRAIN + ALBUM_TEST };

/* Opened anew, so that lists and names are those of now. */
static struct survey survey(void)
{
    struct survey found;
    album_reopen();
    assert_ok(dataset_survey(&found, album.dataset, &album.survey, &error));
    return found;
}

/* --- digests ------------------------------------------------------------------------------------------------------ */

/* Another file of the same pixels. */
ALBUM_TEST(another_encoding_has_the_same_digest)
{
    struct survey before = survey();
    assert_int_equal(before.splits[SPLIT_TRAIN].files, ALBUM_TRAIN);
    scratch_run(&album.scratch, "echo >>data/test/b/11.png");
    struct survey after = survey();
    assert_string_equal(before.splits[SPLIT_TEST].digest, after.splits[SPLIT_TEST].digest);
    assert_int_equal(before.splits[SPLIT_TEST].bytes + 1, after.splits[SPLIT_TEST].bytes);
}

ALBUM_TEST(pixels_names_labels_and_prompts_count)
{
    struct survey first = survey(), second;
    album_draw("data/test/b/11.png", 53, 38, 1000);
    second = survey();
    assert_string_equal(first.splits[SPLIT_TRAIN].digest, second.splits[SPLIT_TRAIN].digest);
    assert_string_not_equal(first.splits[SPLIT_TEST].digest, second.splits[SPLIT_TEST].digest);
    scratch_run(&album.scratch, "mv data/test/b/11.png data/test/b/11x.png");
    struct survey renamed = survey();
    assert_string_not_equal(second.splits[SPLIT_TEST].digest, renamed.splits[SPLIT_TEST].digest);
    assert_string_equal(second.prompts, renamed.prompts);
    scratch_run(&album.scratch, "mv data/train/a data/train/c && mv data/test/a data/test/c"); /* a, b become b, c */
    struct survey relabelled = survey();
    assert_string_not_equal(renamed.splits[SPLIT_TRAIN].digest, relabelled.splits[SPLIT_TRAIN].digest);
    assert_string_not_equal(renamed.prompts, relabelled.prompts);
    scratch_write_text(&album.scratch, "data/templates.txt", "a {}.\n");
    struct survey prompted = survey();
    assert_string_not_equal(relabelled.prompts, prompted.prompts);
    assert_string_equal(relabelled.splits[SPLIT_TRAIN].digest, prompted.splits[SPLIT_TRAIN].digest);
}

ALBUM_TEST(samples_and_generated_images_have_digests)
{
    static const char *const names[] = {"mnist", "toy"};
    for (size_t i = 0; i < 2; i++) {
        struct survey first, second;
        struct dataset *dataset;
        assert_ok(dataset_open(&dataset, names[i], FIXTURES "/data/roots/mnist", NULL, NULL, &error));
        assert_ok(dataset_survey(&first, dataset, &album.survey, &error));
        assert_ok(dataset_survey(&second, dataset, &album.survey, &error));
        assert_memory_equal(&first, &second, sizeof first);
        assert_int_equal(first.splits[SPLIT_TEST].files, i == 0 ? 1 : 0);
        assert_true((first.splits[SPLIT_TEST].bytes > 0) == (i == 0));
        assert_string_not_equal(first.splits[SPLIT_TRAIN].digest, first.splits[SPLIT_TEST].digest);
        dataset_close(dataset);
    }
    assert_int_equal(album_files(), 0); /* nothing to keep */
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

ALBUM_TEST(what_was_found_is_not_looked_for_again)
{
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_files(), 1);
    struct survey kept = survey();
    assert_int_equal(album_decodes(), 0);
    album.survey.folder = NULL;
    assert_int_equal(album_decodes(), IMAGES);
    struct survey computed = survey();
    assert_memory_equal(&kept, &computed, sizeof kept);
    album.survey.folder = album.folder;
    album_draw("data/train/a/new.png", 9, 9, 77);
    assert_int_equal(album_decodes(), 1);
    assert_int_equal(album_decodes(), 0);
    assert_int_equal(album.log.warnings, 0);
}

/* Same name, same size, same time of modification: the time of change is not for anyone to set. */
ALBUM_TEST(replaced_pixels_are_noticed)
{
    scratch_write_png(&album.scratch, "data/train/b/03.png", 4, 4, 0x010203);
    scratch_run(&album.scratch, "cp -p data/train/b/03.png was");
    struct survey before = survey();
    scratch_write_png(&album.scratch, "data/train/b/03.png", 4, 4, 0x020304);
    scratch_run(&album.scratch, "touch -r was data/train/b/03.png");
    scratch_run(&album.scratch, "test \"$(stat -c %s:%y was)\" = \"$(stat -c %s:%y data/train/b/03.png)\"");
    assert_int_equal(album_decodes(), 1);
    struct survey after = survey();
    assert_string_not_equal(before.splits[SPLIT_TRAIN].digest, after.splits[SPLIT_TRAIN].digest);
}

/* A change within the tick of the clock in which a file was read would leave its times as they are. */
ALBUM_TEST(what_was_just_written_is_not_believed_later)
{
    int64_t (*tomorrow)(void) = album.survey.clock;
    album.survey.clock = NULL;
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_files(), 0);
    album.survey.clock = tomorrow;
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_decodes(), 0);
}

static void stop_at_the_fifth(void *stop, size_t done, size_t total)
{
    if (done >= 5)
        atomic_store(&((struct stop *)stop)->signal, SIGINT);
}

ALBUM_TEST(what_was_found_before_a_stop_is_kept)
{
    struct stop stop = {0};
    struct survey_images images;
    album.survey.progress = stop_at_the_fifth;
    album.survey.context = &stop;
    album.survey.stop = &stop;
    assert_fails(survey_images_look(&images, album.dataset, &album.survey, &error), ERROR_STOPPED, "");
    album.survey.progress = NULL;
    album.survey.stop = NULL;
    size_t left = album_decodes();
    assert_true(left > 0 && left < IMAGES);
}

static int64_t slow_clock(void)
{
    static int64_t calls;
    return ((int64_t)time(NULL) + 86400 + ++calls * 60) * 1000000000;
}

/* files: in the cache's folder, when most images were looked at. */
static void count_files(void *files, size_t done, size_t total)
{
    if (done > ALBUM_TRAIN && done < total)
        *(size_t *)files = album_files();
}

/* What takes long is kept before its end, whatever that is. */
ALBUM_TEST(what_was_found_is_kept_now_and_then)
{
    size_t files = 0;
    album.survey.clock = slow_clock;
    album.survey.progress = count_files;
    album.survey.context = &files;
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(files, 1);
    assert_int_equal(album_decodes(), 0);
}

/* Some classes of a dataset and all of it share one file. */
ALBUM_TEST(parts_share_what_was_found)
{
    struct survey_images images;
    struct dataset *part;
    part = dataset_select(album.dataset, (size_t[]){1}, 1);
    assert_ok(survey_images_look(&images, part, &album.survey, &error));
    size_t of_part = images.count;
    survey_images_free(&images);
    assert_int_equal(album_decodes(), IMAGES - of_part);
    assert_int_equal(album_decodes(), 0);
    assert_int_equal(album_files(), 1);
    dataset_close(part);
}

/* --- images that are no images ------------------------------------------------------------------------------------ */

ALBUM_TEST(that_it_is_no_image_is_found_again)
{
    struct survey found;
    scratch_write_text(&album.scratch, "data/train/b/05.png", "<html>");
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_decodes(), 1);
    assert_fails(dataset_survey(&found, album.dataset, &album.survey, &error), ERROR_FORMAT,
                 "05.png: expected a file's contents, found a web page");
}

/* Nor does it make a folder of images another folder. */
ALBUM_TEST(a_shortage_is_no_fault_of_an_image)
{
    struct dataset *dataset = root_open("folder", album.root, "on_unreadable=skip");
    struct rlimit files, before;
    struct survey found;
    struct directory folders, others;
    struct error said, unseen;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    files = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    status result = dataset_survey(&found, dataset, &album.survey, &said),
           looked = dataset_find_folders(album.root, &folders, &others, &unseen);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(result, ERROR_MEMORY);
    assert_non_null(strstr(said.message, "Too many open files"));
    assert_int_equal(looked, ERROR_MEMORY);
    assert_non_null(strstr(unseen.message, "Too many open files"));
    assert_ok(dataset_survey(&found, dataset, &album.survey, &error));
    assert_int_equal(found.splits[SPLIT_TRAIN].files, ALBUM_TRAIN);
    assert_ok(dataset_find_folders(album.root, &folders, &others, &error));
    assert_int_equal(folders.count, 1);
    directory_free(&folders);
    dataset_close(dataset);
}

/* In place of the C library's: reads of this file fail as on a broken disk. */
static const char *broken;

ssize_t pread(int file, void *target, size_t size, off_t offset)
{
    char own[32], path[512];
    snprintf(own, sizeof own, "/proc/self/fd/%d", file);
    ssize_t length = broken != NULL ? readlink(own, path, sizeof path) : 0;
    if (length > 0 && memmem(path, (size_t)length, broken, strlen(broken)) != NULL) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, file, target, size, offset);
}

/* Of every kind of image, and nothing of it is stored. */
ALBUM_TEST(an_error_of_the_disk_is_no_fault_of_an_image)
{
    static const char *const images[] = {"color.png", "color.jpg", "color.webp", "color.gif", "color.bmp"};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        char command[512];
        snprintf(command, sizeof command, "cp %s/../fuzz/corpus/image/%s data/train/b/", FIXTURES, images[i]);
        scratch_run(&album.scratch, command);
        struct dataset *dataset = root_open("folder", album.root, "on_unreadable=skip");
        struct survey found;
        broken = images[i];
        assert_fails(dataset_survey(&found, dataset, &album.survey, &error), ERROR_IO, "Input/output error");
        broken = NULL;
        assert_ok(dataset_survey(&found, dataset, &album.survey, &error));
        assert_int_equal(found.splits[SPLIT_TRAIN].files, ALBUM_TRAIN + i + 1);
        dataset_close(dataset);
    }
}

/* A disk that fails today may not fail tomorrow. */
ALBUM_TEST(files_that_cannot_be_read_are_never_left_out)
{
    struct dataset *dataset = root_open("folder", album.root, "on_unreadable=skip");
    struct survey found;
    scratch_run(&album.scratch, "mv data/train/b/05.png away.png");
    assert_fails(dataset_survey(&found, dataset, &album.survey, &error), ERROR_IO, "05.png");
    scratch_run(&album.scratch, "mv away.png data/train/b/05.png");
    assert_ok(dataset_survey(&found, dataset, &album.survey, &error));
    assert_int_equal(found.splits[SPLIT_TRAIN].files, ALBUM_TRAIN);
    dataset_close(dataset);
}

/* The name of the cache's folder is taken by a file: told once, as of two datasets of a run. */
ALBUM_TEST(no_folder_is_told_once)
{
    bool warned = false;
    album.survey.warned = &warned;
    scratch_write_text(&album.scratch, "cache", "a file");
    assert_int_equal(album_decodes(), IMAGES);
    assert_int_equal(album_decodes(), IMAGES);
    assert_true(warned);
    assert_int_equal(album.log.warnings, 1);
    assert_non_null(strstr(album.log.warning, "cannot be stored"));
}

/* Also where the survey is stored and nothing is decoded. */
ALBUM_TEST(clipped_images_are_told_again)
{
    scratch_run(&album.scratch, "cp " FIXTURES "/../fuzz/corpus/image/gray16.png data/train/a/00.png");
    survey();
    assert_int_equal(album.log.warnings, 1);
    assert_non_null(strstr(album.log.warning, "1 of 18 images"));
    assert_int_equal(album_decodes(), 0);
    survey();
    assert_int_equal(album.log.warnings, 2);
}
