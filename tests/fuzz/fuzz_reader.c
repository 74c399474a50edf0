/* The lists of a dataset, of those that have any as text or MATLAB files, in a folder without images but one: the first
 * byte says which dataset, the rest is its files in the order below, each ended by SEPARATOR. What opens has a class for
 * every label and no item outside of its folder. */
#include "tests/fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "datasets/dataset.h"

#define SEPARATOR "\n==\n"

enum { FILES = 6 };

static const struct subject {
    const char *reader, *folder;
    const char *image; /* so that some list can name one that is there */
    const char *files[FILES];
} subjects[] = {
    {"aircraft",
     "fgvc-aircraft-2013b",
     "data/images/1.jpg",
     {"data/variants.txt", "data/images_variant_train.txt", "data/images_variant_test.txt", "classnames.txt",
      "templates.txt"}},
    {"dtd",
     "dtd",
     "dtd/images/a/1.jpg",
     {"dtd/labels/train1.txt", "dtd/labels/test1.txt", "classnames.txt", "templates.txt"}},
    {"flowers", "flowers-102", "jpg/image_00001.jpg", {"imagelabels.mat", "setid.mat", "classnames.txt"}},
    {"food", "food-101", "images/a/1.jpg", {"meta/train.json", "meta/test.json", "classnames.txt"}},
    {"oxford_pet", "oxford-iiit-pet", "images/a_1.jpg", {"annotations/trainval.txt", "annotations/test.txt"}},
    {"stanford_cars",
     "stanford_cars",
     "cars_train/1.jpg",
     {"devkit/cars_meta.mat", "devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"}},
    {"sun397", "SUN397", "a/b/sun_1.jpg", {"ClassName.txt", "classnames.txt"}},
    {"tiny_imagenet",
     "tiny-imagenet-200",
     "train/n1/images/1.JPEG",
     {"wnids.txt", "words.txt", "val/val_annotations.txt"}},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static char root[] = "/tmp/mtil-fuzz-XXXXXX";

static void remove_root(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        abort();
}

/* Plain stdio: no test's file needs to survive a power cut. */
static void write_file(const struct subject *subject, const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/%s", root, subject->folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static void make_folder(const struct subject *subject, const char *name)
{
    char path[256];
    struct error error;
    snprintf(path, sizeof path, "%s/%s/%s", root, subject->folder, name);
    *strrchr(path, '/') = 0;
    if (directory_create(path, &error) != OK)
        abort();
}

static void make_root(void)
{
    if (mkdtemp(root) == NULL || atexit(remove_root) != 0)
        abort();
    for (size_t i = 0; i < SUBJECTS; i++) {
        make_folder(&subjects[i], subjects[i].image);
        write_file(&subjects[i], subjects[i].image, (const uint8_t *)"", 0);
        for (size_t f = 0; f < FILES && subjects[i].files[f] != NULL; f++)
            make_folder(&subjects[i], subjects[i].files[f]);
    }
}

static void write_lists(const struct subject *subject, const uint8_t *data, size_t size)
{
    for (size_t f = 0; f < FILES && subject->files[f] != NULL; f++) {
        char path[256];
        const uint8_t *end = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
        snprintf(path, sizeof path, "%s/%s/%s", root, subject->folder, subject->files[f]);
        if (end == NULL) {
            unlink(path);
            continue;
        }
        write_file(subject, subject->files[f], data, (size_t)(end - data));
        size -= (size_t)(end - data) + strlen(SEPARATOR);
        data = end + strlen(SEPARATOR);
    }
}

static int climbs(const char *name)
{
    return strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL || name[0] == '/';
}

static int check(const struct dataset *dataset)
{
    int failed = dataset_templates(dataset) == 0;
    for (int split = 0; split < SPLITS; split++) {
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++) {
            char *name = dataset_item_name(dataset, (enum split)split, i);
            int label = dataset_label(dataset, (enum split)split, i);
            failed |= label < 0 || (size_t)label >= dataset_classes(dataset) || name == NULL || climbs(name);
            free(name);
        }
    }
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct dataset *dataset;
    struct options *options;
    const struct dataset_reader *reader;
    struct error error;
    int failed = 0;
    if (size == 0)
        return 0;
    if (access(root, F_OK) != 0)
        make_root();
    const struct subject *subject = &subjects[data[0] % SUBJECTS];
    write_lists(subject, data + 1, size - 1);
    if (dataset_reader_find(&reader, subject->reader, &error) != OK ||
        options_create(&options, reader->options, &error) != OK)
        abort();
    if (options_find(reader->options, "on_missing") != NULL &&
        options_set(options, "on_missing", "skip", "fuzz", &error) != OK)
        abort();
    if (dataset_open(&dataset, subject->reader, root, options, NULL, &error) == OK) {
        failed = check(dataset);
        dataset_close(dataset);
    }
    options_destroy(options);
    return failed;
}
