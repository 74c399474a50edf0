/* Command lines of every command. What is understood has as many arguments as the command takes. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "harness/commands/command.h"
#include "tests/fuzz/input.h"

static void parse(const struct words *words)
{
    const struct command *command;
    struct command_line line;
    size_t used;
    if (command_find((const char *const *)words->items, words->count, &command, &used, &fuzz_error) != OK)
        return;
    int count = (int)(words->count - used + 1);
    if (command_parse(command, count, (char **)words->items + used - 1, &line, &fuzz_error) != OK) {
        assert(line.options == NULL);
        return;
    }
    assert(line.argument_count <= words->count);
    assert(line.help || (line.argument_count >= command->least && line.argument_count <= command->most));
    for (size_t i = 0; i < line.argument_count; i++)
        assert(line.arguments[i] != NULL);
    command_line_free(&line);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct words words = input_words(data, size);
    parse(&words);
    free(words.text);
    return 0;
}
