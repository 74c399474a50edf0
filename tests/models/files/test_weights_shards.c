/* Weights in several files: opened as one, and refused where index and files disagree. */
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "models/files/weights_file.h"
#include "tests/datasets/scratch.h"
#include "tests/models/device.h"

#define INDEX "model.safetensors.index.json"

static char index_path[512];

static void write_shard(const char *name, const char *tensor, float first)
{
    const float values[] = {first, first + 1};
    const struct safetensor tensors[] = {
        {.name = tensor, .type = SAFETENSOR_F32, .rank = 1, .shape = {2}, .data = values}};
    must(safetensors_write(scratch_file(test_scratch(), name), tensors, 1, NULL, 0, &error));
}

static int set_up(void **state)
{
    struct bytes bytes;
    write_shard("one", "a", 1);
    write_shard("two", "b", 5);
    must(file_read(FIXTURES "/torch/model.bin", 1 << 16, &bytes, &error));
    scratch_write(test_scratch(), "three", bytes.data, bytes.size);
    bytes_free(&bytes);
    snprintf(index_path, sizeof index_path, "%s", scratch_file(test_scratch(), INDEX));
    return 0;
}

TEST(shards_are_one_file)
{
    struct safetensors *file;
    scratch_write_text(test_scratch(), INDEX,
                       "{\"metadata\": {\"total_size\": 40}, \"weight_map\": {\"b\": \"two\", \"weight\": \"three\", "
                       "\"a\": \"one\"}}");
    must(weights_file_open(&file, index_path, WEIGHTS_WHOLE, &error));
    assert_int_equal(safetensors_count(file), 3);
    assert_string_equal(safetensors_path(file), index_path);
    assert_true(((const float *)safetensors_find(file, "a")->data)[1] == 2);
    assert_true(((const float *)safetensors_find(file, "b")->data)[0] == 5);
    assert_true(((const float *)safetensors_find(file, "weight")->data)[5] == 2.5f); /* of PyTorch's */
    safetensors_close(file);
    must(weights_file_open(&file, index_path, WEIGHTS_HEADER, &error));
    assert_int_equal(safetensors_find(file, "weight")->shape[1], 3);
    assert_null(safetensors_find(file, "a")->data);
    safetensors_close(file);
}

TEST(disagreements_are_refused)
{
    static const char *const cases[][2] = {
        {"{\"weight_map\": {\"a\": \"one\", \"c\": \"two\"}}", "has tensor 'b'"},
        {"{\"weight_map\": {\"a\": \"two\", \"b\": \"one\"}}", "has tensor 'a'"},
        {"{\"weight_map\": {\"a\": \"one\", \"c\": \"one\"}}", "names 2 tensors, but its files have 1"},
        {"{\"weight_map\": {\"a\": \"../one\"}}", "found '../one'"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "a file beside the index"},
        {"{\"weight_map\": {\"a\": 1}}", "a file beside the index"},
        {"{\"weight_map\": {\"a\": \"four\"}}", "four"},
        {"{\"weight_map\": {}}", "expected weight_map"},
        {"[]", "expected weight_map"},
        {"{", "expected JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct safetensors *file;
        scratch_write_text(test_scratch(), INDEX, cases[i][0]);
        status result = weights_file_open(&file, index_path, WEIGHTS_WHOLE, &error);
        assert_null(file);
        must_refuse(result, result == OK ? ERROR_FORMAT : result, cases[i][1]);
    }
}

TEST_GROUP(set_up, NULL)
