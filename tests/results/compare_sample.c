#include "tests/results/compare_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/rng.h"
#include "tests/results/sample.h"

#define LIMIT (COMPARE_SAMPLE_IMAGES + 100)

static const char *const names[COMPARE_SAMPLE_TASKS] = {"aircraft", "dtd", "mnist"};

/* 100 + 3 task + 10 if learnt + (7 seed + 5 (after_task + 1) + 3 task) mod 11; where there is a lift, for after_task ≥ 0
 * also the lift + (seed (task + 2) + after_task) mod 4. */
static int64_t correct_of(const struct compare_sample *sample, int64_t after_task, int64_t task)
{
    int64_t seed = sample->seed;
    int64_t lift = after_task >= 0 && sample->lift ? sample->lift + (seed * (task + 2) + after_task) % 4 : 0;
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, *(const uint8_t *)sample->policy, (uint32_t)sample->every);
    if (sample->noise && after_task >= 0)
        lift += lrintf((float)sample->noise * rng_normal(&rng, (uint64_t)(after_task * COMPARE_SAMPLE_TASKS + task)));
    return 100 + (sample->noise ? 10 * sample->noise : 0) + 3 * task + (after_task >= task ? 10 : 0) +
           (7 * seed + 5 * (after_task + 1) + 3 * task) % 11 + lift;
}

static void require(status result, const struct error *error)
{
    if (result != OK) {
        fprintf(stderr, "%s\n", error->message);
        abort();
    }
}

static void add_evaluation(struct store *store, int64_t run, const struct compare_sample *sample, int64_t after_task,
                           int64_t task)
{
    struct error error;
    int64_t correct = correct_of(sample, after_task, task);
    uint8_t right[LIMIT];
    uint16_t predicted[LIMIT];
    int16_t router[LIMIT];
    struct per_image kept = {.kind = sample->kept,
                             .images = (size_t)(COMPARE_SAMPLE_IMAGES + sample->more_images),
                             .right = right,
                             .predicted = predicted,
                             .router = router};
    for (int64_t i = 0; sample->kept != PER_IMAGE_NONE && i < (int64_t)kept.images; i++) {
        right[i] = i < COMPARE_SAMPLE_IMAGES && (i + 3 * sample->lift) % COMPARE_SAMPLE_IMAGES < correct;
        predicted[i] = 0;
        router[i] = (int16_t)(i % 4 == 0 ? -1 : task);
    }
    struct evaluation_row row = {.after_task = after_task,
                                 .task = task,
                                 .correct = correct,
                                 .images = (int64_t)kept.images,
                                 .per_image = sample->kept == PER_IMAGE_NONE ? NULL : &kept};
    require(store_add_evaluation(store, run, &row, &error), &error);
}

static int64_t start_run(struct store *store, const struct compare_sample *sample)
{
    char text[512], identity[512], hash[DIGEST_SIZE];
    const char *method = sample->untrained ? "zero_shot" : "adapters";
    snprintf(text, sizeof text, "merge:\n  policy: %s\n  every: %lld\n%s", sample->policy, (long long)sample->every,
             sample->own ? sample->own : "");
    snprintf(identity, sizeof identity, "data:\n  order: [aircraft, dtd, mnist]\n%smethod:\n  name: %s\n",
             sample->untrained ? "" : text, method);
    snprintf(text, sizeof text, "model:\n  weights: %s\n%srun:\n  threads: %lld\n", sample->path ? sample->path : "w",
             identity, (long long)sample->threads);
    struct input_row inputs[1 + 2 * COMPARE_SAMPLE_TASKS] = {
        {.task = -1, .kind = "weights", .path = "/w", .digest = sample->weights}};
    for (int64_t task = 0; sample->weights && task < COMPARE_SAMPLE_TASKS; task++) {
        inputs[1 + 2 * task] =
            (struct input_row){.task = task, .kind = "train", .path = "/d", .digest = sample->training};
        inputs[2 + 2 * task] = (struct input_row){.task = task, .kind = "test", .path = "/d", .digest = sample->tests};
    }
    if (sample->weights)
        snprintf(identity + strlen(identity), sizeof identity - strlen(identity), "%s %s %s", sample->weights,
                 sample->training, sample->tests);
    digest_text(identity, hash);
    struct run_description description = sample_description(sample->seed);
    description.suite_hash = description.settings_hash = hash;
    description.folder = NULL;
    description.inputs = inputs;
    description.input_count = sample->weights ? sizeof inputs / sizeof *inputs : 0;
    description.method = method;
    description.policy = sample->policy;
    description.program_version = sample->version ? sample->version : "0.1.0";
    description.tasks = COMPARE_SAMPLE_TASKS;
    description.trainable_parameters = 0;
    sample_tell(&description, text);
    struct run_start start;
    struct error error;
    require(store_run_start(store, &description, &start, &error), &error);
    return start.run;
}

int64_t compare_sample_add(struct store *store, const struct compare_sample *sample)
{
    struct error error;
    int64_t run = start_run(store, sample), checkpoints = sample->untrained ? 0 : COMPARE_SAMPLE_TASKS - sample->holes;
    store_begin(store);
    for (int64_t task = 0; task < COMPARE_SAMPLE_TASKS; task++) {
        struct sample_task row = {.task = task,
                                  .name = names[task],
                                  .classes = 5,
                                  .training_images = 100,
                                  .test_images = COMPARE_SAMPLE_IMAGES + sample->more_images};
        require(sample_add_task(store, run, &row, &error), &error);
        for (int64_t after_task = -1; after_task < checkpoints; after_task++)
            add_evaluation(store, run, sample, after_task, task);
    }
    require(store_commit(store, &error), &error);
    require(store_run_end(store, run, sample->stopped ? RUN_STOPPED : RUN_FINISHED, NULL, &error), &error);
    return run;
}
