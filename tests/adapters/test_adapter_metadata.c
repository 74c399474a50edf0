/* What a file of adapters says of itself, and its selector: there and back, and what is refused. */
#include "adapters/files/adapter_metadata.h"
#include "adapters/files/selector_file.h"
#include "tests/models/device.h"
#include "tests/models/files/tensor_set.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 6, CODE = 3, CODERS = 2 };

/* --- The metadata --- */

static struct safetensors *write_metadata(const struct safetensors_metadata *entries, size_t count)
{
    must(safetensors_write(test_path(), NULL, 0, entries, count, &error));
    return open_file(test_path());
}

static const char *classes[] = {"cat", "Katze \"Мур\"\n", "dog"}, *templates[] = {"a photo of a {}.", "{}"};

static void expect_text(const char *found, const char *expected)
{
    assert_string_equal(found != NULL ? found : "none", expected != NULL ? expected : "none");
}

static const char written_tasks[] =
    "[{\"name\":\"pets\",\"trained\":true,\"classes\":[\"cat\",\"Katze \\\"Мур\\\"\\n\",\"dog\"],"
    "\"templates\":[\"a photo of a {}.\",\"{}\"]},"
    "{\"name\":\"later\",\"trained\":false,\"classes\":[\"cat\"],\"templates\":[\"a photo of a {}.\"]}]";

/* The second is a kind of selector without autoencoders, the third one with an autoencoder of unrelated images; the last is the file
 * of another program. */
TEST(metadata_comes_back_as_it_was)
{
    struct adapter_task tasks[] = {{"pets", true, {3, classes}, {2, templates}},
                                   {"later", false, {1, classes}, {1, templates}}};
    const struct {
        struct adapter_metadata written;
        const char *trained;
    } cases[] = {
        {{.task_count = 2,
          .tasks = tasks,
          .model = "ViT-B-16",
          .model_digest = "0123456789abcdef",
          .selector = "clip",
          .code = 7,
          .per_batch = true,
          .decision_batch = 5,
          .one_router = true},
         "pets"},
        {{.selector = "gaussian", .decision_batch = 128}, "none"},
        {{.selector = "alexnet", .code = 3, .unrelated = true, .per_batch = true, .decision_batch = 2}, "none"},
        {{0}, "none"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct adapter_metadata *written = &cases[i].written;
        struct adapter_metadata_entries entries;
        struct adapter_metadata found;
        must(adapter_metadata_entries(&entries, written, &error));
        assert_true(i > 0 || entries.count == ADAPTER_METADATA_KEYS);
        struct safetensors *file = i < 3 ? write_metadata(entries.list, entries.count)
                                         : write_metadata((const struct safetensors_metadata[]){{"format", "pt"}}, 1);
        adapter_metadata_entries_free(&entries);
        must(adapter_metadata_read(&found, file, &error));
        assert_int_equal(found.task_count, written->task_count);
        for (size_t t = 0; t < written->task_count; t++) {
            assert_int_equal(adapter_metadata_find(&found, tasks[t].name), t);
            assert_int_equal(adapter_metadata_router(&found, t), 0);
        }
        must(adapter_metadata_entries(&entries, &found, &error));
        for (size_t k = 0; i == 0 && k < entries.count; k++)
            if (strcmp(entries.list[k].key, "tasks") == 0)
                expect_text(entries.list[k].value, written_tasks);
        adapter_metadata_entries_free(&entries);
        expect_text(found.model, written->model);
        expect_text(found.model_digest, written->model_digest);
        expect_text(found.selector, written->selector);
        assert_true(found.code == written->code && found.unrelated == written->unrelated &&
                    found.per_batch == written->per_batch && found.one_router == written->one_router &&
                    (i == 3 || found.decision_batch == written->decision_batch));
        assert_int_equal(adapter_metadata_find(&found, "cat"), -1);
        assert_string_equal(adapter_metadata_tasks(&found).text, cases[i].trained);
        adapter_metadata_free(&found);
        safetensors_close(file);
    }
}

#define TASK(name, rest) "{\"name\":\"" name "\",\"trained\":true," rest "}"
#define NAMES "\"classes\":[\"a\"],\"templates\":[\"{}\"]"
#define SELECTOR(features, decision, batch, code)                                                                      \
    "{\"features\":\"" features "\",\"decision\":\"" decision "\",\"decision_batch\":" batch ",\"code\":" code "}"

TEST(what_is_not_as_it_should_be_is_refused)
{
    static const struct {
        const char *key, *value, *word;
    } cases[] = {
        {"routers", "two", "expected one, found two"},
        {"tasks", "", "expected JSON"},
        {"tasks", "[", "expected JSON"},
        {"tasks", "{}", "1 to 1024 tasks"},
        {"tasks", "[]", "1 to 1024 tasks"},
        {"tasks", "[7]", "a name"},
        {"tasks", "[{\"name\":\"\"}]", "a name"},
        {"tasks", "[" TASK("a", NAMES) "," TASK("a", NAMES) "]", "tasks[1]: expected a name that no other"},
        {"tasks", "[{\"name\":\"a\"," NAMES "}]", "\"trained\""},
        {"tasks", "[" TASK("a", "\"classes\":[]") "]", "\"classes\""},
        {"tasks", "[" TASK("a", "\"classes\":[1],\"templates\":[\"{}\"]") "]", "\"classes\""},
        {"tasks", "[" TASK("a", "\"classes\":[\"\"],\"templates\":[\"{}\"]") "]", "\"classes\""},
        {"tasks", "[" TASK("a", "\"classes\":[\"a\"]") "]", "\"templates\""},
        {"tasks", "[" TASK("a", "\"classes\":[\"a\"],\"templates\":[\"no hole\"]") "]", "one {}"},
        {"tasks", "[" TASK("a", "\"classes\":[\"a\"],\"templates\":[\"{} {}\"]") "]", "one {}"},
        {"selector", "7", "expected JSON"},
        {"selector", "[]", "features"},
        {"selector", SELECTOR("means", "per_image", "1", "1"), "features frozen_patch_mean, found means"},
        {"selector", SELECTOR("frozen_patch_mean", "per_day", "1", "1"), "per_day"},
        {"selector", SELECTOR("frozen_patch_mean", "per_image", "0", "1"), "decision_batch"},
        {"selector", SELECTOR("frozen_patch_mean", "per_image", "1000001", "1"), "decision_batch"},
        {"selector", SELECTOR("frozen_patch_mean", "per_image", "1", "-1"), "code"},
        {"selector", SELECTOR("frozen_patch_mean", "per_image", "1", "65537"), "code"},
        {"selector", SELECTOR("frozen_patch_mean", "per_image", "1", "1.5"), "code"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adapter_metadata metadata;
        struct safetensors_metadata entries = {cases[i].key, cases[i].value};
        struct safetensors *file = write_metadata(&entries, 1);
        must_refuse(adapter_metadata_read(&metadata, file, &error), ERROR_FORMAT, cases[i].word, test_path());
        safetensors_close(file);
    }
}

/* --- The selector --- */

/* A file of tensors; whether it is one of selectors. */
static status check_selector(const struct safetensor *tensors, size_t count)
{
    size_t trained;
    must(safetensors_write(test_path(), tensors, count, NULL, 0, &error));
    struct safetensors *file = open_file(test_path());
    status result = selector_file_check(file, WIDTH, CODE, 0, &trained, &error);
    safetensors_close(file);
    return result;
}

DEVICE_TEST(damaged_selectors_are_refused)
{
    static const struct {
        size_t tensor;
        float value;
        const char *words[2];
    } cases[] = {{0, NAN, {"selector.0.encoder.weight", "finite"}},
                 {7, INFINITY, {"selector.1.decoder.bias", "finite"}},
                 {8, NAN, {"selector.thresholds", "NaN"}}};
    struct autoencoder *coders[CODERS];
    for (size_t k = 0; k < CODERS; k++) {
        must(autoencoder_create(&coders[k], d->backend, &d->memory, WIDTH, CODE, PARAMETERS_FROZEN, &error));
        must(autoencoder_initialize(coders[k], 1, (uint32_t)k, &error));
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct selector_tensors tensors = {0};
        must(selector_tensors_add_coders(&tensors, coders, CODERS, &error));
        selector_tensors_add_thresholds(&tensors, (const float[CODERS]){0.1f, 0.2f}, CODERS);
        *(float *)(uintptr_t)tensors.list[cases[i].tensor].data = cases[i].value;
        must_refuse(check_selector(tensors.list, tensors.count), ERROR_FORMAT, cases[i].words[0], cases[i].words[1]);
        selector_tensors_free(&tensors);
    }
    for (size_t k = 0; k < CODERS; k++)
        autoencoder_destroy(coders[k]);
}

/* A threshold more than there are coders: memory must not follow it. */
TEST(a_coder_that_is_missing_is_named)
{
    static const float thresholds[1000];
    const struct safetensor tensor = {
        .name = "selector.thresholds", .type = SAFETENSOR_F32, .rank = 1, .shape = {1000}, .data = thresholds};
    must_refuse(check_selector(&tensor, 1), ERROR_FORMAT, "'selector.0.encoder.weight' is missing");
}
