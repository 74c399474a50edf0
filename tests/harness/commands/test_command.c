#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "harness/commands/command.h"
#include "tests/test.h"

static const struct option options[] = {
    {.name = "format", .type = OPTION_CHOICE, .choices = "table|csv", .fallback = "table", .help = "what to print"},
    {.name = "limit", .type = OPTION_INTEGER, .minimum = 1, .maximum = 9, .help = "at most so many rows"},
    {.name = "dry-run", .type = OPTION_BOOLEAN, .fallback = "false", .help = "only look"},
    {.name = "resume", .type = OPTION_BOOLEAN, .fallback = "true", .help = "go on"},
    {.name = "metric", .type = OPTION_LIST, .help = "what to show"},
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

/* The words of a command line, split at blanks, as main hands them over. */
static status parse(const char *words, struct command_line *line, struct error *error)
{
    static char copy[256]; /* the arguments point into it */
    static char *arguments[16];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", words);
    char *rest;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        arguments[count++] = word;
    arguments[count] = NULL;
    return command_parse(&command_try, count, arguments, line, error);
}

TEST(options_and_arguments_come_in_any_order)
{
    struct command_line line;
    struct error error;
    assert_int_equal(parse("try a --limit 3 merge.every=50 --dry-run --resume=false -q -- --c", &line, &error), OK);
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
}

TEST(help_needs_no_arguments)
{
    struct command_line line;
    struct error error;
    assert_int_equal(parse("try --help", &line, &error), OK);
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
        {"try a --limit 1 --limit 1", "command line: --limit is repeated; expected it once"},
        {"try a --metric b,c --metric d", "command line: --metric is repeated; expected it once, with a list: A,B"},
        {"try a --resume=perhaps", "command line: resume: expected true or false, found \"perhaps\""},
        {"try a -z", "command line: unknown option \"z\""},
        {"try a --zzzzzzzzzzz", "command line: unknown option \"zzzzzzzzzzz\"; expected one of: format, limit"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct command_line line;
        struct error error = {.message = ""};
        assert_int_equal(parse(mistakes[i].words, &line, &error), ERROR_ARGUMENT);
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

/* The command that words name, split at blanks; used is how many of them do. */
static status find(const char *words, const struct command **command, size_t *used, struct error *error)
{
    char copy[64], *rest;
    const char *list[8];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        list[count++] = word;
    return command_find(list, count, command, used, error);
}

static void expect_presentable(const struct command *command)
{
    const struct command *found;
    struct error error;
    size_t used;
    assert_int_equal(find(command->name, &found, &used, &error), OK);
    assert_ptr_equal(found, command);
    assert_true(*found->summary != 0 && found->least <= found->most);
    assert_true((found->run == NULL) != (found->subcommands == NULL));
    assert_non_null(strstr(found->example, found->name));
    assert_int_equal(found->example[strlen(found->example) - 1], '\n');
    for (const struct option *option = found->options; option != NULL && option->name != NULL; option++)
        assert_true(option->help != NULL && *option->help != 0);
    struct options *values;
    assert_int_equal(options_create(&values, found->options, &error), OK);
    options_destroy(values);
}

/* Every command of the program can be found and shows help that is complete. */
TEST(every_command_is_presentable)
{
    assert_non_null(commands[0]);
    for (size_t i = 0; commands[i] != NULL; i++) {
        expect_presentable(commands[i]);
        for (size_t j = 0; commands[i]->subcommands != NULL && commands[i]->subcommands[j] != NULL; j++)
            expect_presentable(commands[i]->subcommands[j]);
    }
}

TEST(subcommands_are_found_by_their_words)
{
    const struct command *command;
    struct error error;
    size_t used;
    assert_int_equal(find("data mini mini", &command, &used, &error), OK);
    assert_string_equal(command->name, "data mini");
    assert_int_equal(used, 2);
    assert_int_equal(find("data --help mini", &command, &used, &error), OK);
    assert_string_equal(command->name, "data");
    assert_int_equal(used, 1);
    assert_int_equal(find("data mnii", &command, &used, &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "unknown data subcommand \"mnii\" (did you mean \"mini\"?)"));
    assert_int_equal(find("--data", &command, &used, &error), ERROR_ARGUMENT);
    assert_int_equal(find("", &command, &used, &error), ERROR_ARGUMENT);
}
