#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/text.h"
#include "harness/config/suite.h"
#include "results/store.h"
#include "tests/test.h"

/* A suite's owners in small: what each of them declares, with every type and every kind of section. */
static const struct option top_options[] = {{.name = "title", .type = OPTION_TEXT}, {0}};
static const struct option data_options[] = {
    {.name = "root", .type = OPTION_TEXT, .fallback = "data", .help = "h"},
    {.name = "order", .type = OPTION_LIST, .fallback = "mnist dtd", .help = "h"},
    {.name = "shots", .type = OPTION_INTEGER, .minimum = 0, .maximum = 99, .fallback = "0", .help = "h"},
    {0},
};
static const struct option training_options[] = {
    {.name = "learning_rate", .type = OPTION_REAL, .minimum = 0, .maximum = 1, .fallback = "1e-3", .help = "h"},
    {.name = "iterations", .type = OPTION_INTEGER, .minimum = 1, .maximum = 1e9, .fallback = "1000", .help = "h"},
    {.name = "exact", .type = OPTION_BOOLEAN, .fallback = "yes", .help = "h"},
    {.name = "limit", .type = OPTION_INTEGER, .minimum = 1, .maximum = 10, .help = "h"},
    {0},
};
static const struct option merge_options[] = {{.name = "policy", .type = OPTION_TEXT, .fallback = "most_used"}, {0}};
static const struct option most_used_options[] = {
    {.name = "every", .type = OPTION_INTEGER, .minimum = 1, .maximum = 1e9, .fallback = "100", .help = "h"},
    {.name = "moments", .type = OPTION_CHOICE, .choices = "keep|average|reset", .fallback = "keep", .help = "h"},
    {0},
};
static const struct option task_options[] = {{.name = "reader", .type = OPTION_TEXT}, {0}};
static const struct option mnist_options[] = {{.name = "digits", .type = OPTION_INTEGER, .fallback = "10"}, {0}};
static const struct option run_options[] = {
    {.name = "seeds", .type = OPTION_LIST, .fallback = "0", .help = "h"},
    {.name = "threads", .type = OPTION_INTEGER, .minimum = 0, .maximum = 1024, .fallback = "0", .help = "h"},
    {.name = "row", .type = OPTION_TEXT, .help = "h"},
    {0},
};

static status find_policy(const char *name, const struct option **table, struct error *error)
{
    static const char *const names[] = {"none", "most_used"};
    *table = strcmp(name, "most_used") == 0 ? most_used_options : NULL;
    if (*table != NULL || strcmp(name, "none") == 0)
        return OK;
    return error_unknown_word(error, "policy", "policy", name, names, 2);
}

static status find_reader(const char *name, const struct option **table, struct error *error)
{
    static const char *const names[] = {"mnist", "dtd"};
    *table = strcmp(name, "mnist") == 0 ? mnist_options : NULL;
    if (*table != NULL || strcmp(name, "dtd") == 0)
        return OK;
    return error_unknown_word(error, "reader", "dataset", name, names, 2);
}

static const struct suite_section sections[] = {
    {.name = "", .options = top_options, .incidental = "title"},
    {.name = "data", .options = data_options, .incidental = "root"},
    {.name = "training", .options = training_options},
    {.name = "merge", .options = merge_options, .chooser = "policy", .chosen = find_policy},
    {.name = "tasks",
     .options = task_options,
     .chooser = "reader",
     .chosen = find_reader,
     .each_of = "data.order",
     .inherits = "training|data.shots"},
    {.name = "run", .options = run_options, .incidental = "*", .row = "row"},
    {0},
};

static struct suite *parse_with(const char *text, const char *const *overrides, size_t count)
{
    struct suite *suite;
    struct error error = {.message = ""};
    status result = suite_parse(&suite, text, strlen(text), "x.yaml", sections, overrides, count, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(result, OK);
    return suite;
}

static struct suite *parse(const char *text)
{
    return parse_with(text, NULL, 0);
}

static const char good[] = "title: \"a: b\"\n"
                           "data: {order: [dtd, mnist, second], root: /somewhere else, shots: 5}\n"
                           "training:\n"
                           "  learning_rate: 5e-3 # of every task\n"
                           "merge: {policy: most_used, every: 50}\n"
                           "tasks:\n"
                           "  second: {reader: mnist, learning_rate: 0.1, shots: 16, digits: 5}\n"
                           "run:\n"
                           "  seeds:\n"
                           "    - 1\n"
                           "    - 2\n";

TEST(values_come_from_file_parent_and_default)
{
    struct suite *suite = parse(good);
    assert_string_equal(suite_name(suite), "x");
    assert_string_equal(options_text(suite_options(suite, ""), "title"), "a: b");
    assert_int_equal(options_integer(suite_options(suite, "merge"), "every"), 50);
    assert_string_equal(options_text(suite_options(suite, "merge"), "moments"), "keep");
    assert_false(options_given(suite_options(suite, "merge"), "moments"));
    assert_int_equal(options_list_size(suite_options(suite, "run"), "seeds"), 2);
    assert_string_equal(options_list_item(suite_options(suite, "run"), "seeds", 1), "2");
    const struct options *dtd = suite_entry(suite, "tasks", "dtd"), *second = suite_entry(suite, "tasks", "second");
    assert_true(options_real(dtd, "learning_rate") == 5e-3);
    assert_string_equal(options_text(dtd, "reader"), "dtd");
    assert_false(options_given(dtd, "limit"));
    assert_true(options_real(second, "learning_rate") == 0.1);
    assert_int_equal(options_integer(second, "iterations"), 1000);
    assert_int_equal(options_integer(second, "digits"), 5);
    assert_int_equal(options_integer(dtd, "shots"), 5); /* one key of a section that is not inherited whole */
    assert_int_equal(options_integer(second, "shots"), 16);
    assert_null(options_find(options_table(dtd), "root"));
    assert_int_equal(options_integer(suite_entry(suite, "tasks", "mnist"), "digits"), 10);
    assert_null(suite_entry(suite, "tasks", "third"));
    suite_destroy(suite);
}

TEST(every_value_is_a_setting)
{
    static const char *const expected[][3] = {{"title", "a: b", "text"},
                                              {"data.order", "[dtd, mnist, second]", "list"},
                                              {"training.learning_rate", "0.005", "real"},
                                              {"training.exact", "true", "boolean"},
                                              {"merge.every", "50", "integer"},
                                              {"merge.moments", "keep", "text"},
                                              {"tasks.second.learning_rate", "0.1", "real"}};
    struct suite *suite = parse(good);
    struct setting_row *rows;
    size_t count, found = 0;
    suite_settings(suite, &rows, &count);
    for (size_t i = 0; i < count; i++) {
        assert_null(strstr(rows[i].key, "tasks.mnist.learning_rate")); /* as in training */
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
            if (strcmp(rows[i].key, expected[k][0]) == 0) {
                assert_string_equal(rows[i].value, expected[k][1]);
                assert_string_equal(rows[i].type, expected[k][2]);
                found++;
            }
    }
    assert_int_equal(found, sizeof expected / sizeof *expected);
    suite_settings_free(rows, count);
    suite_destroy(suite);
}

TEST(text_reads_back_as_itself)
{
    struct suite *suite = parse(good), *again = parse(suite_text(suite));
    assert_string_equal(suite_text(again), suite_text(suite));
    assert_string_equal(suite_settings_hash(again), suite_settings_hash(suite));
    assert_string_equal(suite_text(suite), "title: \"a: b\"\n"
                                           "data:\n"
                                           "  root: \"/somewhere else\"\n"
                                           "  order: [dtd, mnist, second]\n"
                                           "  shots: 5\n"
                                           "training:\n"
                                           "  learning_rate: 0.005\n"
                                           "  iterations: 1000\n"
                                           "  exact: true\n"
                                           "merge:\n"
                                           "  policy: most_used\n"
                                           "  every: 50\n"
                                           "  moments: keep\n"
                                           "tasks:\n"
                                           "  dtd:\n"
                                           "    reader: dtd\n"
                                           "  mnist:\n"
                                           "    reader: mnist\n"
                                           "    digits: 10\n"
                                           "  second:\n"
                                           "    reader: mnist\n"
                                           "    learning_rate: 0.1\n"
                                           "    shots: 16\n"
                                           "    digits: 5\n"
                                           "run:\n"
                                           "  seeds: [1, 2]\n"
                                           "  threads: 0\n");
    suite_destroy(again);
    suite_destroy(suite);
}

static const char with_rows[] = "training: {iterations: 7, learning_rate: 0.5}\n"
                                "merge: {every: 3}\n"
                                "rows:\n"
                                "  plain: {merge.policy: none}\n"
                                "  LwF-VR:\n"
                                "    training.learning_rate: 0.25\n"
                                "    tasks.dtd.learning_rate: 0.125\n"
                                "    data.order: [dtd, mnist]\n";

TEST(a_row_stands_between_file_and_overrides)
{
    struct suite *suite = parse_with(with_rows, (const char *const[]){"run.row=LwF-VR", "training.iterations=9"}, 2);
    assert_true(options_real(suite_options(suite, "training"), "learning_rate") == 0.25);
    assert_int_equal(options_integer(suite_options(suite, "training"), "iterations"), 9);
    assert_true(options_real(suite_entry(suite, "tasks", "dtd"), "learning_rate") == 0.125);
    assert_string_equal(options_list_item(suite_options(suite, "data"), "order", 0), "dtd");
    struct suite *over = parse_with(with_rows, (const char *const[]){"training.learning_rate=1", "run.row=LwF-VR"}, 2);
    assert_true(options_real(suite_options(over, "training"), "learning_rate") == 1);
    suite_destroy(over);
    over = parse_with(with_rows,
                      (const char *const[]){"rows.plain.merge.every=1", "run.row=LwF-VR",
                                            "rows.LwF-VR.tasks.dtd.learning_rate=1", "rows.LwF-VR.merge.every=2"},
                      4);
    assert_true(options_real(suite_entry(over, "tasks", "dtd"), "learning_rate") == 1);
    assert_int_equal(options_integer(suite_options(over, "merge"), "every"), 2);
    suite_destroy(over);
    /* What a run stores has no rows, but the name of its own; the name is not what is computed. */
    struct suite *stored = parse(suite_text(suite));
    assert_string_equal(suite_text(stored), suite_text(suite));
    assert_non_null(strstr(suite_text(stored), "  row: LwF-VR\n"));
    assert_string_equal(suite_settings_hash(stored), suite_settings_hash(suite));
    suite_destroy(stored);
    suite_destroy(suite);
    suite = parse(good);
    assert_null(strstr(suite_text(suite), "row"));
    suite_destroy(suite);
}

/* Strings that look like something else keep their value on the way through the text. */
TEST(strange_strings_survive)
{
    static const char *const strings[] = {"",
                                          "null",
                                          "~",
                                          "-",
                                          "a #b",
                                          "say \"hi\" \\",
                                          "tab\there",
                                          "[x]",
                                          "Grüße",
                                          "*star",
                                          "&amp",
                                          "{",
                                          "key: value",
                                          " space ",
                                          "line\nbreak",
                                          "!tag",
                                          "1e5",
                                          "\x1b[2J\x7f",
                                          "\xc2\x9b"
                                          "1m\xc2\x85",
                                          "\xe2\x80\xae\xe2\x80\xa8"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        char override[64];
        snprintf(override, sizeof override, "title=%s", strings[i]);
        struct suite *suite = parse_with("run: {}", &(const char *){override}, 1), *again = parse(suite_text(suite));
        assert_string_equal(options_text(suite_options(again, ""), "title"), strings[i]);
        suite_destroy(again);
        suite_destroy(suite);
    }
}

TEST(a_byte_order_mark_is_read_over)
{
    struct suite *with = parse("\xef\xbb\xbfmerge:\n  every: 7\ndata:\n  shots: 3\n"),
                 *without = parse("merge:\n  every: 7\ndata:\n  shots: 3\n");
    assert_string_equal(suite_text(with), suite_text(without));
    suite_destroy(with);
    suite_destroy(without);
}

TEST(names_of_files_are_names_of_suites)
{
    static const char *const files[] = {"=1.yaml", "folder/@x.yaml", "a\tb.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct suite *suite;
        struct error error;
        assert_int_equal(suite_parse(&suite, "run: {}", 7, files[i], sections, NULL, 0, &error), ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "suite \""));
        assert_non_null(strstr(error.message, "printable"));
    }
}

TEST(hash_sees_what_is_computed_and_nothing_else)
{
    static const struct {
        const char *text;
        bool same;
    } others[] = {
        {"merge: {policy: most_used}", true},
        {"merge: {moments: keep, every: 0100}\ntraining: {exact: on}\n", true},
        {"training: {learning_rate: 0.001}\ntasks: {dtd: {learning_rate: 1.0e-3}}", true},
        {"title: x\ndata: {root: elsewhere}\nrun: {seeds: [7], threads: 3}", true},
        {"merge: {every: 99}", false},
        {"merge: {policy: none}", false},
        {"data: {order: [dtd, mnist]}", false},
        {"training: {limit: 3}", false},
        {"tasks: {dtd: {learning_rate: 2e-3}}", false},
    };
    struct suite *suite = parse("data: {order: [mnist, dtd]}");
    assert_int_equal(strlen(suite_settings_hash(suite)), 64);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct suite *other = parse(others[i].text);
        assert_int_equal(strcmp(suite_settings_hash(suite), suite_settings_hash(other)) == 0, others[i].same);
        suite_destroy(other);
    }
    suite_destroy(suite);
}

TEST(overrides_win_in_their_order)
{
    static const char *const overrides[] = {"merge.every=7",         "merge.every=9", "tasks.second.learning_rate=0.2",
                                            "data.order=second,dtd", "title=[a=b]",   "run.seeds=[4, 5,6]"};
    struct suite *suite = parse_with(good, overrides, sizeof overrides / sizeof *overrides);
    assert_int_equal(options_integer(suite_options(suite, "merge"), "every"), 9);
    assert_true(options_real(suite_entry(suite, "tasks", "second"), "learning_rate") == 0.2);
    assert_null(suite_entry(suite, "tasks", "mnist"));
    assert_string_equal(options_text(suite_options(suite, ""), "title"), "[a=b]");
    assert_int_equal(options_list_size(suite_options(suite, "run"), "seeds"), 3);
    suite_destroy(suite);
}

struct fault {
    const char *text, *message; /* what the message must begin with */
    const char *inside;         /* and what it must hold, NULL: nothing more */
};

static void expect_fault(const char *text, size_t size, const char *const *overrides, size_t count, const char *message,
                         const char *inside)
{
    struct suite *suite = NULL;
    struct error error = {.message = ""};
    assert_int_equal(suite_parse(&suite, text, size, "x.yaml", sections, overrides, count, &error), ERROR_ARGUMENT);
    assert_null(suite);
    if (strncmp(error.message, message, strlen(message)) != 0)
        assert_string_equal(error.message, message);
    if (inside != NULL && strstr(error.message, inside) == NULL)
        assert_string_equal(error.message, inside);
}

TEST(faults_name_place_and_remedy)
{
    static const struct fault faults[] = {
        {"", "x.yaml: expected sections", "empty"},
        {"# only a comment\n", "x.yaml: expected sections", NULL},
        {"- a\n- b\n", "x.yaml:1:1: expected sections with keys below", NULL},
        {"text", "x.yaml:1:1: expected sections with keys below", NULL},
        {"run: {}\n---\nrun: {}\n", "x.yaml:2:1: expected one document", NULL},
        {"mergee:\n  every: 5\n", "x.yaml:1:1: unknown section or key \"mergee\"", "did you mean \"merge\"?"},
        {"merge: 5\n", "x.yaml:1:1: merge: expected keys below it, found a single value", NULL},
        {"merge:\n", "x.yaml:1:1: merge: expected keys below it", NULL},
        {"merge: [a]\n", "x.yaml:1:1: merge: expected keys below it, found a list", NULL},
        {"merge:\n  evry: 5\n", "x.yaml:2:3: merge: unknown key \"evry\" (did you mean \"every\"?)", "moments"},
        {"merge:\n  policy: none\n  every: 5\n", "x.yaml:3:3: merge: unknown key \"every\"", "expected one of: policy"},
        {"merge:\n  policy: most_usd\n", "x.yaml:2:3: merge", "did you mean \"most_used\"?"},
        {"merge: {every: 0}", "x.yaml:1:9: merge: every: expected a whole number from 1 to 1000000000, found \"0\"",
         NULL},
        {"merge: {every: 1.5}", "x.yaml:1:9: merge: every: expected a whole number", "\"1.5\""},
        {"merge: {every: }", "x.yaml:1:16: expected a value, found nothing", NULL},
        {"merge: {every: null}", "x.yaml:1:16: expected a value, found nothing", NULL},
        {"merge: {every: [1, 2]}", "x.yaml:1:9: merge: every: expected a single value, found a list", NULL},
        {"merge: {every: {a: 1}}", "x.yaml:1:16: expected a value or a list, found keys", NULL},
        {"merge: {moments: kept}", "x.yaml:1:9: merge: moments: expected one of keep|average|reset", NULL},
        {"training: {exact: maybe}", "x.yaml:1:12: training: exact: expected true or false", NULL},
        {"training: {learning_rate: nan}", "x.yaml:1:12: training: learning_rate: expected a number from 0 to 1", NULL},
        {"training: {learning_rate: 2}", "x.yaml:1:12: training: learning_rate: expected a number", NULL},
        {"merge: {every: 5, every: 6}", "x.yaml:1:19: \"every\" is repeated; the first one is in line 1", NULL},
        {"merge: {every: 5}\nmerge: {moments: keep}", "x.yaml:2:1: \"merge\" is repeated", "line 1"},
        {"tasks:\n  dtd: {limit: 1}\n  dtd: {limit: 1}\n", "x.yaml:3:3: \"dtd\" is repeated", NULL},
        {"tasks:\n  dtt: {limit: 1}\n", "x.yaml:2:3: tasks: unknown name (not in data.order) \"dtt\"", "\"dtd\"?"},
        {"tasks: {dtd: 5}\n", "x.yaml:1:9: dtd: expected keys below it", NULL},
        {"tasks: {dtd: {limit: 11}}\n", "x.yaml:1:15: tasks.dtd: limit: expected a whole number from 1 to 10", NULL},
        {"tasks: {dtd: {reader: mnits}}\n", "x.yaml:1:15: tasks.dtd", "did you mean \"mnist\"?"},
        {"tasks: {dtd: {digits: 1}}\n", "x.yaml:1:15: tasks.dtd: unknown key \"digits\"", NULL},
        {"data: {order: [dtd, dtd]}\n", "x.yaml: data.order: \"dtd\" is repeated", NULL},
        {"data: {order: [dtd, cars]}\n", "x.yaml: tasks", "unknown dataset \"cars\""},
        {"data: {order: [dtd, [mnist]]}\n", "x.yaml:1:21: expected a list of single values", NULL},
        {"data: {order: [dtd, \"a b\"]}\n", "x.yaml:1:21: expected list items without commas and spaces", NULL},
        {"merge: &anchor {every: 5}\n", "x.yaml:1:8: anchors", NULL},
        {"merge: {every: &a 5}\n", "x.yaml:1:16: anchors", NULL},
        {"merge: *anchor\n", "x.yaml:1:8: anchors", NULL},
        {"merge: {every: !!int 5}\n", "x.yaml:1:16: tags", NULL},
        {"merge:\n\tevery: 5\n", "x.yaml:2:1: a tab", "spaces"},
        {"# Größe\nmerge:\n  every: 5\n \tmoments: keep\n", "x.yaml:4:2: a tab", "spaces"},
        {"data: {order: [dtd, =1+1]}\n", "x.yaml:1:8: data: order \"=1+1\": expected a name of printable characters",
         "does not begin with =, +, - or @"},
        {"data: {order: [\"+dtd\"]}\n", "x.yaml:1:8: data: order \"+dtd\"", NULL},
        {"data: {order: [\"-dtd\"]}\n", "x.yaml:1:8: data: order \"-dtd\"", NULL},
        {"data: {order: [\"@dtd\"]}\n", "x.yaml:1:8: data: order \"@dtd\"", NULL},
        {"data:\n  order:\n    - \"dtd\\e[2J\"\n", "x.yaml:2:3: data: order \"dtd\x1b[2J\"", "printable"},
        {"data: {order: [\"dtd\\u202e\"]}\n", "x.yaml:1:8: data: order", "printable"},
        {"merge: {every: 5\n", "x.yaml:2:1: ", NULL},
        {"merge: {[a]: 5}\n", "x.yaml:1:9: expected a key", NULL},
        {"merge: {\"\": 5}\n", "x.yaml:1:9: expected a key", NULL},
        {"title: \"a\\0b\"\n", "x.yaml:1:8: a text with a NUL", NULL},
        {"title: \xff\xfe\n", "x.yaml: at byte ", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault(faults[i].text, strlen(faults[i].text), NULL, 0, faults[i].message, faults[i].inside);
}

TEST(wrong_rows_are_refused)
{
    static const struct {
        const char *text, *row, *words[3];
    } cases[] = {
        {with_rows, NULL, {"x.yaml: a suite with 2 rows", "run.row=plain, or mtil sweep x.yaml", "plain, LwF-VR"}},
        {with_rows, "run.row=LwF", {"command line: run: unknown row \"LwF\"", "plain, LwF-VR"}},
        {good, "run.row=a", {"command line: run.row: the suite x.yaml has no rows, found \"a\""}},
        {good, "rows.a.merge.every=2", {"command line: rows: the suite x.yaml has no rows, found \"a\""}},
        {"rows:\n  a: {rows.b.merge.every: 3}\n", "run.row=a", {"x.yaml:2:7: rows.a: expected a key of another"}},
        {with_rows, "rows.LwF.merge.every=2", {"a suite with 2 rows"}},
        {with_rows, "rows.plain=2", {"expected rows.NAME.SECTION.KEY=VALUE, found rows.plain=2"}},
        {"rows:\n  a.b: {merge.every: 3}\n", "run.row=a.b", {"x.yaml:2:3: rows: row \"a.b\"", "dots"}},
        {"rows:\n  a: {every: 3}\n", "run.row=a", {"x.yaml:2:7: rows.a: unknown section or key \"every\""}},
        {"rows:\n  a: {merge.evry: 3}\n", "run.row=a", {"x.yaml:2:7: merge", "evry", "every"}},
        {"rows:\n  a: {merge.every: none}\n", "run.row=a", {"x.yaml:2:7: merge: every"}},
        {"rows:\n  a: 3\n", "run.row=a", {"x.yaml:2:3: a: expected keys below it"}},
        {"rows:\n  \"a,b\": {merge.every: 3}\n", "run.row=a", {"x.yaml:2:3: rows: row \"a,b\"", "commas"}},
        {"rows:\n  a: {merge.every: 3}\n  a: {merge.every: 4}\n", "run.row=a", {"x.yaml:3:3", "repeated"}},
    };
    expect_fault(with_rows, strlen(with_rows), (const char *const[]){"run.row=plain", "rows.LwF.merge.every=2"}, 2,
                 "command line: rows: unknown row \"LwF\"", "plain, LwF-VR");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct suite *suite;
        struct error error;
        assert_int_equal(suite_parse(&suite, cases[i].text, strlen(cases[i].text), "x.yaml", sections,
                                     (const char *const[]){cases[i].row}, cases[i].row != NULL, &error),
                         ERROR_ARGUMENT);
        for (size_t k = 0; k < 3 && cases[i].words[k] != NULL; k++)
            if (strstr(error.message, cases[i].words[k]) == NULL)
                fail_msg("case %zu: expected \"%s\" in \"%s\"", i, cases[i].words[k], error.message);
    }
}

TEST(wrong_overrides_are_told_apart)
{
    static const struct fault faults[] = {
        {"merge.every", "command line: expected KEY=VALUE", "\"merge.every\""},
        {"=5", "command line: expected KEY=VALUE", NULL},
        {"merge=5", "command line: merge is a section; expected merge.KEY=VALUE", NULL},
        {"titel=5", "command line: unknown section or key \"titel\"", "\"title\"?"},
        {"merg.every=5", "command line: unknown section or key \"merg\"", "\"merge\"?"},
        {".every=5", "command line: unknown section or key \"\"", NULL},
        {"merge.evry=5", "command line: merge: unknown key \"evry\"", "\"every\"?"},
        {"merge.every=x", "command line: merge: every: expected a whole number", "\"x\""},
        {"merge.every=", "command line: merge: every: expected a whole number", NULL},
        {"tasks.dtd=5", "command line: tasks: expected tasks.NAME.KEY=VALUE", NULL},
        {"tasks.dtt.limit=5", "command line: tasks: unknown name", "\"dtd\"?"},
        {"title=\xff", "command line: \"title=", "UTF-8"},
        {"data.order=dtd,=1+1", "command line: data: order \"=1+1\"", "printable"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault("run: {}", 7, &faults[i].text, 1, faults[i].message, faults[i].inside);
}

/* Files made to be expensive end soon, with a message. */
TEST(hostile_files_end_soon)
{
    struct text text = {0};
    for (size_t i = 0; i < 100000; i++)
        text_add(&text, "[");
    expect_fault(text.data, text.size, NULL, 0, "x.yaml:", NULL);
    text_clear(&text);
    text_add(&text, "merge: ");
    for (size_t i = 0; i < 100000; i++)
        text_add(&text, "{a: ");
    expect_fault(text.data, text.size, NULL, 0, "x.yaml:1:", "found keys");
    text_clear(&text);
    text_add(&text, "merge:\n");
    for (size_t i = 0; i < 20000; i++)
        text_add(&text, "  k%zu: 1\n", i);
    expect_fault(text.data, text.size, NULL, 0, "x.yaml: a suite has at most", NULL);
    text_clear(&text);
    text_add(&text, "merge: {");
    for (size_t i = 0; i < 500; i++)
        text_add(&text, "k");
    text_add(&text, ": 1}");
    expect_fault(text.data, text.size, NULL, 0, "x.yaml:1:9: a key of more than 127", NULL);
    text_free(&text);
}

/* Every prefix of a good file and every flipped byte is read or refused, never worse (run under the sanitizers as
 * well). */
TEST(damaged_files_are_read_or_refused)
{
    struct error error;
    char copy[sizeof good];
    for (size_t i = 0; i < sizeof good; i++) {
        struct suite *suite = NULL;
        if (suite_parse(&suite, good, i, "x.yaml", sections, NULL, 0, &error) == OK)
            suite_destroy(suite);
        for (unsigned bit = 0; bit < 8 && i < sizeof good - 1; bit++) {
            memcpy(copy, good, sizeof good);
            copy[i] = (char)((unsigned char)copy[i] ^ (1u << bit));
            suite = NULL;
            if (suite_parse(&suite, copy, sizeof good - 1, "x.yaml", sections, NULL, 0, &error) == OK)
                suite_destroy(suite);
        }
    }
}

TEST(suites_are_found_by_path_and_name)
{
    struct suite *suite;
    struct error error;
    char path[] = "/tmp/mtil-suite-XXXXXX.yaml";
    int file = mkstemps(path, 5);
    assert_true(file >= 0 && write(file, good, sizeof good - 1) == (ssize_t)sizeof good - 1);
    close(file);
    assert_int_equal(suite_load(&suite, path, sections, NULL, 0, &error), OK);
    suite_destroy(suite);
    unlink(path);
    assert_int_equal(suite_load(&suite, path, sections, NULL, 0, &error), ERROR_IO);
    assert_non_null(strstr(error.message, path));
    assert_int_equal(suite_load(&suite, "no_such_suite_ships", sections, NULL, 0, &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "unknown suite \"no_such_suite_ships\""));
    assert_non_null(strstr(error.message, "or the path of a .yaml file"));
}

/* What the message of a suite that is not there proposes; NULL: nothing. */
static void expect_proposal(const char *folder, const char *name, const char *proposed)
{
    struct suite *suite;
    struct error error;
    char path[256], expected[256];
    snprintf(path, sizeof path, "%s%s", folder, name);
    snprintf(expected, sizeof expected, "did you mean \"%s\"?", proposed != NULL ? proposed : "");
    assert_int_not_equal(suite_load(&suite, path, sections, NULL, 0, &error), OK);
    const char *found = strstr(error.message, proposed != NULL ? expected : "did you mean");
    if ((found != NULL) != (proposed != NULL))
        fail_msg("%s: %s", path, error.message);
}

TEST(misspelt_suites_have_proposals)
{
    char folder[64] = "/tmp/mtil-suites-XXXXXX", path[96];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/own.yaml", folder);
    assert_int_equal(file_write(path, "", 0, NULL), OK);
    strcat(folder, "/");
    expect_proposal(folder, "ownn.yaml", path);
    expect_proposal(folder, "own.yml", path);
    expect_proposal(folder, "mini.yaml", "mini");
    expect_proposal(folder, "mini_tabel2.yaml", "mini_table2");
    expect_proposal(folder, "something_else.yaml", NULL);
    expect_proposal("/no/such/", "mtll.yaml", "mtil");
    expect_proposal("", "minni", "mini");
    unlink(path);
    rmdir(folder);
}

TEST(shipped_suites_have_name_and_summary)
{
    if (suite_library_size() == 0)
        skip();
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite suite = suite_library_get(i);
        if (*suite.table == 0)
            fail_msg("%s: expected a second line \"# Table: …\"", suite.name);
        assert_true(suite.size > 0 && suite.text[suite.size] == 0);
        assert_true(*suite.name != 0 && *suite.summary != 0);
        assert_null(strchr(suite.name, '.'));
    }
}
