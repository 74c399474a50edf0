/* Tasks whose classes share names: one label space of all names, and images with the labels of that space (run/test_every_method.c
 * has every method). */
#include "tests/harness/small_run.h"

enum { ALL = 4 /* of the toy drawings */ };

RUN_TEST(one_label_space, "data.shared_classes=yes", NULL)
{
    const struct data *data = &run->experiment->data;
    assert_int_equal(data->class_count, ALL);
    for (size_t k = 0; k < SMALL_RUN_TASKS; k++) {
        const struct dataset *dataset = data->tasks[k].dataset;
        assert_int_equal(dataset_classes(dataset), ALL);
        assert_int_equal(data->tasks[k].first_class, 0);
        assert_int_equal(data_first_class(data, &data->tasks[k]), 0);
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), (k + 2) * 6);
        for (size_t c = 0; c < ALL; c++)
            assert_string_equal(dataset_class_name(dataset, c), dataset_class_name(data->tasks[2].dataset, c));
    }
}

/* A name of another task is the same class wherever it stands: labels follow names, not positions. */
TEST(labels_follow_names)
{
    struct dataset *dataset;
    const char *const classes[] = {"c", "a", "b"};
    const int32_t labels[] = {2, 0};
    must(dataset_open(&dataset, "toy", ".", NULL, NULL, &error));
    struct dataset *part;
    must(dataset_select(&part, dataset, (const size_t[]){0, 1}, 2, &error));
    int before[16];
    assert_in_range(dataset_size(part, SPLIT_TEST), 2, 16);
    for (size_t i = 0; i < dataset_size(part, SPLIT_TEST); i++)
        before[i] = dataset_label(part, SPLIT_TEST, i);
    dataset_set_classes(part, classes, 3, labels);
    assert_int_equal(dataset_classes(part), 3);
    for (size_t i = 0; i < dataset_size(part, SPLIT_TEST); i++)
        assert_int_equal(dataset_label(part, SPLIT_TEST, i), labels[before[i]]);
    dataset_close(part);
    dataset_close(dataset);
}

/* All tasks as one have each class once, with the images of all tasks. */
RUN_TEST(joint_training_has_a_class_once, "data.shared_classes=yes", "method.name=joint", NULL)
{
    const struct data *data = &run->experiment->data;
    assert_int_equal(dataset_classes(data->joint.dataset), ALL);
    assert_int_equal(dataset_size(data->joint.dataset, SPLIT_TRAIN), (2 + 3 + 4) * 6);
    size_t of_class[ALL] = {0};
    for (size_t i = 0; i < (2 + 3 + 4) * 6; i++)
        of_class[dataset_label(data->joint.dataset, SPLIT_TRAIN, i)]++;
    assert_int_equal(of_class[0], 3 * 6);
    assert_int_equal(of_class[ALL - 1], 6);
}
