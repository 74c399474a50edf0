/* idx, pickle, CIFAR records, MAT, JSON lists, text lists: what they read and what they refuse. Whole files are those of
 * replay_data, files cut and damaged those of tests/fuzz, too. */
#include <stdlib.h>
#include <string.h>

#include "datasets/formats/cifar.h"
#include "datasets/formats/idx.h"
#include "datasets/formats/json.h"
#include "datasets/formats/mat.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

/* --- idx --------------------------------------------------------------------------------------------------------- */

static const uint8_t idx_file[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

TEST(test_idx_refuses)
{
    static const struct {
        const char *name, *words;
        size_t size, at; /* bytes of the file; where one is another */
        uint8_t value;
    } cases[] = {{"longer", "more bytes", sizeof idx_file + 1, sizeof idx_file, 0},
                 {"shorter", "ends early: expected 1 more", sizeof idx_file - 1, 0, 0},
                 {"header", "ends early", 9, 0, 0},
                 {"type", "unsigned bytes", sizeof idx_file, 2, 9},
                 {"huge", "promises", sizeof idx_file, 4, 0xff}};
    struct idx idx;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t copy[sizeof idx_file + 1] = {0};
        memcpy(copy, idx_file, sizeof idx_file);
        copy[cases[i].at] = cases[i].value;
        scratch_write(&scratch, cases[i].name, copy, cases[i].size);
        assert_fails(idx_read(&idx, cases[i].name, 3, &error), ERROR_FORMAT, cases[i].words);
        assert_null(idx.values);
    }
}

/* --- pickle ------------------------------------------------------------------------------------------------------ */

/* {"data": array of 2×3072 bytes, "labels": [5, 300]}, as Python 2 writes it, with the opcodes that it uses. */
static size_t make_pickle(uint8_t *file)
{
    static const char head[] =
        "\x80\x02}q\x01(U\x04"
        "dataq\x02"
        "cnumpy.core.multiarray\n_reconstruct\nq\x03"
        "cnumpy\nndarray\nq\x04K\x00\x85U\x01"
        "b\x87Rq\x05(K\x01K\x02M\x00\x0c\x86"
        "cnumpy\ndtype\nq\x06"
        "U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T\x00\x18\x00\x00";
    static const char tail[] = "tbU\x06labelsq\x08]q\x09(K\x05M\x2c\x01"
                               "eu.";
    size_t size = sizeof head - 1;
    memcpy(file, head, size);
    for (size_t i = 0; i < 2 * CIFAR_PIXELS; i++)
        file[size++] = (uint8_t)(i * 7);
    memcpy(file + size, tail, sizeof tail - 1);
    return size + sizeof tail - 1;
}

TEST(test_pickle)
{
    static uint8_t file[8192];
    struct cifar cifar;
    scratch_write(&scratch, "pickle", file, make_pickle(file));
    assert_ok(cifar_read_pickle(&cifar, "pickle", "labels", &error));
    assert_int_equal(cifar.count, 2);
    assert_int_equal(cifar.labels[0], 5);
    assert_int_equal(cifar.labels[1], 300);
    assert_int_equal(cifar.pixels[cifar.stride + 1], (uint8_t)((CIFAR_PIXELS + 1) * 7));
    cifar_release(cifar.owner);
    free(cifar.labels);
    assert_fails(cifar_read_pickle(&cifar, "pickle", "fine_labels", &error), ERROR_FORMAT, "fine_labels");
}

/* The array must be one of bytes, rows first, and its shape that of its bytes. */
TEST(test_pickle_refuses)
{
    static const struct {
        const char *found, *written, *words;
    } changes[] = {{"cnumpy\nndarray", "cnumpy\nloadary", "numpy.loadary"},
                   {"U\x02u1", "U\x02O8", "expected \"data\""},
                   {"K\x02M", "K\x03M", "expected \"data\""}};
    static uint8_t file[8192];
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct cifar cifar;
        size_t size = make_pickle(file), length = strlen(changes[i].found);
        uint8_t *at = memmem(file, size, changes[i].found, length);
        assert_non_null(at);
        memcpy(at, changes[i].written, length);
        scratch_write(&scratch, "refused", file, size);
        assert_fails(cifar_read_pickle(&cifar, "refused", "labels", &error), ERROR_FORMAT, changes[i].words);
    }
}

TEST(test_records)
{
    static uint8_t file[2 * (CIFAR_PIXELS + 2)];
    struct cifar cifar;
    file[1] = 3;
    file[CIFAR_PIXELS + 3] = 9;
    file[CIFAR_PIXELS + 4] = 77;
    scratch_write(&scratch, "train.bin", file, sizeof file);
    assert_ok(cifar_read_binary(&cifar, "train.bin", 2, &error));
    assert_int_equal(cifar.count, 2);
    assert_int_equal(cifar.labels[0], 3);
    assert_int_equal(cifar.labels[1], 9);
    assert_int_equal(cifar.pixels[cifar.stride], 77);
    cifar_release(cifar.owner);
    free(cifar.labels);
}

/* --- MAT --------------------------------------------------------------------------------------------------------- */

TEST(test_mat_names_what_is_missing)
{
    static const char *const path = FIXTURES "/data/roots/flowers/flowers-102/setid.mat";
    struct mat_numbers numbers;
    struct strings strings = {0};
    assert_fails(mat_read_numbers(path, "trainid", NULL, &numbers, &error), ERROR_FORMAT, "\"trainid\"");
    assert_fails(mat_read_numbers(path, "trnid", "class", &numbers, &error), ERROR_FORMAT, "\"class\"");
    assert_fails(mat_read_strings(path, "trnid", NULL, &strings, &error), ERROR_FORMAT, "cell array");
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

TEST(test_lines)
{
    struct strings lines = {0};
    scratch_write_text(&scratch, "lines.txt", "one\r\n\ntwo words\nthree\n\n\n");
    assert_ok(strings_read_lines(&lines, "lines.txt", &error));
    assert_int_equal(lines.count, 4);
    assert_string_equal(lines.items[0], "one");
    assert_string_equal(lines.items[1], "");
    assert_string_equal(lines.items[2], "two words");
    assert_string_equal(lines.items[3], "three");
    strings_free(&lines);
    scratch_write(&scratch, "binary.txt", "a\0b", 3);
    assert_fails(strings_read_lines(&lines, "binary.txt", &error), ERROR_FORMAT, "NUL byte at 1");
    strings_free(&lines);
}

TEST(test_json)
{
    struct json_lists lists;
    scratch_write_text(&scratch, "a.json", "\xef\xbb\xbf{\"b\": [\"b/1\", \"b/2\"], \"a\": [], \"c\": [\"c/1\"]}");
    assert_ok(json_lists_read(&lists, "a.json", &error));
    assert_int_equal(lists.keys.count, 3);
    assert_string_equal(lists.keys.items[0], "b");
    assert_int_equal(lists.values.count, 3);
    assert_string_equal(lists.values.items[2], "c/1");
    assert_int_equal(lists.of[2], 2);
    json_lists_free(&lists);
    static const char *const wrong[] = {"[1]", "{\"a\": 1}", "{\"a\": [1]}", "{\"a\": [", "", "{\"a\": [], \"a\": []}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        scratch_write_text(&scratch, "wrong.json", wrong[i]);
        assert_fails(json_lists_read(&lists, "wrong.json", &error), ERROR_FORMAT, "wrong.json");
    }
}

TEST(test_file_listing)
{
    struct strings files = {0};
    scratch_write_text(&scratch, "tree/b/2", "");
    scratch_write_text(&scratch, "tree/b/10", "");
    scratch_write_text(&scratch, "tree/b/c/1", "");
    scratch_write_text(&scratch, "tree/b-a/1", "");
    assert_ok(strings_list_files(&files, scratch.path, "tree", NULL, &error));
    static const char *const expected[] = {"tree/b/10", "tree/b/2", "tree/b-a/1", "tree/b/c/1"};
    assert_int_equal(files.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(files.items[i], expected[i]);
    strings_free(&files);
}

TEST_GROUP(root_setup, root_teardown)
