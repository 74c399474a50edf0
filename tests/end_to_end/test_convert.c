/* mtil convert rmoe: what it writes, what it says of it, and what is trained from it; and mtil layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/end_to_end/workshop.h"

#define CONVERT "convert rmoe --quiet --format csv --threads 2 "

static struct workshop workshop;

static int set_up(void **state)
{
    (void)state;
    workshop_open(&workshop);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workshop_close(&workshop);
    return 0;
}

/* Images, largest feature, largest deviation. */
struct answer {
    double images, largest, deviation;
};

static struct answer convert(const char *arguments)
{
    char line[256];
    struct answer answer;
    snprintf(line, sizeof line, CONVERT "%s", arguments);
    struct outcome outcome = program_ends(&workshop, line, 0);
    const char *row = strchr(outcome.out.data, '\n');
    if (row == NULL || sscanf(row, "\n%lf,%lf,%lf", &answer.images, &answer.largest, &answer.deviation) != 3)
        fail_msg("mtil %s: %s", line, outcome.out.data);
    outcome_free(&outcome);
    assert_true(answer.largest > 0);
    return answer;
}

TEST(noise_and_gates_are_what_deviates)
{
    struct answer none = convert("clip.safetensors out.safetensors --blocks last_1 --noise 0"),
                  little = convert("clip.safetensors out.safetensors --blocks last_1 --noise 0.01"),
                  much = convert("clip.safetensors out.safetensors --blocks last_1 --noise 0.1"),
                  unaligned = convert("clip.safetensors out.safetensors --blocks last_1 --noise 0 --unaligned");
    assert_int_equal((int)none.images, 16);
    assert_true(none.deviation == 0);
    assert_true(little.deviation > 0 && much.deviation > 3 * little.deviation);
    assert_true(unaligned.deviation > 3 * little.deviation);
    struct answer several = convert("clip.safetensors out.safetensors --noise 0 --top-k 3 --blocks all");
    assert_true(several.deviation < 1e-5 * several.largest);
    struct answer given = convert("clip.safetensors out.safetensors --noise 0 --blocks 0 data/MNIST data/dtd");
    assert_true(given.images > 16 && given.deviation == 0);
}

/* --- The file --- */

struct opened {
    struct safetensors *file;
};

static struct opened open_file(const char *name)
{
    struct opened opened;
    struct error error;
    char *path = workshop_path(&workshop, name);
    if (safetensors_open(&opened.file, path, &error) != OK)
        fail_msg("%s", error.message);
    free(path);
    return opened;
}

static const struct safetensor *tensor(const struct opened *opened, const char *name)
{
    const struct safetensor *found = safetensors_find(opened->file, name);
    if (found == NULL)
        fail_msg("there is no %s", name);
    return found;
}

/* Standard deviations of the tensor and of what the expert's differs from it by. */
static void deviations(const struct safetensor *from, const struct safetensor *to, double *own, double *added)
{
    size_t n = safetensor_elements(from);
    double sum = 0, squares = 0, differences = 0;
    assert_int_equal(safetensor_elements(to), n);
    for (size_t i = 0; i < n; i++) {
        double value = (double)((const float *)from->data)[i],
               difference = (double)((const float *)to->data)[i] - value;
        sum += value;
        squares += value * value;
        differences += difference * difference;
    }
    *own = sqrt(squares / (double)n - sum / (double)n * (sum / (double)n));
    *added = sqrt(differences / (double)n);
}

static void check_metadata(const struct opened *out)
{
    static const char *const expected[][2] = {
        {"expert_kind", "ffn"}, {"router", "softmax_topk"}, {"aligned_output", "shared"},
        {"blocks", "last_1"},   {"routing", "per_token"},   {"towers", "image"},
        {"top_k", "1"},         {"image_heads", "1"},       {"activation", "quick_gelu"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *found = safetensors_metadata_value(out->file, expected[i][0]);
        if (found == NULL || strcmp(found, expected[i][1]) != 0)
            fail_msg("%s is %s, expected %s", expected[i][0], found != NULL ? found : "not there", expected[i][1]);
    }
}

/* The image tower under timm's names, experts in the place of one MLP, each with noise of its own. */
TEST(the_file_is_a_classifiers)
{
    static const char *const parts[] = {"c_fc.weight", "c_proj.weight"};
    convert("clip.safetensors out.safetensors --experts 3 --noise 0.05 --blocks last_1");
    struct opened clip = open_file("clip.safetensors"), out = open_file("out.safetensors");
    check_metadata(&out);
    const struct safetensor *mlp = tensor(&clip, "visual.transformer.resblocks.0.mlp.c_fc.weight"),
                            *same = tensor(&out, "blocks.0.mlp.fc1.weight");
    assert_memory_equal(mlp->data, same->data, safetensor_elements(mlp) * sizeof(float));
    assert_null(safetensors_find(out.file, "blocks.1.mlp.fc1.weight"));
    assert_null(safetensors_find(out.file, "head.weight"));
    assert_int_equal(tensor(&out, "visual.transformer.resblocks.1.router_list.0")->shape[1], 3);
    for (int expert = 0; expert < 3; expert++)
        for (size_t p = 0; p < 2; p++) {
            char from[96], to[96];
            double own, added;
            snprintf(from, sizeof from, "visual.transformer.resblocks.1.mlp.%s", parts[p]);
            snprintf(to, sizeof to, "visual.transformer.resblocks.1.adaptmlp_list.%d.%s", expert, parts[p]);
            deviations(tensor(&clip, from), tensor(&out, to), &own, &added);
            assert_true(fabs(added / own - 0.05) < 0.002);
        }
    const struct safetensor *first = tensor(&out, "visual.transformer.resblocks.1.adaptmlp_list.0.c_fc.weight"),
                            *second = tensor(&out, "visual.transformer.resblocks.1.adaptmlp_list.1.c_fc.weight");
    assert_memory_not_equal(first->data, second->data, safetensor_elements(first) * sizeof(float));
    safetensors_close(clip.file);
    safetensors_close(out.file);
}

/* A classifier that was trained here: its head goes along. */
TEST(a_classifier_keeps_its_head)
{
    program_succeeds(&workshop, "classify tiny.yaml --quiet data.order=mnist model.weights=scratch model.resolution=16 "
                                "model.patch=8 model.width=64 model.blocks=2");
    char *pattern = workshop_find(&workshop, "runs/*/seed*/weights.safetensors");
    assert_non_null(pattern);
    char line[512];
    snprintf(line, sizeof line, "%s out.safetensors --blocks 0,1 --noise 0", pattern);
    assert_true(convert(line).deviation == 0);
    struct opened trained = {NULL}, out = open_file("out.safetensors");
    struct error error;
    assert_int_equal(safetensors_open(&trained.file, pattern, &error), OK);
    const struct safetensor *head = tensor(&trained, "head.weight"), *same = tensor(&out, "head.weight");
    assert_memory_equal(head->data, same->data, safetensor_elements(head) * sizeof(float));
    safetensors_close(trained.file);
    safetensors_close(out.file);
    free(pattern);
}

#define CLASSIFY                                                                                                       \
    "classify tiny.yaml --quiet data.order=mnist adapter.experts=3 adapter.top_k=1 adapter.bottleneck=64 "             \
    "method.ffn=rmoe "

/* An intermediate stage with aligned output, then the downstream one without: each from the file of the one before. */
TEST(stages_start_from_one_another)
{
    char line[512];
    convert("clip.safetensors converted.safetensors --experts 3 --blocks 1");
    program_succeeds(&workshop, CLASSIFY "adapter.blocks=1 model.weights=converted.safetensors run.folder=first "
                                         "adapter.aligned_output=shared");
    char *first = workshop_find(&workshop, "first/*/seed*/weights.safetensors");
    assert_non_null(first);
    snprintf(line, sizeof line, CLASSIFY "adapter.blocks=1 model.weights=%s run.folder=second", first);
    program_succeeds(&workshop, line);
    char *second = workshop_find(&workshop, "second/*/seed*/weights.safetensors");
    assert_non_null(second);
    snprintf(line, sizeof line, CLASSIFY "adapter.blocks=by_score_1 model.weights=%s", first);
    program_succeeds(&workshop, line); /* experts that are there have their blocks: nothing is scored */
    assert_null(workshop_find(&workshop, "runs/*/seed*/layer_scores.safetensors"));
    free(first);
    free(second);
}

/* What was written is said to be there. */
TEST(unreadable_images_are_an_error)
{
    assert_int_equal(workshop_shell(&workshop, "echo no image > broken.png"), 0);
    program_complains(&workshop,
                      &(struct launch){.arguments = CONVERT "clip.safetensors kept.safetensors --blocks 0 broken.png"},
                      (const char *const[]){"1 of 1 images", "kept.safetensors is written", NULL});
    char *kept = workshop_find(&workshop, "kept.safetensors");
    assert_non_null(kept);
    free(kept);
}

/* The best first, for each tower, whatever blocks are asked for. */
TEST(layers_are_ranked)
{
    struct outcome outcome =
        program_ends(&workshop, "layers tiny.yaml --quiet --format csv adapter.score_steps=2 adapter.blocks=last_1", 0);
    char tower[16], last_tower[16] = "";
    double score, last = 0;
    long rank, block, rows = 0;
    for (const char *row = strchr(outcome.out.data, '\n'); row != NULL && row[1] != 0; row = strchr(row + 1, '\n')) {
        if (sscanf(row, "\n%15[a-z],%ld,%ld,%lf", tower, &rank, &block, &score) != 4)
            fail_msg("a row of: %s", outcome.out.data);
        bool same = strcmp(tower, last_tower) == 0;
        assert_true(score > 0 && (!same || score <= last));
        assert_int_equal(rank == 1, !same);
        snprintf(last_tower, sizeof last_tower, "%s", tower);
        last = score;
        rows++;
    }
    assert_int_equal(rows, 3); /* two blocks of the image tower, one of the text tower */
    outcome_free(&outcome);
}

static void complains(const char *arguments, const char *const *words)
{
    program_fails(&workshop, &(struct launch){.arguments = arguments}, words);
}

TEST(what_makes_no_sense_is_refused)
{
    complains(CONVERT "clip.safetensors out.safetensors --blocks by_score_1",
              (const char *const[]){"by_score_1", "mtil layers", NULL});
    complains(CONVERT "clip.safetensors out.safetensors --blocks last_3",
              (const char *const[]){"last_3", "2 blocks", NULL});
    complains(CONVERT "clip.safetensors out.safetensors --blocks 0 --experts 2 --top-k 3",
              (const char *const[]){"top_k is 3", "2 experts", NULL});
    complains(CONVERT "clip.safetensors ./clip.safetensors --blocks 0",
              (const char *const[]){"DENSE and OUT are both", "clip.safetensors", NULL});
    complains(CONVERT "adapters.safetensors out.safetensors", (const char *const[]){"adapters.safetensors", NULL});
    convert("clip.safetensors mixture.safetensors --blocks 1");
    complains(CONVERT "mixture.safetensors out.safetensors --blocks 0",
              (const char *const[]){"mixture.safetensors", "experts in place of MLPs", NULL});
}

TEST_GROUP(set_up, tear_down)
