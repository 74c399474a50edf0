#include "harness/run/identity/inputs.h"

#include <string.h>

#include "tests/harness/small_run.h"

/* As a run does it, or (alone) as a sweep. The caller frees inputs, of a failure, too. */
static status try_inputs(const struct small_run *run, bool alone, struct inputs *inputs)
{
    struct surveyor surveyor;
    struct run *e = run->experiment;
    must(surveyor_open(&surveyor, &e->model.settings, NULL, NULL, NULL, &error));
    if (!alone)
        must(surveyor_tasks(e, &surveyor, &error));
    status result = inputs_read(inputs, &surveyor, run->suite, alone ? NULL : e, &error);
    surveyor_close(&surveyor);
    return result;
}

static const char *hash_of(const struct small_run *run, bool alone)
{
    struct inputs inputs;
    must(try_inputs(run, alone, &inputs));
    const char *hash = small_run_format("%s", inputs.hash);
    inputs_free(&inputs);
    return hash;
}

/* The inputs are, each as its kind and its task; the last is described with these words. */
static void expect_inputs(const struct small_run *run, const char *expected, size_t described, const char *words)
{
    struct inputs inputs;
    const char *found = "";
    must(try_inputs(run, false, &inputs));
    for (size_t i = 0; i < inputs.count; i++) {
        found = small_run_format("%s%s %d, ", found, inputs.rows[i].kind, (int)inputs.rows[i].task);
        assert_int_equal(strlen(inputs.rows[i].digest), DIGEST_SIZE - 1);
        assert_int_equal(inputs.rows[i].path[0], '/');
    }
    assert_string_equal(found, expected);
    char *sentence = small_run_keep(inputs_describe(&inputs.rows[described], run->experiment));
    assert_non_null(strstr(sentence, words));
    inputs_free(&inputs);
}

#define MODEL "weights -1, configuration -1, vocabulary -1, "
#define TASK(k) "prompts " k ", train " k ", test " k ", "

RUN_TEST(a_run_and_a_sweep_agree, NULL)
{
    const char *const *const all[] = {NULL, WORDS("data.shots=2"), WORDS("data.template=one {}"),
                                      WORDS("data.order=third", "data.split_by=labels", "data.parts=2")};
    const char *seen[4];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        small_run_reopen(run, 1, all[i]);
        seen[i] = hash_of(run, false);
        assert_string_equal(hash_of(run, true), seen[i]);
        small_run_reopen(run, 2, all[i]); /* other shots, the same inputs */
        assert_string_equal(hash_of(run, false), seen[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[k], seen[i]);
    }
}

RUN_TEST(every_input_has_a_row, NULL)
{
    expect_inputs(run, MODEL TASK("0") TASK("1") TASK("2"), 5, "the test images of first (");
    small_run_reopen(run, 1, WORDS("data.order=third", "data.split_by=labels", "data.parts=2"));
    expect_inputs(run, MODEL TASK("-1"), 5, "the test images of third ("); /* of the whole dataset */
}

/* What a method's options name counts by its contents, wherever it lies. */
RUN_TEST(a_methods_files_are_inputs, NULL)
{
    struct inputs inputs;
    char key[4][DIGEST_SIZE];
    const char *hash[4];
    for (int i = 0; i < 4; i++) { /* the same elsewhere, another picture, another text */
        scratch_write_png(&run->scratch, small_run_format("%d/deep/a.png", i), 20, 20, i == 2 ? 0xff : 0xff00);
        scratch_write_text(&run->scratch, small_run_format("%d.txt", i), i == 3 ? "green\n" : "a red square\n");
        small_run_reopen(run, 1,
                         WORDS("method.name=zscl",
                               small_run_format("method.reference_images=%s/%d", run->scratch.path, i),
                               small_run_format("method.reference_texts=%s/%d.txt", run->scratch.path, i)));
        hash[i] = hash_of(run, true);
        inputs_key(run->suite, key[i]);
        assert_string_equal(hash_of(run, false), hash[i]);
        expect_inputs(run, MODEL "reference_images -1, reference_texts -1, " TASK("0") TASK("1") TASK("2"), 4,
                      "method.reference_texts (/");
    }
    assert_string_equal(hash[1], hash[0]);
    assert_string_not_equal(key[1], key[0]); /* a sweep looks at both */
    assert_string_not_equal(hash[2], hash[0]);
    assert_string_not_equal(hash[3], hash[0]);
    assert_true(settings_incidental("method.reference_images", "anywhere"));
    assert_false(settings_incidental("method.l2", "1"));
    scratch_write_text(&run->scratch, "3/deep/a.png", "no picture");
    must_refuse(try_inputs(run, true, &inputs), ERROR_FORMAT, "method.reference_images: ", "1 of 1 images below",
                "cannot be decoded");
    inputs_free(&inputs);
}

/* What was read and what is described would be two files. */
RUN_TEST(a_file_that_was_written_to_in_between_is_told, NULL)
{
    struct inputs inputs;
    scratch_write_text(&run->scratch, "vocabulary.txt", "other");
    must_refuse(try_inputs(run, false, &inputs), ERROR_FORMAT, "model.vocabulary", "vocabulary.txt", "start again");
    inputs_free(&inputs);
}

RUN_TEST(keys_tell_inputs_apart, NULL)
{
    static const struct {
        const char *override;
        bool same;
    } others[] = {{"training.batch=4", true},         {"tasks.first.batch=4", true}, {"merge.every=2", true},
                  {"model.weights=elsewhere", false}, {"data.root=.", false},        {"tasks.first.classes=3", false}};
    char key[DIGEST_SIZE], other[DIGEST_SIZE];
    inputs_key(run->suite, key);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct suite *suite;
        must(suite_parse(&suite, suite_text(run->suite), strlen(suite_text(run->suite)), "small.yaml",
                         settings_sections, &others[i].override, 1, &error));
        inputs_key(suite, other);
        assert_int_equal(strcmp(key, other) == 0, others[i].same);
        suite_destroy(suite);
    }
}
