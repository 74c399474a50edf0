/* What suites say of themselves, where they are found, and what is refused, of which run/refusals.txt has most; run/test_settings.c has
 * what they come to. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "results/store.h"
#include "tests/datasets/scratch.h"
#include "tests/harness/suites.h"

TEST_GROUP(NULL, forget_suites)

static const char good[] = "data: {order: [dtd, second], root: /somewhere else, shots: 5, template: \"a {}\"}\n"
                           "training:\n"
                           "  learning_rate: 5e-3 # of every task\n"
                           "method: {name: continual_ft}\n"
                           "tasks:\n"
                           "  second: {reader: toy, learning_rate: 0.1, classes: 5}\n"
                           "run:\n"
                           "  seeds:\n"
                           "    - 1\n"
                           "    - 2\n";

TEST(values_come_from_file_parent_and_default)
{
    struct suite *suite = must_read(good, NULL);
    const struct options *dtd = suite_entry(suite, "tasks", "dtd");
    expect_values(suite, "training.learning_rate=5e-3; tasks.dtd.learning_rate=5e-3; tasks.second.learning_rate=0.1; "
                         "tasks.dtd.reader=dtd; tasks.second.classes=5; training.iterations=1000; run.seeds=1, 2");
    assert_string_equal(suite_name(suite), "test");
    assert_true(options_given(suite_options(suite, "data"), "shots"));
    assert_false(options_given(suite_options(suite, "training"), "iterations"));
    assert_null(options_find(options_table(dtd), "classes")); /* of another reader */
    assert_null(options_find(options_table(dtd), "shots"));   /* of a section that is not inherited whole */
    assert_null(suite_entry(suite, "tasks", "third"));
}

TEST(every_value_is_a_setting)
{
    static const char *const expected[] = {"\ndata.order=[dtd, second] list\n",
                                           "\ntraining.learning_rate=0.005 real\n",
                                           "\ntraining.reference_iterations=false boolean\n",
                                           "\ntraining.batch=64 integer\n",
                                           "\ntraining.loss=cross_entropy text\n",
                                           "\ndata.template=a {} text\n",
                                           "\ntasks.second.learning_rate=0.1 real\n"};
    struct suite *suite = must_read(good, NULL);
    struct text lines = {0};
    struct setting_row *rows;
    size_t count;
    suite_settings(suite, &rows, &count);
    for (size_t i = 0; i < count; i++)
        text_add(&lines, "\n%s=%s %s\n", rows[i].key, rows[i].value, rows[i].type);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_non_null(strstr(lines.data, expected[i]));
    assert_null(strstr(lines.data, "tasks.dtd.learning_rate")); /* as in training */
    suite_settings_free(rows, count);
    text_free(&lines);
}

TEST(text_reads_back_as_itself)
{
    static const char *const parts[] = {
        "data:\n  root: \"/somewhere else\"\n  order: [dtd, second]\n", "  learning_rate: 0.005\n",
        "tasks:\n  dtd:\n    reader: dtd\n  second:\n    reader: toy\n    learning_rate: 0.1\n    classes: 5\n",
        "run:\n  seeds: [1, 2]\n"};
    struct suite *suite = must_read(good, NULL);
    expect_reread(suite);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(suite_text(suite), parts[i]) == NULL)
            assert_string_equal(suite_text(suite), parts[i]);
    assert_null(strstr(suite_text(suite), "row"));
}

/* Strings that look like something else keep their value on the way through the text. */
TEST(strange_strings_survive)
{
    char strings[] =
        "|null|~|-|a #b|say \"hi\" \\|tab\there|[x]|Grüße|*star|&amp|{|key: value| space |line\nbreak|!tag|"
        "1e5|\x1b[2J\x7f|\302\2331m\302\205|\xe2\x80\xae\xe2\x80\xa8",
         *rest = strings;
    for (const char *string; (string = strsep(&rest, "|")) != NULL;) {
        char override[64];
        snprintf(override, sizeof override, "data.root=%s", string);
        struct suite *suite = must_read("run: {}", override);
        assert_string_equal(value_of(must_read(suite_text(suite), NULL), "data.root"), string);
    }
}

TEST(hash_sees_what_is_computed)
{
    static const struct {
        const char *text;
        bool same;
    } others[] = {
        {"merge: {policy: most_used}", true},
        {"merge: {moments: keep, every: 0100}\ntraining: {reference_iterations: off}\n", true},
        {"training: {learning_rate: 0.001}\ntasks: {dtd: {learning_rate: 1.0e-3}}", true},
        {"\xef\xbb\xbf" /* a byte order mark is read over */ "data: {root: elsewhere}\nrun: {seeds: [7], threads: 3}",
         true},
        {"merge: {every: 99}", false},
        {"merge: {policy: none}", false},
        {"data: {order: [dtd, mnist]}", false},
        {"tasks: {dtd: {learning_rate: 2e-3}}", false},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct suite *suite = must_read("data: {order: I}", NULL), *other = must_read(others[i].text, NULL);
        assert_int_equal(strlen(suite_settings_hash(suite)), 64);
        assert_int_equal(strcmp(suite_settings_hash(suite), suite_settings_hash(other)) == 0, others[i].same);
    }
}

/* The message begins so, and has the words inside. */
static void expect_fault(const char *file, const char *text, const char *message, const char *inside)
{
    struct suite *suite = NULL;
    assert_int_equal(suite_parse(&suite, text, strlen(text), file, settings_sections, NULL, 0, &error), ERROR_ARGUMENT);
    assert_null(suite);
    if (strncmp(error.message, message, strlen(message)) != 0 || strstr(error.message, inside) == NULL)
        fail_msg("%s: expected \"%s … %s\", found: %s", file, message, inside, error.message);
}

/* Those that a text file cannot show, and of its name; the others are in run/refusals.txt. */
TEST(faults_of_bytes_are_named)
{
    static const char *const faults[][4] = {
        {"x.yaml", "", "x.yaml: expected sections", "empty"},
        {"x.yaml", "# only a comment\n", "x.yaml: expected sections", ""},
        {"x.yaml", "data:\n  order:\n    - \"dtd\\e[2J\"\n", "x.yaml:2:3: data: order \"dtd\x1b[2J\"", "printable"},
        {"x.yaml", "data: {order: [\"dtd\\u202e\"]}\n", "x.yaml:1:8: data: order", "printable"},
        {"x.yaml", "run: {folder: \"a\\0b\"}\n", "x.yaml:1:15: a text with a NUL", ""},
        {"x.yaml", "use: \xff\xfe\n", "x.yaml: at byte ", "UTF-8"},
        {"=1.yaml", "run: {}", "=1.yaml: suite \"=1\"", "printable"},
        {"folder/@x.yaml", "run: {}", "folder/@x.yaml: suite \"@x\"", "printable"},
        {"a\tb.yaml", "run: {}", "a\tb.yaml: suite \"a", "printable"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault(faults[i][0], faults[i][1], faults[i][2], faults[i][3]);
    struct suite *suite;
    assert_int_equal(suites_try(&suite, "run: {}", (const char *const[]){"run.folder=\xff", NULL}), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "UTF-8"));
}

/* Files made to be expensive end soon, with a message. */
TEST(hostile_files_end_soon)
{
    struct text text = {0};
    for (size_t i = 0; i < 100000; i++)
        text_add(&text, "[");
    expect_fault("x.yaml", text.data, "x.yaml:", "");
    text_clear(&text);
    text_add(&text, "merge: ");
    for (size_t i = 0; i < 100000; i++)
        text_add(&text, "{a: ");
    expect_fault("x.yaml", text.data, "x.yaml:1:", "found keys");
    text_clear(&text);
    text_add(&text, "merge:\n");
    for (size_t i = 0; i < 20000; i++)
        text_add(&text, "  k%zu: 1\n", i);
    expect_fault("x.yaml", text.data, "x.yaml: a suite has at most", "");
    text_clear(&text);
    text_add(&text, "merge: {");
    for (size_t i = 0; i < 500; i++)
        text_add(&text, "k");
    text_add(&text, ": 1}");
    expect_fault("x.yaml", text.data, "x.yaml:1:9: a key of more than 127", "");
    text_free(&text);
}

/* The message has the words. */
static void expect_absent(const char *path, status expected, const char *words)
{
    struct suite *suite;
    assert_int_equal(suite_load(&suite, path, settings_sections, NULL, 0, &error), expected);
    if (strstr(error.message, words) == NULL)
        fail_msg("%s: expected \"%s\" in %s", path, words, error.message);
}

TEST(suites_are_found_by_path_and_name)
{
    static const char *const proposals[][2] = {{"ownn.yaml", "own.yaml\"?"},
                                               {"own.yml", "own.yaml\"?"},
                                               {"mini.yaml", "\"mini\"?"},
                                               {"mini_tabel2.yaml", "\"mini_table2\"?"}};
    struct scratch scratch;
    scratch_create(&scratch);
    scratch_write_text(&scratch, "own.yaml", good);
    assert_string_equal(suite_name(suites_load(scratch_file(&scratch, "own.yaml"), NULL)), "own");
    for (size_t i = 0; i < sizeof proposals / sizeof *proposals; i++) {
        expect_absent(scratch_file(&scratch, proposals[i][0]), ERROR_IO, proposals[i][1]);
        assert_non_null(strstr(error.message, "did you mean \""));
    }
    const char *path = scratch_file(&scratch, "something_else.yaml");
    expect_absent(path, ERROR_IO, path);
    assert_null(strstr(error.message, "did you mean"));
    expect_absent("/no/such/mtll.yaml", ERROR_IO, "did you mean \"mtil\"?");
    expect_absent("minni", ERROR_ARGUMENT, "did you mean \"mini\"?");
    expect_absent("no_such_suite_ships", ERROR_ARGUMENT, "unknown suite \"no_such_suite_ships\"");
    assert_non_null(strstr(error.message, "or the path of a .yaml file"));
    scratch_remove(&scratch);
}

/* --- refusals.txt: suites that are refused, and what is said --- */

struct refusal {
    struct text yaml;
    char override[256]; /* "": none */
};

/* The message has to be the line's. */
static void check(struct refusal *refusal, const char *message)
{
    struct suite *suite;
    const char *override = refusal->override;
    status result =
        suites_try(&suite, refusal->yaml.data, (const char *const[]){*override != 0 ? override : NULL, NULL});
    if (result == OK)
        fail_msg("accepted: %s+ %s", refusal->yaml.data, override);
    if (strcmp(error.message, message) != 0)
        fail_msg("%s+ %s\nexpected: %s\nfound:    %s", refusal->yaml.data, override, message, error.message);
    suite_destroy(suite);
    text_free(&refusal->yaml);
    *refusal = (struct refusal){0};
}

TEST(every_case_of_the_file_holds)
{
    char line[1024];
    size_t count = 0;
    struct refusal refusal = {0};
    FILE *file = fopen(REFUSALS, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\n");
        assert_int_equal(line[length], '\n');
        line[length] = 0;
        if (strncmp(line, "+ ", 2) == 0)
            snprintf(refusal.override, sizeof refusal.override, "%s", line + 2);
        else if (strncmp(line, "> ", 2) == 0)
            check(&refusal, (count++, line + 2));
        else if (*line && *line != '#')
            text_add(&refusal.yaml, "%s\n", line);
    }
    fclose(file);
    assert_true(count >= 200);
}
