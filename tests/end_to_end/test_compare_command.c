/* mtil compare on runs that the program made, and on made-up ones whose numbers are known. */
#include "tests/end_to_end/workshop.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/results/compare_sample.h"

static struct text answer(const struct workshop *workshop, const char *arguments)
{
    struct outcome outcome = program_run(workshop, &(struct launch){.arguments = arguments});
    if (outcome.exit_status != 0 || outcome.errors.size != 0)
        fail_msg("%s: %s", arguments, outcome.errors.data);
    text_free(&outcome.errors);
    return outcome.out;
}

static void expect(const struct workshop *workshop, const char *arguments, const char *part)
{
    struct text found = answer(workshop, arguments);
    if (!strstr(found.data, part))
        fail_msg("%s: expected \"%s\", found:\n%s", arguments, part, found.data);
    text_free(&found);
}

static json_t *expect_json(const struct workshop *workshop, const char *arguments)
{
    struct text found = answer(workshop, arguments);
    json_error_t fault;
    json_t *root = json_loads(found.data, 0, &fault);
    if (!root)
        fail_msg("%s: %s in\n%s", arguments, fault.text, found.data);
    text_free(&found);
    return root;
}

/* Two policies of three seeds each; threads differ and do not matter, training.warmup does. */
TEST(runs_of_the_program)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml --quiet run.seeds=1,2,3 merge.policy=none run.threads=1");
    program_succeeds(&workshop, "run tiny.yaml --quiet run.seeds=1,2,3 merge.policy=most_used run.threads=2");
    program_succeeds(&workshop, "run tiny.yaml --quiet run.seeds=1 merge.policy=most_used training.warmup=3");
    expect(&workshop, "compare results.db", "over 3 common seeds");
    expect(&workshop, "compare", "With 3 seeds no p below 0.25 is possible; 6 are needed for 0.05");
    expect(&workshop, "compare results.db", "they differ in training.warmup (3 here, ");
    expect(&workshop, "compare results.db --by training.warmup --policy most_used", "over 1 common seed");
    json_t *root = expect_json(&workshop, "compare results.db --baseline none --per-image --format json");
    assert_int_equal(json_array_size(json_object_get(root, "contexts")), 2);
    assert_int_equal(json_array_size(json_object_get(root, "images")), 1 + 3); /* the mean and each dataset */
    assert_int_equal(json_array_size(json_object_get(root, "discordance")), 3 * 3);
    const json_t *mean = json_array_get(json_object_get(root, "images"), 0), *pairs = json_object_get(root, "pairs");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        if (strcmp(json_string_value(json_object_get(pair, "metric")), "last") != 0 ||
            strcmp(json_string_value(json_object_get(pair, "dataset")), "mean") != 0)
            continue;
        double of_runs = json_number_value(json_object_get(pair, "difference"));
        double of_images = json_number_value(json_object_get(mean, "difference"));
        assert_true(of_runs - of_images < 1e-9 && of_images - of_runs < 1e-9);
    }
    json_decref(root);
    workshop_close(&workshop);
}

static void make_known_runs(const struct workshop *workshop)
{
    struct error error = {0};
    struct store *store;
    char *path = workshop_path(workshop, "known.db");
    if (store_open(&store, path, STORE_WRITE, &error) != OK)
        fail_msg("%s", error.message);
    for (int64_t seed = 1; seed <= 8; seed++) {
        compare_sample_add(store, &(struct compare_sample){
                                      .policy = "none", .seed = seed, .every = 50, .kept = PER_IMAGE_PREDICTIONS});
        compare_sample_add(
            store, &(struct compare_sample){
                       .policy = "most_used", .seed = seed, .every = 50, .lift = 4, .kept = PER_IMAGE_PREDICTIONS});
    }
    store_close(store);
    free(path);
}

TEST(every_form_of_the_answer)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"--baseline none",
         "Last: most_used is 2.75 points above none (95% interval +2.58 to +2.92) over 8 common seeds"},
        {"--baseline none --metric last --show pairs --format csv",
         "baseline,policy,metric,seeds,difference,sd,low,high,median,effect,p,p_holm,p_wilcoxon,p_t,r,verdict\r\n"
         "none,most_used,last,8,2.75,"},
        {"--metric last --show groups --format markdown", "| most\\_used | last "},
        {"--format latex", "\\toprule"},
        {"--format latex", "% - Last: most_used is 2.75 points above none"},
        {"--detect 0.5 --metric last --show words",
         "takes 6 seeds with the observed standard deviation of 0.20, 6 to 8"},
        {"--equivalence 4 --metric last --show words", "Equal within 4 points (90% interval +2.62 to +2.88)"},
        {"--unpaired --metric last --show words", "over 16 runs that are not paired. Supported: exact p 0.0002."},
        {"--primary last --show words", "after Holm's correction for 2 secondary tests and the primary ones 0.0156"},
        {"--per-image --show images", "router_errors_baseline"},
        {"--show images", "p_mcnemar"},
        {"--per-dataset --metric last --show pairs", "aircraft"},
    };
    struct workshop workshop;
    workshop_open(&workshop);
    make_known_runs(&workshop);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[120];
        snprintf(line, sizeof line, "compare known.db %s", cases[i].arguments);
        expect(&workshop, line, cases[i].part);
    }
    struct outcome alone =
        program_run(&workshop, &(struct launch){.arguments = "compare known.db --policy none --show pairs"});
    assert_int_equal(alone.exit_status, 0);
    assert_int_equal(alone.out.size, 0);
    assert_non_null(strstr(alone.errors.data, "every run has policy = none"));
    text_free(&alone.out);
    text_free(&alone.errors);
    json_t *root = expect_json(&workshop, "compare known.db --format json --metric transfer,last --show pairs");
    assert_int_equal(json_array_size(json_object_get(root, "pairs")), 2);
    assert_null(json_object_get(root, "groups"));
    json_decref(root);
    static const struct {
        const char *arguments, *word;
    } wrong[] = {{"compare missing.db", "no such file"},
                 {"compare tiny.yaml", "expected a results database"},
                 {"compare known.db --by run.threads", "how a run is computed"},
                 {"compare known.db --seed 99", "unknown seed"},
                 {"compare known.db --detect 0", "detect"},
                 {"compare known.db --primary lst", "the primary metric \"lst\" is not asked for"},
                 {"compare known.db --factors merge.policy", "expected two factors, found 1"},
                 {"compare known.db --factors merge.policy,merge.every --by policy", "found both"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        program_complains(&workshop, &(struct launch){.arguments = wrong[i].arguments},
                          (const char *const[]){wrong[i].word, NULL});
    workshop_close(&workshop);
}
