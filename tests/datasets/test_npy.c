/* Whole numbers in NumPy's files. */
#include <stdio.h>
#include <stdlib.h>

#include "core/file_writer.h"
#include "datasets/formats/npy.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

/* A file of version 1 with these values behind its header. */
static void write_npy(const char *type, const char *shape, const void *values, size_t size)
{
    char file[512] = "\x93NUMPY\x01";
    int length = snprintf(file + 10, 128, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(file + 10 + length, ' ', 118 - (size_t)length);
    file[127] = '\n';
    file[8] = 118;
    memcpy(file + 128, values, size);
    assert_ok(file_write("a.npy", file, 128 + size, &error));
}

static void expect(const char *type, const void *values, size_t size, int64_t first, int64_t second)
{
    int64_t *found;
    size_t count;
    write_npy(type, "(2,)", values, size);
    assert_ok(npy_read_integers("a.npy", &found, &count, &error));
    assert_int_equal(count, 2);
    assert_int_equal(found[0], first);
    assert_int_equal(found[1], second);
    free(found);
}

ROOT_TEST(whole_numbers_of_every_size_are_read)
{
    expect("|u1", "\xff\x01", 2, 255, 1);
    expect("|i1", "\xff\x01", 2, -1, 1);
    expect("<u2", "\xff\xff\x01\x02", 4, 65535, 513);
    expect("<i2", "\xff\xff\x01\x02", 4, -1, 513);
    expect("<i4", (const int32_t[]){-7, 9}, 8, -7, 9);
    expect("<u4", (const uint32_t[]){4294967295u, 9}, 8, 4294967295, 9);
    expect("<i8", (const int64_t[]){INT64_MIN, 9}, 16, INT64_MIN, 9);
}

static void refuse(const char *type, const char *shape, size_t size)
{
    int64_t *found;
    size_t count;
    write_npy(type, shape, "0123456789abcdef", size);
    assert_fails(npy_read_integers("a.npy", &found, &count, &error), ERROR_FORMAT, "a.npy");
}

ROOT_TEST(other_files_are_refused)
{
    int64_t *found;
    size_t count;
    refuse("<f4", "(2,)", 8);
    refuse(">i4", "(2,)", 8);
    refuse("<i3", "(2,)", 6);
    refuse("<i4", "(1, 2)", 8);
    refuse("<i4", "(3,)", 8);
    refuse("<i4", "(1,)", 8);
    refuse("<i4", "(18446744073709551615,)", 8);
    refuse("<i4", "()", 4);
    assert_ok(file_write("a.npy", "\x93NUMPY\x01\0\xff\xff{}", 12, &error));
    assert_fails(npy_read_integers("a.npy", &found, &count, &error), ERROR_FORMAT, "cut");
    assert_ok(file_write("a.npy", "words", 5, &error));
    assert_fails(npy_read_integers("a.npy", &found, &count, &error), ERROR_FORMAT, "does not begin");
}
