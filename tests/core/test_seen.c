/* What was found in files: when it is believed, what damage does, and what processes share. */
#include "core/seen.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

static const struct file_stamp stamp = {.size = 1, .inode = 2, .modified = 3, .changed = 4};
static const struct seen_place place = {.kind = "dtd", .root = "/data", .version = "1"};

static status try_write(const struct seen_place *at, const char *name, int64_t value, struct error *error)
{
    struct seen *seen;
    (void)seen_open(&seen, scratch.path, at, NULL);
    status result = seen_write(seen, &(struct seen_record){name, stamp, &value, sizeof value}, 1, error);
    seen_close(seen);
    return result;
}

static void write_at(const struct seen_place *at, const char *name, int64_t value)
{
    assert_ok(try_write(at, name, value, &error));
}

/* 0: unknown. */
static int64_t find_at(const struct seen_place *at, const char *name, const struct file_stamp *of)
{
    struct seen *seen;
    int64_t value = 0;
    (void)seen_open(&seen, scratch.path, at, NULL);
    if (!seen_find(seen, name, of, &value, sizeof value))
        value = 0;
    seen_close(seen);
    return value;
}

ROOT_TEST(records_belong_to_a_place_a_version_and_a_stamp)
{
    const struct seen_place other_root = {"dtd", "/other", "1"}, other_kind = {"sun", "/data", "1"},
                            other_version = {"dtd", "/data", "2"};
    const struct file_stamp stamps[] = {{2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}};
    write_at(&place, "a", 5);
    write_at(&other_root, "a", 6);
    write_at(&place, "b", 7);
    assert_int_equal(find_at(&place, "a", &stamp), 5);
    assert_int_equal(find_at(&other_root, "a", &stamp), 6);
    assert_int_equal(find_at(&place, "b", &stamp), 7);
    assert_int_equal(find_at(&place, "c", &stamp), 0);
    assert_int_equal(find_at(&other_kind, "a", &stamp), 0);
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        assert_int_equal(find_at(&place, "a", &stamps[i]), 0);
    assert_int_equal(find_at(&other_version, "a", &stamp), 0);
    write_at(&other_version, "a", 8); /* replaces those of the version before */
    assert_int_equal(find_at(&other_version, "a", &stamp), 8);
    assert_int_equal(find_at(&place, "b", &stamp), 0);
    assert_int_equal(find_at(&other_root, "a", &stamp), 6);
}

/* A record is right or unknown, and what is written afterwards is found. */
ROOT_TEST(damage_is_never_believed)
{
    struct bytes whole;
    size_t unknown = 0;
    for (int64_t i = 1; i <= 200; i++) {
        char name[8] = {(char)('a' + i % 20), (char)('a' + i / 20), 0};
        write_at(&place, name, i);
    }
    assert_ok(file_read(scratch_file(&scratch, SEEN_FILE), FILE_LIMIT, &whole, &error));
    for (size_t i = 0; i < whole.size; i += i < 100 ? 5 : 97) {
        whole.data[i] ^= 4;
        scratch_write(&scratch, SEEN_FILE, whole.data, i % 3 == 0 ? i : whole.size);
        whole.data[i] ^= 4;
        int64_t found = find_at(&place, "bk", &stamp);
        unknown += found == 0;
        assert_true(found == 0 || found == 201 - 20);
        write_at(&place, "bk", 300);
        assert_int_equal(find_at(&place, "bk", &stamp), 300);
    }
    assert_true(unknown > 20);
    free(whole.data);
}

ROOT_TEST(foreign_files_are_told_and_replaced)
{
    struct seen *seen;
    scratch_write_text(&scratch, SEEN_FILE, "a note of mine, which is not a database of anything at all");
    assert_fails(seen_open(&seen, scratch.path, &place, &error), ERROR_FORMAT, SEEN_FILE);
    seen_close(seen);
    write_at(&place, "a", 5);
    assert_ok(seen_open(&seen, scratch.path, &place, &error));
    seen_close(seen);
    assert_int_equal(find_at(&place, "a", &stamp), 5);
}

static int write_many(int64_t first)
{
    for (int64_t i = 0; i < 50; i++) {
        char name[16] = {(char)('a' + first), (char)('0' + i / 10), (char)('0' + i % 10), 0};
        if (try_write(&place, name, 1 + first * 50 + i, NULL) != OK)
            return 1;
    }
    return 0;
}

ROOT_TEST(processes_share_the_file)
{
    enum { CHILDREN = 4 };
    for (int64_t i = 0; i < CHILDREN; i++)
        if (fork() == 0)
            _exit(write_many(i));
    for (int i = 0, ended; i < CHILDREN; i++) {
        assert_true(wait(&ended) > 0);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    assert_int_equal(find_at(&place, "a00", &stamp), 1);
    assert_int_equal(find_at(&place, "d49", &stamp), CHILDREN * 50);
}

ROOT_TEST(places_are_listed_and_forgotten)
{
    const struct seen_place other = {"sun", "/other", "1"};
    struct seen_listing listing;
    write_at(&place, "a", 5);
    write_at(&place, "b", 6);
    write_at(&other, "a", 7);
    assert_ok(seen_list(&listing, scratch.path, &error));
    assert_int_equal(listing.count, 2);
    assert_string_equal(listing.places[0].kind, "dtd");
    assert_string_equal(listing.places[0].root, "/data");
    assert_int_equal(listing.places[0].records, 2);
    seen_listing_free(&listing);
    assert_ok(seen_forget(scratch.path, "/data", &error));
    assert_int_equal(find_at(&place, "a", &stamp), 0);
    assert_int_equal(find_at(&other, "a", &stamp), 7);
    assert_ok(seen_forget(scratch.path, "/other", &error));
    assert_false(file_exists(scratch_file(&scratch, SEEN_FILE)));
    assert_ok(seen_list(&listing, scratch.path, &error));
    assert_int_equal(listing.count, 0);
    assert_ok(seen_forget(scratch.path, NULL, &error));
}
