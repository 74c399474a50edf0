#include "tests/bench/rehearsal_data.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/rng.h"
#include "datasets/dataset.h"
#include "datasets/mini/layout.h"
#include "tests/bench/photograph.h"

enum { SEED = 1, NAME = 32, MOST_CLASSES = 397, KIB = 1024 };
enum { READS = 1000 * 64 }; /* of training images, in each task of the suite */

/* Sides that are typical of the published files, and the bytes of the published archive per image in KiB. */
static const struct kind {
    const char *name;
    int width, height, bytes; /* 0: packed in one file */
    bool seeded;              /* 80% of one list are for training */
    status (*write)(struct layout *, struct error *);
} kinds[SUITE_DOMAINS] = {
    {"aircraft", 1024, 683, 275, false, layout_aircraft},
    {"caltech101", 300, 245, 14, true, layout_caltech101},
    {"cifar100", 32, 32, 0, false, NULL},
    {"dtd", 500, 450, 106, false, layout_dtd},
    {"eurosat", 64, 64, 3, true, layout_eurosat},
    {"flowers", 667, 500, 42, false, layout_flowers},
    {"food", 512, 496, 50, false, layout_food},
    {"mnist", 28, 28, 0, false, NULL},
    {"oxford_pet", 437, 391, 107, false, layout_oxford_pet},
    {"stanford_cars", 700, 483, 117, false, layout_stanford_cars},
    {"sun397", 970, 730, 360, true, layout_sun397},
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- Numbers and names --- */

static size_t scaled(const struct rehearsal_data *data, size_t images, size_t classes)
{
    size_t n = (size_t)((double)images * data->scale + 0.5);
    return n > classes ? n : classes;
}

/* The domain of the k-th dataset: its published numbers, scaled, with names [classes] that it borrows. */
static struct domain domain_of(const struct rehearsal_data *data, size_t k, const char *const *names)
{
    const struct dataset_published *p = dataset_published_find(kinds[k].name, "torchvision");
    struct domain domain = suite_domains[k];
    size_t classes = data->classes > 0 ? least(p->classes, data->classes) : p->classes,
           train = kinds[k].seeded ? p->train : least(p->train, READS);
    domain.class_names = names;
    domain.classes = (int)classes;
    domain.train = (int)scaled(data, train, classes);
    domain.test = (int)scaled(data, p->test, classes);
    if (kinds[k].seeded && domain.train < 4 * domain.test - 4)
        domain.train = 4 * domain.test - 4;
    return domain;
}

/* Words of three syllables, another one for each class of all datasets. */
static void name_class(size_t number, char name[NAME])
{
    static const char *const syllables[] = {"ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe"};
    enum { N = sizeof syllables / sizeof *syllables };
    snprintf(name, NAME, "%s%s%s", syllables[number / N / N % N], syllables[number / N % N], syllables[number % N]);
}

static void name_classes(size_t k, char names[MOST_CLASSES][NAME], const char *list[MOST_CLASSES])
{
    size_t before = 0;
    for (size_t i = 0; i < k; i++)
        before += dataset_published_find(kinds[i].name, "torchvision")->classes;
    for (size_t c = 0; c < MOST_CLASSES; c++) {
        name_class(before + c, names[c]);
        list[c] = names[c];
    }
}

/* --- Images --- */

struct enlarging {
    const struct layout *layout;
    struct photograph photograph;
    size_t bytes;
    pthread_mutex_t lock;
    struct error error;
};

static void write_job(void *context, size_t job, size_t worker)
{
    struct enlarging *e = context;
    struct error error = {0};
    uint64_t bytes = 0;
    const struct layout_picture *picture = &e->layout->pictures[job];
    status result = photograph_write(&e->photograph, picture->item, picture->path, &bytes, &error);
    pthread_mutex_lock(&e->lock);
    e->bytes += bytes;
    if (result != OK && e->error.code == OK)
        e->error = error;
    pthread_mutex_unlock(&e->lock);
}

static status write_pictures(struct rehearsal_data *data, const struct layout *layout, size_t k, struct error *error)
{
    struct enlarging e = {.layout = layout,
                          .photograph = {&suite_domains[k], kinds[k].width, kinds[k].height, 0},
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct layout_picture *first = layout->pictures;
    TRY(photograph_choose_grain(&e.photograph, first->item, first->path, (uint64_t)kinds[k].bytes * KIB, error));
    threads_run(data->threads, layout->count, write_job, &e);
    data->bytes += e.bytes;
    return e.error.code == OK ? OK : error_set(error, e.error.code, "%s", e.error.message);
}

/* --- Datasets in one file --- */

/* Bright up to a share that the label says, on noise. */
static void draw_values(size_t item, int label, size_t n, char *values)
{
    struct rng rng = rng_make(SEED, RNG_DRAWING, 0, (uint32_t)item);
    for (size_t i = 0; i < n; i++)
        values[i] = (char)(rng_below(&rng, i, 100) + (100 * i < (size_t)label * n ? 150 : 0));
}

static status write_cifar100(struct rehearsal_data *data, struct layout *layout, struct error *error)
{
    enum { RECORD = 2 + 3 * 32 * 32 };
    TRY(layout_folder(layout, error, "cifar-100-binary"));
    TRY(layout_class_names(layout, "cifar-100-binary/fine_label_names.txt", error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        struct text file = {0};
        for (size_t i = first; i < first + count; i++) {
            char record[RECORD] = {0, (char)layout_label(layout, i)};
            draw_values(i, record[1], RECORD - 2, record + 2);
            text_add_bytes(&file, record, RECORD);
        }
        data->bytes += file.size;
        TRY(layout_text(layout, test ? "cifar-100-binary/test.bin" : "cifar-100-binary/train.bin", &file, error));
    }
    return OK;
}

static void add_sizes(struct text *idx, int rank, const uint32_t *sizes)
{
    const char magic[] = {0, 0, 8, (char)rank};
    text_add_bytes(idx, magic, sizeof magic);
    for (int i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            text_add_bytes(idx, &(char){(char)(sizes[i] >> shift)}, 1);
}

static status write_mnist(struct rehearsal_data *data, struct layout *layout, struct error *error)
{
    enum { SIDE = 28 };
    static const char *const files[SUITE_SPLITS][2] = {
        {"MNIST/raw/train-images-idx3-ubyte", "MNIST/raw/train-labels-idx1-ubyte"},
        {"MNIST/raw/t10k-images-idx3-ubyte", "MNIST/raw/t10k-labels-idx1-ubyte"}};
    TRY(layout_folder(layout, error, "MNIST/raw"));
    TRY(layout_class_names(layout, "MNIST/classnames.txt", error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        struct text images = {0}, labels = {0};
        add_sizes(&images, 3, (uint32_t[]){(uint32_t)count, SIDE, SIDE});
        add_sizes(&labels, 1, (uint32_t[]){(uint32_t)count});
        for (size_t i = first; i < first + count; i++) {
            char pixels[SIDE * SIDE], label = (char)layout_label(layout, i);
            draw_values(i, label, sizeof pixels, pixels);
            text_add_bytes(&images, pixels, sizeof pixels);
            text_add_bytes(&labels, &label, 1);
        }
        data->bytes += images.size;
        TRY(layout_text(layout, files[test][0], &images, error));
        TRY(layout_text(layout, files[test][1], &labels, error));
    }
    return OK;
}

/* --- All of it --- */

static status write_dataset(struct rehearsal_data *data, size_t k, struct error *error)
{
    static const struct mini_settings settings = {.seed = SEED};
    char names[MOST_CLASSES][NAME];
    const char *list[MOST_CLASSES];
    name_classes(k, names, list);
    struct domain domain = domain_of(data, k, list);
    struct layout layout = {.domain = &domain, .settings = &settings, .root = data->root};
    status result = strcmp(kinds[k].name, "mnist") == 0      ? write_mnist(data, &layout, error)
                    : strcmp(kinds[k].name, "cifar100") == 0 ? write_cifar100(data, &layout, error)
                                                             : kinds[k].write(&layout, error);
    if (result == OK && layout.count > 0)
        result = write_pictures(data, &layout, k, error);
    layout_free(&layout);
    data->train += (size_t)domain.train;
    data->test += (size_t)domain.test;
    return result;
}

status rehearsal_data_write(struct rehearsal_data *data, struct error *error)
{
    data->train = data->test = data->bytes = 0;
    TRY(directory_create(data->root, error));
    for (size_t k = 0; k < SUITE_DOMAINS; k++)
        TRY(write_dataset(data, k, error));
    return OK;
}
