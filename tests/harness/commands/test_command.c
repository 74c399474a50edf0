#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"
#include "harness/commands/command.h"
#include "tests/test.h"

static const struct option options[] = {
    {.name = "format", .type = OPTION_CHOICE, .choices = "table|csv", .fallback = "table", .help = "what to print"},
    {.name = "limit", .type = OPTION_INTEGER, .minimum = 1, .maximum = 9, .help = "at most so many rows"},
    {.name = "dry-run", .type = OPTION_BOOLEAN, .fallback = "false", .help = "only look"},
    {.name = "resume", .type = OPTION_BOOLEAN, .fallback = "true", .help = "go on"},
    {0},
};

static status do_nothing(const struct command_call *call, struct error *error)
{
    (void)call;
    (void)error;
    return OK;
}

static const struct command command_try = {
    .name = "try",
    .arguments = "WHAT [key=value...]",
    .summary = "does nothing",
    .example = "  mtil try it --format csv\n",
    .options = options,
    .least = 1,
    .most = 3,
    .run = do_nothing,
};

static struct error error;
static char *words[16]; /* of the last command line */

static int split(const char *line)
{
    static char copy[512];
    int count = 0;
    char *rest = copy;
    snprintf(copy, sizeof copy, "%s", line);
    do
        words[count] = strsep(&rest, " ");
    while (words[count++] != NULL);
    return count - 1;
}

/* As main hands them over. */
static status parse(const char *line, struct command_line *parsed)
{
    int count = split(line);
    return command_parse(&command_try, count, words, parsed, &error);
}

TEST(options_and_arguments_come_in_any_order)
{
    struct command_line line;
    assert_int_equal(parse("try a --limit 3 merge.every=50 --dry-run --resume=false -q -- --c", &line), OK);
    assert_int_equal(line.argument_count, 3);
    assert_string_equal(line.arguments[0], "a");
    assert_string_equal(line.arguments[1], "merge.every=50");
    assert_string_equal(line.arguments[2], "--c");
    assert_int_equal(options_integer(line.options, "limit"), 3);
    assert_string_equal(options_text(line.options, "format"), "table");
    assert_true(options_boolean(line.options, "dry-run"));
    assert_false(options_boolean(line.options, "resume"));
    assert_true(line.quiet && !line.verbose && !line.help);
    command_line_free(&line);
    assert_int_equal(parse("try --help", &line), OK);
    assert_true(line.help);
    command_line_free(&line);
}

TEST(mistakes_are_explained)
{
    static const struct {
        const char *words, *message;
    } mistakes[] = {
        {"try", "command line: try: expected WHAT [key=value...], found 0 arguments; see mtil try --help"},
        {"try a b c d", "command line: try: expected WHAT [key=value...], found 4 arguments"},
        {"try a --formt csv", "command line: unknown option \"formt\" (did you mean \"format\"?)"},
        {"try a --formt=csv", "command line: unknown option \"formt\" (did you mean \"format\"?)"},
        {"try a --format", "command line: --format: expected a value (table|csv) after it"},
        {"try a --format xml", "command line: format: expected one of table|csv, found \"xml\""},
        {"try a --limit 10", "command line: limit: expected a whole number from 1 to 9, found \"10\""},
        {"try a --limit=", "command line: limit: expected a whole number"},
        {"try a --dry-run=perhaps", "command line: --dry-run takes no value, found \"--dry-run=perhaps\""},
        {"try a --resume=perhaps", "command line: resume: expected true or false, found \"perhaps\""},
        {"try a -z", "command line: unknown option \"z\""},
        {"try a --zzzzzzzzzzz", "command line: unknown option \"zzzzzzzzzzz\"; expected one of: format, limit"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct command_line line;
        assert_int_equal(parse(mistakes[i].words, &line), ERROR_ARGUMENT);
        if (strncmp(error.message, mistakes[i].message, strlen(mistakes[i].message)) != 0)
            assert_string_equal(error.message, mistakes[i].message);
        assert_null(line.options);
    }
}

TEST(help_shows_options_defaults_and_example)
{
    static const char *const parts[] = {"Usage: mtil try [OPTION...] WHAT [key=value...]",
                                        "does nothing",
                                        "--format=table|csv",
                                        "what to print (default table)",
                                        "--dry-run",
                                        "--resume",
                                        "--help",
                                        "--quiet",
                                        "Example:\n  mtil try it --format csv\n"};
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    command_help(&command_try, stream);
    fclose(stream);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL)
            assert_string_equal(text, parts[i]);
    free(text);
}

/* Every command can be run or has subcommands, and says what its options are for. */
static void expect_complete(const struct command *const *list)
{
    assert_non_null(list[0]);
    for (; *list != NULL; list++) {
        assert_true((*list)->run == NULL ? (*list)->subcommands != NULL : (*list)->subcommands == NULL);
        for (const struct option *option = (*list)->options; option != NULL && option->name != NULL; option++)
            assert_true(option->help != NULL && *option->help != 0);
        if ((*list)->subcommands != NULL)
            expect_complete((*list)->subcommands);
    }
}

TEST(every_command_is_complete)
{
    expect_complete(commands);
}

TEST(subcommands_are_found_by_their_words)
{
    static const struct {
        const char *line, *name; /* NULL: none */
        size_t used;
    } cases[] = {{"data mini mini", "data mini", 2},
                 {"data --help mini", "data", 1},
                 {"data mnii", NULL, 0},
                 {"--data", NULL, 0}};
    const struct command *command;
    size_t used;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = (size_t)split(cases[i].line);
        status found = command_find((const char *const *)words, count, &command, &used, &error);
        assert_int_equal(found, cases[i].name != NULL ? OK : ERROR_ARGUMENT);
        if (found == OK) {
            assert_string_equal(command->name, cases[i].name);
            assert_int_equal(used, cases[i].used);
        }
    }
    assert_int_equal(command_find(NULL, 0, &command, &used, &error), ERROR_ARGUMENT);
}

/* Between two images. */
TEST(stopped_commands_have_no_answer)
{
    static const char root[] = FIXTURES "/data/roots/dtd/dtd";
    char *lines[] = {path_format("data check %s", root),
                     path_format("data show dtd --root %s --out /dev/null/x", root)};
    for (size_t i = 0; i < 2; i++) {
        struct log log = {.least = LOG_WARN + 1};
        struct stop stop = {.signal = 2};
        struct command_line line;
        const struct command *command;
        size_t used, size;
        char *out;
        int count = split(lines[i]);
        assert_int_equal(command_find((const char *const *)words, (size_t)count, &command, &used, &error), OK);
        assert_int_equal(command_parse(command, count - 1, words + 1, &line, &error), OK);
        FILE *stream = open_memstream(&out, &size);
        struct command_call call = {line.options, line.arguments, line.argument_count,
                                    stream,       .log = &log,    .stop = &stop};
        assert_int_equal(command->run(&call, &error), ERROR_STOPPED);
        fclose(stream);
        assert_string_equal(out, "");
        command_line_free(&line);
        free(out);
        free(lines[i]);
    }
}
