/* PyTorch's files: what torch.save and torch.jit.save wrote (tests/fixtures/torch), and what is refused. */
#include <string.h>

#include <zip.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "models/files/torch/tensors.h"
#include "models/files/torch/torch_file.h"
#include "models/files/weights_file.h"
#include "tests/models/device.h"
#include "tests/models/files/tensor_set.h"

static struct safetensors *open_fixture(const char *name)
{
    char path[512];
    struct safetensors *file;
    snprintf(path, sizeof path, FIXTURES "/torch/%s", name);
    must(weights_file_open(&file, path, WEIGHTS_WHOLE, &error));
    return file;
}

/* ---- what is read ---- */

struct expected {
    const char *name;
    enum safetensor_type type;
    int rank;
    size_t shape[4];
    const float *values; /* NULL: 0, 0.5, 1, … */
};

static void expect_tensor(const struct safetensors *file, const struct expected *e)
{
    float values[64];
    const struct safetensor *tensor;
    must(safetensors_expect(file, e->name, e->type, e->rank, e->shape, &tensor, &error));
    if (e->type == SAFETENSOR_I64) {
        for (size_t i = 0; i < safetensor_elements(tensor); i++)
            assert_int_equal(((const int64_t *)tensor->data)[i],
                             e->values != NULL ? (int64_t)e->values[i] : (int64_t)i);
        return;
    }
    must(safetensor_to_floats(tensor, values, &error));
    for (size_t i = 0; i < safetensor_elements(tensor); i++)
        assert_true(values[i] == (e->values != NULL ? e->values[i] : 0.5f * (float)i));
}

static const float one_and_a_half[] = {1.5f}, transposed[] = {0, 1, 2, 0.5f, 1.5f, 2.5f},
                   rows[] = {1.5f, 2, 2.5f, 3, 3.5f, 4}, column[] = {0.5f, 2, 3.5f, 5}, resolution[] = {224};

/* The third one has a parameter under "model", beside values that are no tensors. */
TEST(test_read)
{
    static const struct {
        const char *name;
        struct expected tensors[12];
    } files[] = {{"plain.pth",
                  {{"f32", SAFETENSOR_F32, 2, {2, 3}, NULL},
                   {"f16", SAFETENSOR_F16, 2, {2, 3}, NULL},
                   {"bf16", SAFETENSOR_BF16, 2, {2, 3}, NULL},
                   {"f64", SAFETENSOR_F64, 2, {2, 3}, NULL},
                   {"i64", SAFETENSOR_I64, 1, {6}, NULL},
                   {"scalar", SAFETENSOR_F32, 0, {0}, one_and_a_half},
                   {"empty", SAFETENSOR_F32, 2, {0, 3}, NULL},
                   {"transposed", SAFETENSOR_F32, 2, {2, 3}, transposed},
                   {"channels_last", SAFETENSOR_F32, 4, {2, 3, 2, 2}, NULL},
                   {"rows", SAFETENSOR_F32, 2, {2, 3}, rows},
                   {"column", SAFETENSOR_F32, 1, {4}, column}}},
                 {"nested.pth", {{.name = NULL}}}, /* the same */
                 {"model.bin", {{"weight", SAFETENSOR_F32, 2, {2, 3}, NULL}}},
                 {"script.pt",
                  {{"inner.0.weight", SAFETENSOR_F32, 2, {2, 3}, NULL},
                   {"input_resolution", SAFETENSOR_I64, 0, {0}, resolution},
                   {"scale", SAFETENSOR_F16, 1, {2}, NULL}}}};
    for (size_t n = 0; n < sizeof files / sizeof *files; n++) {
        struct safetensors *file = open_fixture(files[n].name);
        const struct expected *tensors = files[n == 1 ? 0 : n].tensors;
        size_t count = 0;
        for (; tensors[count].name != NULL; count++)
            expect_tensor(file, &tensors[count]);
        assert_int_equal(safetensors_count(file), count);
        safetensors_close(file);
    }
}

TEST(test_header)
{
    struct safetensors *file;
    must(weights_file_open(&file, FIXTURES "/torch/plain.pth", WEIGHTS_HEADER, &error));
    assert_int_equal(safetensors_count(file), 11);
    assert_int_equal(safetensors_find(file, "f16")->shape[1], 3);
    assert_null(safetensors_find(file, "f16")->data);
    safetensors_close(file);
}

/* ---- what is written ---- */

/* As it was read, and the metadata with it. */
TEST(test_written)
{
    static const struct safetensors_metadata metadata[] = {{"heads", "16"}, {"empty", ""}};
    struct safetensors *from = open_fixture("plain.pth"), *file;
    const char *path = test_path();
    size_t count = safetensors_count(from);
    for (int times = 0; times < 2; times++) /* the second time over the first */
        must(torch_file_write(path, safetensors_at(from, 0), count, metadata, 2, &error));
    must(weights_file_open(&file, path, WEIGHTS_WHOLE, &error));
    assert_int_equal(safetensors_count(file), count);
    for (size_t i = 0; i < count; i++) {
        const struct safetensor *a = safetensors_at(from, i), *b;
        assert_string_equal(a->name, safetensors_at(file, i)->name);
        must(safetensors_expect(file, a->name, a->type, a->rank, a->shape, &b, &error));
        assert_memory_equal(a->data, b->data, safetensor_elements(a) * safetensor_type_size(a->type));
    }
    assert_string_equal(safetensors_metadata_value(file, "heads"), "16");
    assert_string_equal(safetensors_metadata_value(file, "empty"), "");
    assert_non_null(safetensors_metadata_key(file, 1));
    assert_null(safetensors_metadata_key(file, 2));
    safetensors_close(file);
    safetensors_close(from);
}

TEST(test_not_written)
{
    static const uint16_t data[2] = {0};
    const struct safetensor tensor = {.name = "a", .type = SAFETENSOR_U16, .rank = 1, .shape = {2}, .data = data};
    must_refuse(torch_file_write("unwritten.pth", &tensor, 1, NULL, 0, &error), ERROR_ARGUMENT, "no type U16");
    assert_false(file_exists("unwritten.pth"));
    must_refuse(torch_file_write("nowhere/a.pth", NULL, 0, NULL, 0, &error), ERROR_IO, "nowhere");
}

/* ---- what is refused ---- */

static void expect_refused(const char *path, const char *words)
{
    struct safetensors *file;
    status result = weights_file_open(&file, path, WEIGHTS_WHOLE, &error);
    must_refuse(result, result == OK ? ERROR_FORMAT : result, path, words);
    assert_null(file);
}

TEST(test_forms_refused)
{
    static const float one = 1;
    const struct safetensor tensor = {.name = "a\xff", .type = SAFETENSOR_F32, .rank = 1, .shape = {1}, .data = &one};
    must(torch_file_write(test_path(), &tensor, 1, NULL, 0, &error));
    expect_refused(test_path(), "its name is not valid UTF-8");
    expect_refused(FIXTURES "/torch/legacy.pth", "before version 1.6");
    expect_refused(FIXTURES "/torch/foreign.pth", "asks for __main__.Foreign; refused");
    must(file_write(test_path(), "hello", 5, &error));
    expect_refused(test_path(), "safetensors");
}

static void add(zip_t *zip, const char *name, const void *data, size_t size, int method)
{
    zip_int64_t at = zip_file_add(zip, name, zip_source_buffer(zip, data, size, 0), 0);
    assert_true(at >= 0);
    assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)at, method, 0), 0);
}

/* {"a": a tensor}: whatever stands for elements, offset, shape and strides. */
#define TENSOR(elements, offset, shape, stride) TENSOR_WITH(elements, offset, shape, stride, "")
#define TENSOR_WITH(elements, offset, shape, stride, flags)                                                            \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"             \
    "0X\x03\x00\x00\x00"                                                                                               \
    "cpu" elements "tQ" offset shape stride "\x89"                                                                     \
    "ccollections\nOrderedDict\n)R" flags "tR"
#define PICKLE(tensor)                                                                                                 \
    "\x80\x02}U\x01"                                                                                                   \
    "a" tensor "s."
#define SIX PICKLE(TENSOR("K\x06", "K\x00", "K\x02K\x03\x86", "K\x03K\x01\x86"))

/* x/data.pkl, byteorder and more: NULL: not there. */
struct archive {
    const char *pickle_name, *data_name, *byte_order, *more;
    int method;
    size_t data_size;
};

static void write_archive(const struct archive *a)
{
    static const uint8_t data[64] = {0};
    zip_t *zip = zip_open(test_path(), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
    if (a->pickle_name != NULL)
        add(zip, a->pickle_name, SIX, sizeof SIX - 1, ZIP_CM_STORE);
    if (a->data_name != NULL)
        add(zip, a->data_name, data, a->data_size, a->method);
    if (a->byte_order != NULL)
        add(zip, "x/byteorder", a->byte_order, strlen(a->byte_order), ZIP_CM_STORE);
    if (a->more != NULL)
        add(zip, a->more, data, 1, ZIP_CM_STORE);
    assert_int_equal(zip_close(zip), 0);
}

/* In the whole file, one text is then replaced by another. */
TEST(test_archives_refused)
{
    static const struct {
        const char *words;
        struct archive archive;
        const char *text, *written;
    } cases[] = {
        {"'x/data/0' is missing", {"x/data.pkl", NULL, "little", NULL, 0, 0}, NULL, NULL},
        {"found 20 bytes", {"x/data.pkl", "x/data/0", "little", NULL, ZIP_CM_STORE, 20}, NULL, NULL},
        {"found 'x/data/0' compressed", {"x/data.pkl", "x/data/0", "little", NULL, ZIP_CM_DEFLATE, 24}, NULL, NULL},
        {"found another order", {"x/data.pkl", "x/data/0", "big", NULL, ZIP_CM_STORE, 24}, NULL, NULL},
        {"found 1 entries", {NULL, "x/data/0", NULL, NULL, ZIP_CM_STORE, 24}, NULL, NULL},
        {"expected one data.pkl", {"x/data.pkl", "x/data/0", "little", "y/data.pkl", ZIP_CM_STORE, 24}, NULL, NULL},
        {"found 'x/data/0' twice",
         {"x/data.pkl", "x/data/0", "little", "x/data/1", ZIP_CM_STORE, 24},
         "data/1",
         "data/0"},
        {"CRC", {"x/data.pkl", "x/data/0", "little", NULL, ZIP_CM_STORE, 24}, "FloatStorage", "FloatStoragf"},
        {"cut off or damaged",
         {"x/data.pkl", "x/data/0", "little", NULL, ZIP_CM_STORE, 24},
         "PK\x05\x06",
         "PK\x05\x07"},
    };
    struct bytes bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        write_archive(&cases[i].archive);
        must(file_read(test_path(), 1 << 16, &bytes, &error));
        for (uint8_t *at; text != NULL && (at = memmem(bytes.data, bytes.size, text, strlen(text))) != NULL;)
            memcpy(at, cases[i].written, strlen(text));
        must(file_write(test_path(), bytes.data, bytes.size, &error));
        bytes_free(&bytes);
        expect_refused(test_path(), cases[i].words);
    }
    must(file_read(FIXTURES "/torch/plain.pth", 1 << 16, &bytes, &error));
    for (size_t size = 8; size < bytes.size; size += 101) {
        must(file_write(test_path(), bytes.data, size, &error));
        expect_refused(test_path(), "cut off or damaged");
    }
    bytes_free(&bytes);
}

/* A dictionary of two tensors. */
#define PAIR(second, tensor)                                                                                           \
    "\x80\x02}(U\x01"                                                                                                  \
    "a" TENSOR("K\x06", "K\x00", "K\x02\x85", "K\x01\x85") "U\x01" second tensor "u."
#define ROW(elements) TENSOR(elements, "K\x00", "K\x02\x85", "K\x01\x85")
#define OUTSIDE "lies outside its storage"
#define NO_TENSOR "expected a storage"

TEST(test_tensors_refused)
{
#define CASE(pickle, words)                                                                                            \
    {                                                                                                                  \
        pickle, sizeof pickle - 1, words                                                                               \
    }
    static const struct {
        const char *pickle;
        size_t size;
        const char *words;
    } cases[] = {
        CASE(PICKLE(TENSOR("K\x05", "K\x00", "K\x02K\x03\x86", "K\x03K\x01\x86")), OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "K\x01", "K\x02K\x03\x86", "K\x03K\x01\x86")), OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "K\x00", "K\x02K\x03\x86", "K\x04K\x01\x86")), OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "K\x00", "K\x09K\x03\x86", "K\x00K\x01\x86")), OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "K\x07", "K\x00\x85", "K\x01\x85")), OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "K\x00", "\x8a\x08\x01\x00\x00\x00\x00\x00\x00\x40K\x04\x86", "K\x04K\x01\x86")),
             OUTSIDE),
        CASE(PICKLE(TENSOR("K\x06", "J\xff\xff\xff\xff", "K\x02\x85", "K\x01\x85")), NO_TENSOR),
        CASE(PICKLE(TENSOR("K\x06", "K\x00", "K\x02K\x03\x86", "K\x01\x85")), NO_TENSOR),
        CASE(PICKLE(ROW("N")), NO_TENSOR),
        CASE(PICKLE(TENSOR_WITH("K\x06", "K\x00", "K\x02\x85", "K\x01\x85", "}U\x03neg\x88s")), "negates"),
        CASE(PAIR("a", ROW("K\x06")), "found 'a' twice"),
        CASE(PAIR("b", ROW("K\x07")), "one type and size"),
        CASE("\x80\x02}U\x05"
             "epochK\x03s.",
             "first key is 'epoch'"),
        CASE("\x80\x02]q\x01h\x01"
             "a.",
             "found no dictionary"),
        CASE("\x80\x02"
             "c__torch__\nM\n)\x81q\x00}U\x01"
             "ah\x00sb.",
             "holds itself"),
        CASE("\x80\x02"
             "c__torch__\nM\n)\x81}b.",
             "expected tensors, found none"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torch_tensors tensors;
        must_refuse(torch_tensors_find(&tensors, "file", cases[i].pickle, cases[i].size, &error), ERROR_FORMAT,
                    cases[i].words);
        torch_tensors_free(&tensors);
    }
}
