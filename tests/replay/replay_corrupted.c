/* corrupted/: each broken file ends in an error that names it, or decodes to the recorded pixels, and costs little
 * memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/digest.h"
#include "core/file.h"
#include "datasets/formats/mat.h"
#include "datasets/image/image.h"
#include "datasets/readers/cifar.h"
#include "datasets/readers/mnist.h"
#include "tests/replay/replay_data.h"

/* That reading one of these files may add to the largest resident size, besides four times its pixels. */
enum { KIBIBYTES_MOST = 64 * 1024 };

/* What came of a file. */
struct reading {
    char hex[DIGEST_SIZE]; /* of an image */
    long pixel_kibibytes;
};

static status read_image(const char *path, struct reading *reading, struct error *error)
{
    struct image image;
    TRY(image_decode_file(&image, path, error));
    size_t size = (size_t)image.width * (size_t)image.height * 3;
    digest_bytes(image.pixels, size, reading->hex);
    reading->pixel_kibibytes = (long)(size / 1024);
    image_free(&image);
    return OK;
}

static status read_mat(const char *path, struct error *error)
{
    struct mat_numbers numbers;
    TRY(mat_read_numbers(path, "trnid", NULL, &numbers, error));
    mat_numbers_free(&numbers);
    return OK;
}

static status read_cifar(const char *path, struct error *error)
{
    struct cifar cifar;
    TRY(ends_with(path, ".bin") ? cifar_read_binary(&cifar, path, 2, error)
                                : cifar_read_pickle(&cifar, path, "fine_labels", error));
    cifar_release(cifar.owner);
    free(cifar.labels);
    return OK;
}

static status read_idx(const char *path, struct error *error)
{
    struct idx idx;
    TRY(mnist_read_idx(&idx, path, strstr(path, "idx1") != NULL ? 1 : 3, error));
    mnist_free_idx(&idx);
    return OK;
}

/* By its name, the reader that a file is for. */
static status read_any(const char *path, struct reading *reading, struct error *error)
{
    if (ends_with(path, ".mat"))
        return read_mat(path, error);
    if (ends_with(path, "pickle") || ends_with(path, ".bin"))
        return read_cifar(path, error);
    if (ends_with(path, "ubyte") || ends_with(path, ".gz"))
        return read_idx(path, error);
    return read_image(path, reading, error);
}

static long resident_most(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static bool is_pixels(const json_t *file, const struct reading *reading)
{
    const char *hash = pyjson_text(file, "rgb_sha256");
    return *hash == 0 || recorded_difference(file) > 0 || strcmp(hash, reading->hex) == 0;
}

static void check_file(struct report *report, const char *folder, const json_t *file)
{
    const char *name = pyjson_text(file, "file"), *expect = pyjson_text(file, "expect");
    struct error error = {0};
    struct reading reading = {0};
    bool may_fail = strcmp(expect, "error") == 0, may_succeed = strcmp(expect, "ok") == 0;
    if (strcmp(expect, "either") == 0)
        may_fail = may_succeed = true;
    if (*name == 0 || (!may_fail && !may_succeed)) {
        skip_item("corrupted", "\"%s\": expect is \"%s\", known are error, ok and either", name, expect);
        return;
    }
    char *path = path_format("%s/corrupted/%s", folder, name);
    long before = resident_most();
    status result = read_any(path, &reading, &error);
    long grown = resident_most() - before;
    bool good =
        result == OK ? may_succeed && is_pixels(file, &reading) : may_fail && strstr(error.message, name) != NULL;
    report_exact(report, "corrupted", good, "%s: expected %s, found %s %s", name, expect,
                 result == OK ? "pixels" : "the error", error.message);
    report_exact(report, "corrupted", grown < KIBIBYTES_MOST + 4 * reading.pixel_kibibytes,
                 "%s: took %ld KiB of memory", name, grown);
    free(path);
}

void part_corrupted(struct report *report, const char *folder)
{
    json_t *expected = part_json(report, "corrupted", folder, "corrupted/expected.json"),
           *files = json_object_get(expected, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        check_file(report, folder, json_array_get(files, i));
    json_decref(expected);
}
