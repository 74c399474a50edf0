/* preprocess/: decoded pixels by their hash, and the two transforms by their bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/file.h"
#include "datasets/image/image.h"
#include "models/safetensors.h"
#include "tests/replay/replay_data.h"

/* Where libjpeg-turbo's versions differ, the recorded difference is the tolerance; resampling can carry it up to
 * twice as far. */
static int recorded_difference(const json_t *file)
{
    return (int)json_integer_value(json_array_get(json_object_get(file, "system_jpeg_diff"), 0));
}

static const char *base_name(const json_t *file)
{
    const char *path = json_string_value(json_object_get(file, "file")), *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static status open_image(struct image *image, const char *folder, const json_t *file, struct error *error)
{
    char *path = path_format("%s/preprocess/%s", folder, json_string_value(json_object_get(file, "file")));
    status result = image_decode_file(image, path, error);
    free(path);
    return result;
}

static void check_decoded(struct part *part, const char *folder, const json_t *file)
{
    struct image image;
    struct error error = {0};
    char hex[65] = "";
    const char *expected = json_string_value(json_object_get(file, "rgb_sha256"));
    bool read = open_image(&image, folder, file, &error) == OK;
    if (read)
        digest_bytes(image.pixels, (size_t)image.width * (size_t)image.height * 3, hex);
    bool size = read && image.width == json_integer_value(json_object_get(file, "w")) &&
                image.height == json_integer_value(json_object_get(file, "h"));
    bool same = expected != NULL && strcmp(hex, expected) == 0;
    part_check(part, size && (same || recorded_difference(file) > 0), "%s: other pixels %s", base_name(file),
               error.message);
    if (size && !same && recorded_difference(file) > 0)
        printf("  decode: %s differs as recorded for another libjpeg-turbo; its transforms are compared within %d\n",
               base_name(file), 2 * recorded_difference(file));
    image_free(&image);
}

void part_decode(struct part *part, const char *folder)
{
    json_t *manifest = part_json(part, folder, "preprocess/manifest.json"), *files = json_object_get(manifest, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        check_decoded(part, folder, json_array_get(files, i));
    json_decref(manifest);
}

static int largest_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
    int largest = 0;
    for (size_t i = 0; i < count; i++)
        if (abs(a[i] - b[i]) > largest)
            largest = abs(a[i] - b[i]);
    return largest;
}

/* Compares pixels [R, R, 3] with the tensor of that name; a tensor that is absent is nothing to compare with. */
static void compare(struct part *part, const struct safetensors *tensors, const char *key, const uint8_t *pixels,
                    size_t side, int tolerance)
{
    const struct safetensor *expected = safetensors_find(tensors, key);
    if (expected == NULL)
        return;
    bool shape = expected->type == SAFETENSOR_U8 && safetensor_elements(expected) == side * side * 3;
    int difference = shape ? largest_difference(pixels, expected->data, side * side * 3) : -1;
    part_check(part, shape && difference <= tolerance, "%s: off by up to %d", key, difference);
}

static void check_normalized(struct part *part, const struct safetensors *tensors, const char *key,
                             const uint8_t *pixels, size_t side)
{
    const struct safetensor *expected = safetensors_find(tensors, key);
    if (expected == NULL)
        return;
    float *planes = malloc(side * side * 3 * sizeof *planes);
    image_normalize(pixels, (int)side, planes);
    bool same = expected->type == SAFETENSOR_F32 && safetensor_elements(expected) == side * side * 3 &&
                memcmp(planes, expected->data, side * side * 3 * sizeof *planes) == 0;
    part_check(part, same, "%s: not the same floats", key);
    free(planes);
}

static void check_transforms(struct part *part, const struct safetensors *tensors, const json_t *file,
                             const struct image *image)
{
    static const int resolutions[] = {224, 64};
    static uint8_t pixels[224 * 224 * 3];
    struct error error = {0};
    char key[256];
    int tolerance = 2 * recorded_difference(file);
    for (size_t i = 0; i < 2; i++) {
        if (image_evaluation_crop(image, resolutions[i], pixels, &error) != OK)
            part_check(part, false, "%s: %s", base_name(file), error.message);
        snprintf(key, sizeof key, "eval%d.%s", resolutions[i], base_name(file));
        compare(part, tensors, key, pixels, (size_t)resolutions[i], tolerance);
        snprintf(key, sizeof key, "norm%d.%s", resolutions[i], base_name(file));
        check_normalized(part, tensors, key, pixels, (size_t)resolutions[i]);
    }
    const json_t *boxes = json_object_get(file, "train224");
    for (size_t i = 0; i < json_array_size(boxes); i++) {
        const json_t *box = json_array_get(boxes, i);
        struct image_box crop = {(int)json_integer_value(json_object_get(box, "left")),
                                 (int)json_integer_value(json_object_get(box, "top")),
                                 (int)json_integer_value(json_object_get(box, "width")),
                                 (int)json_integer_value(json_object_get(box, "height"))};
        if (image_training_crop(image, crop, 224, pixels, &error) != OK)
            part_check(part, false, "%s: %s", base_name(file), error.message);
        snprintf(key, sizeof key, "train224.%s.%lld", base_name(file),
                 (long long)json_integer_value(json_object_get(box, "k")));
        compare(part, tensors, key, pixels, 224, tolerance);
    }
}

void part_preprocess(struct part *part, const char *folder)
{
    struct safetensors *tensors = NULL;
    struct error error = {0};
    json_t *manifest = part_json(part, folder, "preprocess/manifest.json"), *files = json_object_get(manifest, "files");
    char *path = path_format("%s/preprocess/preprocess.safetensors", folder);
    if (manifest != NULL && safetensors_open(&tensors, path, &error) != OK)
        part_check(part, false, "%s", error.message);
    for (size_t i = 0; tensors != NULL && i < json_array_size(files); i++) {
        struct image image;
        const json_t *file = json_array_get(files, i);
        bool read = open_image(&image, folder, file, &error) == OK;
        if (read)
            check_transforms(part, tensors, file, &image);
        else
            part_check(part, false, "%s", error.message);
        image_free(&image);
    }
    safetensors_close(tensors);
    free(path);
    json_decref(manifest);
}
