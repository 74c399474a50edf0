/* What a user of the program does not see of its commands; program.txt has the rest. */
#include <stdlib.h>

#include "harness/commands/command.h"
#include "tests/test.h"

#define ROOT FIXTURES "/data/roots/dtd/dtd"

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

/* Between two images. */
TEST(stopped_commands_have_no_answer)
{
    static char lines[][7][1024] = {{"data", "check", ROOT},
                                    {"data", "show", "dtd", "--root", ROOT, "--out", "/dev/null/x"}};
    for (size_t i = 0; i < 2; i++) {
        struct log log = {.least = LOG_WARN + 1};
        struct stop stop = {.signal = 2};
        struct command_line line;
        struct error error;
        const struct command *command;
        size_t used, size, count = 0;
        char *words[8] = {NULL}, *out;
        for (; count < 7 && *lines[i][count] != 0; count++)
            words[count] = lines[i][count];
        assert_int_equal(command_find((const char *const *)words, count, &command, &used, &error), OK);
        assert_int_equal(command_parse(command, (int)count - 1, words + 1, &line, &error), OK);
        FILE *stream = open_memstream(&out, &size);
        struct command_call call = {line.options, line.arguments, line.argument_count,
                                    stream,       .log = &log,    .stop = &stop};
        assert_int_equal(command->run(&call, &error), ERROR_STOPPED);
        fclose(stream);
        assert_string_equal(out, "");
        command_line_free(&line);
        free(out);
    }
}
