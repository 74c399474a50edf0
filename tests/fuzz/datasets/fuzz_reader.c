/* The lists of a dataset, of those that have any, in a folder without images but one: the first byte says which dataset,
 * the rest is its files in the order below (input.h). What opens has a class for every label and no item outside
 * of its folder. */
#include "tests/fuzz/target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/dataset.h"
#include "tests/fuzz/input.h"

enum { FILES = 6 };

static const struct subject {
    const char *reader, *folder;
    const char *image; /* so that some list can name one that is there; NULL: images are in the files */
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
    {"mnist",
     "MNIST",
     NULL,
     {"raw/train-images-idx3-ubyte", "raw/train-labels-idx1-ubyte", "raw/t10k-images-idx3-ubyte",
      "raw/t10k-labels-idx1-ubyte", "classnames.txt"}},
    {"caltech101", "caltech101", "101_ObjectCategories/a/image_0001.jpg", {"classnames.txt", "templates.txt"}},
    {"eurosat", "eurosat", "2750/a/1.jpg", {"classnames.txt", "templates.txt"}},
    {"folder", "plain", "a/1.jpg", {"classnames.txt", "templates.txt"}},
    {"dtd", "dtd", "dtd/images/a/1.jpg", {"split_zhou_DescribableTextures.json", "classnames.txt", "templates.txt"}},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* Once: only the lists are written anew. */
static void make_images(void)
{
    char path[256];
    for (size_t i = 0; i < SUBJECTS; i++)
        if (subjects[i].image != NULL) {
            snprintf(path, sizeof path, "%s/%s", subjects[i].folder, subjects[i].image);
            input_folder_write(path, (const uint8_t *)"", 0);
        }
}

static void write_lists(const struct subject *subject, const uint8_t *data, size_t size)
{
    char prefix[64];
    size_t count = 0;
    while (count < FILES && subject->files[count] != NULL)
        count++;
    snprintf(prefix, sizeof prefix, "%s/", subject->folder);
    input_folder_fill(prefix, subject->files, count, data, size);
}

static void set_option(struct options *options, const char *name, const char *value)
{
    if (options_find(options_table(options), name) != NULL &&
        options_set(options, name, value, "fuzz", &fuzz_error) != OK)
        abort();
}

static void check(const struct dataset *dataset)
{
    assert(dataset_templates(dataset) > 0);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++) {
            char *name = dataset_item_name(dataset, (enum split)split, i);
            int label = dataset_label(dataset, (enum split)split, i);
            assert(label >= 0 && (size_t)label < dataset_classes(dataset));
            assert(name != NULL && name[0] != '/' && strncmp(name, "../", 3) != 0 && strstr(name, "/../") == NULL);
            free(name);
        }
}

int fuzz_target(const uint8_t *data, size_t size)
{
    static bool made;
    struct dataset *dataset;
    struct options *options;
    const struct dataset_reader *reader;
    if (size == 0)
        return 0;
    if (!made)
        make_images();
    made = true;
    const struct subject *subject = &subjects[data[0] % SUBJECTS];
    write_lists(subject, data + 1, size - 1);
    if (dataset_reader_find(&reader, subject->reader, &fuzz_error) != OK ||
        options_create(&options, reader->options, &fuzz_error) != OK)
        abort();
    set_option(options, "on_missing", "skip");
    set_option(options, "path", subject->folder);
    if (strncmp(subject->files[0], "split_zhou", strlen("split_zhou")) == 0)
        set_option(options, "split", "coop");
    if (dataset_open(&dataset, subject->reader, input_folder(), options, NULL, &fuzz_error) == OK) {
        check(dataset);
        dataset_close(dataset);
    }
    options_destroy(options);
    return 0;
}
