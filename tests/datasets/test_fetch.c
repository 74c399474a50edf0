/* Fetching from a server that misbehaves: what appears below the root is whole or absent.
 *
 *     test_fetch                          the tests
 *     test_fetch ROOT FILE SERVER         fetches the archive FILE as the dataset food, for the tests of faults
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/fetch/fetch.h"
#include "tests/datasets/scratch.h"
#include "tests/datasets/server.h"
#include "tests/test.h"

enum { NOISE = 60000, ARCHIVE_MOST = 1 << 18 };

static struct scratch scratch;
static struct server server;
static char base[300]; /* of the addresses that are asked: the server's, unless a test has another */
static struct bytes archive;
static uint8_t noise[NOISE]; /* does not shrink, so that the archive has some size */

/* Food of one class, in modes that are not taken over, once the shell's `make` has changed it; more: further names. */
static void make_archive(const char *make, const char *more)
{
    char *pack = path_format("cd from/at && %s && tar --mode=0 --sort=name -czPf ../food food-101 %s", make, more);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * 2654435761U >> 13 ^ i * 40503U >> 7);
    scratch_write(&scratch, "from/at/food-101/images/ash/1.jpg", noise, sizeof noise);
    scratch_write_text(&scratch, "from/at/food-101/images/ash/2.jpg", "2");
    scratch_write_text(&scratch, "from/at/food-101/meta/train.json", "{\"ash\": [\"ash/1\"]}");
    scratch_write_text(&scratch, "from/at/food-101/meta/test.json", "{\"ash\": [\"ash/2\"]}");
    scratch_run(&scratch, pack);
    bytes_free(&archive);
    assert_ok(file_read_any(scratch_file(&scratch, "from/food"), ARCHIVE_MOST, &archive, &error));
    scratch_run(&scratch, "rm -r from");
    free(pack);
}

/* --- one fetch ---------------------------------------------------------------------------------------------------- */

static struct {
    uint64_t stop_at; /* bytes; 0: never */
    struct stop stop;
    struct text log; /* of one fetch, and its error */
} watch;

static void watch_progress(void *context, const char *file, uint64_t done, uint64_t bytes)
{
    assert_string_equal(file, "food.tar.gz");
    assert_true(done <= bytes);
    if (watch.stop_at > 0 && done >= watch.stop_at)
        atomic_store(&watch.stop.signal, SIGINT);
}

static void keep_message(void *context, enum log_level level, const char *message)
{
    text_add(context, "%s\n", message);
}

static struct fetch_file food_file(char hash[DIGEST_SIZE])
{
    digest_bytes(archive.data, archive.size, hash);
    return (struct fetch_file){.name = "food.tar.gz", .bytes = archive.size, .sha256 = hash, .into = ""};
}

/* Fetches the archive from the server's folder, or from up to three of them in turn ("missing wrong whole"). */
static status fetch(const char *folders, struct error *error)
{
    const struct log log = {.write = keep_message, .context = &watch.log};
    char hash[DIGEST_SIZE], words[64], urls[3][400], from[400], *rest;
    struct fetch_file files[2] = {food_file(hash), {0}};
    struct fetch_source source = {.name = "food", .folder = "food-101", .files = files, .gone = "ask a colleague"};
    size_t count = 0;
    snprintf(words, sizeof words, "%s", folders);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest), count++) {
        snprintf(urls[count], sizeof urls[count], "%s/%s/food.tar.gz", base, word);
        files[0].urls[count] = urls[count];
    }
    snprintf(from, sizeof from, "%s/%s/", base, folders);
    struct fetch_settings settings = {
        .from = count == 1 ? from : NULL, .log = &log, .progress = watch_progress, .stop = &watch.stop};
    text_clear(&watch.log);
    atomic_store(&watch.stop.signal, 0);
    return fetch_dataset(&source, scratch.path, &settings, error);
}

static bool exists(const char *name)
{
    return file_exists(scratch_file(&scratch, name));
}

static bool is_whole(const char *folder)
{
    static const char *const names[] = {"meta/test.json", "meta/train.json", "images/ash/2.jpg"};
    char name[128];
    struct bytes image = {0};
    bool whole = true;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        whole = whole && exists(name);
    }
    snprintf(name, sizeof name, "%s/images/ash/1.jpg", folder);
    whole = whole && file_read_any(scratch_file(&scratch, name), FILE_LIMIT, &image, NULL) == OK &&
            image.size == NOISE && memcmp(image.data, noise, NOISE) == 0;
    bytes_free(&image);
    return whole;
}

/* A fetch that fails, with these words in its error or log, and leaves no dataset. */
static void expect_failure(const char *folders, status expected, const char *words)
{
    struct error error = {0};
    status result = fetch(folders, &error);
    text_add(&watch.log, "%s", error.message);
    if (result != expected || strstr(watch.log.data, words) == NULL || strstr(watch.log.data, "secret") != NULL)
        fail_msg("expected status %d and \"%s\", found %d: %s", (int)expected, words, (int)result, watch.log.data);
    assert_false(exists("food-101"));
}

static void expect_whole(const char *folders)
{
    assert_ok(fetch(folders, &error));
    assert_true(is_whole("food-101"));
    assert_false(exists("food-101.download"));
}

/* A server's thread may still read what it has sent: only a new one counts all. */
static void serve(void)
{
    server_start(&server, archive.data, archive.size);
    snprintf(base, sizeof base, "%s", server.base);
}

static int set_up(void **state)
{
    scratch_create(&scratch);
    make_archive("true", "");
    serve();
    return 0;
}

static int tear_down(void **state)
{
    server_stop(&server);
    scratch_remove(&scratch);
    bytes_free(&archive);
    text_free(&watch.log);
    watch.stop_at = 0;
    return 0;
}

/* --- downloads ---------------------------------------------------------------------------------------------------- */

/* What lies there of an earlier fetch. */
enum part { NOTHING, BEGINNING, NO_BEGINNING, NO_WHOLE, LONGER, WHOLE };

static void write_part(enum part part)
{
    static const size_t sizes[] = {[BEGINNING] = 100, [NO_BEGINNING] = 17};
    static const uint8_t zeros[ARCHIVE_MOST];
    size_t size = part < NO_WHOLE ? sizes[part] : archive.size + (part == LONGER);
    if (part != NOTHING)
        scratch_write(&scratch, "food-101.download/food.tar.gz.part",
                      part == BEGINNING || part == WHOLE ? archive.data : zeros, size);
}

/* The file becomes whole, for so many requests, of which some for a range, and so much content: the archive some times, less what was
 * there. Fetched again, nobody is asked. A page that takes the place of nothing is not the file's beginning to the mirror after it
 * either. */
TEST_WITH(files_become_whole_with_no_more_than_is_needed, set_up, tear_down)
{
    static const struct {
        const char *folders;
        enum part part;
        size_t requests, ranges, copies, spared;
        bool cut;
    } cases[] = {{"whole", NOTHING, 1, 0, 1, 0, false},
                 {"moved", NOTHING, 2, 0, 1, 0, false},
                 {"cut", NOTHING, 3, 2, 1, 0, true},
                 {"missing wrong whole", NOTHING, 3, 0, 2, 0, false},
                 {"portal whole", BEGINNING, 2, 2, 1, 100, false},
                 {"page whole", BEGINNING, 3, 1, 1, 0, false},
                 {"deaf", BEGINNING, 1, 1, 1, 0, false},
                 {"whole", NO_BEGINNING, 2, 1, 2, 17, false},
                 {"whole", NO_WHOLE, 1, 0, 1, 0, false},
                 {"whole", LONGER, 1, 0, 1, 0, false},
                 {"missing", WHOLE, 0, 0, 0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_run(&scratch, "rm -rf food-101");
        server.cut = cases[i].cut ? archive.size / 3 + 1 : archive.size;
        write_part(cases[i].part);
        expect_whole(cases[i].folders);
        expect_whole("missing");
        server_stop(&server); /* its thread has counted all */
        if (server.requests != cases[i].requests || server.ranges != cases[i].ranges ||
            server.sent != cases[i].copies * archive.size - cases[i].spared)
            fail_msg("%s, case %zu: %zu requests, %zu for ranges, %zu bytes of %zu", cases[i].folders, i,
                     server.requests, server.ranges, server.sent, archive.size);
        serve();
    }
}

TEST_WITH(wrong_and_missing_files_are_refused, set_up, tear_down)
{
    expect_failure("wrong", ERROR_IO, "expected SHA-256");
    expect_failure("long", ERROR_IO, ", the server has ");
    expect_failure("portal", ERROR_IO, "the server has 19");
    expect_failure("page", ERROR_IO, "the server sent 19");
    expect_failure("missing", ERROR_IO, "404");
    expect_failure("missing", ERROR_IO, "ask a colleague");
    expect_whole("whole");
}

TEST_WITH(stopped_downloads_go_on_where_they_were, set_up, tear_down)
{
    server.cut = watch.stop_at = archive.size / 2;
    expect_failure("stall", ERROR_STOPPED, "");
    watch.stop_at = 0;
    expect_whole("whole");
    assert_int_equal(server.ranges, 1);
    assert_int_equal(server.sent, archive.size);
}

/* --- what a stranger has put there -------------------------------------------------------------------------------- */

TEST_WITH(links_and_pipes_in_place_of_its_files_are_refused, set_up, tear_down)
{
    static const char *const names[] = {"food.tar.gz.part", "lock"};
    static const struct {
        const char *make, *words;
    } kinds[] = {{"ln -s ../victim", "a symbolic link"},
                 {"ln -s absent", "a symbolic link"},
                 {"ln ../victim", "a hard link"},
                 {"mkfifo", "a named pipe"}};
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        char *make = path_format("rm -rf food-101.download && mkdir food-101.download && printf precious >victim && "
                                 "cd food-101.download && %s %s",
                                 kinds[i / 2].make, names[i % 2]);
        scratch_run(&scratch, make);
        expect_failure("whole", ERROR_IO, kinds[i / 2].words);
        scratch_run(&scratch, "grep -qx precious victim && test ! -e food-101.download/absent");
        free(make);
    }
    assert_int_equal(server.requests, 0);
}

TEST_WITH(links_in_place_of_its_folder_are_refused, set_up, tear_down)
{
    scratch_run(&scratch, "mkdir elsewhere && printf precious >elsewhere/food.tar.gz.part && "
                          "ln -s elsewhere food-101.download");
    expect_failure("whole", ERROR_IO, "food-101.download: expected a folder, found a symbolic link");
    scratch_run(&scratch, "grep -qx precious elsewhere/food.tar.gz.part && test ! -e elsewhere/lock");
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

TEST_WITH(other_protocols_are_not_spoken, set_up, tear_down)
{
    expect_failure("ftp", ERROR_IO, "Protocol \"ftp\"");
    snprintf(base, sizeof base, "dict%s", server.base + strlen("http"));
    expect_failure("whole", ERROR_IO, "Protocol \"dict\"");
    scratch_write(&scratch, "food/food.tar.gz", archive.data, archive.size);
    snprintf(base, sizeof base, "file://%s", scratch.path);
    expect_failure(".", ERROR_IO, "Protocol \"file\"");
    assert_int_equal(server.requests, 1);
}

TEST_WITH(passwords_are_not_shown, set_up, tear_down)
{
    const char *address = server.base + strlen("http://");
    snprintf(base, sizeof base, "http://reader:secret@%s", address);
    expect_failure("missing", ERROR_IO, address);
    expect_failure("wrong", ERROR_IO, "expected SHA-256");
    expect_failure("wrong missing", ERROR_IO, "404");
    expect_whole("whole");
    scratch_run(&scratch, "rm -r food-101");
    setenv("http_proxy", "http://reader:secret@[proxy", 1);
    expect_failure("whole", ERROR_IO, "proxy");
    unsetenv("http_proxy");
}

TEST(addresses_are_checked)
{
    static const char *const bad[] = {
        "/mnt/data",       "file:///mnt/data",      "dict://server/x",           "server/data",
        "http://a b/c",    "http://u:secret/@",     "dict://u:secret@server/x",  "ftp://u:secret@s",
        "u:secret@server", "http:/u:secret@server", "http://u:12#secret@server", "http://server/data?of=me"};
    struct error reason;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(fetch_check_mirror(bad[i], &reason), ERROR_ARGUMENT);
        assert_null(strstr(reason.message, "secret"));
    }
    assert_ok(fetch_check_mirror("HTTPS://u:secret@server:8080/data/", &error));
    assert_ok(fetch_check_mirror("http://127.0.0.1/", &error));
}

TEST_WITH(lengths_that_cannot_be_end_at_once, set_up, tear_down)
{
    expect_failure("huge", ERROR_IO, "the server has more");
    assert_int_equal(server.requests, 1);
    char hash[DIGEST_SIZE];
    struct fetch_file files[2] = {food_file(hash), {0}};
    files[0].bytes = (uint64_t)1 << 60;
    files[0].urls[0] = server.base;
    struct fetch_source source = {.name = "food", .folder = "food-101", .files = files};
    assert_fails(fetch_dataset(&source, scratch.path, &(struct fetch_settings){0}, &error), ERROR_IO,
                 "needs 1152921504606846976 bytes more, the disk has room for ");
    assert_int_equal(server.requests, 1);
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

TEST_WITH(archives_that_lead_out_link_or_have_no_images_are_refused, set_up, tear_down)
{
    static const struct {
        const char *make, *more, *words;
    } cases[] = {{"touch ../evil", "../evil", "\"../evil\", which leads out"},
                 {"touch ../evil", "food-101/../../evil", "leads out"},
                 {"touch ../evil", "$(dirname $PWD)/evil", "/from/evil\", which leads out"},
                 {"ln -s /etc food-101/to", "", "\"food-101/to\", a link"},
                 {"ln food-101/meta/test.json food-101/to", "", "\"food-101/to\", a link"},
                 {": >food-101/meta/test.json", "", "the fetched dataset cannot be read"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server_stop(&server);
        make_archive(cases[i].make, cases[i].more);
        serve();
        expect_failure("whole", ERROR_FORMAT, cases[i].words);
        assert_false(exists("evil") || exists("food-101.download/evil") || exists("from"));
    }
}

TEST_WITH(archives_of_another_kind_are_refused, set_up, tear_down)
{
    server_stop(&server);
    archive.size -= 30000;
    serve();
    expect_failure("whole", ERROR_FORMAT, "cannot unpack");
    server_stop(&server);
    memcpy(archive.data, "LRZI\0\6", 6); /* for this one libarchive would start a program */
    serve();
    expect_failure("whole", ERROR_FORMAT, "Unrecognized archive format");
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

TEST(table_is_complete)
{
    const struct fetch_source *found;
    for (const struct fetch_source *source = fetch_sources; source->name != NULL; source++) {
        assert_ok(fetch_find(source->name, &found, &error));
        assert_ptr_equal(found, source);
        assert_true((source->by_hand == NULL) == (source->files != NULL && source->folder != NULL));
        for (const struct fetch_file *file = source->files; file != NULL && file->name != NULL; file++) {
            assert_true(file->bytes > 0 && strspn(file->sha256, "0123456789abcdef") == 64 && file->sha256[64] == 0);
            for (size_t i = 0; i < 2; i++)
                assert_true(file->urls[i] != NULL && strncmp(file->urls[i], "http", 4) == 0);
            assert_non_null(file->into);
        }
    }
    assert_fails(fetch_find("flower", &found, &error), ERROR_ARGUMENT, "did you mean \"flowers\"");
    assert_ok(fetch_find("imagenet", &found, &error));
    assert_fails(fetch_dataset(found, "/nonexistent", &(struct fetch_settings){0}, &error), ERROR_ARGUMENT, "licence");
}

/* --- full disks and kills ----------------------------------------------------------------------------------------- */

static int fetch_here(const char *root, const char *path, const char *mirror)
{
    struct error error;
    snprintf(scratch.path, sizeof scratch.path, "%s", root);
    snprintf(base, sizeof base, "%s", mirror);
    if (file_read_any(path, ARCHIVE_MOST, &archive, &error) == OK && fetch("whole", &error) == OK)
        return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}

#ifdef FAULTS
/* Whether this program, whose n-th call that writes goes wrong, fetches into data, which the shell's `first` prepares. */
static bool fetch_with_fault(const char *first, size_t call, const char *mode)
{
    char self[256] = "", command[1024];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command,
             "cd %s && %s && LD_PRELOAD=%s MTIL_FAULT='%zu %s' %s data food.tar.gz %s 2>messages", scratch.path, first,
             FAULTS, call, mode, self, server.base);
    return system(command) == 0;
}

TEST_WITH(every_write_may_fail_or_be_the_last, set_up, tear_down)
{
    static const char *const modes[] = {"kill", "full", "fail", "short", "interrupted"};
    size_t calls = 200, failures = 0;
    scratch_write(&scratch, "food.tar.gz", archive.data, archive.size);
    for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++)
        for (size_t call = mode > 2 ? 4 : 1; call <= calls; call += mode > 2 ? 4 : 1) { /* some of the harmless ones */
            bool done = fetch_with_fault("rm -rf data", call, modes[mode]);
            failures += !done;
            assert_true(exists("data/food-101") ? is_whole("data/food-101") : !done);
            if (mode == 0 && done) /* there are no more */
                calls = call - 1;
            if (!done && call % 3 == 0) { /* the next one completes it */
                assert_true(fetch_with_fault("true", 0, "none") && is_whole("data/food-101"));
                assert_false(exists("data/food-101.download"));
            }
        }
    assert_true(calls > 10 && calls < 200 && failures > calls);
}
#endif

int main(int argc, char **argv)
{
    if (argc == 4)
        return fetch_here(argv[1], argv[2], argv[3]);
    unsetenv("http_proxy"); /* the server is this machine */
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    return test_run();
}
