/* mtil embed against the same numbers computed here, one image or text at a time and from normalised floats; what it refuses is in
 * scripts/predict.txt. */
#include "tests/end_to_end/workshop.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "core/file.h"
#include "datasets/image/image.h"
#include "models/clip.h"
#include "models/tokenizer.h"
#include "tests/normalize.h"

#define TOLERANCE 2e-5 /* features have length 1 */

enum { LINES = 70, OFF = -1 };

/* Names in the order of their bytes, and the fixture behind each: JPEG and GIF, whatever the name says. */
static const struct photo {
    const char *name, *source;
} photos[] = {
    {"B.jpg", "eurosat/eurosat/2750/Forest/Forest_1.jpg"},   {"a b.png", "eurosat/eurosat/2750/SeaLake/SeaLake_1.jpg"},
    {"b.jpg", "eurosat/eurosat/2750/Highway/Highway_1.jpg"}, {"b10.jpg", "eurosat/eurosat/2750/River/River_1.jpg"},
    {"b9", "dtd/dtd/dtd/images/stained/stained_0042.jpg"},   {"é.jpg", "eurosat/eurosat/2750/Pasture/Pasture_1.jpg"},
};

enum { PHOTOS = sizeof photos / sizeof *photos };

static void check(status result, const struct error *error)
{
    if (result != OK)
        fail_msg("%s", error->message);
}

static void put_photos(const struct workshop *workshop)
{
    struct error error;
    for (size_t i = 0; i < PHOTOS; i++) {
        struct bytes bytes;
        char *source = path_format(FIXTURES "/data/roots/%s", photos[i].source),
             *name = path_format("photos/%s", photos[i].name);
        check(file_read(source, FILE_LIMIT, &bytes, &error), &error);
        scratch_write(&workshop->scratch, name, bytes.data, bytes.size);
        bytes_free(&bytes);
        free(source);
        free(name);
    }
    scratch_write_text(&workshop->scratch, "photos/sub-folder/notes.txt", "not looked at");
}

static void put_lines(const struct workshop *workshop)
{
    struct text text = {0};
    for (int i = 0; i < LINES; i++)
        text_add(&text, "a photo of \"%d\" forests%s%s", i, i % 2 == 0 ? "." : " and a \\ braided texture",
                 i == 3 ? "\r\n" : "\n");
    scratch_write_text(&workshop->scratch, "lines.txt", text.data);
    text_free(&text);
}

static int set_up(void **state)
{
    struct workshop *workshop = calloc(1, sizeof *workshop);
    workshop_open(workshop);
    put_photos(workshop);
    put_lines(workshop);
    *state = workshop;
    return 0;
}

static int tear_down(void **state)
{
    workshop_close(*state);
    free(*state);
    return 0;
}

/* --- The same, computed here --- */

struct reference {
    struct backend *backend;
    struct arena model, step;
    struct clip *clip;
    struct tokenizer *tokenizer;
    struct adapters *adapters;
};

static void reference_open(struct reference *r, const struct workshop *workshop)
{
    struct error error;
    char *weights = workshop_path(workshop, "clip.safetensors"),
         *vocabulary = workshop_path(workshop, "vocabulary.txt");
    char *adapters = workshop_path(workshop, "adapters.safetensors");
    check(backend_open(&r->backend, &(struct backend_settings){.name = "cpu", .threads = 2}, &error), &error);
    check(r->backend->ops->arena_create(r->backend, &r->model, (size_t)1 << 30, "test", &error), &error);
    check(r->backend->ops->arena_create(r->backend, &r->step, (size_t)1 << 30, "test", &error), &error);
    check(clip_load(&r->clip, r->backend, &r->model, weights, PARAMETERS_FROZEN, NULL, &error), &error);
    check(tokenizer_open(&r->tokenizer, vocabulary, &error), &error);
    struct safetensors *file;
    check(safetensors_open(&file, adapters, &error), &error);
    check(adapters_open(&r->adapters, r->backend, &r->model, &r->clip->dimensions, file, (int[]){0, 1, 2}, 3, &error),
          &error);
    safetensors_close(file);
    free(weights);
    free(vocabulary);
    free(adapters);
}

static void reference_close(struct reference *r)
{
    adapters_destroy(r->adapters);
    tokenizer_close(r->tokenizer);
    clip_destroy(r->clip);
    r->backend->ops->arena_destroy(r->backend, &r->step);
    r->backend->ops->arena_destroy(r->backend, &r->model);
    backend_close(r->backend);
}

static void take_normalised(struct reference *r, const struct tensor *output, float *feature)
{
    struct error error;
    size_t width = r->clip->dimensions.embed;
    double square = 0;
    check(r->backend->ops->download(r->backend, feature, output->data, width * sizeof *feature, &error), &error);
    for (size_t i = 0; i < width; i++)
        square += (double)feature[i] * (double)feature[i];
    for (size_t i = 0; i < width; i++)
        feature[i] = (float)((double)feature[i] / sqrt(square));
}

/* hooks and router of one sample */
static struct encoding encoding_of(struct reference *r, enum tower tower, int router)
{
    struct error error;
    struct tensor routers;
    int32_t number = router;
    struct encoding encoding = {.arena = &r->step};
    if (router == OFF)
        return encoding;
    check(tensor_take(&routers, &r->step, TENSOR_I32, "router", 1, (size_t[]){1}, &error), &error);
    check(r->backend->ops->upload(r->backend, routers.data, &number, sizeof number, &error), &error);
    encoding.hooks = adapters_hooks(r->adapters, tower);
    encoding.router = routers.data;
    return encoding;
}

static void reference_image(struct reference *r, const char *path, int router, float *feature)
{
    struct error error;
    struct image image;
    struct tensor batch = {0};
    struct tower_pass pass;
    struct tensor output;
    size_t side = r->clip->dimensions.resolution;
    uint8_t *pixels = malloc(side * side * 3);
    float *planes = malloc(side * side * 3 * sizeof *planes);
    check(image_decode_file(&image, path, &error), &error);
    check(image_evaluation_crop(&image, (int)side, pixels, &error), &error);
    normalize(pixels, (int)side, planes);
    arena_reset(&r->step);
    struct encoding encoding = encoding_of(r, TOWER_IMAGE, router);
    check(tensor_take(&batch, &r->step, TENSOR_F32, "image", 4, (size_t[]){1, 3, side, side}, &error), &error);
    check(r->backend->ops->upload(r->backend, batch.data, planes, tensor_bytes(&batch), &error), &error);
    check(clip_encode_images(r->clip, &encoding, &batch, &pass, &output, &error), &error);
    take_normalised(r, &output, feature);
    image_free(&image);
    free(pixels);
    free(planes);
}

static void reference_text(struct reference *r, const char *line, int router, float *feature)
{
    struct error error;
    int32_t row[64]; /* at least the context */
    size_t found;
    struct texts texts;
    struct tower_pass pass;
    struct tensor output;
    check(tokenizer_encode(r->tokenizer, line, row, r->clip->dimensions.context, &found, &error), &error);
    arena_reset(&r->step);
    struct encoding encoding = encoding_of(r, TOWER_TEXT, router);
    check(texts_create(&texts, r->clip, &r->step, row, 1, &error), &error);
    check(clip_encode_texts(r->clip, &encoding, &texts, &pass, &output, &error), &error);
    take_normalised(r, &output, feature);
}

/* --- What the program wrote --- */

struct written {
    struct safetensors *file;
    const float *features;
    size_t rows, width;
    json_t *names;
};

static void read_written(const struct workshop *workshop, const char *name, struct written *written)
{
    struct error error;
    char *path = workshop_path(workshop, name);
    check(safetensors_open(&written->file, path, &error), &error);
    assert_int_equal(safetensors_count(written->file), 1);
    const struct safetensor *tensor = safetensors_find(written->file, "features");
    assert_non_null(tensor);
    assert_int_equal(tensor->type, SAFETENSOR_F32);
    assert_int_equal(tensor->rank, 2);
    written->features = tensor->data;
    written->rows = tensor->shape[0];
    written->width = tensor->shape[1];
    written->names = json_loads(safetensors_metadata_value(written->file, "names"), 0, NULL);
    assert_int_equal(json_array_size(written->names), written->rows);
    free(path);
}

static void close_written(struct written *written)
{
    json_decref(written->names);
    safetensors_close(written->file);
}

static void expect_row(const struct written *written, size_t row, const float *feature)
{
    for (size_t i = 0; i < written->width; i++) {
        double found = (double)written->features[row * written->width + i], expected = (double)feature[i];
        if (!(fabs(found - expected) <= TOLERANCE))
            fail_msg("row %zu, value %zu: expected %.7f, found %.7f", row, i, expected, found);
    }
}

static void expect_photos(const struct workshop *workshop, const char *name, int router)
{
    struct reference reference;
    struct written written;
    float feature[64];
    reference_open(&reference, workshop);
    read_written(workshop, name, &written);
    assert_string_equal(safetensors_metadata_value(written.file, "kind"), "images");
    assert_string_equal(safetensors_metadata_value(written.file, "model"), "clip");
    assert_int_equal(written.rows, PHOTOS);
    assert_int_equal(written.width, reference.clip->dimensions.embed);
    for (size_t i = 0; i < PHOTOS; i++) {
        char *path = path_format("%s/photos/%s", workshop->scratch.path, photos[i].name);
        assert_string_equal(json_string_value(json_array_get(written.names, i)), photos[i].name);
        reference_image(&reference, path, router, feature);
        expect_row(&written, i, feature);
        free(path);
    }
    close_written(&written);
    reference_close(&reference);
}

static void expect_lines(const struct workshop *workshop, const char *name, int router)
{
    struct reference reference;
    struct written written;
    float feature[64];
    reference_open(&reference, workshop);
    read_written(workshop, name, &written);
    assert_string_equal(safetensors_metadata_value(written.file, "kind"), "texts");
    assert_int_equal(written.rows, LINES);
    for (size_t i = 0; i < LINES; i++) {
        char *line = path_format("a photo of \"%zu\" forests%s", i, i % 2 == 0 ? "." : " and a \\ braided texture");
        assert_string_equal(json_string_value(json_array_get(written.names, i)), line);
        reference_text(&reference, line, router, feature);
        expect_row(&written, i, feature);
        free(line);
    }
    close_written(&written);
    reference_close(&reference);
}

#define EMBED "embed --quiet --weights clip.safetensors "
#define IMAGES EMBED "--images photos "
#define SILENT "embed --quiet --weights silent.safetensors --heads 1,1 --images photos "
#define TEXTS EMBED "--vocab vocabulary.txt --texts lines.txt "

TEST(images_are_embedded_in_the_order_of_their_names)
{
    program_succeeds(*state, IMAGES "--out out.safetensors");
    expect_photos(*state, "out.safetensors", OFF);
    program_succeeds(*state, IMAGES "--adapters adapters.safetensors --router none --out out.safetensors");
    expect_photos(*state, "out.safetensors", OFF);
    program_succeeds(*state, IMAGES "--adapters adapters.safetensors --router 2 --out out.safetensors");
    expect_photos(*state, "out.safetensors", 2);
}

TEST(texts_are_embedded_line_by_line)
{
    program_succeeds(*state, TEXTS "--out out.safetensors");
    expect_lines(*state, "out.safetensors", OFF);
    program_succeeds(*state, TEXTS "--adapters adapters.safetensors --router 0 --out out.safetensors");
    expect_lines(*state, "out.safetensors", 0);
}

static bool same_files(const struct workshop *workshop, const char *one, const char *other)
{
    struct bytes a, b;
    struct error error;
    char *first = workshop_path(workshop, one), *second = workshop_path(workshop, other);
    check(file_read(first, FILE_LIMIT, &a, &error), &error);
    check(file_read(second, FILE_LIMIT, &b, &error), &error);
    bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    bytes_free(&a);
    bytes_free(&b);
    free(first);
    free(second);
    return same;
}

TEST(options_that_matter_change_the_file_and_threads_do_not)
{
    program_succeeds(*state, IMAGES "--out one.safetensors --threads 1 --adapters adapters.safetensors --router 1");
    program_succeeds(*state, IMAGES "--out three.safetensors --threads 3 --adapters adapters.safetensors --router 1");
    assert_true(same_files(*state, "one.safetensors", "three.safetensors"));
    workshop_drop_metadata(*state, "clip.safetensors", "silent.safetensors");
    program_succeeds(*state, SILENT "--out gelu.safetensors --activation gelu");
    program_succeeds(*state, SILENT "--out quick.safetensors --activation quick_gelu");
    assert_false(same_files(*state, "quick.safetensors", "gelu.safetensors"));
}

static bool without_router_zero(struct safetensor *tensor)
{
    const char *end = strrchr(tensor->name, '.');
    bool routing = strstr(tensor->name, "router_list.") != NULL || strstr(tensor->name, "w_noise_list.") != NULL;
    return !routing || strcmp(end, ".0") != 0;
}

static bool without_text_router_zero(struct safetensor *tensor)
{
    return strcmp(tensor->name, "transformer.resblocks.0.router_list.0") != 0;
}

static void refuses(const struct workshop *workshop, const char *arguments, const char *words)
{
    outcome_refuses(workshop, program_run(workshop, &(struct launch){.arguments = arguments}), arguments, 0, words);
}

TEST(routers_may_be_missing_unless_they_are_asked_for)
{
    workshop_rewrite(*state, "adapters.safetensors", "fewer.safetensors", without_router_zero);
    /* the rewritten file has no metadata: scale 0.1 */
    program_succeeds(*state, IMAGES "--out one.safetensors --adapters fewer.safetensors --router 1");
    program_succeeds(*state, IMAGES "--out two.safetensors --adapters fewer.safetensors --router 2");
    assert_false(same_files(*state, "one.safetensors", "two.safetensors"));
    refuses(*state, IMAGES "--out x.safetensors --adapters fewer.safetensors --router 0",
            "fewer.safetensors | router 0 | its routers are: 1, 2");
    refuses(*state, IMAGES "--out x.safetensors --adapters fewer.safetensors", "--router | one of 1, 2");
    workshop_rewrite(*state, "adapters.safetensors", "half.safetensors", without_text_router_zero);
    refuses(*state, IMAGES "--out x.safetensors --adapters half.safetensors --router 0",
            "half.safetensors | transformer.resblocks.0.router_list.0");
}

TEST_GROUP(set_up, tear_down)
