/* preprocess/: decoded pixels by their hash, and the two transforms by their bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "models/files/safetensors.h"
#include "tests/normalize.h"
#include "tests/replay/replay_data.h"

static const char *base_name(const json_t *file)
{
    const char *path = pyjson_text(file, "file"), *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int largest_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
    int largest = 0;
    for (size_t i = 0; i < count; i++)
        if (abs(a[i] - b[i]) > largest)
            largest = abs(a[i] - b[i]);
    return largest;
}

/* Compares pixels [height, width, 3] with a tensor. */
static void compare(struct report *report, const struct safetensor *expected, const uint8_t *pixels, size_t count,
                    int tolerance)
{
    bool shape = expected->type == SAFETENSOR_U8 && safetensor_elements(expected) == count;
    int difference = shape ? largest_difference(pixels, expected->data, count) : -1;
    report_exact(report, "preprocess", shape && difference <= tolerance, "%s: off by up to %d", expected->name,
                 difference);
}

/* The same floats, or within what the tolerance of the pixels allows. */
static void compare_normalized(struct report *report, const struct safetensor *expected, const uint8_t *pixels,
                               size_t side, int tolerance)
{
    static const float level = 1 / 255.0F / 0.26130258F; /* of one step of a pixel, at most */
    size_t count = side * side * 3;
    float *planes = xmalloc(count * sizeof *planes), *values = xmalloc(count * sizeof *values);
    struct error error;
    normalize(pixels, (int)side, planes);
    bool same = expected->type == SAFETENSOR_F32 && safetensor_elements(expected) == count &&
                safetensor_to_floats(expected, values, &error) == OK;
    if (same && tolerance == 0)
        same = memcmp(planes, values, count * sizeof *planes) == 0;
    for (size_t i = 0; same && tolerance > 0 && i < count; i++)
        same = fabsf(planes[i] - values[i]) <= level * (float)(tolerance + 1);
    report_exact(report, "preprocess", same, "%s: not the same floats", expected->name);
    free(planes);
    free(values);
}

/* --- tensors by name: "rgb.<file>", "eval<R>.<file>", "norm<R>.<file>", "train<R>.<file>.<k>" --------------------- */

struct key {
    char kind[8];
    int resolution; /* 0: none */
    int k;          /* -1: none */
};

/* Whether name belongs to the file called base, taken apart then. */
static bool read_key(struct key *key, const char *name, const char *base)
{
    size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyz");
    char *end;
    if (letters == 0 || letters >= sizeof key->kind)
        return false;
    *key = (struct key){.k = -1};
    memcpy(key->kind, name, letters);
    key->resolution = (int)strtol(name + letters, &end, 10);
    if (*end != '.' || strncmp(end + 1, base, strlen(base)) != 0)
        return false;
    const char *rest = end + 1 + strlen(base);
    bool crop = strcmp(key->kind, "train") == 0 && *rest == '.';
    if (crop) {
        key->k = (int)strtol(rest + 1, &end, 10);
        rest = end;
    }
    return *rest == 0;
}

/* The crop's box: entry k of the list "train<R>". */
static const json_t *find_box(const json_t *file, const struct key *key)
{
    char name[32];
    snprintf(name, sizeof name, "train%d", key->resolution);
    const json_t *boxes = json_object_get(file, name);
    for (size_t i = 0; i < json_array_size(boxes); i++)
        if (pyjson_integer(json_array_get(boxes, i), "k") == key->k)
            return json_array_get(boxes, i);
    return NULL;
}

static status crop(const json_t *file, const struct key *key, const struct image *image, uint8_t *pixels,
                   struct error *error)
{
    if (strcmp(key->kind, "train") != 0)
        return image_evaluation_crop(image, key->resolution, pixels, error);
    const json_t *box = find_box(file, key);
    if (box == NULL)
        return error_set(error, ERROR_FORMAT, "the manifest has no box of this crop");
    struct image_box area = {(int)pyjson_integer(box, "left"), (int)pyjson_integer(box, "top"),
                             (int)pyjson_integer(box, "width"), (int)pyjson_integer(box, "height")};
    image_training_crop(image, area, key->resolution, pixels);
    return OK;
}

/* Where libjpeg-turbo's versions differ, the recorded difference is the tolerance; resampling can carry it up to
 * twice as far. */
static void check_tensor(struct report *report, const struct safetensor *expected, const struct key *key,
                         const json_t *file, const struct image *image)
{
    int tolerance = recorded_difference(file);
    struct error error;
    if (strcmp(key->kind, "rgb") == 0) {
        compare(report, expected, image->pixels, (size_t)image->width * (size_t)image->height * 3, tolerance);
        return;
    }
    bool normalized = strcmp(key->kind, "norm") == 0;
    size_t side = (size_t)key->resolution;
    if (!normalized && strcmp(key->kind, "eval") != 0 && strcmp(key->kind, "train") != 0) {
        skip_item("preprocess", "%s: what this should be is not known", expected->name);
        return;
    }
    uint8_t *pixels = xmalloc(side * side * 3);
    if (crop(file, key, image, pixels, &error) != OK)
        report_exact(report, "preprocess", false, "%s: %s", expected->name, error.message);
    else if (normalized)
        compare_normalized(report, expected, pixels, side, 2 * tolerance);
    else
        compare(report, expected, pixels, side * side * 3, 2 * tolerance);
    free(pixels);
}

static void check_decoded(struct report *report, const json_t *file, const struct image *image)
{
    char hex[DIGEST_SIZE];
    bool size = image_fits(image, file, hex), same = strcmp(hex, pyjson_text(file, "rgb_sha256")) == 0;
    report_exact(report, "decode", size && (same || recorded_difference(file) > 0), "%s: other pixels",
                 base_name(file));
    if (size && !same && recorded_difference(file) > 0)
        printf("  decode: %s differs as recorded for another libjpeg-turbo; its transforms are compared within %d\n",
               base_name(file), 2 * recorded_difference(file));
}

/* A file, and the tensors that belong to it. */
static void check_file(struct report *report, const char *folder, const json_t *file, const struct safetensors *tensors,
                       bool *used)
{
    struct image image;
    struct error error;
    char *path = path_format("%s/preprocess/%s", folder, pyjson_text(file, "file"));
    if (image_decode_file(&image, path, &error) == OK)
        check_decoded(report, file, &image);
    else
        report_exact(report, "decode", false, "%s", error.message);
    for (size_t i = 0; tensors != NULL && i < safetensors_count(tensors); i++) {
        struct key key;
        const struct safetensor *tensor = safetensors_at(tensors, i);
        if (!read_key(&key, tensor->name, base_name(file)))
            continue;
        used[i] = true;
        if (image.pixels != NULL)
            check_tensor(report, tensor, &key, file, &image);
    }
    image_free(&image);
    free(path);
}

/* tensors: NULL: there are none */
static void check_files(struct report *report, const char *folder, const json_t *files,
                        const struct safetensors *tensors)
{
    static const char other_pillow[] = "newer_pillow."; /* what its later versions do is not expected here */
    size_t count = tensors != NULL ? safetensors_count(tensors) : 0;
    bool *used = xcalloc(count + 1, sizeof *used);
    for (size_t i = 0; i < json_array_size(files); i++)
        check_file(report, folder, json_array_get(files, i), tensors, used);
    for (size_t i = 0; i < count; i++) {
        const char *name = safetensors_at(tensors, i)->name;
        if (!used[i] && strncmp(name, other_pillow, sizeof other_pillow - 1) != 0)
            skip_item("preprocess", "%s: belongs to no file of the manifest", name);
    }
    free(used);
}

void part_images(struct report *report, const char *folder)
{
    struct safetensors *tensors = NULL;
    json_t *manifest = part_json(report, "preprocess", folder, "preprocess/manifest.json");
    char *path = path_format("%s/preprocess/preprocess.safetensors", folder);
    if (manifest != NULL && file_exists(path))
        must(safetensors_open(&tensors, path, WEIGHTS_WHOLE, &error));
    check_files(report, folder, json_object_get(manifest, "files"), tensors);
    safetensors_close(tensors);
    free(path);
    json_decref(manifest);
}
