#include "tests/results/sample.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/rng.h"

static const char *const task_names[SAMPLE_TASKS] = {"aircraft", "digits", "textures_&_more", "flowers"};

char *sample_path(const char *name)
{
    const char *base = getenv("TMPDIR");
    char *folder = path_format("%s/mtil-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        abort();
    char *path = path_format("%s/%s", folder, name);
    free(folder);
    return path;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

void sample_remove(char *path)
{
    *strrchr(path, '/') = '\0';
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(path);
}

void sample_tell(struct run_description *description, const char *text)
{
    static struct setting_row rows[32];
    static char memory[2048];
    char section[64] = "", *to = memory;
    size_t count = 0;
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        int length = (int)strcspn(line, "\n"), key = (int)strcspn(line, ":");
        if (*line != ' ')
            snprintf(section, sizeof section, "%.*s", key == length - 1 ? key : 0, line);
        if (key >= length - 1)
            continue;
        int indent = *line == ' ' ? 2 : 0;
        bool real = strspn(line + key + 2, "0123456789.") == (size_t)(length - key - 2);
        rows[count] = (struct setting_row){.key = to, .type = real ? "real" : "text"};
        to += sprintf(to, "%s%s%.*s", section, *section ? "." : "", key - indent, line + indent) + 1;
        rows[count++].value = to;
        to += sprintf(to, "%.*s", length - key - 2, line + key + 2) + 1;
    }
    description->suite_text = text;
    description->settings = rows;
    description->setting_count = count;
}

struct run_description sample_description(int64_t seed)
{
    static char hash[DIGEST_SIZE];
    static const struct input_row inputs[] = {
        {.task = -1, .kind = "weights", .path = "/small.safetensors", .files = 1, .bytes = 99, .digest = "0a"},
        {.task = 0, .kind = "test", .path = "/data/aircraft", .files = 200, .bytes = 99, .digest = "0b"}};
    digest_text("suite: sample", hash);
    static const struct setting_row settings[] = {
        {"suite", "sample", "text"}, {"merge.every", "10", "integer"}, {"training.iterations", "20", "integer"}};
    return (struct run_description){.suite = "sample",
                                    .suite_text = "suite: sample\n",
                                    .settings = settings,
                                    .setting_count = sizeof settings / sizeof *settings,
                                    .suite_hash = hash,
                                    .settings_hash = "0c",
                                    .folder = "runs/sample/seed1",
                                    .inputs = inputs,
                                    .input_count = sizeof inputs / sizeof *inputs,
                                    .setting = "full_shot",
                                    .method = "adapters",
                                    .policy = "most_used",
                                    .selector = "clip",
                                    .selection = "per_image",
                                    .order = "I",
                                    .model = "small",
                                    .backend = "cpu",
                                    .precision = "f32",
                                    .program_version = "0.1.0",
                                    .seed = seed,
                                    .tasks = SAMPLE_TASKS,
                                    .trainable_parameters = 12345};
}

int64_t sample_correct(int64_t seed, int64_t after_task, int64_t task)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)(after_task + 1));
    return rng_below(&rng, 0, SAMPLE_IMAGES + 1);
}

static status write_evaluations(struct store *store, int64_t run, int64_t seed, int64_t after_task, struct error *error)
{
    for (int64_t task = 0; task < SAMPLE_TASKS; task++) {
        int64_t correct = sample_correct(seed, after_task, task);
        uint8_t right[SAMPLE_IMAGES] = {0};
        memset(right, 1, (size_t)correct);
        struct per_image kept = {.kind = PER_IMAGE_BITS, .images = SAMPLE_IMAGES, .right = right};
        TRY(store_add_evaluation(store, run,
                                 &(struct evaluation_row){.after_task = after_task,
                                                          .task = task,
                                                          .correct = correct,
                                                          .images = SAMPLE_IMAGES,
                                                          .per_image = &kept},
                                 error));
        if (task == 0 && after_task >= 0)
            TRY(store_add_selector_threshold(store, run, after_task, 0.05 + (double)after_task, error));
        uint64_t counts[SAMPLE_TASKS + 1] = {[0] = 20, [1] = (uint64_t)task, [SAMPLE_TASKS] = 180 - (uint64_t)task};
        TRY(store_add_router_choices(
            store, run,
            &(struct router_choices_row){
                .after_task = after_task, .task = task, .counts = counts, .routers = SAMPLE_TASKS},
            error));
        if (after_task == SAMPLE_TASKS - 1) /* twice as many choices as images with a router */
            TRY(store_add_class_experts(
                store, run,
                &(struct class_experts_row){.after_task = after_task,
                                            .task = task,
                                            .block = 1,
                                            .counts = (uint64_t[]){90, 30, 0, 0, 0, 0, 0, 0, 0, 0, 60, 180},
                                            .classes = 2,
                                            .experts = 6},
                error));
        if (after_task == SAMPLE_TASKS - 1)
            TRY(store_add_patch_experts(
                store, run,
                &(struct patch_experts_row){.after_task = after_task,
                                            .task = task,
                                            .image = 100,
                                            .block = 1,
                                            .file = "hundredth.png",
                                            .experts = (int32_t[]){5, 0, (int32_t)task, 2, 2, 1},
                                            .patches = 6,
                                            .width = 3},
                error));
    }
    return OK;
}

static status write_merge(struct store *store, int64_t run, int64_t task, int64_t iteration, const char *encoder,
                          struct error *error)
{
    struct expert_event_row row = {.event = iteration == 20 ? EVENT_SKIP : EVENT_MERGE,
                                   .task = task,
                                   .iteration = iteration,
                                   .encoder = encoder,
                                   .block = 1,
                                   .target = iteration == 20 ? -1 : 2,
                                   .sources = 2,
                                   .source = (int64_t[]){5, task},
                                   .reason = iteration == 20 ? "no expert is free" : NULL};
    return store_add_expert_event(store, run, &row, error);
}

/* Of the merge after iteration 10. */
static status write_effect(struct store *store, int64_t run, int64_t task, const char *encoder, int64_t known,
                           struct error *error)
{
    return store_add_merge_effect(store, run,
                                  &(struct merge_effect_row){.task = task,
                                                             .iteration = 10,
                                                             .encoder = encoder,
                                                             .block = 1,
                                                             .known = known,
                                                             .iterations = 10,
                                                             .chosen = 15 * (task + 1),
                                                             .choices = 120,
                                                             .loss_before = 2.5,
                                                             .loss_after = task == 0 ? (double)NAN : 1.5,
                                                             .distance = 0.25},
                                  error);
}

static status write_step(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                         struct error *error)
{
    struct rng rng = rng_make((uint64_t)seed, RNG_TEST, (uint32_t)task, (uint32_t)iteration);
    TRY(store_add_step(
        store, run,
        &(struct step_row){
            .task = task, .iteration = iteration, .loss = (double)rng_uniform(&rng, 1), .learning_rate = 1e-3},
        error));
    if (iteration % 10 != 0)
        return OK;
    TRY(write_merge(store, run, task, iteration, "image", error));
    TRY(write_merge(store, run, task, iteration, "text", error));
    if (iteration == 20)
        TRY(write_effect(store, run, task, "image", iteration, error));
    struct timing_row timing = {
        .task = task, .iteration = iteration, .phase = "train", .seconds = 2.5, .iterations = 10, .images = 640};
    return store_add_timing(store, run, &timing, error);
}

static status write_task_end(struct store *store, int64_t run, int64_t seed, int64_t task, struct error *error)
{
    for (int64_t frozen = 0; frozen < 2; frozen++)
        TRY(store_add_expert_event(store, run,
                                   &(struct expert_event_row){.event = EVENT_FREEZE,
                                                              .task = task,
                                                              .iteration = SAMPLE_ITERATIONS,
                                                              .encoder = "image",
                                                              .block = 1,
                                                              .target = task + frozen},
                                   error));
    TRY(write_effect(store, run, task, "text", SAMPLE_ITERATIONS + 1, error));
    TRY(store_add_expert_counts(store, run,
                                &(struct expert_counts_row){.task = task,
                                                            .block = 1,
                                                            .encoder = "image",
                                                            .counts = (uint64_t[]){30, 0, 10, (uint64_t)task, 5, 55},
                                                            .experts = 6},
                                error));
    TRY(write_evaluations(store, run, seed, task, error));
    return store_add_artifact(
        store, run, &(struct artifact_row){.task = task, .kind = "adapters", .path = "a.safetensors", .bytes = 1000},
        error);
}

status sample_write(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration, int64_t stop_task,
                    int64_t stop_iteration, struct error *error)
{
    for (int64_t i = 0; i < SAMPLE_TASKS; i++)
        TRY(store_add_task(store, run,
                           &(struct task_row){.task = i,
                                              .name = task_names[i],
                                              .classes = 6 + i,
                                              .training_images = 1000,
                                              .test_images = SAMPLE_IMAGES,
                                              .missing_images = 10 * i,
                                              .unreadable_images = 3 * i,
                                              .test_digest = i == 0 ? NULL : "00ff"},
                           error));
    for (int64_t i = 0; i < SAMPLE_TASKS; i++) {
        TRY(store_add_task_classes(store, run, i, (const char *const[]){"a class", "another"}, 2, error));
        TRY(store_add_task_similarity(store, run, i, SAMPLE_TASKS - 1, 0.5, error));
    }
    if (task < 0)
        TRY(write_evaluations(store, run, seed, -1, error));
    for (int64_t t = task < 0 ? 0 : task; t < SAMPLE_TASKS; t++) {
        for (int64_t i = t == task ? iteration + 1 : 1; i <= SAMPLE_ITERATIONS; i++) {
            if (t == stop_task && i == stop_iteration)
                return OK;
            TRY(write_step(store, run, seed, t, i, error));
        }
        TRY(write_task_end(store, run, seed, t, error));
    }
    return OK;
}

status sample_write_at_once(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                            int64_t stop_task, int64_t stop_iteration, struct error *error)
{
    store_begin(store);
    TRY(sample_write(store, run, seed, task, iteration, stop_task, stop_iteration, error));
    return store_commit(store, error);
}

static const struct session_row session = {.program_version = "0.1.0",
                                           .program_commit = "0123456789ab",
                                           .command_line = "mtil run sample.yaml",
                                           .compiler = "GCC 12.2.0",
                                           .libraries = "SQLite 3.40.1",
                                           .cpu = "a processor"};

int64_t sample_finished_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    struct error error = {0};
    if (store_run_start(store, &description, &start, &error) != OK ||
        store_add_session(store, start.run, &session, &error) != OK ||
        sample_write_at_once(store, start.run, seed, -1, 0, -1, 0, &error) != OK ||
        store_run_end(store, start.run, RUN_FINISHED, NULL, &error) != OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    return start.run;
}
