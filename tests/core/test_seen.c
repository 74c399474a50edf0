/* What was found in files: when it is believed, what damage does, and what processes share. */
#include "core/seen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static struct error error;
static struct scratch scratch;

static const struct file_stamp stamp = {.size = 1, .inode = 2, .modified = 3, .changed = 4};
static const struct seen_place place = {.kind = "dtd", .root = "/data", .version = "1"};

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static status write_at(const struct seen_place *at, const char *name, int64_t value)
{
    struct seen *seen;
    (void)seen_open(&seen, scratch.path, at, NULL);
    status result = seen_write(seen, &(struct seen_record){name, stamp, &value, sizeof value}, 1, &error);
    seen_close(seen);
    return result;
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

TEST_WITH(records_belong_to_a_place_a_version_and_a_stamp, set_up, tear_down)
{
    const struct seen_place other_root = {"dtd", "/other", "1"}, other_kind = {"sun", "/data", "1"},
                            other_version = {"dtd", "/data", "2"};
    const struct file_stamp stamps[] = {{2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}};
    assert_int_equal(write_at(&place, "a", 5), OK);
    assert_int_equal(write_at(&other_root, "a", 6), OK);
    assert_int_equal(write_at(&place, "b", 7), OK);
    assert_int_equal(find_at(&place, "a", &stamp), 5);
    assert_int_equal(find_at(&other_root, "a", &stamp), 6);
    assert_int_equal(find_at(&place, "b", &stamp), 7);
    assert_int_equal(find_at(&place, "c", &stamp), 0);
    assert_int_equal(find_at(&other_kind, "a", &stamp), 0);
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        assert_int_equal(find_at(&place, "a", &stamps[i]), 0);
    assert_int_equal(find_at(&other_version, "a", &stamp), 0);
    assert_int_equal(write_at(&other_version, "a", 8), OK); /* replaces those of the version before */
    assert_int_equal(find_at(&other_version, "a", &stamp), 8);
    assert_int_equal(find_at(&place, "b", &stamp), 0);
    assert_int_equal(find_at(&other_root, "a", &stamp), 6);
}

/* A record is right or unknown, and what is written afterwards is found. */
TEST_WITH(damage_is_never_believed, set_up, tear_down)
{
    struct bytes whole;
    size_t unknown = 0;
    for (int64_t i = 1; i <= 200; i++) {
        char name[8] = {(char)('a' + i % 20), (char)('a' + i / 20), 0};
        assert_int_equal(write_at(&place, name, i), OK);
    }
    assert_int_equal(file_read(scratch_file(&scratch, SEEN_FILE), FILE_LIMIT, &whole, &error), OK);
    for (size_t i = 0; i < whole.size; i += i < 100 ? 5 : 97) {
        whole.data[i] ^= 4;
        scratch_write(&scratch, SEEN_FILE, whole.data, i % 3 == 0 ? i : whole.size);
        whole.data[i] ^= 4;
        int64_t found = find_at(&place, "bk", &stamp);
        unknown += found == 0;
        assert_true(found == 0 || found == 201 - 20);
        assert_int_equal(write_at(&place, "bk", 300), OK);
        assert_int_equal(find_at(&place, "bk", &stamp), 300);
    }
    assert_true(unknown > 20);
    free(whole.data);
}

TEST_WITH(foreign_files_are_told_and_replaced, set_up, tear_down)
{
    struct seen *seen;
    scratch_write_text(&scratch, SEEN_FILE, "a note of mine, which is not a database of anything at all");
    assert_int_equal(seen_open(&seen, scratch.path, &place, &error), ERROR_FORMAT);
    assert_non_null(strstr(error.message, SEEN_FILE));
    seen_close(seen);
    assert_int_equal(write_at(&place, "a", 5), OK);
    assert_int_equal(seen_open(&seen, scratch.path, &place, &error), OK);
    seen_close(seen);
    assert_int_equal(find_at(&place, "a", &stamp), 5);
}

static int write_many(int64_t first)
{
    for (int64_t i = 0; i < 50; i++) {
        char name[16] = {(char)('a' + first), (char)('0' + i / 10), (char)('0' + i % 10), 0};
        if (write_at(&place, name, 1 + first * 50 + i) != OK)
            return 1;
    }
    return 0;
}

TEST_WITH(processes_share_the_file, set_up, tear_down)
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

TEST_WITH(places_are_listed_and_forgotten, set_up, tear_down)
{
    const struct seen_place other = {"sun", "/other", "1"};
    struct seen_listing listing;
    assert_int_equal(write_at(&place, "a", 5), OK);
    assert_int_equal(write_at(&place, "b", 6), OK);
    assert_int_equal(write_at(&other, "a", 7), OK);
    assert_int_equal(seen_list(&listing, scratch.path, &error), OK);
    assert_int_equal(listing.count, 2);
    assert_string_equal(listing.places[0].kind, "dtd");
    assert_string_equal(listing.places[0].root, "/data");
    assert_int_equal(listing.places[0].records, 2);
    seen_listing_free(&listing);
    assert_int_equal(seen_forget(scratch.path, "/data", &error), OK);
    assert_int_equal(find_at(&place, "a", &stamp), 0);
    assert_int_equal(find_at(&other, "a", &stamp), 7);
    assert_int_equal(seen_forget(scratch.path, "/other", &error), OK);
    assert_false(file_exists(scratch_file(&scratch, SEEN_FILE)));
    assert_int_equal(seen_list(&listing, scratch.path, &error), OK);
    assert_int_equal(listing.count, 0);
    assert_int_equal(seen_forget(scratch.path, NULL, &error), OK);
}
