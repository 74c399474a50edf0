/* Fetching from a server that misbehaves: what appears below the root is whole or absent.
 *
 *     test_fetch                          the tests
 *     test_fetch ROOT FILE MIRROR         fetches the archive FILE as the dataset food, for the tests of faults
 */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
static uint8_t archive[ARCHIVE_MOST];
static size_t archive_size;
static uint8_t noise[NOISE]; /* does not shrink, so that the archive has some size */

/* --- archives ----------------------------------------------------------------------------------------------------- */

static void add_entry(struct archive *to, const char *name, unsigned type, const char *link, const void *data,
                      size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0); /* modes of archives are not taken over */
    archive_entry_set_size(entry, (int64_t)size);
    if (link != NULL && type == AE_IFLNK)
        archive_entry_set_symlink(entry, link);
    else if (link != NULL)
        archive_entry_set_hardlink(entry, link);
    assert_int_equal(archive_write_header(to, entry), ARCHIVE_OK);
    if (size > 0)
        assert_int_equal(archive_write_data(to, data, size), size);
    archive_entry_free(entry);
}

static void add_text(struct archive *to, const char *name, const char *text)
{
    add_entry(to, name, AE_IFREG, NULL, text, strlen(text));
}

/* Food of one class, and one more entry if extra is not NULL. */
static void make_archive(const char *extra, unsigned type, const char *link)
{
    struct archive *to = archive_write_new();
    archive_write_add_filter_gzip(to);
    archive_write_set_format_pax_restricted(to);
    assert_int_equal(archive_write_open_memory(to, archive, sizeof archive, &archive_size), ARCHIVE_OK);
    add_entry(to, "food-101/images/", AE_IFDIR, NULL, NULL, 0);
    add_entry(to, "food-101/images/ash/1.jpg", AE_IFREG, NULL, noise, sizeof noise);
    add_text(to, "food-101/images/ash/2.jpg", "2");
    add_text(to, "food-101/meta/train.json", "{\"ash\": [\"ash/1\"]}");
    add_text(to, "food-101/meta/test.json", "{\"ash\": [\"ash/2\"]}");
    if (extra != NULL)
        add_entry(to, extra, type, link, NULL, 0);
    assert_int_equal(archive_write_close(to), ARCHIVE_OK);
    archive_write_free(to);
}

/* --- one fetch ---------------------------------------------------------------------------------------------------- */

struct watch {
    uint64_t stop_at; /* bytes; 0: never */
    bool stopped;
    struct text log;
};

static void watch_progress(void *context, const char *file, uint64_t done, uint64_t bytes)
{
    struct watch *watch = context;
    assert_string_equal(file, "food.tar.gz");
    assert_true(done <= bytes);
    watch->stopped |= watch->stop_at > 0 && done >= watch->stop_at;
}

static bool watch_stopped(void *context)
{
    return ((const struct watch *)context)->stopped;
}

static void keep_message(void *context, enum log_level level, const char *message)
{
    (void)level;
    text_add(context, "%s\n", message);
}

static struct fetch_file food_file(const void *data, size_t size, char hash[DIGEST_SIZE])
{
    digest_bytes(data, size, hash);
    return (struct fetch_file){.name = "food.tar.gz", .bytes = size, .sha256 = hash, .into = ""};
}

/* Fetches the archive from the server's folder, or from up to three of them in turn ("missing wrong whole"). */
static status fetch(const char *folders, struct watch *watch, struct error *error)
{
    char hash[DIGEST_SIZE], words[64], urls[3][128], from[128], *rest;
    struct fetch_file files[2] = {food_file(archive, archive_size, hash), {0}};
    struct fetch_source source = {.name = "food", .folder = "food-101", .files = files, .gone = "ask a colleague"};
    struct log log = {.write = keep_message, .context = &watch->log};
    size_t count = 0;
    snprintf(words, sizeof words, "%s", folders);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest), count++) {
        snprintf(urls[count], sizeof urls[count], "%s/%s/food.tar.gz", server.base, word);
        files[0].urls[count] = urls[count];
    }
    snprintf(from, sizeof from, "%s/%s/", server.base, folders);
    struct fetch_settings settings = {.from = count == 1 ? from : NULL,
                                      .log = &log,
                                      .progress = watch_progress,
                                      .stopped = watch_stopped,
                                      .context = watch};
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
    uint64_t size = 0;
    struct error error;
    bool whole = true;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        whole = whole && exists(name);
    }
    snprintf(name, sizeof name, "%s/images/ash/1.jpg", folder);
    return whole && file_size(scratch_file(&scratch, name), &size, &error) == OK && size == NOISE;
}

/* A fetch that fails, with these words in its error or log, and leaves no dataset. */
static void expect_failure(const char *folders, status expected, const char *words)
{
    struct error error = {0};
    struct watch watch = {0};
    status result = fetch(folders, &watch, &error);
    text_add(&watch.log, "%s", error.message);
    if (result != expected || strstr(watch.log.data, words) == NULL || strstr(watch.log.data, "secret") != NULL)
        fail_msg("expected %s and \"%s\", found %s: %s", status_name(expected), words, status_name(result),
                 watch.log.data);
    assert_false(exists("food-101"));
    text_free(&watch.log);
}

static void expect_whole(const char *folders)
{
    struct watch watch = {0};
    assert_ok(fetch(folders, &watch, &error));
    assert_true(is_whole("food-101"));
    assert_false(exists("food-101.download"));
    text_free(&watch.log);
}

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * 2654435761U >> 13 ^ i * 40503U >> 7);
    scratch_create(&scratch);
    make_archive(NULL, 0, NULL);
    server_start(&server, archive, archive_size);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_stop(&server);
    scratch_remove(&scratch);
    return 0;
}

/* --- downloads ---------------------------------------------------------------------------------------------------- */

/* What lies there of an earlier fetch. */
enum part { NOTHING, BEGINNING, NO_BEGINNING, NO_WHOLE, LONGER, WHOLE };

static void write_part(enum part part)
{
    static const size_t sizes[] = {[BEGINNING] = 100, [NO_BEGINNING] = 17};
    static const uint8_t zeros[ARCHIVE_MOST];
    size_t size = part < NO_WHOLE ? sizes[part] : archive_size + (part == LONGER);
    if (part != NOTHING)
        scratch_write(&scratch, "food-101.download/food.tar.gz.part",
                      part == BEGINNING || part == WHOLE ? archive : zeros, size);
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
        scratch_remove(&scratch);
        scratch_create(&scratch);
        server.cut = cases[i].cut ? archive_size / 3 + 1 : archive_size;
        write_part(cases[i].part);
        expect_whole(cases[i].folders);
        expect_whole("missing");
        server_stop(&server); /* its thread has counted all */
        if (server.requests != cases[i].requests || server.ranges != cases[i].ranges ||
            server.sent != cases[i].copies * archive_size - cases[i].spared)
            fail_msg("%s, case %zu: %zu requests, %zu for ranges, %zu bytes of %zu", cases[i].folders, i,
                     server.requests, server.ranges, server.sent, archive_size);
        server_start(&server, archive, archive_size);
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
    struct watch watch = {.stop_at = archive_size / 2};
    server.cut = archive_size / 2;
    assert_fails(fetch("stall", &watch, &error), ERROR_STOPPED, "");
    text_free(&watch.log);
    assert_false(exists("food-101"));
    expect_whole("whole");
    assert_int_equal(server.ranges, 1);
    assert_int_equal(server.sent, archive_size);
}

/* --- what a stranger has put there -------------------------------------------------------------------------------- */

static void expect_untouched(const char *victim)
{
    struct bytes bytes;
    assert_ok(file_read(scratch_file(&scratch, victim), 100, &bytes, &error));
    assert_string_equal((const char *)bytes.data, "precious");
    bytes_free(&bytes);
}

static void start_anew(void)
{
    scratch_remove(&scratch);
    scratch_create(&scratch);
    scratch_write_text(&scratch, "victim", "precious");
    scratch_write_text(&scratch, "food-101.download/other", "");
}

TEST_WITH(links_and_pipes_in_place_of_its_files_are_refused, set_up, tear_down)
{
    static const char *const names[] = {"food-101.download/food.tar.gz.part", "food-101.download/lock"};
    char name[300], victim[300];
    for (size_t i = 0; i < 2; i++) {
        for (int kind = 0; kind < 3; kind++) {
            start_anew();
            snprintf(name, sizeof name, "%s", scratch_file(&scratch, names[i]));
            snprintf(victim, sizeof victim, "%s", scratch_file(&scratch, "victim"));
            assert_int_equal(kind == 0   ? symlink("../victim", name)
                             : kind == 1 ? link(victim, name)
                                         : mkfifo(name, 0600),
                             0);
            expect_failure("whole", ERROR_IO,
                           kind == 0   ? "a symbolic link"
                           : kind == 1 ? "a hard link"
                                       : "a named pipe");
            expect_untouched("victim");
        }
    }
    assert_int_equal(server.requests, 0);
    start_anew();
    assert_int_equal(symlink("absent", scratch_file(&scratch, "food-101.download/food.tar.gz.part")), 0);
    expect_failure("whole", ERROR_IO, "a symbolic link");
    assert_false(exists("food-101.download/absent"));
}

TEST_WITH(links_in_place_of_its_folder_are_refused, set_up, tear_down)
{
    scratch_write_text(&scratch, "elsewhere/food.tar.gz.part", "precious");
    assert_int_equal(symlink("elsewhere", scratch_file(&scratch, "food-101.download")), 0);
    expect_failure("whole", ERROR_IO, "food-101.download: expected a folder, found a symbolic link");
    expect_untouched("elsewhere/food.tar.gz.part");
    assert_false(exists("elsewhere/lock"));
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

TEST_WITH(other_protocols_are_not_spoken, set_up, tear_down)
{
    char base[sizeof server.base], path[300];
    snprintf(base, sizeof base, "%s", server.base);
    expect_failure("ftp", ERROR_IO, "Protocol \"ftp\"");
    snprintf(server.base, sizeof server.base, "dict%s", base + strlen("http"));
    expect_failure("whole", ERROR_IO, "Protocol \"dict\"");
    scratch_write(&scratch, "food/food.tar.gz", archive, archive_size);
    snprintf(path, sizeof path, "file://%s", scratch_file(&scratch, ""));
    assert_true(strlen(path) < sizeof server.base);
    snprintf(server.base, sizeof server.base, "%.60s", path);
    expect_failure(".", ERROR_IO, "Protocol \"file\"");
    assert_int_equal(server.requests, 1);
}

TEST_WITH(passwords_are_not_shown, set_up, tear_down)
{
    char address[sizeof server.base];
    snprintf(address, sizeof address, "%s", server.base + strlen("http://"));
    snprintf(server.base, sizeof server.base, "http://reader:secret@%s", address);
    expect_failure("missing", ERROR_IO, address);
    expect_failure("wrong", ERROR_IO, "expected SHA-256");
    expect_failure("wrong missing", ERROR_IO, "404");
    expect_whole("whole");
    start_anew();
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
    struct fetch_file files[2] = {food_file(archive, archive_size, hash), {0}};
    files[0].bytes = (uint64_t)1 << 60;
    files[0].urls[0] = server.base;
    struct fetch_source source = {.name = "food", .folder = "food-101", .files = files};
    assert_fails(fetch_dataset(&source, scratch.path, &(struct fetch_settings){0}, &error), ERROR_IO,
                 "needs 1152921504606846976 bytes more, the disk has room for ");
    assert_int_equal(server.requests, 1);
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

/* A server's thread may still read what it has sent. */
static void serve_archive(const char *extra, unsigned type, const char *link)
{
    server_stop(&server);
    make_archive(extra, type, link);
    server_start(&server, archive, archive_size);
}

TEST_WITH(archives_that_lead_out_or_link_are_refused, set_up, tear_down)
{
    static const struct {
        const char *name, *link, *words;
        unsigned type;
    } cases[] = {{"../evil", NULL, "\"../evil\", which leads out", AE_IFREG},
                 {"food-101/../../evil", NULL, "leads out", AE_IFREG},
                 {"/tmp/mtil-evil", NULL, "\"/tmp/mtil-evil\", which leads out", AE_IFREG},
                 {"food-101/to", "/etc", "\"food-101/to\", a link", AE_IFLNK},
                 {"food-101/to", "food-101/meta/test.json", "\"food-101/to\", a link", AE_IFREG}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        serve_archive(cases[i].name, cases[i].type, cases[i].link);
        expect_failure("whole", ERROR_FORMAT, cases[i].words);
        assert_false(exists("evil") || exists("food-101.download/evil") || file_exists("/tmp/mtil-evil"));
    }
}

TEST_WITH(archives_of_another_kind_or_without_images_are_refused, set_up, tear_down)
{
    server_stop(&server);
    archive_size -= 30000;
    server_start(&server, archive, archive_size);
    expect_failure("whole", ERROR_FORMAT, "cannot unpack");
    server_stop(&server);
    memcpy(archive, "LRZI\0\6", 6); /* for this one libarchive would start a program */
    server_start(&server, archive, archive_size);
    expect_failure("whole", ERROR_FORMAT, "Unrecognized archive format");
    serve_archive("food-101/meta/test.json", AE_IFREG, NULL); /* empty: the last of two counts */
    expect_failure("whole", ERROR_FORMAT, "the fetched dataset cannot be read");
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
    struct bytes bytes;
    struct error error;
    char hash[DIGEST_SIZE];
    if (file_read(path, ARCHIVE_MOST, &bytes, &error) != OK)
        return 2;
    struct fetch_file files[2] = {food_file(bytes.data, bytes.size, hash), {0}};
    struct fetch_source source = {.name = "food", .folder = "food-101", .files = files};
    status result = fetch_dataset(&source, root, &(struct fetch_settings){.from = mirror}, &error);
    bytes_free(&bytes);
    if (result != OK)
        fprintf(stderr, "%s\n", error.message);
    return result == OK ? 0 : 1;
}

#ifdef FAULTS
/* Whether this program, whose n-th call that writes goes wrong (0: none, they are listed in "calls"), fetches. */
static bool fetch_with_fault(size_t call, const char *mode)
{
    char self[256] = "", command[1024];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command,
             "cd %s && LD_PRELOAD=%s MTIL_FAULT='%zu %s' MTIL_FAULT_LOG=calls %s data food.tar.gz %s/whole 2>messages",
             scratch.path, FAULTS, call, mode, self, server.base);
    return system(command) == 0;
}

static size_t count_lines(const char *name)
{
    struct bytes bytes;
    size_t lines = 0;
    assert_ok(file_read(scratch_file(&scratch, name), 1 << 20, &bytes, &error));
    for (size_t i = 0; i < bytes.size; i++)
        lines += bytes.data[i] == '\n';
    bytes_free(&bytes);
    return lines;
}

static void remove_data(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/data", scratch.path);
    assert_int_equal(system(command), 0);
}

TEST_WITH(every_write_may_fail_or_be_the_last, set_up, tear_down)
{
    static const char *const modes[] = {"full", "fail", "kill", "short", "interrupted"};
    scratch_write(&scratch, "food.tar.gz", archive, archive_size);
    assert_true(fetch_with_fault(0, "none"));
    size_t calls = count_lines("calls"), failures = 0;
    assert_true(calls > 10 && calls < 200);
    for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++)
        for (size_t call = 1; call <= calls; call++) {
            if (mode > 2 && call % 4 != 0) /* of those that are harmless, some */
                continue;
            remove_data();
            bool done = fetch_with_fault(call, modes[mode]);
            failures += !done;
            assert_true(exists("data/food-101") ? is_whole("data/food-101") : !done);
            if (!done && call % 3 == 0) { /* the next one completes it */
                assert_true(fetch_with_fault(0, "none") && is_whole("data/food-101"));
                assert_false(exists("data/food-101.download"));
            }
        }
    assert_true(failures > calls);
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
