/* Files go out and come back; every way a file can lie about itself is refused with a message that says where.
 * Files cut and damaged everywhere are those of tests/fuzz. */
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/file.h"
#include "models/files/safetensors.h"
#include "tests/models/device.h"
#include "tests/models/files/tensor_set.h"

/* A file with this header and data_size bytes 0, 1, 2, … */
static void make_file(const char *header, size_t data_size)
{
    uint64_t length = strlen(header);
    uint8_t *bytes = malloc(8 + length + data_size);
    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    for (size_t i = 0; i < length; i++)
        bytes[8 + i] = (uint8_t)header[i];
    for (size_t i = 0; i < data_size; i++)
        bytes[8 + length + i] = (uint8_t)i;
    test_write_file(test_path(), bytes, 8 + length + data_size);
    free(bytes);
}

static status open_header(struct safetensors **file, const char *header, size_t data_size)
{
    make_file(header, data_size);
    return safetensors_open(file, test_path(), WEIGHTS_WHOLE, &error);
}

static void expect_file_refused(const char *first, const char *second)
{
    struct safetensors *file;
    must_refuse(safetensors_open(&file, test_path(), WEIGHTS_WHOLE, &error), ERROR_FORMAT, test_path(), first, second);
    assert_null(file);
}

static void expect_refused(const uint8_t *bytes, size_t size, const char *first, const char *second)
{
    test_write_file(test_path(), bytes, size);
    expect_file_refused(first, second);
}

TEST(what_is_written_is_read)
{
    static const float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int64_t number = -7;
    static const uint8_t odd[3] = {1, 2, 3};
    const struct safetensor tensors[] = {
        {.name = "rows", .type = SAFETENSOR_F32, .rank = 2, .shape = {2, 3}, .data = rows},
        {.name = "odd", .type = SAFETENSOR_U8, .rank = 1, .shape = {3}, .data = odd},
        {.name = "empty", .type = SAFETENSOR_F64, .rank = 2, .shape = {0, 4}},
        {.name = "a \"scalar\" é", .type = SAFETENSOR_I64, .rank = 0, .data = &number},
    };
    const struct safetensors_metadata metadata[] = {{"names", "one\ntwo"}, {"seed", "3"}};
    must(safetensors_write(test_path(), tensors, 4, metadata, 2, &error));
    struct safetensors *file = open_file(test_path());
    assert_int_equal(safetensors_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct safetensor *found;
        must(safetensors_expect(file, tensors[i].name, tensors[i].type, tensors[i].rank, tensors[i].shape, &found,
                                &error));
        size_t bytes = safetensor_elements(found) * safetensor_type_size(found->type);
        assert_int_equal((uintptr_t)found->data % safetensor_type_size(found->type), 0);
        if (bytes > 0)
            assert_memory_equal(found->data, tensors[i].data, bytes);
    }
    assert_string_equal(safetensors_at(file, 0)->name, "a \"scalar\" é");
    assert_string_equal(safetensors_metadata_value(file, "names"), "one\ntwo");
    assert_null(safetensors_metadata_value(file, "absent"));
    assert_null(safetensors_find(file, "absent"));
    safetensors_close(file);
}

TEST(data_starts_at_a_multiple_of_64)
{
    char name[80] = "";
    for (size_t length = 1; length < 70; length++) {
        const struct safetensor tensor = {
            .name = memset(name, 'n', length), .type = SAFETENSOR_U8, .rank = 1, .shape = {1}, .data = "x"};
        struct bytes bytes;
        uint64_t header;
        must(safetensors_write(test_path(), &tensor, 1, NULL, 0, &error));
        must(file_read(test_path(), FILE_LIMIT, &bytes, &error));
        memcpy(&header, bytes.data, sizeof header);
        assert_int_equal((8 + header) % 64, 0);
        assert_int_equal(bytes.size, 8 + header + 1);
        bytes_free(&bytes);
    }
}

TEST(data_in_awkward_places_is_aligned)
{
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,9]},"
                                 "\"c\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[9,17]}}";
    for (size_t spaces = 0; spaces < 8; spaces++) {
        char padded[sizeof header + 8];
        struct safetensors *file;
        snprintf(padded, sizeof padded, "%s%*s", header, (int)spaces, "");
        must(open_header(&file, padded, 17));
        for (size_t i = 0; i < 3; i++) {
            static const uint8_t first[] = {0, 1, 9};
            const struct safetensor *tensor = safetensors_at(file, i);
            assert_int_equal((uintptr_t)tensor->data % safetensor_type_size(tensor->type), 0);
            size_t size = safetensor_elements(tensor) * safetensor_type_size(tensor->type);
            for (size_t j = 0; j < size; j++)
                assert_int_equal(((const uint8_t *)tensor->data)[j], first[i] + j);
        }
        safetensors_close(file);
    }
}

#define ENTRY(type, shape, offsets) "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(lying_headers_are_refused)
{
    static const struct {
        const char *header;
        size_t data;
        const char *first, *second;
    } cases[] = {
        {"", 0, "JSON", "byte 8"},
        {"[]", 0, "JSON object", ""},
        {"{\"w\":", 0, "JSON", "byte"},
        {"{\"w\":1}", 0, "'w'", "dtype"},
        {"{\"w\":\"\xff\"}", 0, "JSON", "UTF-8"},
        {"{\"w\":" ENTRY("F32", "[1]", "[0,4]") ",\"w\":" ENTRY("F32", "[1]", "[4,8]") "}", 8, "duplicate", "w"},
        {"{\"w\":" ENTRY("F31", "[1]", "[0,4]") "}", 4, "'w'", "F31"},
        {"{\"w\":" ENTRY("F32", "7", "[0,4]") "}", 4, "'w'", "shape"},
        {"{\"w\":" ENTRY("F32", "[-1]", "[0,4]") "}", 4, "'w'", "position 0"},
        {"{\"w\":" ENTRY("F32", "[1.0]", "[0,4]") "}", 4, "'w'", "position 0"},
        {"{\"w\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "'w'", "at most 8"},
        {"{\"w\":" ENTRY("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, "'w'", "[4294967296, 4294967296]"},
        {"{\"w\":" ENTRY("F32", "[9223372036854775807,2]", "[0,4]") "}", 4, "'w'", "9223372036854775807"},
        {"{\"w\":" ENTRY("F32", "[99999999999999999999]", "[0,4]") "}", 4, "JSON", "integer"},
        {"{\"w\":" ENTRY("F32", "[1]", "[4,0]") "}", 4, "'w'", "begin <= end"},
        {"{\"w\":" ENTRY("F32", "[1]", "[0]") "}", 4, "'w'", "data_offsets"},
        {"{\"w\":" ENTRY("F32", "[1]", "[-4,0]") "}", 4, "'w'", "data_offsets"},
        {"{\"w\":" ENTRY("F32", "[2]", "[0,4]") "}", 4, "takes 8 bytes", "hold 4"},
        {"{\"w\":" ENTRY("F32", "[2]", "[0,8]") "}", 7, "'w'", "cut off"},
        {"{\"w\":" ENTRY("F32", "[1]", "[0,4]") "}", 5, "end at byte 4", "holds 5"},
        {"{\"w\":" ENTRY("U8", "[1]", "[0,1]") ",\"x\":" ENTRY("U8", "[1]", "[2,3]") "}", 3, "'x'", "a gap"},
        {"{\"w\":" ENTRY("U8", "[2]", "[0,2]") ",\"x\":" ENTRY("U8", "[2]", "[1,3]") "}", 3, "'x'", "an overlap"},
        {"{\"__metadata__\":{\"epoch\":3}}", 0, "'epoch'", "string"},
        {"{\"__metadata__\":[]}", 0, "__metadata__", "object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_file(cases[i].header, cases[i].data);
        expect_file_refused(cases[i].first, cases[i].second);
    }
}

TEST(impossible_header_lengths_are_refused)
{
    static const uint64_t lengths[] = {3, 100, 100000001, UINT64_MAX};
    uint8_t bytes[10] = {0};
    for (size_t size = 0; size < 8; size++)
        expect_refused(bytes, size, "only", "bytes");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(bytes, &lengths[i], sizeof lengths[i]);
        expect_refused(bytes, sizeof bytes, "header", "cut off");
    }
}

/* Two tensors and two words of metadata, in either order. */
static void write_small(bool turned)
{
    static const float w[2] = {1, 2}, v[2] = {3, 4};
    const struct safetensor tensors[] = {{.name = "w", .type = SAFETENSOR_F32, .rank = 1, .shape = {2}, .data = w},
                                         {.name = "v", .type = SAFETENSOR_F32, .rank = 1, .shape = {2}, .data = v},
                                         {.name = "w", .type = SAFETENSOR_F32, .rank = 1, .shape = {2}, .data = w}};
    const struct safetensors_metadata metadata[] = {{"task", "3"}, {"iteration", "41"}, {"task", "3"}};
    must(safetensors_write(test_path(), tensors + turned, 2, metadata + turned, 2, &error));
}

/* A file that was written here proves itself: the one flip that can go unnoticed is in the name of the digest. */
TEST(every_flipped_bit_of_a_written_file_is_refused_or_harmless)
{
    struct bytes bytes;
    struct safetensors *file;
    size_t harmless = 0;
    write_small(false);
    must(file_read(test_path(), FILE_LIMIT, &bytes, &error));
    for (size_t i = 0; i < bytes.size * 8; i++) {
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        test_write_file(test_path(), bytes.data, bytes.size);
        if (safetensors_open(&file, test_path(), WEIGHTS_WHOLE, &error) == OK) {
            harmless++;
            assert_null(safetensors_metadata_value(file, SAFETENSORS_DIGEST));
            assert_string_equal(safetensors_metadata_value(file, "task"), "3");
            assert_string_equal(safetensors_metadata_value(file, "iteration"), "41");
            assert_memory_equal(safetensors_find(file, "w")->data, ((float[]){1, 2}), 8);
            assert_memory_equal(safetensors_find(file, "v")->data, ((float[]){3, 4}), 8);
        }
        safetensors_close(file);
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_true(harmless <= 8 * sizeof SAFETENSORS_DIGEST);
    bytes_free(&bytes);
}

/* Changes that keep the header well-formed: another position, tensors exchanged, a digest of another file. */
TEST(edited_files_are_refused)
{
    static const char *const edits[][2] = {{"\"iteration\":\"41\"", "\"iteration\":\"14\""},
                                           {"\"task\":\"3\"", "\"task\":\"4\""},
                                           {"\"w\":", "\"x\":"},
                                           {"\"F32\"", "\"I32\""},
                                           {"[2]", "[ 2"},
                                           {"xxh3:", "xxh4:"},
                                           {"[0,8]", "[8,16"}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct bytes bytes;
        write_small(false);
        must(file_read(test_path(), FILE_LIMIT, &bytes, &error));
        uint8_t *at = memmem(bytes.data, bytes.size, edits[i][0], strlen(edits[i][0]));
        assert_non_null(at);
        memcpy(at, edits[i][1], strlen(edits[i][1]));
        expect_refused(bytes.data, bytes.size, i < 4 ? "damaged or edited" : "", i < 4 ? "write it again" : "");
        bytes_free(&bytes);
    }
}

/* Who rewrites a file with the same contents in another order has the same file. */
TEST(the_order_of_entries_is_no_part_of_the_digest)
{
    struct safetensors *files[2];
    for (int turned = 0; turned < 2; turned++) {
        write_small(turned);
        files[turned] = open_file(test_path());
    }
    assert_string_equal(safetensors_metadata_value(files[0], SAFETENSORS_DIGEST),
                        safetensors_metadata_value(files[1], SAFETENSORS_DIGEST));
    safetensors_close(files[0]);
    safetensors_close(files[1]);
}

TEST(expectations_name_both_shapes)
{
    static const struct {
        const char *name;
        enum safetensor_type type;
        int rank;
        size_t shape[2];
        const char *first, *second;
    } cases[] = {{"w", SAFETENSOR_F32, 2, {2, 1}, "expected F32 [2, 1]", "found F32 [1, 2]"},
                 {"w", SAFETENSOR_I32, 2, {1, 2}, "expected I32 [1, 2]", "found F32 [1, 2]"},
                 {"v", SAFETENSOR_F32, 1, {5}, "'v' is missing", "F32 [5]"}};
    struct safetensors *file;
    const struct safetensor *tensor;
    must(open_header(&file, "{\"w\":" ENTRY("F32", "[1,2]", "[0,8]") "}", 8));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_refuse(
            safetensors_expect(file, cases[i].name, cases[i].type, cases[i].rank, cases[i].shape, &tensor, &error),
            ERROR_FORMAT, test_path(), cases[i].first, cases[i].second);
    safetensors_close(file);
}

TEST(numbers_widen_to_floats)
{
    const struct {
        struct safetensor tensor;
        float expected[9];
    } cases[] = {
        {{.name = "h",
          .type = SAFETENSOR_F16,
          .rank = 1,
          .shape = {9},
          .data = (const uint16_t[]){0x0000, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xc248, 0x7bff, 0x7c00, 0x7e00}},
         {0, -0x1p-24F, 0x3ffp-24F, 0x1p-14F, 1, -3.140625F, 65504, INFINITY, NAN}},
        {{.name = "b", .type = SAFETENSOR_BF16, .rank = 1, .shape = {2}, .data = (const uint16_t[]){0x3f80, 0xc049}},
         {1, -3.140625F}},
        {{.name = "d", .type = SAFETENSOR_F64, .rank = 1, .shape = {2}, .data = (const double[]){0.1, -2}},
         {0.1F, -2}}};
    float values[9];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must(safetensor_to_floats(&cases[i].tensor, values, &error));
        for (size_t k = 0; k < cases[i].tensor.shape[0]; k++)
            assert_true(values[k] == cases[i].expected[k] || (isnan(values[k]) && isnan(cases[i].expected[k])));
    }
    struct safetensor tensor = cases[2].tensor;
    tensor.type = SAFETENSOR_I64;
    must_refuse(safetensor_to_floats(&tensor, values, &error), ERROR_FORMAT, "found I64");
}

/* No other test writes it. */
static const char unwritten[] = "unwritten.safetensors";

TEST(impossible_requests_write_nothing)
{
    static const struct safetensors_metadata bad = {"key", "\xff"};
    const struct safetensor fine = {.name = "w", .type = SAFETENSOR_U8, .rank = 1, .shape = {1}, .data = "x"};
    struct safetensor cases[][2] = {{fine, fine}, {fine}, {fine}, {fine}, {fine}};
    cases[1][0].name = "__metadata__";
    cases[2][0].name = "\xff";
    cases[3][0].rank = 2;
    cases[3][0].shape[0] = cases[3][0].shape[1] = SIZE_MAX / 2;
    for (size_t i = 0; i < 5; i++)
        must_refuse(safetensors_write(unwritten, cases[i], i == 0 ? 2 : 1, &bad, i == 4, &error), ERROR_ARGUMENT, "");
    must_refuse(safetensors_write("absent-folder/w.safetensors", &fine, 1, NULL, 0, &error), ERROR_IO,
                "absent-folder/w.safetensors");
    assert_false(file_exists(unwritten));
}

/* As on a full disk: the file may not grow. */
TEST(a_full_disk_leaves_nothing_behind)
{
    static char data[1 << 16];
    const struct safetensor tensor = {
        .name = "w", .type = SAFETENSOR_U8, .rank = 1, .shape = {sizeof data}, .data = data};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max}), 0);
    status result = safetensors_write(unwritten, &tensor, 1, NULL, 0, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, action);
    must_refuse(result, ERROR_IO, unwritten);
    glob_t left = {0};
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s*", unwritten);
    assert_int_equal(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
    globfree(&left);
}
