/* Heads and activation of weights that do not say them: asked for, read from beside them, and never guessed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/end_to_end/rows.h"
#include "tests/end_to_end/workshop.h"

#define EMBED "embed --quiet --vocab vocabulary.txt --texts words.txt --threads 1 "
#define RUN "run tiny.yaml --dry-run --quiet model.weights=silent.safetensors "
#define EVAL "eval tiny.yaml --quiet data.order=mnist --weights "

static const char config[] =
    "{\"model_cfg\": {\"embed_dim\": 32, \"vision_cfg\": {\"image_size\": 32, \"layers\": 2, \"width\": 64, "
    "\"head_width\": 32, \"patch_size\": 16}, \"text_cfg\": {\"context_length\": 48, \"vocab_size\": %zu, \"width\": "
    "64, "
    "\"heads\": 4, \"layers\": 1}, \"quick_gelu\": false}}";

static struct workshop workshop;

static int set_up(void **state)
{
    (void)state;
    workshop_open(&workshop);
    workshop_drop_metadata(&workshop, "clip.safetensors", "silent.safetensors");
    scratch_write_text(&workshop.scratch, "words.txt",
                       "\xef\xbb\xbf"
                       "a forest\na river\n");
    scratch_write_text(&workshop.scratch, "plain.txt", "a forest\na river\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workshop_close(&workshop);
    return 0;
}

static void write_config(const char *name)
{
    struct safetensors *file;
    struct error error;
    struct text text = {0};
    char *path = workshop_path(&workshop, "clip.safetensors");
    assert_int_equal(safetensors_open(&file, path, &error), OK);
    text_add(&text, config, safetensors_find(file, "token_embedding.weight")->shape[0]);
    scratch_write_text(&workshop.scratch, name, text.data);
    safetensors_close(file);
    text_free(&text);
    free(path);
}

static void fails(const char *arguments, int exit_status, const char *const *words)
{
    struct launch launch = {.arguments = arguments};
    struct outcome outcome = program_ends(&workshop, arguments, exit_status);
    outcome_free(&outcome);
    program_fails(&workshop, &launch, words);
}

#define FAILS(arguments, exit_status, ...) fails(arguments, exit_status, (const char *const[]){__VA_ARGS__, NULL})

static void expect_same_features(const char *a, const char *b, bool same)
{
    struct safetensors *files[2];
    struct error error;
    char *paths[2] = {workshop_path(&workshop, a), workshop_path(&workshop, b)};
    const struct safetensor *features[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(safetensors_open(&files[i], paths[i], &error), OK);
        features[i] = safetensors_find(files[i], "features");
        assert_int_equal(features[i]->shape[0], 2);
        assert_int_equal(features[i]->shape[1], 32);
    }
    assert_int_equal(memcmp(features[0]->data, features[1]->data, (size_t)2 * 32 * sizeof(float)) == 0, same);
    for (int i = 0; i < 2; i++) {
        safetensors_close(files[i]);
        free(paths[i]);
    }
}

TEST(silent_weights_are_asked_about)
{
    FAILS(EMBED "--weights silent.safetensors --out x", 1, "silent.safetensors", "heads is unknown", "--heads",
          "config.json");
    FAILS(EMBED "--weights silent.safetensors --out x --heads 1,1", 1, "activation is unknown", "--activation");
    FAILS(EMBED "--weights silent.safetensors --out x --heads 1", 1, "heads is unknown", "IMAGE,TEXT from --heads");
    FAILS(EMBED "--weights silent.safetensors --out x --heads 1,1,1", 2, "--heads", "16,16", "1, 1, 1");
    FAILS(EMBED "--weights silent.safetensors --out x --heads 3,1", 1, "divides", "64", "3", "--heads");
    FAILS(EMBED "--weights clip.safetensors --out x --heads 2,1", 1, "2 heads according to --heads", "metadata");
    FAILS(RUN, 1, "heads is unknown", "model.heads");
    FAILS(RUN "model.heads=1,1", 1, "activation is unknown", "model.activation");
    FAILS(RUN "model.heads=1,1,1", 2, "model.heads", "1, 1, 1");
    program_succeeds(&workshop, RUN "model.heads=1,1 model.activation=quick_gelu");
    program_succeeds(&workshop, EMBED "--weights clip.safetensors --out own");
    program_succeeds(&workshop, EMBED "--weights silent.safetensors --heads 1,1 --activation quick_gelu --out told");
    program_succeeds(&workshop, EMBED "--weights silent.safetensors --heads 1,1 --activation gelu --out gelu");
    program_succeeds(&workshop, EMBED "--weights silent.safetensors --heads 1,2 --activation quick_gelu --out two");
    program_succeeds(&workshop,
                     "embed --quiet --vocab vocabulary.txt --texts plain.txt --weights clip.safetensors --out plain");
    expect_same_features("own", "told", true);
    expect_same_features("own", "gelu", false);
    expect_same_features("own", "two", false);
    expect_same_features("own", "plain", true);
}

TEST(a_configuration_beside_them_answers)
{
    write_config("open_clip_config.json");
    program_succeeds(&workshop, EMBED "--weights silent.safetensors --out asked");
    unlink(scratch_file(&workshop.scratch, "open_clip_config.json"));
    program_succeeds(&workshop, EMBED "--weights silent.safetensors --heads 2,4 --activation gelu --out told");
    expect_same_features("asked", "told", true);
    write_config("clip.json");
    FAILS(EMBED "--weights clip.safetensors --out x", 1, "1 heads according to the file's metadata", "2 according to",
          "clip.json");
    FAILS("run tiny.yaml --dry-run --quiet", 1, "clip.json");
    unlink(scratch_file(&workshop.scratch, "clip.json"));
}

/* As a checkpoint of PyTorch's they are the same weights, and the same adapters. */
TEST(checkpoints_are_weights)
{
    program_succeeds(&workshop, "convert weights clip.safetensors clip.pth --quiet");
    program_succeeds(&workshop, EMBED "--weights clip.safetensors --out whole");
    program_succeeds(&workshop, EMBED "--weights clip.pth --out converted");
    expect_same_features("whole", "converted", true);
    program_succeeds(&workshop, "convert weights adapters.safetensors both.pth --base clip.pth --quiet");
    program_succeeds(&workshop, "convert weights both.pth taken.safetensors --only adapters --quiet");
    program_succeeds(&workshop, EMBED "--weights clip.pth --adapters adapters.safetensors --router 0 --out adapted");
    program_succeeds(&workshop, EMBED "--weights both.pth --adapters both.pth --router 0 --out checkpoint");
    program_succeeds(&workshop, EMBED "--weights both.pth --adapters taken.safetensors --router 0 --out taken");
    expect_same_features("whole", "adapted", false);
    expect_same_features("adapted", "checkpoint", true);
    expect_same_features("adapted", "taken", true);
    FAILS("convert weights clip.pth x.pth --base clip.safetensors", 2, "both have tensor", "adapters alone");
    FAILS("convert weights clip.pth x.pth --only adapters", 2, "clip.pth", "has no tensors");
    FAILS("convert weights clip.pth x.pth --only some", 2, "--only", "adapters", "some");
    FAILS("convert weights clip.pth x.h5", 2, ".safetensors", "x.h5");
}

static void write_stating(const char *from, const char *to, const struct safetensors_metadata *metadata, size_t count)
{
    struct safetensors *file;
    struct error error;
    char *source = workshop_path(&workshop, from), *target = workshop_path(&workshop, to);
    assert_int_equal(safetensors_open(&file, source, &error), OK);
    assert_int_equal(
        safetensors_write(target, safetensors_at(file, 0), safetensors_count(file), metadata, count, &error), OK);
    safetensors_close(file);
    free(source);
    free(target);
}

/* What a file says of adapters that are left out is not said of those that take their place. */
TEST(metadata_stay_with_their_tensors)
{
    struct safetensors *file;
    struct error error;
    write_stating("clip.safetensors", "base.safetensors",
                  (struct safetensors_metadata[]){{"activation", "quick_gelu"}, {"routing", "per_token"}}, 2);
    write_stating("adapters.safetensors", "odd.safetensors",
                  (struct safetensors_metadata[]){{"scale", "0.1"}, {"top_k", "1"}}, 2);
    write_stating("adapters.safetensors", "other.safetensors", (struct safetensors_metadata[]){{"activation", "gelu"}},
                  1);
    program_succeeds(&workshop, "convert weights base.safetensors only.safetensors --only weights --quiet");
    program_succeeds(&workshop, "convert weights odd.safetensors joined.safetensors --base base.safetensors --quiet");
    for (int i = 0; i < 2; i++) {
        char *path = workshop_path(&workshop, i == 0 ? "only.safetensors" : "joined.safetensors");
        assert_int_equal(safetensors_open(&file, path, &error), OK);
        assert_string_equal(safetensors_metadata_value(file, "activation"), "quick_gelu");
        assert_null(safetensors_metadata_value(file, "routing"));
        safetensors_close(file);
        free(path);
    }
    FAILS("convert weights other.safetensors x.pth --base base.safetensors", 2, "metadata activation", "quick_gelu",
          "different models");
    struct launch launch = {.arguments = "convert weights odd.safetensors odd.pth"};
    struct outcome outcome = program_run(&workshop, &launch);
    assert_int_equal(outcome.exit_status, 0);
    assert_non_null(strstr(outcome.errors.data, "top_k=1"));
    assert_null(strstr(outcome.errors.data, "scale="));
    outcome_free(&outcome);
}

/* The tensors of a file in two shards with an index. */
static void write_shards(const char *name)
{
    struct safetensors *file;
    struct error error;
    struct text map = {0};
    char *path = workshop_path(&workshop, name),
         *shards[2] = {workshop_path(&workshop, "shard-1"), workshop_path(&workshop, "shard-2")};
    assert_int_equal(safetensors_open(&file, path, &error), OK);
    size_t count = safetensors_count(file), half = count / 2;
    for (size_t i = 0; i < count; i++)
        text_add(&map, "%s\"%s\": \"shard-%d\"", i > 0 ? ", " : "{\"weight_map\": {", safetensors_at(file, i)->name,
                 i < half ? 1 : 2);
    text_add(&map, "}}");
    scratch_write_text(&workshop.scratch, "clip.safetensors.index.json", map.data);
    for (size_t s = 0; s < 2; s++) {
        size_t first = s * half, last = s == 0 ? half : count;
        assert_int_equal(safetensors_write(shards[s], safetensors_at(file, first), last - first, NULL, 0, &error), OK);
        free(shards[s]);
    }
    safetensors_close(file);
    text_free(&map);
    free(path);
}

TEST(shards_are_weights)
{
    write_shards("clip.safetensors");
    program_succeeds(&workshop, EMBED "--weights clip.safetensors --out whole");
    program_succeeds(&workshop, EMBED "--weights clip.safetensors.index.json --heads 1,1 --activation quick_gelu --out "
                                      "shards");
    expect_same_features("whole", "shards", true);
}

/* What identifies a run is the content of every shard, which is not named by the suite. */
TEST(a_changed_shard_makes_another_run)
{
    static const char run[] = "run tiny.yaml --quiet data.order=mnist training.iterations=1 "
                              "model.weights=clip.safetensors.index.json model.heads=1,1 model.activation=quick_gelu";
    program_succeeds(&workshop, run);
    workshop_write_other_weights(&workshop, "other.safetensors");
    write_shards("other.safetensors");
    program_succeeds(&workshop, run);
    rows_expect(&workshop, "results.db",
                "SELECT count(DISTINCT digest), min(files), count(*) FROM inputs WHERE kind = "
                "'weights'",
                "2,3,2\n");
}

TEST(weights_of_another_kind_are_not_evaluated)
{
    program_succeeds(&workshop, EVAL "silent.safetensors");
    write_config("silent.json");
    FAILS(EVAL "silent.safetensors", 1, "the model in use", "silent.json");
    unlink(scratch_file(&workshop.scratch, "silent.json"));
}

TEST(names_are_not_obeyed)
{
    scratch_write_text(&workshop.scratch, "=1+1.yaml", "run: {}\n");
    scratch_write_text(&workshop.scratch, "mark.yaml",
                       "\xef\xbb\xbfmodel: {weights: clip.safetensors, vocabulary: vocabulary.txt}\ndata: {root: data, "
                       "order: [mnist]}\n");
    scratch_write_text(&workshop.scratch, "tab.yaml", "data:\n\troot: data\n");
    scratch_write_text(&workshop.scratch, "broken.yaml", "data: [\n");
    FAILS("run tab.yaml", 2, "tab.yaml:2:1", "a tab", "spaces");
    FAILS("run broken.yaml", 2, "broken.yaml:1:1");
    FAILS("run ./=1+1.yaml", 2, "suite \"=1+1\"", "printable");
    FAILS("run tiny.yaml data.order=@mnist", 2, "command line: data: order \"@mnist\"", "printable");
    FAILS("run tiny.yaml data.root=\x1b]0;gone\x07", 1, "\\x1b]0;gone\\x07");
    FAILS("run \xe2\x80\xaelmay.yaml", 1, "\\u202elmay.yaml");
    FAILS("frobnicate\x1b[2J", 2, "\\x1b[2J");
    program_succeeds(&workshop, "run mark.yaml --dry-run --quiet");
}

TEST_GROUP(set_up, tear_down)
