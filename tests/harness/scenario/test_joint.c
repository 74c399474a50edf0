/* Method joint: all tasks in one training, among the classes of all of them, and one row of results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/loader.h"
#include "harness/run/workload.h"
#include "harness/scenario/joint.h"
#include "models/clip.h"
#include "tests/harness/whole_run.h"

enum { CLASSES = 2 + 3 + 4, IMAGES = 6 * CLASSES, BATCH = 8, SIDE = 16 };

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
    assert_true(task->settings.rate == 5e-3 && task->settings.batch == BATCH);
}

static double cosine(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < n; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return ab / sqrt(aa * bb);
}

/* The mean of −log p of the true class among all nine, of the first batch of the list of all images. */
static double expected_loss(struct small_run *run)
{
    struct run *e = run->experiment;
    const struct task *task = &e->data.joint;
    uint8_t pixels[BATCH * SIDE * SIDE * 3];
    int32_t labels[BATCH];
    struct loader *loader;
    struct encoding encoding = {.arena = &e->model.step_memory};
    struct tensor batch = {0};
    struct tower_pass pass;
    struct tensor images, texts;
    struct texts prompts;
    size_t count, embed = e->model.clip->dimensions.embed;
    double loss = 0;
    must(loader_create(&loader,
                       &(struct loader_settings){.dataset = task->dataset,
                                                 .split = SPLIT_TRAIN,
                                                 .resolution = SIDE,
                                                 .batch = BATCH,
                                                 .shuffle = true,
                                                 .augment = true,
                                                 .seed = 1,
                                                 .task = 2},
                       &error));
    must(loader_read(loader, 0, pixels, labels, NULL, &count, &error));
    loader_destroy(loader);
    assert_int_equal(count, BATCH);
    must(tensor_take(&batch, encoding.arena, TENSOR_U8, "images", 4, (size_t[]){BATCH, SIDE, SIDE, 3}, &error));
    must(e->model.backend->ops->upload(e->model.backend, batch.data, pixels, sizeof pixels, &error));
    must(clip_encode_images(e->model.clip, &encoding, &batch, &pass, &images, &error));
    must(texts_create(&prompts, e->model.clip, encoding.arena, task->prompts, CLASSES, &error));
    must(clip_encode_texts(e->model.clip, &encoding, &prompts, &pass, &texts, &error));
    must(clip_logit_scale(e->model.clip, &e->model.logit_scale, &error));
    float *a = small_run_values(run, images.data, BATCH * embed),
          *b = small_run_values(run, texts.data, CLASSES * embed);
    for (size_t i = 0; i < BATCH; i++) {
        double sum = 0, own = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            double logit = (double)e->model.logit_scale * cosine(a + i * embed, b + c * embed, embed);
            sum += exp(logit);
            own = (int32_t)c == labels[i] ? logit : own;
        }
        loss += (log(sum) - own) / BATCH;
    }
    return loss;
}

RUN_TEST(a_batch_is_compared_with_all_classes, JOINT, "training.label_smoothing=0", NULL)
{
    struct small_training found = {0};
    double expected = expected_loss(run);
    must(small_run_train(run, SMALL_RUN_TASKS - 1, &found));
    if (!(fabs(found.loss[0] - expected) < 1e-4))
        fail_msg("loss %.7f, expected %.7f", found.loss[0], expected);
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
