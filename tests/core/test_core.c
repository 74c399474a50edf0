#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/json.h"
#include "core/option.h"
#include "core/rng.h"
#include "core/text.h"
#include "core/threads.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

/* Known answers of Philox-4x32-10 from the Random123 distribution (kat_vectors). */
TEST(philox_matches_published_vectors)
{
    static const uint32_t of_zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                          of_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    const struct rng zeros = {0}, ones = {.seed = UINT64_MAX, .purpose = 0xffff, .task = 0xffff, .step = UINT32_MAX};
    uint32_t words[4];
    rng_block(&zeros, 0, words);
    assert_memory_equal(words, of_zeros, sizeof words);
    rng_block(&ones, UINT64_MAX, words);
    assert_memory_equal(words, of_ones, sizeof words);
}

TEST(normals_have_mean_zero_and_variance_one)
{
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    double sum = 0, squares = 0;
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        double x = rng_normal(&rng, i);
        sum += x;
        squares += x * x;
    }
    assert_true(sum / N > -0.02 && sum / N < 0.02);
    assert_true(squares / N > 0.98 && squares / N < 1.02);
}

static void count_job(void *context, size_t job, size_t worker)
{
    atomic_fetch_add((atomic_int *)context + job, 1);
}

TEST(every_job_runs_exactly_once)
{
    struct threads *pool;
    for (size_t count = 1; count <= 4; count++) {
        assert_ok(threads_create(&pool, count, &error));
        for (int round = 0; round < 300; round++) {
            atomic_int ran[50] = {0};
            size_t jobs = (size_t)(round % 50) + 1;
            threads_run(pool, jobs, count_job, ran);
            for (size_t i = 0; i < 50; i++)
                assert_int_equal(ran[i], i < jobs);
        }
        threads_destroy(pool);
    }
}

static void stop_at_the_third(void *context, size_t job, size_t worker)
{
    atomic_fetch_add(&((struct stop *)context)[1].signal, 1);
    if (job == 2)
        ((struct stop *)context)->signal = 15;
}

/* stops: the one obeyed, and a count of jobs */
TEST(jobs_behind_a_stop_are_left_out)
{
    for (size_t count = 1; count <= 3; count++) {
        struct threads *pool;
        struct stop stops[2] = {0};
        assert_ok(threads_create(&pool, count, &error));
        threads_obey(pool, &stops[0]);
        assert_ok(threads_check(pool, "testing", &error));
        threads_run(pool, 1000, stop_at_the_third, stops);
        assert_true(stops[1].signal >= 3 && (count > 1 || stops[1].signal == 3));
        assert_fails(threads_check(pool, "testing", &error), ERROR_STOPPED, "stopped while testing");
        threads_obey(pool, NULL);
        threads_run(pool, 7, stop_at_the_third, stops);
        assert_ok(threads_check(pool, "testing", &error));
        threads_destroy(pool);
    }
}

/* What downloads leave in place of a file. */
TEST(what_is_not_the_file_one_meant)
{
    static const struct {
        const char *contents, *found; /* found NULL: it may be meant */
        bool packed;                  /* refused but where the reader unpacks */
    } cases[] = {{"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 10\n", "Git LFS pointer", false},
                 {"<!DOCTYPE html><html lang=\"en\">", "web page", false},
                 {"\xef\xbb\xbf \r\n<!doctype HTML>", "web page", false},
                 {"<html>", "web page", false},
                 {"<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>", "server's answer", false},
                 {"\x1f\x8b\x08\x01", "gunzip", true},
                 {"<?xml version=\"1.0\"?><svg/>", NULL, false},
                 {"version 2", NULL, false},
                 {"html", NULL, false},
                 {" \n", NULL, false},
                 {"", NULL, false}};
    scratch_create(&scratch);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes bytes;
        scratch_write_text(&scratch, "file", cases[i].contents);
        const char *path = scratch_file(&scratch, "file");
        if (cases[i].found != NULL) {
            assert_fails(file_read(path, 1000, &bytes, &error), ERROR_FORMAT, cases[i].found);
            assert_fails(file_check_meant(path, false, &error), ERROR_FORMAT, cases[i].found);
        } else {
            assert_ok(file_read(path, 1000, &bytes, &error));
            bytes_free(&bytes);
        }
        if (cases[i].found == NULL || cases[i].packed)
            assert_ok(file_check_meant(path, true, &error));
        assert_ok(file_read_any(path, 1000, &bytes, &error));
        assert_int_equal(bytes.size, strlen(cases[i].contents));
        bytes_free(&bytes);
    }
    assert_ok(file_check_meant("absent", false, &error));
    scratch_remove(&scratch);
}

/* Arenas are tested as they are without guards. */
static int without_guards(void **state)
{
    return setenv("MTIL_GUARD", "0", 1);
}
TEST_GROUP(without_guards, NULL)

TEST(arena_gives_aligned_memory_and_refuses_beyond_its_limit)
{
    struct arena arena;
    assert_ok(arena_create(&arena, 1 << 20, "test", &error));
    void *a = arena_take(&arena, 1), *b = arena_take(&arena, 100);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b - (uintptr_t)a, 64);
    assert_null(arena_take(&arena, 1 << 20));
    assert_null(arena_take(&arena, SIZE_MAX));
    assert_true(array_size(SIZE_MAX / 2, 3) == SIZE_MAX);
    arena_reset(&arena);
    assert_ptr_equal(arena_take(&arena, 5), a);
    arena_destroy(&arena);
}

static bool back_half(struct arena *arena, size_t needed)
{
    size_t *asked = arena->owner;
    *asked = needed;
    if (needed > arena->limit / 2)
        return false;
    arena->backed = needed;
    return true;
}

TEST(arena_asks_for_backing_before_it_hands_out)
{
    struct arena arena;
    size_t asked = 0;
    static uint8_t memory[256];
    arena = (struct arena){.limit = 1 << 20, .base = memory, .back = back_half, .owner = &asked};
    void *first = arena_take(&arena, 100);
    assert_non_null(first);
    assert_int_equal(asked, 128);
    assert_null(arena_take(&arena, 1 << 19));
    assert_int_equal(arena.used, 128);
    arena_reset(&arena);
    asked = 0;
    assert_ptr_equal(arena_take(&arena, 100), first);
    assert_int_equal(asked, 0); /* what is backed stays so */
}

/* Blocks of any sizes: what is taken stays, a mark brings the same addresses back, and used counts what was asked for. */
TEST(arena_grows_by_what_is_needed)
{
    enum { MIB = 1 << 20 };
    static const size_t sizes[] = {40 * MIB, 30 * MIB, 100 * MIB, 1 * MIB, 500 * MIB};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct arena arena;
    uint8_t *taken[COUNT];
    struct arena_mark marks[COUNT];
    assert_ok(arena_create(&arena, 0, "test", &error));
    for (int round = 0; round < 3; round++) {
        size_t used = 0;
        arena_reset(&arena);
        for (size_t i = 0; i < COUNT; used += sizes[i++]) {
            assert_true(arena.used == used);
            marks[i] = arena_mark(&arena);
            uint8_t *memory = arena_take(&arena, sizes[i]);
            assert_non_null(memory);
            assert_true((uintptr_t)memory % 64 == 0 && (round == 0 || memory == taken[i]));
            taken[i] = memory;
            memory[0] = memory[sizes[i] - 1] = (uint8_t)(i + 1);
        }
        for (size_t i = 0; i < COUNT; i++)
            assert_true(taken[i][0] == i + 1 && taken[i][sizes[i] - 1] == i + 1);
    }
    arena_release(&arena, marks[2]);
    assert_ptr_equal(arena_take(&arena, sizes[2]), taken[2]);
    arena_release(&arena, marks[1]);
    uint8_t *larger = arena_take(&arena, 700 * MIB); /* than any block behind the first */
    assert_non_null(larger);
    larger[0] = larger[700 * MIB - 1] = 9;
    assert_true(taken[0][0] == 1 && taken[0][sizes[0] - 1] == 1);
    arena_destroy(&arena);
}

enum moments { KEEP, AVERAGE, RESET };

struct members {
    size_t every, unnamed;
    double rate;
    float share;
    enum moments moments;
    const char *name;
    bool quiet, averaged;
};

static const struct option table[] = {
    OPTION_NUMBER(INTEGER, "every", 1, 1000, "100", "cycle", INTO(struct members, every)),
    OPTION(REAL, "rate", "0.5", "rate", INTO(struct members, rate)),
    OPTION_ONE_OF("moments", "keep|average|reset", "keep", "moments", INTO(struct members, moments)),
    OPTION_NUMBER(INTEGER, "size", 0, 9, "auto", "size", .choices = "auto"),
    OPTION(LIST, "order", NULL, "tasks"),
    OPTION(BOOLEAN, "quiet", "no", "no progress", INTO(struct members, quiet), .incidental = "*"),
    OPTION(REAL, "share", "0.25", "share", INTO(struct members, share), .incidental = "0.25|1"),
    OPTION_ONE_OF("sums", "sum|mean", "sum", "sums", INTO(struct members, averaged)),
    OPTION(TEXT, "name", NULL, "name", INTO(struct members, name)),
    OPTION(FILE, "file", NULL, "file"),
    {0}};

TEST(options_fill_the_members_that_rows_name)
{
    static const char *const set[][2] = {{"every", "7"},    {"rate", "2"},    {"moments", "reset"}, {"quiet", "yes"},
                                         {"share", "0.75"}, {"sums", "mean"}, {"name", "a"}};
    struct members members = {.unnamed = 3};
    struct options *options;
    assert_ok(options_create(&options, table, &error));
    options_fill(options, table, &members);
    assert_true(members.every == 100 && members.unnamed == 3 && members.rate == 0.5 && members.share == 0.25f &&
                members.moments == KEEP && members.name == NULL && !members.quiet && !members.averaged);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        assert_ok(options_set(options, set[i][0], set[i][1], "suite.yaml:3", &error));
    options_fill(options, table, &members);
    assert_true(members.every == 7 && members.unnamed == 3 && members.rate == 2 && members.share == 0.75f &&
                members.moments == RESET && members.quiet && members.averaged);
    assert_string_equal(members.name, "a");
    options_destroy(options);
}

TEST(printed_members_are_what_rows_read)
{
    static const struct {
        const char *name, *text;
    } cases[] = {{"every", "7"},    {"rate", "0.10000000000000001"}, {"moments", "average"},
                 {"quiet", "true"}, {"share", "0.333333343"},        {"sums", "mean"},
                 {"name", "a"}};
    const struct members members = {
        .every = 7, .rate = 0.1, .moments = AVERAGE, .quiet = true, .share = 1.0f / 3, .averaged = true, .name = "a"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        option_print(options_find(table, cases[i].name), &members, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

TEST(options_identify_a_run_or_not)
{
    static const struct {
        const char *name, *value;
        bool identifies;
    } cases[] = {{"rate", "1", true},   {"quiet", "yes", false}, {"quiet", NULL, false}, {"share", "0.25", false},
                 {"share", "1", false}, {"share", "0.5", true},  {"share", NULL, true},  {"file", "a", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(option_identifies(options_find(table, cases[i].name), cases[i].value), cases[i].identifies);
}

/* What is refused leaves the value as it was. */
TEST(options_check_names_types_and_ranges)
{
    static const struct {
        const char *name, *value, *words; /* of a refusal; NULL: none */
        int64_t integer;
        const char *text;
    } cases[] = {{"every", "50", NULL, 50, "50"},
                 {"every", "0", "from 1 to 1000", 50, "50"},
                 {"every", "7x", "", 50, "50"},
                 {"size", "auto", NULL, OPTION_WORD, "auto"},
                 {"size", "-1", "0 to 9|auto", OPTION_WORD, "auto"},
                 {"size", "7", NULL, 7, "7"},
                 {"evry", "7", "suite.yaml:3: unknown key \"evry\" (did you mean \"every\"?)", 0, NULL},
                 {"moments", "reset", NULL, 0, "reset"},
                 {"moments", "kee", "", 0, "reset"},
                 {"order", "a, b,c", NULL, 0, "a, b, c"},
                 {"quiet", "maybe", "", 0, "no"}};
    struct options *options;
    assert_ok(options_create(&options, table, &error));
    assert_int_equal(options_integer(options, "every"), 100);
    assert_false(options_given(options, "every"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].words == NULL)
            assert_ok(options_set(options, cases[i].name, cases[i].value, "suite.yaml:3", &error));
        else
            assert_fails(options_set(options, cases[i].name, cases[i].value, "suite.yaml:3", &error), ERROR_ARGUMENT,
                         cases[i].words);
        if (cases[i].integer != 0)
            assert_int_equal(options_integer(options, cases[i].name), cases[i].integer);
        if (cases[i].text != NULL)
            assert_string_equal(options_as_text(options, cases[i].name), cases[i].text);
    }
    assert_int_equal(options_choice(options, "moments"), 2);
    assert_int_equal(options_list_size(options, "order"), 3);
    assert_string_equal(options_list_item(options, "order", 1), "b");
    options_destroy(options);
}

ROOT_TEST(files_are_written_completely_or_not_at_all)
{
    struct file_writer writer;
    struct bytes bytes;
    struct directory directory;
    assert_fails(file_write("a/b.bin", "x", 1, &error), ERROR_IO, "b.bin");
    assert_ok(directory_create("a", &error));
    assert_ok(file_write("a/b.bin", "hello", 5, &error));
    assert_ok(file_writer_open(&writer, "a/b.bin", &error));
    assert_ok(file_writer_write(&writer, "half", 4, &error));
    file_writer_abandon(&writer);
    assert_ok(file_read("a/b.bin", 100, &bytes, &error));
    assert_int_equal(bytes.size, 5);
    assert_string_equal((char *)bytes.data, "hello");
    bytes_free(&bytes);
    assert_fails(file_read("a/b.bin", 3, &bytes, &error), ERROR_FORMAT, "");
    assert_fails(file_read("a", 3, &bytes, &error), ERROR_IO, "");
    assert_ok(directory_list(&directory, "a", &error));
    assert_int_equal(directory.count, 1);
    directory_free(&directory);
}

/* Neither waited for nor replaced. */
static void expect_no_file(const char *path, const char *kind)
{
    struct bytes bytes;
    struct file_writer writer;
    assert_fails(file_read(path, 100, &bytes, &error), ERROR_IO, kind);
    assert_fails(file_writer_open(&writer, path, &error), ERROR_IO, kind);
    file_writer_abandon(&writer);
}

ROOT_TEST(what_is_no_file_is_refused_at_once)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    expect_no_file("pipe", "a named pipe");
    expect_no_file("socket", "a socket");
    expect_no_file("/dev/zero", "a device");
    expect_no_file(".", "a directory");
    close(listener);
}

/* Another program may shorten a file between two reads of it. */
ROOT_TEST(a_file_that_shrinks_is_an_error)
{
    char read[5];
    uint64_t size;
    int file;
    scratch_write_text(&scratch, "a", "hello");
    assert_ok(file_open("a", &file, &size, &error));
    assert_int_equal(size, 5);
    assert_ok(file_read_at(file, "a", read, 4, 1, &error));
    assert_memory_equal(read, "ello", 4);
    assert_int_equal(truncate("a", 3), 0);
    assert_fails(file_read_at(file, "a", read, 5, 0, &error), ERROR_FORMAT, "ends early");
    close(file);
}

/* As on a full disk: the file may not grow. */
ROOT_TEST(a_full_disk_is_reported)
{
    static const char block[1 << 16];
    struct rlimit before;
    struct file_writer writer;
    struct error at_once, at_end;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max}), 0);
    assert_ok(file_writer_open(&writer, "full", &error));
    status large = file_writer_write(&writer, block, sizeof block, &at_once);
    status small = file_writer_open(&writer, "full", NULL) == OK && file_writer_write(&writer, block, 1001, NULL) == OK
                       ? file_writer_close(&writer, &at_end)
                       : OK;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, action);
    assert_int_equal(large, ERROR_IO);
    assert_int_equal(small, ERROR_IO);
    assert_string_equal(at_end.message, "full: cannot finish writing: File too large");
    assert_false(file_exists("full"));
}

TEST(near_words_are_suggested)
{
    const char *words[] = {"most_used", "none", "random"};
    assert_string_equal(nearest_word("mostused", words, 3), "most_used");
    assert_string_equal(nearest_word("NONE", words, 3), "none");
    assert_null(nearest_word("zebra", words, 3));
    assert_int_equal(edit_distance("abcd", "acbd"), 1);
    assert_int_equal(edit_distance("ABcd[", "acbD{"), 2);
}

/* Answers of the FIPS 180-4 examples. */
TEST(digests_match_the_standard)
{
    char hash[DIGEST_SIZE];
    digest_text("", hash);
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", hash);
    assert_string_equal(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct digest digest = digest_begin();
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    for (int i = 0; i < 1000; i++)
        digest_add(&digest, letters, sizeof letters);
    digest_end(&digest, hash);
    assert_string_equal(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(numbers_are_decimal_and_whole)
{
    static const char *const none[] = {"",       "x",       "1x",    "0x1p-7", "0X10", "-0x1p1",
                                       "1e-400", "-1e-400", "1e400", "inf",    "nan"};
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"0", 0},           {"-0.0", -0.0}, {"0e-400", 0},     {"1e-2", 0.01},
                 {"1e-300", 1e-300}, {"+.5", 0.5},   {"5e-324", 5e-324}};
    double value = 7;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(parse_real(none[i], &value));
    assert_true(value == 7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(parse_real(cases[i].text, &value));
        assert_true(value == cases[i].value);
    }
}

TEST(what_systems_leave_is_known_by_its_name)
{
    static const char *const left[] =
        {".DS_Store", "a/._b.jpg",    "__MACOSX/a/b.jpg",          "THUMBS.DB",          "x/desktop.ini", "@eaDir",
         "..a",       "$RECYCLE.BIN", "System Volume Information", "a.jpg@SynoEAStream", "lost+found"},
                             *const own[] = {"a.jpg",         "./a",    "../a", ".",   "a//b",   "Thumbs",
                                             "thumbs.db.png", "MACOSX", "",     "tmp", "recycle"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        assert_true(path_is_leftover(left[i]));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_false(path_is_leftover(own[i]));
}

/* A library that met a shortage says that a file is damaged. */
TEST(a_shortage_is_no_damage)
{
    struct error said;
    errno = ENOMEM;
    assert_fails(memory_blame(error_set(&error, ERROR_FORMAT, "a.jpg: damaged"), "a.jpg", &error), ERROR_MEMORY,
                 "a.jpg: the system has no memory");
    assert_int_equal(memory_blame(OK, "a.jpg", &said), OK);
    assert_int_equal(memory_blame(ERROR_IO, "a.jpg", &said), ERROR_IO);
    errno = 0;
    assert_int_equal(memory_blame(ERROR_FORMAT, "a.jpg", &said), ERROR_FORMAT);
    assert_fails(error_errno(&error, EMFILE, "a.jpg"), ERROR_MEMORY, "a.jpg: Too many open files");
    assert_fails(error_errno(&error, EIO, "a.jpg"), ERROR_IO, "a.jpg: Input/output error");
}

/* --- Untrusted text --- */

TEST(what_obeys_nothing_stays_and_the_rest_is_escaped)
{
    static const struct {
        const char *text, *shown; /* NULL: the same */
    } cases[] = {
        {"", NULL},
        {"a \"b\" \\ c, d", NULL},
        {"Grüße 日本 🐈 …", NULL},
        {"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", NULL}, /* from right to left by nature */
        {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
        {"\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f"},
        {"\302\23331m\xc2\x85", "\\x9b31m\\x85"}, /* C1: another way to begin an escape sequence */
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
        {"\xe2\x80\xaegpj.exe", "\\u202egpj.exe"}, /* turned directions */
        {"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069"},
        {"a\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", "a\\ufffe\\uffff\xef\xbf\xbd"}, /* XML has no such characters */
        {"a\377b\xc3", "a\\xffb\\xc3"},                                           /* no UTF-8 */
        {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"}};                   /* too long, half of a pair */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text = {0};
        text_add_visible(&text, cases[i].text);
        assert_string_equal(text.data, cases[i].shown != NULL ? cases[i].shown : cases[i].text);
        assert_int_equal(text_is_visible(cases[i].text), cases[i].shown == NULL);
        text_free(&text);
    }
}

TEST(the_first_invalid_byte_is_found)
{
    static const char text[] = "a\xc3\xa5\xff!";
    assert_ptr_equal(text_find_invalid(text), text + 3);
    assert_null(text_find_invalid("a\xc3\xa5\x1b"));
}

TEST(a_byte_order_mark_is_stepped_over_once)
{
    const char *text = "\xef\xbb\xbf\xef\xbb\xbf"
                       "a";
    size_t size = 7;
    text_skip_mark(&text, &size);
    assert_int_equal(size, 4);
    text = "\xef\xbb";
    size = 2;
    text_skip_mark(&text, &size);
    assert_int_equal(size, 2);
}

/* --- The memory that is available: of the machine, and within the limits of control groups --- */

static void write_below(const char *name, const char *text)
{
    scratch_write_text(&scratch, name, text);
}

static void write_machine(void)
{
    write_below("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    4000 kB\n");
}

ROOT_TEST(without_groups_it_is_the_machines)
{
    write_machine();
    assert_int_equal(memory_available(scratch.path), 4000 << 10);
    assert_int_equal(memory_available("/nowhere"), 0);
    assert_true(memory_available("") > 0);
}

/* A group without a limit, below one that has used 600 kB of 1000, 150 of them for copies of files. */
ROOT_TEST(groups_around_it_limit_it)
{
    write_machine();
    write_below("proc/self/cgroup", "0::/job/step\n");
    write_below("sys/fs/cgroup/job/step/memory.max", "max\n");
    write_below("sys/fs/cgroup/job/step/memory.current", "204800\n");
    assert_int_equal(memory_available(scratch.path), 4000 << 10);
    write_below("sys/fs/cgroup/job/memory.max", "1024000\n");
    write_below("sys/fs/cgroup/job/memory.current", "614400\n");
    write_below("sys/fs/cgroup/job/memory.stat", "anon 460800\nactive_file 51200\ninactive_file 102400\n");
    assert_int_equal(memory_available(scratch.path), 550 << 10);
    write_below("sys/fs/cgroup/job/memory.current", "2048000\n"); /* over its limit, as for a moment */
    assert_int_equal(memory_available(scratch.path), 1);
}

/* A container is in a group that it does not see, below the one that it sees as the top. */
ROOT_TEST(containers_see_their_group_at_the_top)
{
    write_machine();
    write_below("proc/self/cgroup", "0::/outside/0123\n");
    write_below("sys/fs/cgroup/memory.max", "204800\n");
    write_below("sys/fs/cgroup/memory.current", "102400\n");
    assert_int_equal(memory_available(scratch.path), 100 << 10);
}

ROOT_TEST(the_first_version_has_other_names)
{
    write_machine();
    write_below("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n");
    write_below("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_below("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    write_below("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1024000\n");
    write_below("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "614400\n");
    write_below("sys/fs/cgroup/memory/job/memory.stat",
                "inactive_file 1\ntotal_inactive_file 102400\ntotal_active_file 102400\n");
    assert_int_equal(memory_available(scratch.path), 600 << 10);
}

/* --- JSON --- */

ROOT_TEST(json_has_a_mark_and_each_key_once)
{
    SCOPED(json_decref_at) json_t *root = NULL;
    scratch_write_text(&scratch, "marked", "\xef\xbb\xbf{\"a\": 1}");
    scratch_write_text(&scratch, "twice", "{\"a\": 1,\n \"a\": 2}");
    assert_ok(json_read(&root, "marked", 100, &error));
    assert_int_equal(json_integer_value(json_object_get(root, "a")), 1);
    json_decref(root);
    assert_fails(json_read(&root, "twice", 100, &error), ERROR_FORMAT, "twice:2:");
    assert_null(root);
    assert_fails(json_read(&root, "twice", 5, &error), ERROR_FORMAT, "at most 5");
    assert_fails(json_parse(&root, "[1", 2, "it", &error), ERROR_FORMAT, "it:1:2: expected JSON");
}

/* --- Digests of files, which are read once --- */

static int asked; /* how often for the time, which a file that is read is compared with */

static int64_t at_once(void)
{
    asked++;
    return clock_now();
}

/* When what was written a moment ago is old. */
static int64_t an_hour_later(void)
{
    asked++;
    return ((int64_t)time(NULL) + 3600) * 1000000000;
}

/* Returns whether the file was read for it. */
static bool reads(int64_t (*clock)(void), const char *expected)
{
    struct file_digest digest;
    struct file_digest_settings settings = {.folder = "cache", .kept_from = 3, .clock = clock};
    asked = 0;
    assert_ok(file_digest_read(&digest, "weights", &settings, &error));
    if (expected != NULL)
        assert_string_equal(digest.hash, expected);
    assert_int_equal(digest.bytes, digest.stamp.size);
    return asked > 0;
}

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */

ROOT_TEST(a_file_is_read_once)
{
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(an_hour_later, ABC));
    assert_false(reads(an_hour_later, ABC));
    assert_false(reads(at_once, ABC));
    scratch_write_text(&scratch, "weights", "ab");
    assert_true(reads(an_hour_later, NULL));
    assert_true(reads(an_hour_later, NULL)); /* that is too small to be kept */
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(an_hour_later, ABC)); /* other times */
}

ROOT_TEST(what_was_just_written_is_not_kept)
{
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(at_once, ABC));
    assert_true(reads(an_hour_later, ABC));
    assert_false(reads(at_once, ABC));
}

ROOT_TEST(a_folder_that_cannot_be_is_no_failure)
{
    scratch_write_text(&scratch, "weights", "abc");
    scratch_write_text(&scratch, "cache", "a file");
    assert_true(reads(an_hour_later, ABC));
}

ROOT_TEST(what_is_no_file_is_refused_and_a_stop_ends_it)
{
    struct file_digest digest;
    struct stop stop = {.signal = SIGINT};
    struct file_digest_settings settings = {.stop = &stop};
    scratch_write_text(&scratch, "weights", "abc");
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_STOPPED, "");
    assert_fails(file_digest_read(&digest, ".", &settings, &error), ERROR_IO, "expected a file");
    assert_int_equal(unlink("weights"), 0);
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_IO, "");
    assert_int_equal(mkfifo("weights", 0600), 0);
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_IO, "expected a file");
}
