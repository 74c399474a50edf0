#include "harness/commands/inputs/suite_words.h"

void suite_words_add(struct strings *words, const struct command_call *call)
{
    static const char *const names[] = {"backend", "precision", "device", "gpus"};
    const struct options *given = call->options;
    strings_copy(words, call->arguments + 1, call->argument_count - 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (options_find(options_table(given), names[i]) != NULL && options_given(given, names[i]))
            strings_format(words, "run.%s=%s", names[i], options_as_text(given, names[i]));
}

status suite_words_load(struct suite **suite, const struct command_call *call, const struct strings *words,
                        struct error *error)
{
    return suite_load(suite, call->arguments[0], settings_sections, (const char *const *)words->items, words->count,
                      error);
}
