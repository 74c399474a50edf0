/* A device with little memory, as the emulated one can be: batches that fit, and an end that loses nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "models/clip/cost.h"
#include "tests/harness/whole_run.h"

static void set_memory(size_t kib)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", kib);
    assert_int_equal(setenv("MTIL_CUDA_ON_HOST_KIB", text, 1), 0);
}

static size_t batch_with(size_t kib)
{
    struct small_run run;
    set_memory(kib);
    small_run_open(&run, 1, WORDS("run.evaluation_batch=0"));
    size_t batch = run.experiment->model.evaluation_batch;
    small_run_close(&run);
    return batch;
}

TEST(batches_grow_with_the_memory)
{
    size_t much = batch_with(4 << 20), less = batch_with(16 << 10), little = batch_with(10 << 10);
    assert_int_equal(much, 512);
    assert_in_range(less, 2, 256);
    assert_in_range(little, 1, less / 2);
}

/* The estimate holds for what is taken: the chosen batch is encoded in the memory that there is. */
TEST(a_chosen_batch_fits)
{
    struct small_run run;
    set_memory(16 << 10);
    small_run_open(&run, 1, WORDS("run.evaluation_batch=0"));
    struct run *e = run.experiment;
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    size_t batch = e->model.evaluation_batch, pixels = batch * n->resolution * n->resolution * 3;
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
    assert_in_range(e->model.step_memory.highest, estimate / 4, estimate + pixels);
    small_run_close(&run);
}

static double memory_with(struct small_run *run, const char *experts, const char *precision, double *used)
{
    struct estimate estimate;
    small_run_reopen(run, 1, WORDS(experts, precision));
    estimate = workload_estimate(run->experiment);
    *used = (double)run->experiment->model.memory.used;
    return estimate.memory;
}

/* Two more experts are twice their values and, in bf16, a copy of both weights in each block. */
TEST(estimate_counts_copies_of_experts)
{
    static const char *const precisions[] = {"run.precision=f32", "run.precision=bf16"};
    struct small_run run;
    set_memory(1 << 20);
    small_run_open(&run, 1, (const char *const[]){NULL});
    const struct clip_dimensions *n = &run.experiment->model.clip->dimensions;
    size_t copies = 2 * 2 * 2 * 8 * (n->image_blocks * n->image_width + n->text_blocks * n->text_width);
    for (size_t i = 0; i < 2; i++) {
        double used, more, few = memory_with(&run, "adapter.experts=5", precisions[i], &used),
                           many = memory_with(&run, "adapter.experts=7", precisions[i], &more);
        assert_true(many - more - (few - used) == (double)(i * copies));
    }
    small_run_close(&run);
}

/* The second task needs more than there is. With more memory the same run goes on behind the first one. */
TEST(too_large_a_step_ends_the_run_and_loses_nothing)
{
    static const char *const overrides[] = {"training.iterations=1",  "tasks.second.batch=512",
                                            "tasks.second.train=200", "data.order=first,second",
                                            "selector.iterations=10", NULL};
    struct small_run run;
    set_memory(10 << 10);
    small_run_open(&run, 1, overrides);
    must_refuse(whole_run(&run, "results.db", NULL), ERROR_MEMORY, "second", "512 images", "MiB", "needs", "left",
                "training.batch", "run.evaluation_batch");
    expect_number(&run, "results.db", "SELECT max(after_task) FROM evaluations", 0);
    assert_true(file_exists(whole_run_file(&run, "resume.safetensors")));
    set_memory(1 << 20);
    small_run_reopen(&run, 1, overrides);
    must(whole_run(&run, "results.db", NULL));
    expect_number(&run, "results.db", "SELECT max(after_task) FROM evaluations", 1);
    assert_false(file_exists(whole_run_file(&run, "resume.safetensors")));
    small_run_close(&run);
}
