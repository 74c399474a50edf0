/* Rehearses `mtil run mtil`: writes data of MTIL's layouts, numbers and typical sizes and a CLIP of random weights, runs
 * the suite over them in a fresh process, and prints where the time went.
 *
 *     build/tests/rehearsal [--scale S] [--classes N] [--model vit_b_16|mini|tiny] [--check] FOLDER [key=value …]
 *
 * --scale 1 is the suite itself: 97,209 test images, 1,000 iterations a task, 50 GB in FOLDER; 0.01 (the default) is a
 * hundredth of images and iterations. Data are kept in FOLDER and written once; results, cache and the run's own files
 * are new each time. key=value goes to mtil run. With --check the times must add up and every phase must be there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "models/clip.h"
#include "models/tokenizer.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"
#include "tests/bench/rehearsal_data.h"
#include "tests/models/initialize.h"

enum { TASKS = 11, ITERATIONS = 1000, WARMUP = 100, SELECTOR = 300 /* selector.iterations */, CONTEXT = 77 };

static const struct {
    const char *name;
    struct clip_dimensions dimensions; /* context and vocabulary are those of the prompts */
} models[] = {
    {"vit_b_16", VIT_B_16},
    {"mini", SMALL_CLIP},
    {"tiny",
     {.embed = 16,
      .resolution = 32,
      .patch = 16,
      .image_width = 64,
      .image_hidden = 256,
      .image_heads = 1,
      .image_blocks = 2,
      .context = CONTEXT,
      .text_width = 64,
      .text_hidden = 256,
      .text_heads = 1,
      .text_blocks = 1}},
};

struct rehearsal {
    const char *folder, *overrides;
    size_t model;
    bool check;
    struct rehearsal_data data;
    struct effort run;
};

/* The run's own records: its rows of times, and its note on the rest. */
enum { TRAIN, SELECTING, TESTS, ZERO_SHOT, PHASES };
static const char *const phase_names[PHASES] = {"train", "selector", "evaluate", "zero-shot"};
struct records {
    struct phase {
        double seconds;
        size_t rows, iterations, images;
    } phases[PHASES];
    double opening, inputs, files, files_of_training, images_of_training, images_of_tests;
};

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "rehearsal: %s\n", what);
    exit(1);
}

static char *below(const struct rehearsal *r, const char *name)
{
    return path_format("%s/%s", r->folder, name);
}

/* --- What is run over --- */

static void write_model(const struct rehearsal *r)
{
    char *weights = below(r, "clip.safetensors");
    struct clip_dimensions dimensions = models[r->model].dimensions;
    struct tokenizer *tokenizer;
    struct bench b;
    struct clip *clip;
    must(tokenizer_open(&tokenizer, VOCABULARY, &error));
    dimensions.vocabulary = tokenizer_vocabulary(tokenizer);
    dimensions.context = CONTEXT;
    tokenizer_close(tokenizer);
    must(bench_open(&b, &(struct backend_settings){.name = "cpu"}));
    must(clip_create(&clip, b.backend, &b.arena, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(clip, 1, &error));
    must(clip_save(clip, weights, &error));
    clip_destroy(clip);
    bench_close(&b);
    free(weights);
}

/* Writes data and model unless FOLDER has those of the same scale, whose marker is written last. */
static void prepare(struct rehearsal *r)
{
    char *marker = below(r, "rehearsal.txt"), *root = below(r, "data"), line[128];
    struct bytes found = {0};
    int size = snprintf(line, sizeof line, "scale %g, classes %zu, model %s\n", r->data.scale, r->data.classes,
                        models[r->model].name);
    r->data.root = root;
    must(directory_create(r->folder, &error));
    if (file_exists(marker))
        must(file_read(marker, sizeof line, &found, &error));
    bool there = found.size == (size_t)size && memcmp(found.data, line, found.size) == 0;
    require(there || !file_exists(root), "FOLDER has data of another scale or model, or incomplete ones; remove them");
    if (!there) {
        double start = clock_seconds();
        must(threads_create(&r->data.threads, 0, &error));
        must(rehearsal_data_write(&r->data, &error));
        threads_destroy(r->data.threads);
        write_model(r);
        must(file_write(marker, line, (size_t)size, &error));
        printf("written in %.1f s: %zu images to train, %zu to test, %.2f GB\n", clock_seconds() - start, r->data.train,
               r->data.test, (double)r->data.bytes / 1e9);
    }
    bytes_free(&found);
    free(marker);
    free(root);
}

/* --- The run --- */

static size_t scaled(const struct rehearsal *r, size_t count)
{
    size_t n = (size_t)((double)count * r->data.scale + 0.5);
    return n > 0 ? n : 1;
}

/* Another build of it where the environment names one. */
static const char *program_path(void)
{
    const char *other = getenv("MTIL_TEST_PROGRAM");
    return other != NULL && other[0] != '\0' ? other : PROGRAM;
}

static void run_suite(struct rehearsal *r)
{
    char *output = below(r, "run"), *log = below(r, "run/log");
    struct text command = {0};
    text_add(&command,
             "rm -rf '%s' && mkdir '%s' && exec '%s' run mtil --verbose run.row=Park-clip "
             "model.weights='%s/clip.safetensors' "
             "model.vocabulary='" VOCABULARY "' data.root='%s/data' data.on_missing=skip run.folder='%s' "
             "run.database='%s/results.db' run.cache_folder='%s/cache' training.iterations=%zu training.warmup=%zu "
             "selector.iterations=%zu %s >'%s' 2>&1",
             output, output, program_path(), r->folder, r->folder, output, output, output, scaled(r, ITERATIONS),
             scaled(r, ITERATIONS) > 1 ? scaled(r, WARMUP) : 0, scaled(r, SELECTOR), r->overrides, log);
    r->run = effort_of(command.data);
    if (r->run.ended != 0)
        fprintf(stderr, "rehearsal: mtil run ended with %d; see %s\n", r->run.ended, log);
    require(r->run.ended == 0, "there is nothing to show");
    text_free(&command);
    free(log);
    free(output);
}

/* --- Its records --- */

static void read_times(const struct rehearsal *r, struct records *records)
{
    char line[256],
        *command =
            path_format("'%s' query '%s/run/results.db' --format=csv \"SELECT CASE WHEN task < 0 THEN "
                        "'zero-shot' ELSE phase END, count(*), total(seconds), CAST(total(iterations) AS INTEGER), "
                        "CAST(total(images) AS INTEGER) FROM timings GROUP BY 1\"",
                        program_path(), r->folder);
    FILE *answer = popen(command, "r");
    require(answer != NULL, "mtil query cannot be started");
    while (fgets(line, sizeof line, answer) != NULL) {
        char name[32];
        struct phase p;
        if (sscanf(line, "%31[^,],%zu,%lf,%zu,%zu", name, &p.rows, &p.seconds, &p.iterations, &p.images) != 5)
            continue; /* the head */
        for (size_t i = 0; i < PHASES; i++)
            if (strcmp(phase_names[i], name) == 0)
                records->phases[i] = p;
    }
    require(pclose(answer) == 0, "mtil query failed");
    free(command);
}

static void read_note(const struct rehearsal *r, struct records *records)
{
    char *log = below(r, "run/log");
    struct bytes bytes;
    must(file_read(log, (size_t)64 << 20, &bytes, &error));
    struct text text = {0};
    text_add_bytes(&text, (const char *)bytes.data, bytes.size);
    const char *note = text.data != NULL ? strstr(text.data, "opening took ") : NULL;
    require(note != NULL && sscanf(note,
                                   "opening took %lf s, inputs %lf s, rows and files %lf s, %lf s of them within "
                                   "training; training waited %lf s for images, tests and selectors %lf s",
                                   &records->opening, &records->inputs, &records->files, &records->files_of_training,
                                   &records->images_of_training, &records->images_of_tests) == 6,
            "the run has left no note on where its time went");
    text_free(&text);
    bytes_free(&bytes);
    free(log);
}

/* --- The table --- */

static double phases_of(const struct records *n)
{
    double sum = n->opening + n->inputs + n->files - n->files_of_training;
    for (size_t i = 0; i < PHASES; i++)
        sum += n->phases[i].seconds;
    return sum;
}

static void print_table(const struct rehearsal *r, const struct records *n)
{
    const struct phase *train = &n->phases[TRAIN], *selector = &n->phases[SELECTING], *tests = &n->phases[TESTS],
                       *zero_shot = &n->phases[ZERO_SHOT];
    const struct {
        const char *name;
        double seconds;
        size_t count;
        const char *what; /* is counted; NULL: nothing */
    } lines[] = {
        {"start: model, datasets, prompts", n->opening, 0, NULL},
        {"start: survey of the inputs", n->inputs, 0, NULL},
        {"zero-shot", zero_shot->seconds, zero_shot->images, "images/s"},
        {"training", train->seconds - n->images_of_training - n->files_of_training, train->iterations, "iterations/s"},
        {"training waits for images", n->images_of_training, 0, NULL},
        {"training waits for rows and files", n->files_of_training, 0, NULL},
        {"selector", selector->seconds, selector->iterations, "iterations/s"},
        {"tests after each task", tests->seconds, tests->images, "images/s"},
        {"rows and files after each task", n->files - n->files_of_training, 0, NULL},
        {"the rest: start and end of the process", r->run.seconds - phases_of(n), 0, NULL},
        {"of all: zero-shot, selector, tests wait for images", n->images_of_tests, 0, NULL},
    };
    printf("mtil run mtil, scale %g, %s: %.2f s, %.2f cores busy\n", r->data.scale, models[r->model].name,
           r->run.seconds, r->run.of_a_core / r->run.seconds);
    printf("| phase | seconds | share | rate |\n| --- | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double seconds = lines[i].seconds;
        printf("| %-46s | %9.2f | %5.1f%% | ", lines[i].name, seconds, 100 * seconds / r->run.seconds);
        if (lines[i].what != NULL && seconds > 0)
            printf("%.4g %s", (double)lines[i].count / seconds, lines[i].what);
        printf(" |\n");
    }
}

/* Each phase has its rows, none is counted twice, and what is waited for is a part of its phase. */
static void check(const struct rehearsal *r, const struct records *n)
{
    const struct phase *train = &n->phases[TRAIN], *selector = &n->phases[SELECTING], *tests = &n->phases[TESTS],
                       *zero_shot = &n->phases[ZERO_SHOT];
    size_t once = zero_shot->images;
    require(zero_shot->rows == 1 && train->rows == TASKS && selector->rows == TASKS && tests->rows == TASKS,
            "a phase lacks rows of its times");
    require(train->iterations == TASKS * scaled(r, ITERATIONS) && selector->iterations == TASKS * scaled(r, SELECTOR),
            "iterations are missing in the rows of times");
    require(once > 0 && tests->images == TASKS * once, "test images are missing in the rows of times");
    require(n->opening > 0 && n->inputs > 0 && n->files > 0 && n->images_of_training > 0 && n->images_of_tests > 0,
            "a phase took no time");
    require(phases_of(n) <= r->run.seconds, "the phases are longer than the run");
    require(phases_of(n) >= r->run.seconds / 2, "the phases miss more than half of the run");
    require(n->images_of_training + n->files_of_training <= train->seconds &&
                n->images_of_tests <= zero_shot->seconds + selector->seconds + tests->seconds,
            "a phase waited longer than it took");
}

/* --- Command line --- */

static bool read_words(struct rehearsal *r, struct text *overrides, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--scale") == 0) {
            r->data.scale = strtod(value, NULL);
            i++;
        } else if (strcmp(argv[i], "--classes") == 0) {
            r->data.classes = strtoul(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--model") == 0) {
            enum { MODELS = sizeof models / sizeof *models };
            for (r->model = 0; r->model < MODELS && strcmp(models[r->model].name, value) != 0;)
                r->model++;
            if (r->model == MODELS)
                return false;
            i++;
        } else if (strcmp(argv[i], "--check") == 0) {
            r->check = true;
        } else if (strchr(argv[i], '=') != NULL) {
            text_add(overrides, "'%s' ", argv[i]);
        } else if (r->folder == NULL && *argv[i] != '-') {
            r->folder = argv[i];
        } else {
            return false;
        }
    }
    r->overrides = overrides->data != NULL ? overrides->data : "";
    return r->folder != NULL && r->data.scale > 0 && r->data.scale <= 1;
}

int main(int argc, char **argv)
{
    struct rehearsal rehearsal = {.data.scale = 0.01};
    struct records records = {0};
    struct text overrides = {0};
    if (!read_words(&rehearsal, &overrides, argc, argv)) {
        fprintf(stderr, "usage: rehearsal [--scale S] [--classes N] [--model vit_b_16|mini|tiny] [--check] FOLDER "
                        "[key=value …]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare(&rehearsal);
    run_suite(&rehearsal);
    read_times(&rehearsal, &records);
    read_note(&rehearsal, &records);
    print_table(&rehearsal, &records);
    if (rehearsal.check)
        check(&rehearsal, &records);
    text_free(&overrides);
    return 0;
}
