/* corrupted/: each broken file ends in an error that names it, or decodes to the recorded pixels, and costs little
 * memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/digest.h"
#include "core/file.h"
#include "datasets/formats/cifar.h"
#include "datasets/formats/idx.h"
#include "datasets/formats/mat.h"
#include "datasets/formats/pickle.h"
#include "datasets/image/image.h"
#include "tests/replay/replay_data.h"

enum { KIBIBYTES_MOST = 64 * 1024 }; /* that reading one of these files may add to the largest resident size */

static bool ends_with(const char *name, const char *end)
{
    return strlen(name) >= strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

static status read_image(const char *path, char hex[65], struct error *error)
{
    struct image image;
    TRY(image_decode_file(&image, path, error));
    digest_bytes(image.pixels, (size_t)image.width * (size_t)image.height * 3, hex);
    image_free(&image);
    return OK;
}

static status read_mat(const char *path, struct error *error)
{
    struct mat *mat;
    struct mat_numbers numbers;
    TRY(mat_open(&mat, path, error));
    status result = mat_read_numbers(mat, "trnid", NULL, &numbers, error);
    mat_close(mat);
    if (result == OK)
        mat_numbers_free(&numbers);
    return result;
}

static status read_pickle(const char *path, struct error *error)
{
    struct pickle *pickle;
    TRY(pickle_open(&pickle, path, error));
    pickle_close(pickle);
    return OK;
}

static status read_records(const char *path, struct error *error)
{
    struct cifar cifar;
    TRY(cifar_read_binary(&cifar, path, 2, error));
    cifar_release(cifar.owner);
    free(cifar.labels);
    return OK;
}

static status read_idx(const char *path, struct error *error)
{
    struct idx idx;
    TRY(idx_read(&idx, path, strstr(path, "idx1") != NULL ? 1 : 3, error));
    idx_free(&idx);
    return OK;
}

/* By its name, the reader that a file is for. */
static status read_any(const char *path, char hex[65], struct error *error)
{
    if (ends_with(path, ".mat"))
        return read_mat(path, error);
    if (ends_with(path, "pickle"))
        return read_pickle(path, error);
    if (ends_with(path, ".bin"))
        return read_records(path, error);
    if (ends_with(path, "ubyte") || ends_with(path, ".gz"))
        return read_idx(path, error);
    return read_image(path, hex, error);
}

static long resident_most(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void check_file(struct part *part, const char *folder, const json_t *file)
{
    const char *name = json_string_value(json_object_get(file, "file")),
               *expect = json_string_value(json_object_get(file, "expect"));
    const char *hash = json_string_value(json_object_get(file, "rgb_sha256"));
    struct error error = {0};
    char hex[65] = "";
    char *path = path_format("%s/corrupted/%s", folder, name);
    long before = resident_most();
    status result = read_any(path, hex, &error);
    long grown = resident_most() - before;
    bool good;
    if (result == OK)
        good = strcmp(expect, "error") != 0 && (hash == NULL || strcmp(hash, hex) == 0);
    else
        good = strcmp(expect, "ok") != 0 && strstr(error.message, name) != NULL;
    part_check(part, good, "%s: expected %s, found %s %s", name, expect, result == OK ? "pixels" : "the error",
               error.message);
    part_check(part, grown < KIBIBYTES_MOST, "%s: took %ld KiB of memory", name, grown);
    free(path);
}

void part_corrupted(struct part *part, const char *folder)
{
    json_t *expected = part_json(part, folder, "corrupted/expected.json"), *files = json_object_get(expected, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        check_file(part, folder, json_array_get(files, i));
    json_decref(expected);
}
