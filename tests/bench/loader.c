/* Images per second that one thread decodes and crops, of 500 × 375 JPEGs at resolution 224.
 *
 *     build/tests/loader [seconds per figure]
 *     MTIL_PYTHON=venv/bin/python build/tests/loader        # a Python with Pillow: its figures from the same run
 *
 * Pillow is what torchvision's transforms call; they add to its time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "core/file.h"
#include "datasets/loader.h"
#include "tests/bench/bench.h"
#include "tests/bench/photograph.h"
#include "tests/datasets/scratch.h"

enum { WIDTH = 500, HEIGHT = 375, FILE_BYTES = 85000 }; /* of a photograph */
enum { SEED = 1, IMAGES = 24, R = 224, CROP = R * R * 3, TRANSFORMS = 3, KINDS = 3 };

static const char *const transforms[TRANSFORMS] = {"decode", "evaluation", "training"};

enum { AUGMENTATIONS = 5 };

static const struct {
    const char *name;
    struct augmentation augmentation;
} augmentations[AUGMENTATIONS] = {
    {"randaugment", {.operations = 2, .magnitude = 9}},
    {"random_erasing", {.erasing = 1}},
    {"mixup", {.mixup = 1}},
    {"cutmix", {.cutmix = 1}},
    {"all",
     {.operations = 2, .magnitude = 9, .erasing = 0.25, .erasing_fill = ERASING_FILL_MEAN, .mixup = 0.8, .cutmix = 1}}};

struct rates {
    struct scratch scratch;
    struct dataset *dataset;
    uint64_t bytes; /* of the first file */
    double seconds;
    double pillow[TRANSFORMS], cached[KINDS][TRANSFORMS], augmented[AUGMENTATIONS];
    unsigned long checksums[TRANSFORMS], pillow_checksums[TRANSFORMS]; /* of all crops; none of decode */
    uint8_t pixels[IMAGES * CROP];
};

/* --- Files --- */

/* The same pictures to train and to test on. */
static void write_dataset(struct rates *b)
{
    char *folder = path_format("%s/train/a", b->scratch.path), *test = path_format("%s/test", b->scratch.path);
    must(directory_create(folder, &error));
    struct photograph photograph = {.drawn = &suite_domains[0], .width = WIDTH, .height = HEIGHT};
    for (size_t i = 0; i < IMAGES; i++) {
        char *path = path_format("%s/%02zu.jpg", folder, i);
        uint64_t bytes;
        if (i == 0)
            must(photograph_choose_grain(&photograph, i, path, FILE_BYTES, &error));
        must(photograph_write(&photograph, i, path, i == 0 ? &b->bytes : &bytes, &error));
        free(path);
    }
    if (symlink("train", test) != 0)
        must(error_set(&error, ERROR_IO, "%s: cannot be made", test));
    must(dataset_open(&b->dataset, "folder", b->scratch.path, NULL, NULL, &error));
    free(folder);
    free(test);
}

/* The crops of the loader's first epoch, for Pillow. */
static void write_boxes(const struct rates *b)
{
    struct text boxes = {0};
    struct rng rng = rng_make(SEED, RNG_CROP, 0, 0);
    for (size_t i = 0; i < IMAGES; i++) {
        struct image_box box = image_draw_box(WIDTH, HEIGHT, IMAGE_CROP_SCALE, &rng, i);
        char *name = dataset_item_name(b->dataset, SPLIT_TRAIN, i);
        text_add(&boxes, "%s/%s %d %d %d %d\n", b->scratch.path, name, box.left, box.top, box.width, box.height);
        free(name);
    }
    scratch_write_text(&b->scratch, "boxes.txt", boxes.data);
    text_free(&boxes);
}

/* --- Measuring --- */

static double decoding_rate(struct rates *b)
{
    double best = 0;
    for (double end = clock_seconds() + b->seconds; clock_seconds() < end;) {
        double start = clock_seconds();
        for (size_t i = 0; i < IMAGES; i++) {
            struct image image;
            must(dataset_read(b->dataset, SPLIT_TEST, i, &image, NULL, &error));
            image_free(&image);
        }
        best = fmax(best, IMAGES / (clock_seconds() - start));
    }
    return best;
}

/* Of evaluation (1) or training (2), whose crops have the same bytes from a cache; augmentation: NULL for none. */
static double loader_rate(struct rates *b, int transform, enum cache_kind kind, const struct augmentation *augmentation)
{
    enum { LIMIT = 1 << 30 };
    char *folder = path_format("%s/cache", b->scratch.path);
    struct cache_settings caching = {
        .kind = kind, .folder = folder, .memory_limit = LIMIT, .disk_limit = LIMIT, .threads = 1};
    struct loader_settings settings = {.dataset = b->dataset,
                                       .split = transform == 2 ? SPLIT_TRAIN : SPLIT_TEST,
                                       .resolution = R,
                                       .batch = IMAGES,
                                       .augment = transform == 2,
                                       .seed = SEED};
    struct loader *loader;
    double best = 0;
    uint64_t step = 0;
    must(cache_create(&settings.cache, &caching, &error));
    if (augmentation != NULL)
        settings.augmentation = *augmentation;
    must(loader_create(&loader, &settings, &error));
    for (double end = clock_seconds() + b->seconds; clock_seconds() < end || step < 2; step++) {
        size_t count;
        double start = clock_seconds();
        int32_t labels[IMAGES];
        must(loader_read(loader, step, b->pixels, labels, NULL, NULL, &count, &error));
        best = fmax(best, (double)count / (clock_seconds() - start));
        unsigned long checksum = step == 0 ? adler32(1, b->pixels, sizeof b->pixels) : 0;
        if (step == 0 && kind == CACHE_NONE)
            b->checksums[transform] = checksum;
        else if (step == 0 && augmentation == NULL && checksum != b->checksums[transform])
            must(error_set(&error, ERROR_FORMAT, "%s: the cache gives other bytes", transforms[transform]));
    }
    loader_destroy(loader);
    cache_destroy(settings.cache);
    free(folder);
    return best;
}

static void measure(struct rates *b)
{
    for (int kind = CACHE_NONE; kind < KINDS; kind++)
        for (int k = 1; k < TRANSFORMS; k++)
            b->cached[kind][k] = loader_rate(b, k, (enum cache_kind)kind, NULL);
    b->cached[CACHE_NONE][0] = decoding_rate(b);
    for (int k = 0; k < AUGMENTATIONS; k++) /* where augmentation is the largest part */
        b->augmented[k] = loader_rate(b, 2, CACHE_MEMORY, &augmentations[k].augmentation);
}

/* false: there is no Python with Pillow. */
static bool measure_pillow(struct rates *b)
{
    const char *given = getenv("MTIL_PYTHON"), *python = given != NULL ? given : "python3";
    char *command = path_format("'%s' '%s' '%s' %d %g 2>%s", python, BENCH_FOLDER "/pillow.py", b->scratch.path, R,
                                b->seconds, given != NULL ? "&2" : "/dev/null");
    FILE *pipe = popen(command, "re");
    char line[256];
    bool found = pipe != NULL && fgets(line, sizeof line, pipe) != NULL &&
                 sscanf(line, "%lf %lf %lf %lu %lu", &b->pillow[0], &b->pillow[1], &b->pillow[2],
                        &b->pillow_checksums[1], &b->pillow_checksums[2]) == TRANSFORMS + 2;
    if (pipe != NULL)
        pclose(pipe);
    free(command);
    return found;
}

/* --- Telling --- */

static void report(const struct rates *b, bool pillow)
{
    printf("one thread, %d JPEGs of %dx%d (the first: %.0f kB), resolution %d, images/s\n", IMAGES, WIDTH, HEIGHT,
           (double)b->bytes / 1e3, R);
    printf("  %-12s %8s %8s %6s  same bytes\n", "", "mtil", "Pillow", "ratio");
    for (int k = 0; k < TRANSFORMS; k++) {
        const char *same = k == 0 ? "-" : b->checksums[k] == b->pillow_checksums[k] ? "yes" : "NO";
        printf("  %-12s %8.0f ", transforms[k], b->cached[CACHE_NONE][k]);
        if (pillow)
            printf("%8.0f %6.2f  %s\n", b->pillow[k], b->cached[CACHE_NONE][k] / b->pillow[k], same);
        else
            printf("%8s %6s  -\n", "-", "-");
    }
    printf("  from the cache, in memory: evaluation %.0f, training %.0f; read from a file: %.0f, %.0f\n",
           b->cached[CACHE_MEMORY][1], b->cached[CACHE_MEMORY][2], b->cached[CACHE_DISK][1], b->cached[CACHE_DISK][2]);
    printf("  augmented, from the cache in memory:");
    for (int k = 0; k < AUGMENTATIONS; k++)
        printf(" %s %.0f%s", augmentations[k].name, b->augmented[k], k + 1 < AUGMENTATIONS ? "," : "\n");
    if (!pillow)
        printf("MTIL_PYTHON names a Python with Pillow to compare with\n");
}

int main(int argc, char **argv)
{
    static struct rates b;
    b.seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    if (argc > 2 || !(b.seconds > 0)) {
        fprintf(stderr, "usage: loader [seconds per figure]\n");
        return 2;
    }
    scratch_create(&b.scratch);
    write_dataset(&b);
    write_boxes(&b);
    measure(&b);
    report(&b, measure_pillow(&b));
    dataset_close(b.dataset);
    scratch_remove(&b.scratch);
    return 0;
}
