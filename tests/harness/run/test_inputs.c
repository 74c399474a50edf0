#include "harness/run/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/run/surveyor.h"
#include "tests/harness/small_run.h"

/* As a run does it, or (alone) as a sweep. */
static void read_inputs(const struct small_run *run, bool alone, struct inputs *inputs)
{
    struct surveyor surveyor;
    struct run *e = run->experiment;
    must(surveyor_open(&surveyor, &e->model.settings, NULL, NULL, NULL, &error));
    if (!alone)
        must(tasks_survey(e, &surveyor, &error));
    must(inputs_read(inputs, &surveyor, run->suite, alone ? NULL : e, &error));
    surveyor_close(&surveyor);
}

static void hash_of(const struct small_run *run, bool alone, char hash[DIGEST_SIZE])
{
    struct inputs inputs;
    read_inputs(run, alone, &inputs);
    memcpy(hash, inputs.hash, DIGEST_SIZE);
    inputs_free(&inputs);
}

RUN_TEST(a_run_and_a_sweep_agree, NULL)
{
    const char *const *const all[] = {NULL, WORDS("data.shots=2"), WORDS("data.template=one {}"),
                                      WORDS("data.order=third", "data.split_by=labels", "data.parts=2")};
    char hash[DIGEST_SIZE], alone[DIGEST_SIZE], seen[4][DIGEST_SIZE];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        small_run_reopen(run, 1, all[i]);
        hash_of(run, false, hash);
        hash_of(run, true, alone);
        assert_string_equal(hash, alone);
        small_run_reopen(run, 2, all[i]); /* other shots, the same inputs */
        hash_of(run, false, alone);
        assert_string_equal(hash, alone);
        memcpy(seen[i], hash, sizeof hash);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[k], hash);
    }
}

RUN_TEST(every_input_has_a_row, NULL)
{
    static const char *const kinds[] = {"weights", "configuration", "vocabulary", "prompts",
                                        "train",   "test",          "prompts"};
    struct inputs inputs;
    read_inputs(run, false, &inputs);
    assert_int_equal(inputs.count, 3 + 3 * SMALL_RUN_TASKS);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_string_equal(inputs.rows[i].kind, kinds[i]);
        assert_int_equal(inputs.rows[i].task, i < 3 ? -1 : i < 6 ? 0 : 1);
        assert_int_equal(strlen(inputs.rows[i].digest), DIGEST_SIZE - 1);
        assert_int_equal(inputs.rows[i].path[0], '/');
    }
    assert_true(inputs.rows[0].bytes > 1000);
    inputs_free(&inputs);
    small_run_reopen(run, 1, WORDS("data.order=third", "data.split_by=labels", "data.parts=2"));
    read_inputs(run, false, &inputs);
    assert_int_equal(inputs.count, 6);
    assert_int_equal(inputs.rows[5].task, -1); /* of the whole dataset */
    char *words = small_run_keep(inputs_describe(&inputs.rows[5], run->experiment));
    assert_non_null(strstr(words, "the test images of third ("));
    inputs_free(&inputs);
}

/* What a method's options name counts by its contents, wherever it lies. */
RUN_TEST(a_methods_files_are_inputs, NULL)
{
    struct inputs inputs;
    char hash[4][DIGEST_SIZE], key[4][DIGEST_SIZE], alone[DIGEST_SIZE];
    for (int i = 0; i < 4; i++) { /* the same elsewhere, another picture, another text */
        char name[32], *overrides[3];
        snprintf(name, sizeof name, "%d/deep/a.png", i);
        scratch_write_png(&run->scratch, name, 20, 20, i == 2 ? 0xff : 0xff00);
        snprintf(name, sizeof name, "%d.txt", i);
        scratch_write_text(&run->scratch, name, i == 3 ? "green\n" : "a red square\n");
        overrides[0] = small_run_format("method.reference_images=%s/%d", run->scratch.path, i);
        overrides[1] = small_run_format("method.reference_texts=%s/%d.txt", run->scratch.path, i);
        small_run_reopen(run, 1, WORDS("method.name=zscl", overrides[0], overrides[1]));
        read_inputs(run, false, &inputs);
        memcpy(hash[i], inputs.hash, DIGEST_SIZE);
        inputs_key(run->suite, key[i]);
        assert_int_equal(inputs.count, 5 + 3 * SMALL_RUN_TASKS);
        assert_string_equal(inputs.rows[3].kind, "reference_images");
        assert_int_equal(inputs.rows[3].files, 1);
        char *words = small_run_keep(inputs_describe(&inputs.rows[4], run->experiment));
        assert_non_null(strstr(words, "method.reference_texts (/"));
        inputs_free(&inputs);
        hash_of(run, true, alone);
        assert_string_equal(alone, hash[i]);
    }
    assert_string_equal(hash[1], hash[0]);
    assert_string_not_equal(key[1], key[0]); /* a sweep looks at both */
    assert_string_not_equal(hash[2], hash[0]);
    assert_string_not_equal(hash[3], hash[0]);
    assert_true(settings_incidental("method.reference_images", "anywhere"));
    assert_false(settings_incidental("method.l2", "1"));
    scratch_write_text(&run->scratch, "3/deep/a.png", "no picture");
    struct surveyor surveyor;
    must(surveyor_open(&surveyor, &run->experiment->model.settings, NULL, NULL, NULL, &error));
    must_refuse(inputs_read(&inputs, &surveyor, run->suite, NULL, &error), ERROR_FORMAT,
                "method.reference_images: ", "1 of 1 images below", "cannot be decoded");
    inputs_free(&inputs);
    surveyor_close(&surveyor);
}

/* What was read and what is described would be two files. */
RUN_TEST(a_file_that_was_written_to_in_between_is_told, NULL)
{
    struct inputs inputs;
    struct surveyor surveyor;
    scratch_write_text(&run->scratch, "vocabulary.txt", "other");
    must(surveyor_open(&surveyor, &run->experiment->model.settings, NULL, NULL, NULL, &error));
    must(tasks_survey(run->experiment, &surveyor, &error));
    must_refuse(inputs_read(&inputs, &surveyor, run->suite, run->experiment, &error), ERROR_FORMAT, "model.vocabulary",
                "vocabulary.txt", "start again");
    inputs_free(&inputs);
    surveyor_close(&surveyor);
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
