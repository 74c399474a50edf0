/* CoOp's splits: both layouts of every dataset that has one, and files that are not as they should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/dataset.h"
#include "datasets/formats/coop_split.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

static const char two_classes[] = "{\"train\": [[\"b/1.png\", 1, \"big_dog\"], [\"a/1.png\", 0, \"cat\"]],\n"
                                  " \"val\": [[\"a/2.png\", 0, \"cat\"]],\n"
                                  " \"test\": [[\"b/2.png\", 1, \"big_dog\"]]}";

/* Where each layout has the split file and the images, as CoOp's DATASETS.md and torchvision have them. */
static const struct place {
    const char *name, *folder, *file, *images;
} places[] = {
    {"caltech101", "caltech-101", "split_zhou_Caltech101.json", "101_ObjectCategories/"},
    {"caltech101", "caltech101", "split_zhou_Caltech101.json", "101_ObjectCategories/"},
    {"dtd", "dtd", "split_zhou_DescribableTextures.json", "images/"},
    {"dtd", "dtd", "split_zhou_DescribableTextures.json", "dtd/images/"},
    {"eurosat", "eurosat", "split_zhou_EuroSAT.json", "2750/"},
    {"flowers", "oxford_flowers", "split_zhou_OxfordFlowers.json", "jpg/"},
    {"flowers", "flowers-102", "split_zhou_OxfordFlowers.json", "jpg/"},
    {"food", "food-101", "split_zhou_Food101.json", "images/"},
    {"oxford_pet", "oxford_pets", "split_zhou_OxfordPets.json", "images/"},
    {"oxford_pet", "oxford-iiit-pet", "split_zhou_OxfordPets.json", "images/"},
    {"stanford_cars", "stanford_cars", "split_zhou_StanfordCars.json", ""},
    {"sun397", "sun397", "split_zhou_SUN397.json", "SUN397/"},
    {"sun397", "SUN397", "split_zhou_SUN397.json", ""},
};

static void write_place(const struct place *place, const char *split)
{
    static const char *const files[] = {"a/1.png", "a/2.png", "b/1.png", "b/2.png"};
    char name[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(name, sizeof name, "%s/%s%s", place->folder, place->images, files[i]);
        scratch_write_png(&scratch, name, 4, 4, 0x102030U * (unsigned)(i + 1));
    }
    snprintf(name, sizeof name, "%s/%s", place->folder, place->file);
    scratch_write_text(&scratch, name, split);
}

static void check_two_classes(const struct dataset *dataset, const struct place *place)
{
    struct image image;
    char expected[256];
    int label;
    assert_int_equal(dataset_classes(dataset), 2);
    assert_string_equal(dataset_class_name(dataset, 0), "cat");
    assert_string_equal(dataset_class_name(dataset, 1), "big dog");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_size(dataset, SPLIT_TEST), 1);
    assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 0), 1);
    snprintf(expected, sizeof expected, "%s/%sb/2.png", place->folder, place->images);
    root_expect_item(dataset, SPLIT_TEST, 0, expected);
    assert_ok(dataset_read(dataset, SPLIT_TEST, 0, &image, &label, &error));
    assert_int_equal(image.pixels[0], 0x40);
    assert_int_equal(label, 1);
    image_free(&image);
}

TEST(both_layouts_are_read)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        root_setup(state);
        write_place(&places[i], two_classes);
        struct dataset *dataset = root_open(places[i].name, scratch.path, "split=coop");
        check_two_classes(dataset, &places[i]);
        dataset_close(dataset);
        root_teardown(state);
    }
}

/* Aircraft has no split file: CoOp takes the dataset's own lists, in a folder of another name. */
TEST_WITH(aircraft_has_its_own_lists, root_setup, root_teardown)
{
    scratch_write_text(&scratch, "fgvc_aircraft/variants.txt", "707-320\nF/A-18\n");
    scratch_write_text(&scratch, "fgvc_aircraft/images_variant_train.txt", "0001 F/A-18\n0002 707-320\n");
    scratch_write_text(&scratch, "fgvc_aircraft/images_variant_test.txt", "0003 707-320\n");
    for (const char *id = "123"; *id != 0; id++) {
        char name[64];
        snprintf(name, sizeof name, "fgvc_aircraft/images/000%c.jpg", *id);
        scratch_write_png(&scratch, name, 4, 4, 0);
    }
    for (const char *const *split = (const char *const[]){"split=coop", "split=torchvision", NULL}; *split != NULL;
         split++) {
        struct dataset *dataset = root_open("aircraft", scratch.path, *split);
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
        assert_int_equal(dataset_label(dataset, SPLIT_TRAIN, 0), 1);
        root_expect_item(dataset, SPLIT_TEST, 0, "fgvc_aircraft/images/0003.jpg");
        dataset_close(dataset);
    }
}

/* torchvision's lists are found in CoOp's folders, too. */
TEST_WITH(torchvision_split_in_coops_layout, root_setup, root_teardown)
{
    struct dataset *dataset;
    scratch_write_text(&scratch, "dtd/labels/train1.txt", "dotted/1.jpg\nwoven/1.jpg\n");
    scratch_write_text(&scratch, "dtd/labels/test1.txt", "woven/2.jpg\n");
    for (const char *const *name = (const char *const[]){"dotted/1", "woven/1", "woven/2", NULL}; *name != NULL;
         name++) {
        char file[64];
        snprintf(file, sizeof file, "dtd/images/%s.jpg", *name);
        scratch_write_png(&scratch, file, 4, 4, 0);
    }
    dataset = root_open("dtd", scratch.path, "split=torchvision");
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 2);
    assert_int_equal(dataset_label(dataset, SPLIT_TEST, 0), 1);
    dataset_close(dataset);
}

/* Among a suite's keys split is every dataset's. */
TEST_WITH(datasets_without_a_split, root_setup, root_teardown)
{
    static const char *const names[] = {"cifar100", "mnist", "toy", "tiny_imagenet"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        root_refused(names[i], "split=coop", names[i]);
        root_refused(names[i], "split=coop",
                     "aircraft, caltech101, dtd, eurosat, flowers, food, oxford_pet, stanford_cars, sun397");
        root_refused(names[i], "split=coop", "split: torchvision");
    }
}

TEST_WITH(what_is_not_there, root_setup, root_teardown)
{
    root_refused("caltech101", "split=coop",
                 "caltech-101/split_zhou_Caltech101.json or caltech101/split_zhou_Caltech101.json, found none");
    scratch_write_text(&scratch, "flowers-102/split_zhou_OxfordFlowers.json", two_classes);
    root_refused("flowers", "split=coop", "expected a folder \"jpg\"");
    write_place(&places[4], two_classes);
    assert_int_equal(remove(scratch_file(&scratch, "eurosat/2750/a/1.png")), 0);
    root_refused("eurosat", "split=coop", "1 of 3 listed images of eurosat are missing: eurosat/2750/a/1.png");
    struct dataset *dataset = root_open("eurosat", scratch.path, "split=coop on_missing=skip");
    assert_int_equal(dataset_missing(dataset), 1);
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 1);
    assert_int_equal(dataset_classes(dataset), 2);
    for (size_t c = 0; c < 2; c++) { /* a part misses what its classes miss */
        struct dataset *part;
        assert_ok(dataset_select(&part, dataset, &c, 1, &error));
        assert_int_equal(dataset_missing(part), c == 0 ? 1 : 0);
        dataset_close(part);
    }
    dataset_close(dataset);
}

TEST_WITH(names_may_be_overridden, root_setup, root_teardown)
{
    write_place(&places[0], two_classes);
    scratch_write_text(&scratch, "caltech-101/classnames.txt", "kitten\nhound\n");
    struct dataset *dataset = root_open("caltech101", scratch.path, "split=coop");
    assert_string_equal(dataset_class_name(dataset, 1), "hound");
    dataset_close(dataset);
    scratch_write_text(&scratch, "caltech-101/classnames.txt", "kitten\n");
    root_refused("caltech101", "split=coop", "expected 2 names");
}

TEST_WITH(wrong_files_are_told, root_setup, root_teardown)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"", "split_zhou_Food101.json:1"},
        {"{\"train\": [", "invalid JSON"},
        {"[]", "no list \"train\""},
        {"{\"train\": [], \"val\": []}", "no list \"test\""},
        {"{\"train\": [], \"val\": {}, \"test\": []}", "no list \"val\""},
        {"{\"train\": [], \"val\": [], \"test\": []}", "has no images"},
        {"{\"train\": [], \"train\": [], \"test\": []}", "duplicate"},
        {"{\"train\": [[\"a\", 0]], \"test\": []}", "train[0]: expected [image path, label, class name]"},
        {"{\"train\": [[\"a\", \"0\", \"n\"]], \"test\": []}", "train[0]: expected [image path"},
        {"{\"train\": [[\"a\", 0.5, \"n\"]], \"test\": []}", "train[0]: expected [image path"},
        {"{\"train\": [{}], \"test\": []}", "train[0]: expected [image path"},
        {"{\"train\": [[\"a\", -1, \"n\"]], \"test\": []}", "found -1"},
        {"{\"train\": [[\"a\", 9223372036854775807, \"n\"]], \"test\": []}", "below 1"},
        {"{\"train\": [[\"a\", 0, \"n\"], [\"b\", 2, \"m\"], [\"c\", 2, \"m\"]], \"test\": []}",
         "label 2 but no label 1"},
        {"{\"train\": [[\"a\", 0, \"n\"]], \"val\": [[\"b\", 0, \"m\"]], \"test\": []}",
         "val[0]: label 0 is called \"m\" here and \"n\" before"},
        {"{\"train\": [[\"a\", 0, \"\"]], \"test\": []}", "expected a class name"},
        {"{\"train\": [[\"a\", 0, \"n\\nm\"]], \"test\": []}", "expected a class name"},
        {"{\"train\": [[\"a\\u0000b\", 0, \"n\"]], \"test\": []}", "invalid JSON"},
        {"{\"train\": [[\"\", 0, \"n\"]], \"test\": []}", "expected the path of an image"},
        {"{\"train\": [[\"/etc/passwd\", 0, \"n\"]], \"test\": []}", "leads out of it"},
        {"{\"train\": [], \"test\": [[\"a/../../x\", 0, \"n\"]]}", "test[0]: expected a path below"},
        {"{\"train\": [[\"..\", 0, \"n\"]], \"test\": []}", "leads out of it"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_place(&places[7], wrong[i].text);
        root_refused("food", "split=coop", wrong[i].words);
    }
    write_place(&places[7], "{\"train\": [[\"..a/b..\", 0, \"n\"]], \"test\": []}"); /* dots that lead nowhere */
    root_refused("food", "split=coop", "1 of 1 listed images of food are missing");
}

/* Without "val", and with more white space than anybody writes. */
TEST(only_what_is_needed)
{
    static const char text[] = " {\"test\":\n[ [\"x\",0,\"n\"] ],\"train\":[]} ";
    struct coop_split split;
    assert_ok(coop_split_parse(&split, text, sizeof text - 1, "here", &error));
    assert_int_equal(split.classes.count, 1);
    assert_int_equal(split.train.files.count, 0);
    assert_string_equal(split.test.files.items[0], "x");
    coop_split_free(&split);
}
