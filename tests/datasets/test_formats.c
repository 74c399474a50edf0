/* CIFAR's pickles and MAT files: what they hold and what is refused. Other formats are those of roots.txt, whole files those of
 * replay_data, files cut and damaged those of tests/fuzz, too. */
#include <stdlib.h>
#include <string.h>

#include "datasets/formats/mat.h"
#include "datasets/readers/cifar.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

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

TEST_GROUP(root_setup, root_teardown)
