/* mtil embed against the same numbers computed here, one image or text at a time and from normalised floats; what it refuses, and
 * what else changes its files, is in scripts/predict.txt. */
#include "tests/end_to_end/workshop.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/file.h"
#include "datasets/image/image.h"
#include "models/clip.h"
#include "models/tokenizer.h"
#include "tests/normalize.h"

#define TOLERANCE 2e-5 /* features have length 1 */

enum { LINES = 70, OFF = -1, WIDTH_MOST = 64, CONTEXT_MOST = 64 };

/* Names in the order of their bytes, and the fixture behind each: JPEG and GIF, whatever the name says. */
static const struct photo {
    const char *name, *source;
} photos[] = {
    {"B.jpg", "eurosat/eurosat/2750/Forest/Forest_1.jpg"},   {"a b.png", "eurosat/eurosat/2750/SeaLake/SeaLake_1.jpg"},
    {"b.jpg", "eurosat/eurosat/2750/Highway/Highway_1.jpg"}, {"b10.jpg", "eurosat/eurosat/2750/River/River_1.jpg"},
    {"b9", "dtd/dtd/dtd/images/stained/stained_0042.jpg"},   {"é.jpg", "eurosat/eurosat/2750/Pasture/Pasture_1.jpg"},
};

enum { PHOTOS = sizeof photos / sizeof *photos };

/* The model by which the same is computed here. */
static struct {
    struct backend *backend;
    struct arena model, step;
    struct clip *clip;
    struct tokenizer *tokenizer;
    struct adapters *adapters;
} own;

static char *line_at(size_t i)
{
    return path_format("a photo of \"%zu\" forests%s", i, i % 2 == 0 ? "." : " and a \\ braided texture");
}

static void write_inputs(void)
{
    struct text lines = {0};
    for (size_t i = 0; i < PHOTOS; i++) {
        struct bytes bytes;
        char *source = path_format(FIXTURES "/data/roots/%s", photos[i].source),
             *name = path_format("photos/%s", photos[i].name);
        assert_ok(file_read(source, FILE_LIMIT, &bytes, &error));
        scratch_write(&workshop, name, bytes.data, bytes.size);
        bytes_free(&bytes);
        free(source);
        free(name);
    }
    scratch_write_text(&workshop, "photos/sub-folder/notes.txt", "not looked at");
    for (size_t i = 0; i < LINES; i++) {
        char *line = line_at(i);
        text_add(&lines, "%s%s", line, i == 3 ? "\r\n" : "\n");
        free(line);
    }
    scratch_write_text(&workshop, "lines.txt", lines.data);
    text_free(&lines);
}

static int set_up(void **state)
{
    workshop_open();
    write_inputs();
    assert_ok(backend_open(&own.backend, &(struct backend_settings){.name = "cpu", .threads = 2}, &error));
    assert_ok(own.backend->ops->arena_create(own.backend, &own.model, (size_t)1 << 30, "test", &error));
    assert_ok(own.backend->ops->arena_create(own.backend, &own.step, (size_t)1 << 30, "test", &error));
    assert_ok(clip_load(&own.clip, own.backend, &own.model, scratch_file(&workshop, "clip.safetensors"),
                        PARAMETERS_FROZEN, NULL, &error));
    assert_ok(tokenizer_open(&own.tokenizer, scratch_file(&workshop, "vocabulary.txt"), &error));
    struct safetensors *file = workshop_tensors("adapters.safetensors");
    assert_ok(adapters_open(&own.adapters, own.backend, &own.model, &own.clip->dimensions, file, (int[]){0, 1, 2}, 3,
                            &error));
    safetensors_close(file);
    return 0;
}

static int tear_down(void **state)
{
    adapters_destroy(own.adapters);
    tokenizer_close(own.tokenizer);
    clip_destroy(own.clip);
    own.backend->ops->arena_destroy(own.backend, &own.step);
    own.backend->ops->arena_destroy(own.backend, &own.model);
    backend_close(own.backend);
    workshop_close();
    return 0;
}

/* --- The same, computed here --- */

static void take_normalised(const struct tensor *output, float *feature)
{
    size_t width = own.clip->dimensions.embed;
    double square = 0;
    assert_ok(own.backend->ops->download(own.backend, feature, output->data, width * sizeof *feature, &error));
    for (size_t i = 0; i < width; i++)
        square += (double)feature[i] * (double)feature[i];
    for (size_t i = 0; i < width; i++)
        feature[i] = (float)((double)feature[i] / sqrt(square));
}

/* hooks and router of one sample */
static struct encoding encoding_of(enum tower tower, int32_t router)
{
    struct tensor routers;
    struct encoding encoding = {.arena = &own.step};
    arena_reset(&own.step);
    if (router == OFF)
        return encoding;
    assert_ok(tensor_take(&routers, &own.step, TENSOR_I32, "router", 1, (size_t[]){1}, &error));
    assert_ok(own.backend->ops->upload(own.backend, routers.data, &router, sizeof router, &error));
    encoding.hooks = adapters_hooks(own.adapters, tower);
    encoding.router = routers.data;
    return encoding;
}

static void embed_photo(const char *name, int router, float *feature)
{
    struct image image;
    struct tensor batch = {0}, output;
    struct tower_pass pass;
    size_t side = own.clip->dimensions.resolution;
    uint8_t *pixels = xmalloc(side * side * 3);
    float *planes = xmalloc(side * side * 3 * sizeof *planes);
    char *path = path_format("%s/photos/%s", workshop.path, name);
    assert_ok(image_decode_file(&image, path, &error));
    assert_ok(image_evaluation_crop(&image, (int)side, pixels, &error));
    normalize(pixels, (int)side, planes);
    struct encoding encoding = encoding_of(TOWER_IMAGE, router);
    assert_ok(tensor_take(&batch, &own.step, TENSOR_F32, "image", 4, (size_t[]){1, 3, side, side}, &error));
    assert_ok(own.backend->ops->upload(own.backend, batch.data, planes, tensor_bytes(&batch), &error));
    assert_ok(clip_encode_images(own.clip, &encoding, &batch, &pass, &output, &error));
    take_normalised(&output, feature);
    image_free(&image);
    free(path);
    free(pixels);
    free(planes);
}

static void embed_line(const char *line, int router, float *feature)
{
    int32_t row[CONTEXT_MOST];
    size_t found;
    struct texts texts;
    struct tower_pass pass;
    struct tensor output;
    assert_ok(tokenizer_encode(own.tokenizer, line, row, own.clip->dimensions.context, &found, &error));
    struct encoding encoding = encoding_of(TOWER_TEXT, router);
    assert_ok(texts_create(&texts, own.clip, &own.step, row, 1, &error));
    assert_ok(clip_encode_texts(own.clip, &encoding, &texts, &pass, &output, &error));
    take_normalised(&output, feature);
}

/* --- What the program wrote --- */

static void expect_row(const float *written, size_t row, const float *expected)
{
    size_t width = own.clip->dimensions.embed;
    for (size_t i = 0; i < width; i++) {
        double found = (double)written[row * width + i];
        if (!(fabs(found - (double)expected[i]) <= TOLERANCE))
            fail_msg("row %zu, value %zu: expected %.7f, found %.7f", row, i, (double)expected[i], found);
    }
}

/* out.safetensors has the features of the photos, or of the lines. */
static void expect_features(bool images, int router)
{
    size_t rows = images ? PHOTOS : LINES;
    struct safetensors *file = workshop_tensors("out.safetensors");
    const struct safetensor *features = safetensors_find(file, "features");
    json_t *names = json_loads(safetensors_metadata_value(file, "names"), 0, NULL);
    assert_int_equal(safetensors_count(file), 1);
    assert_string_equal(safetensors_metadata_value(file, "kind"), images ? "images" : "texts");
    assert_string_equal(safetensors_metadata_value(file, "model"), "clip");
    assert_true(features != NULL && features->type == SAFETENSOR_F32 && features->rank == 2);
    assert_int_equal(features->shape[0], rows);
    assert_int_equal(features->shape[1], own.clip->dimensions.embed);
    assert_int_equal(json_array_size(names), rows);
    for (size_t i = 0; i < rows; i++) {
        float feature[WIDTH_MOST];
        char *name = images ? xstrdup(photos[i].name) : line_at(i);
        assert_string_equal(json_string_value(json_array_get(names, i)), name);
        (images ? embed_photo : embed_line)(name, router, feature);
        expect_row(features->data, i, feature);
        free(name);
    }
    json_decref(names);
    safetensors_close(file);
}

#define EMBED "embed --quiet --weights clip.safetensors "
#define IMAGES EMBED "--images photos "
#define TEXTS EMBED "--vocab vocabulary.txt --texts lines.txt "
#define ADAPTED "--adapters adapters.safetensors "

TEST(images_are_embedded_in_the_order_of_their_names)
{
    program_succeeds(IMAGES "--out out.safetensors");
    expect_features(true, OFF);
    program_succeeds(IMAGES ADAPTED "--router none --out out.safetensors");
    expect_features(true, OFF);
    program_succeeds(IMAGES ADAPTED "--router 2 --out out.safetensors");
    expect_features(true, 2);
}

TEST(texts_are_embedded_line_by_line)
{
    program_succeeds(TEXTS "--out out.safetensors");
    expect_features(false, OFF);
    program_succeeds(TEXTS ADAPTED "--router 0 --out out.safetensors");
    expect_features(false, 0);
}

TEST_GROUP(set_up, tear_down)
