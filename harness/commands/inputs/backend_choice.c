#include "harness/commands/inputs/backend_choice.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"

static const char *const names[BACKEND_CHOICES] = {"backend", "precision", "device", "gpus"};

static void add_choices(struct suite_words *words, const struct options *given)
{
    for (size_t i = 0; i < BACKEND_CHOICES; i++) {
        if (options_find(options_table(given), names[i]) == NULL || !options_given(given, names[i]))
            continue;
        words->made[i] = path_format("run.%s=%s", names[i], options_as_text(given, names[i]));
        words->list[words->count++] = words->made[i];
    }
}

void suite_words_read(struct suite_words *words, const struct command_call *call)
{
    size_t arguments = call->argument_count - 1;
    *words =
        (struct suite_words){.list = xcalloc(arguments + BACKEND_CHOICES, sizeof *words->list), .count = arguments};
    for (size_t i = 0; i < arguments; i++)
        words->list[i] = call->arguments[i + 1];
    add_choices(words, call->options);
}

void suite_words_free(struct suite_words *words)
{
    for (size_t i = 0; i < BACKEND_CHOICES; i++)
        free(words->made[i]);
    free(words->list);
    *words = (struct suite_words){0};
}
