/* Method joint: all tasks in one training, among the classes of all of them, and one row of results; and classes that tasks share
 * (run/test_every_method.c has every method). */
#include "harness/run/workload.h"
#include "harness/scenario/data.h"
#include "tests/harness/whole_run.h"

enum { CLASSES = 2 + 3 + 4, IMAGES = 6 * CLASSES };

#define JOINT "method.name=joint", "tasks.second.iterations=9"

RUN_TEST(images_and_classes_are_those_of_all_tasks, JOINT, "tasks.second.learning_rate=1", NULL)
{
    const struct data *data = &run->experiment->data;
    const struct task *task = joint_or(data, 2);
    size_t image = 0, class_index = 0, context = run->experiment->model.clip->dimensions.context;
    assert_ptr_equal(task, &data->joint);
    assert_ptr_equal(joint_or(data, 1), &data->tasks[1]);
    assert_true(joint_first(data, 0) == 2 && joint_first(data, 2) == 2 && joint_first(data, 3) == 3);
    assert_int_equal(dataset_size(task->dataset, SPLIT_TRAIN), IMAGES);
    assert_int_equal(dataset_classes(task->dataset), CLASSES);
    for (size_t k = 0; k < SMALL_RUN_TASKS; k++) {
        const struct task *part = &data->tasks[k];
        for (size_t i = 0; i < dataset_size(part->dataset, SPLIT_TRAIN); i++, image++) {
            struct image own, same;
            must(dataset_read(part->dataset, SPLIT_TRAIN, i, &own, NULL, &error));
            must(dataset_read(task->dataset, SPLIT_TRAIN, image, &same, NULL, &error));
            assert_memory_equal(own.pixels, same.pixels, (size_t)own.width * (size_t)own.height * 3);
            assert_int_equal(dataset_label(task->dataset, SPLIT_TRAIN, image),
                             (int)class_index + dataset_label(part->dataset, SPLIT_TRAIN, i));
            image_free(&own);
            image_free(&same);
        }
        for (size_t c = 0; c < dataset_classes(part->dataset); c++, class_index++) {
            assert_string_equal(dataset_class_name(task->dataset, class_index), dataset_class_name(part->dataset, c));
            assert_memory_equal(task->prompts + class_index * context, part->prompts + c * context,
                                context * sizeof *task->prompts);
        }
    }
    assert_int_equal(task->settings.iterations, 6 + 9 + 6);
    assert_int_equal(task->settings.schedule_end, 6 + 9 + 6);
    assert_true(task->settings.rate == 5e-3 && task->settings.batch == 8);
    must(small_run_train(run, 2, NULL));
    assert_int_equal(run->experiment->model.classes.texts.count, CLASSES); /* that a batch is compared with */
}

/* Zero-shot, and after the last task: no metrics, which need the rows in between. */
RUN_TEST(there_is_one_row, NULL)
{
    static const char *const trains[] = {"method.train=weights", "method.train=adapters"};
    for (size_t i = 0; i < 2; i++) {
        small_run_reopen(run, 1, WORDS(JOINT, trains[i], "run.log_every=1"));
        if (i == 1)
            assert_int_equal(run->experiment->model.adapters->settings.tasks, 1);
        assert_true(workload_estimate(run->experiment).training > 0);
        must(whole_run(run, "a.db", NULL));
        assert_int_equal(whole_run_sequence.iterations, 21);
        expect_text(run, "a.db", "SELECT group_concat(DISTINCT after_task) || ' ' || count(*) FROM evaluations",
                    "-1,2 6");
        expect_text(run, "a.db", "SELECT group_concat(DISTINCT task) || ' ' || count(*) FROM steps", "2 21");
        expect_text(run, "a.db", "SELECT count(*) || ' ' || (SELECT count(*) FROM router_choices) FROM metrics", "0 0");
        if (i == 0) /* red is red for all */
            expect_number(run, "a.db", "SELECT min(correct > 0) FROM evaluations WHERE after_task = 2", 1);
        remove_database(run, "a.db");
    }
}

/* --- Tasks whose classes share names: one label space of all names, and images with the labels of that space --- */

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
    struct dataset *dataset, *part;
    const char *const classes[] = {"c", "a", "b"};
    const int32_t labels[] = {2, 0};
    must(dataset_open(&dataset, "toy", ".", NULL, NULL, &error));
    part = dataset_select(dataset, (const size_t[]){0, 1}, 2);
    int before[16];
    size_t n = dataset_size(part, SPLIT_TEST);
    assert_between(n, 2, 16);
    for (size_t i = 0; i < n; i++)
        before[i] = dataset_label(part, SPLIT_TEST, i);
    dataset_set_classes(part, classes, 3, labels);
    assert_int_equal(dataset_classes(part), 3);
    for (size_t i = 0; i < n; i++)
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
