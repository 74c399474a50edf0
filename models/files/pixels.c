#include "models/files/pixels.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

const struct pixel_norm pixel_norms[PIXEL_NORMS] = {
    [PIXELS_CLIP] = {"clip", {0.48145466f, 0.4578275f, 0.40821073f}, {0.26862954f, 0.26130258f, 0.27577711f}},
    [PIXELS_HALF] = {"half", {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}},
    [PIXELS_IMAGENET] = {"imagenet", {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
};

enum pixels pixels_parse(const char *name)
{
    for (enum pixels p = PIXELS_CLIP; p < PIXEL_NORMS; p++)
        if (strcmp(name, pixel_norms[p].name) == 0)
            return p;
    return PIXELS_UNSTATED;
}

static bool is_three(const json_t *array, const float *expected)
{
    bool same = json_array_size(array) == 3;
    for (size_t i = 0; same && i < 3; i++)
        same = fabs(json_number_value(json_array_get(array, i)) - (double)expected[i]) < 1e-6;
    return same;
}

/* Sections and keys, by program. */
static const struct {
    const char *section, *mean, *deviation;
} forms[] = {{"preprocess_cfg", "mean", "std"}, {"pretrained_cfg", "mean", "std"}, {NULL, "image_mean", "image_std"}};

static status read_form(enum pixels *pixels, const json_t *root, size_t form, const char *path, struct error *error)
{
    const char *section = forms[form].section;
    const json_t *object = section != NULL ? json_object_get(root, section) : root,
                 *mean = json_object_get(object, forms[form].mean),
                 *deviation = json_object_get(object, forms[form].deviation);
    enum pixels found = PIXELS_CLIP;
    if (mean == NULL && deviation == NULL)
        return OK;
    while (found < PIXEL_NORMS &&
           !(is_three(mean, pixel_norms[found].mean) && is_three(deviation, pixel_norms[found].deviation)))
        found++;
    if (found == PIXEL_NORMS)
        return error_set(
            error, ERROR_FORMAT,
            "%s: %s%s%s and %s: this program normalises images by CLIP's mean and deviation, by 0.5 and 0.5, or "
            "by ImageNet's; the weights need others",
            path, section != NULL ? section : "", section != NULL ? "." : "", forms[form].mean, forms[form].deviation);
    if (*pixels != PIXELS_UNSTATED && *pixels != found)
        return error_set(error, ERROR_FORMAT,
                         "%s: images are normalised as %s here, but as %s in another configuration beside the weights; "
                         "correct one of them",
                         path, pixel_norms[found].name, pixel_norms[*pixels].name);
    *pixels = found;
    return OK;
}

status pixels_of_json(enum pixels *pixels, const json_t *root, const char *path, struct error *error)
{
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
        TRY(read_form(pixels, root, form, path, error));
    return OK;
}

static status read_number(const json_t *root, const char *key, double *number, const char *path, struct error *error)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL || json_is_null(value))
        return OK;
    if (!json_is_number(value))
        return error_set(error, ERROR_FORMAT, "%s: %s: expected a number", path, key);
    *number = json_number_value(value);
    return OK;
}

status pixels_beside(enum pixels *pixels, const char *weights, const char *name, const char *key, double *number,
                     struct error *error)
{
    enum { LIMIT = 1 << 20 };
    char *path = path_beside(weights, name);
    struct bytes bytes = {0};
    json_error_t problem;
    json_t *root = NULL;
    status result = OK;
    if (file_exists(path)) {
        result = file_read(path, LIMIT, &bytes, error);
        const char *text = (const char *)bytes.data;
        size_t size = bytes.size;
        text_skip_mark(&text, &size);
        if (result == OK && (root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem)) == NULL)
            result = error_set(error, ERROR_FORMAT, "%s:%d: expected JSON: %s", path, problem.line, problem.text);
        NEXT(result, pixels_of_json(pixels, root, path, error));
        NEXT(result, read_number(root, key, number, path, error));
    }
    json_decref(root);
    bytes_free(&bytes);
    free(path);
    return result;
}
