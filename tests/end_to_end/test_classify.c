/* mtil classify trains one classifier for each dataset of a suite; each is a run like others. */
#include "tests/end_to_end/rows.h"

#include <stdlib.h>
#include <string.h>

#define WORDS " --quiet model.weights=scratch model.resolution=16 model.patch=8 model.width=64 model.blocks=1"
#define LINEAR " head.name=linear method.name=supervised"

TEST(every_dataset_has_a_run)
{
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_ends(&workshop, "classify tiny.yaml" WORDS, 0);
    assert_int_equal(words_count(outcome.out.data, "after"), 3); /* a matrix each, of which one row says it all */
    assert_int_equal(words_count(outcome.out.data, "\n"), 3 * 3);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db",
                "SELECT task_order, method, model, status, (SELECT count(*) FROM evaluations e WHERE e.run = runs.run) "
                "FROM runs ORDER BY run",
                "mnist,supervised,scratch,finished,1\neurosat,supervised,scratch,finished,1\n"
                "dtd,supervised,scratch,finished,1\n");
    program_succeeds(&workshop, "verify results.db --quiet");
    program_succeeds(&workshop, "rerun results.db 2 --quiet");
    program_succeeds(&workshop, "report results.db --out report --quiet");
    /* the same run by its other name is finished */
    program_succeeds(&workshop, "run tiny.yaml data.order=mnist" WORDS LINEAR);
    rows_expect(&workshop, "results.db", "SELECT count(*) FROM runs", "3\n");
    workshop_close(&workshop);
}

/* One without a file of weights has no configuration beside it; that is not unknown. */
TEST(classifiers_are_compared_by_their_settings)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "classify tiny.yaml data.order=mnist" WORDS);
    program_succeeds(&workshop, "classify tiny.yaml data.order=mnist --quiet");
    struct outcome outcome = program_ends(&workshop, "compare results.db --format csv", 0);
    assert_int_equal(words_count(outcome.out.data, "model.configuration = none"), 1);
    assert_int_equal(words_count(outcome.out.data, "not recorded"), 0);
    outcome_free(&outcome);
    workshop_close(&workshop);
}

/* An MLP in one of two blocks, experts in the other. */
#define MIXTURE                                                                                                        \
    " method.ffn=rmoe adapter.experts=3 adapter.top_k=1 adapter.blocks=last_1 adapter.bottleneck=64 "                  \
    "adapter.capacity=0 model.blocks=2"

/* The file knows its dataset: eval finds it in a suite of three, and its answer is the run's. */
TEST(a_file_is_tested_and_answers)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "classify tiny.yaml data.order=eurosat" WORDS MIXTURE);
    program_succeeds(&workshop, "verify results.db --quiet");
    rows_expect(&workshop, "results.db", "SELECT DISTINCT block FROM class_experts", "1\n");
    char *found = workshop_find(&workshop, "runs/*/seed1/weights.safetensors"),
         *saved = workshop_path(&workshop, "saved.safetensors");
    assert_int_equal(rename(found, saved), 0);
    struct text row = {0};
    char *database = workshop_path(&workshop, "results.db");
    rows_query(database, "SELECT name || ',' || images || ',' || correct FROM tasks JOIN evaluations USING (run, task)",
               &row);
    struct outcome outcome = program_ends(&workshop, "eval tiny.yaml --weights saved.safetensors --format csv", 0);
    row.data[strcspn(row.data, "\n")] = 0;
    assert_int_equal(words_count(outcome.out.data, row.data), 1);
    outcome_free(&outcome);
    program_fails(&workshop, &(struct launch){.arguments = "eval tiny.yaml --weights saved.safetensors data.order=dtd"},
                  (const char *const[]){"saved.safetensors", "head", "classes", NULL});
    outcome = program_ends(&workshop, "predict --weights saved.safetensors --format csv --quiet data/eurosat", 0);
    assert_true(words_count(outcome.out.data, ",eurosat,,") > 1);
    outcome_free(&outcome);
    program_succeeds(&workshop,
                     "embed --weights saved.safetensors --images data/eurosat/2750/River --out features --quiet");
    program_fails(&workshop,
                  &(struct launch){.arguments = "predict --weights saved.safetensors --adapters adapters.safetensors "
                                                "--router 0 data/eurosat"},
                  (const char *const[]){"saved.safetensors", "classifier", "--adapters", NULL});
    program_fails(&workshop, &(struct launch){.arguments = "eval tiny.yaml --adapters saved.safetensors --router own"},
                  (const char *const[]){"saved.safetensors", "expected adapters", "--weights", NULL});
    text_free(&row);
    free(database);
    free(saved);
    free(found);
    workshop_close(&workshop);
}

TEST(what_makes_no_sense_is_refused)
{
    struct workshop workshop;
    workshop_open(&workshop);
    program_fails(&workshop, &(struct launch){.arguments = "run tiny.yaml" WORDS LINEAR},
                  (const char *const[]){"head.name", "linear", "mtil classify", NULL});
    program_fails(
        &workshop,
        &(struct launch){.arguments = "eval tiny.yaml --weights clip.safetensors data.order=mnist" WORDS LINEAR},
        (const char *const[]){"eval", "head.name", "linear", "mtil classify", NULL});
    program_fails(&workshop, &(struct launch){.arguments = "classify tiny.yaml method.name=lwf" WORDS},
                  (const char *const[]){"lwf", "class prompts", "supervised", NULL});
    workshop_close(&workshop);
}

/* A suite with rows becomes a table with differences from the dense one, a block for each dataset. */
TEST(rows_make_a_table)
{
    static const char rows[] =
        "(cat tiny.yaml; printf 'rows:\\n  Dense: {}\\n  probe: {method.train: head}\\n') > rows.yaml";
    struct workshop workshop;
    workshop_open(&workshop);
    assert_int_equal(workshop_shell(&workshop, rows), 0);
    struct outcome outcome =
        program_ends(&workshop, "sweep rows.yaml --format csv seed=1,2 data.order=mnist,eurosat" WORDS LINEAR, 0);
    assert_int_equal(words_count(outcome.out.data, "rows,mnist,Dense,2,"), 1);
    outcome_free(&outcome);
    outcome = program_ends(&workshop, "query results.db paper-table --format csv", 0);
    assert_int_equal(words_count(outcome.out.data, "rows,mnist,Dense,2,"), 1);
    assert_int_equal(words_count(outcome.out.data, "rows,eurosat,probe,2,"), 1);
    assert_int_equal(words_count(outcome.out.data, "not established") + words_count(outcome.out.data, "above") +
                         words_count(outcome.out.data, "below"),
                     2);
    outcome_free(&outcome);
    program_complains(&workshop, &(struct launch){.arguments = "query results.db paper-table --baseline Prob"},
                      (const char *const[]){"baseline", "Prob", NULL});
    /* its rows are called as the suite calls them, without the method's other spelling */
    program_succeeds(&workshop, "report results.db --out page --quiet");
    assert_int_equal(
        workshop_shell(&workshop, "grep -q Dense page/index.html && ! grep -q 'supervised · ' page/index.html"), 0);
    workshop_close(&workshop);
}

static void expect_words(const struct workshop *workshop, const char *arguments, const char *const *words)
{
    struct outcome outcome = program_ends(workshop, arguments, 0);
    for (size_t i = 0; words[i] != NULL; i++)
        if (words_count(outcome.out.data, words[i]) == 0)
            fail_msg("mtil %s: expected \"%s\" in: %s", arguments, words[i], outcome.out.data);
    outcome_free(&outcome);
}

TEST(heads_and_sizes_are_listed)
{
    struct workshop workshop;
    workshop_open(&workshop);
    expect_words(&workshop, "list heads -v", (const char *const[]){"text", "linear", "head.pool", NULL});
    expect_words(&workshop, "list models -v", (const char *const[]){"scratch", "model.patch", NULL});
    workshop_close(&workshop);
}
