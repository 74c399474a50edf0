/* A device with little memory, as the emulated one can be: batches that fit, and an end that loses nothing. */
#include <stdlib.h>

#include "core/file.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "models/clip/cost.h"
#include "tests/harness/whole_run.h"

/* Another experiment, on a device with so much memory. */
static void reopen(struct small_run *run, size_t kib, const char *const *overrides)
{
    assert_int_equal(setenv("MTIL_CUDA_ON_HOST_KIB", small_run_format("%zu", kib), 1), 0);
    small_run_reopen(run, 1, overrides);
}

static size_t batch_with(struct small_run *run, size_t kib)
{
    reopen(run, kib, WORDS("run.evaluation_batch=0"));
    return run->experiment->model.evaluation_batch;
}

RUN_TEST(batches_grow_with_the_memory, NULL)
{
    size_t much = batch_with(run, 4 << 20), less = batch_with(run, 16 << 10), little = batch_with(run, 10 << 10);
    assert_int_equal(much, 512);
    assert_between(less, 2, 256);
    assert_between(little, 1, less / 2);
}

/* The estimate holds for what is taken: the chosen batch is encoded in the memory that there is. */
RUN_TEST(a_chosen_batch_fits, NULL)
{
    size_t batch = batch_with(run, 16 << 10);
    struct run *e = run->experiment;
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    size_t pixels = batch * n->resolution * n->resolution * 3;
    struct encoding encoding = {.arena = &e->model.step_memory, .whole = true};
    struct tensor images;
    struct tower_pass pass;
    struct tensor features, means;
    must(tensor_take(&images, &e->model.step_memory, TENSOR_U8, "images", 4,
                     (size_t[]){batch, n->resolution, n->resolution, 3}, &error));
    must(e->model.backend->ops->zero(e->model.backend, images.data, pixels, &error));
    must(clip_encode_images(e->model.clip, &encoding, &images, &pass, &features, &error));
    must(clip_mean_patches(e->model.clip, &e->model.step_memory, &pass, &means, &error));
    const struct cost_experts experts = adapters_cost(n, &e->model.settings.adapter);
    size_t estimate = cost_evaluation_bytes(n, batch, &experts);
    assert_between(e->model.step_memory.highest, estimate / 4, estimate + pixels);
}

static double memory_with(struct small_run *run, const char *experts, const char *precision, double *used)
{
    reopen(run, 1 << 20, WORDS(experts, precision));
    *used = (double)run->experiment->model.memory.used;
    return workload_estimate(run->experiment).memory;
}

/* Two more experts are twice their values and, in bf16, a copy of both weights in each block. */
RUN_TEST(estimate_counts_copies_of_experts, NULL)
{
    static const char *const precisions[] = {"run.precision=f32", "run.precision=bf16"};
    const struct clip_dimensions *n = &run->experiment->model.clip->dimensions;
    size_t copies = 2 * 2 * 2 * 8 * (n->image_blocks * n->image_width + n->text_blocks * n->text_width);
    for (size_t i = 0; i < 2; i++) {
        double used, more, few = memory_with(run, "adapter.experts=5", precisions[i], &used),
                           many = memory_with(run, "adapter.experts=7", precisions[i], &more);
        assert_true(many - more - (few - used) == (double)(i * copies));
    }
}

/* A device proves itself before it is used, which takes more memory than these tests leave it. */
static void prove(struct small_run *run)
{
    reopen(run, 1 << 20, WORDS("run.evaluation_batch=0"));
}

/* The second task needs more than there is. With more memory the same run goes on behind the first one. */
RUN_TEST(too_large_a_step_ends_the_run_and_loses_nothing, NULL)
{
    static const char *const overrides[] = {"training.iterations=1",  "tasks.second.batch=512",
                                            "tasks.second.train=200", "data.order=first,second",
                                            "selector.iterations=10", NULL};
    prove(run);
    reopen(run, 10 << 10, overrides);
    must_refuse(whole_run(run, "results.db", NULL), ERROR_MEMORY, "second", "512 images", "MiB", "needs", "left",
                "training.batch", "run.evaluation_batch");
    expect_number(run, "results.db", "SELECT max(after_task) FROM evaluations", 0);
    assert_true(file_exists(whole_run_file(run, "resume.safetensors")));
    reopen(run, 1 << 20, overrides);
    must(whole_run(run, "results.db", NULL));
    expect_number(run, "results.db", "SELECT max(after_task) FROM evaluations", 1);
    assert_false(file_exists(whole_run_file(run, "resume.safetensors")));
}

RUN_TEST(weights_that_do_not_fit_are_refused_with_what_is_left, NULL)
{
    prove(run);
    assert_int_equal(setenv("MTIL_CUDA_ON_HOST_KIB", "40", 1), 0);
    must_refuse(small_run_try(run, 1, WORDS("run.evaluation_batch=0")), ERROR_MEMORY, "parameters",
                "device has 36 KiB left");
}
