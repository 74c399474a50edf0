#include "harness/commands/inputs/suite_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/config/suite.h"

void suite_words_add(struct strings *words, const struct command_call *call)
{
    static const char *const names[] = {"backend", "precision", "device", "gpus", "seed"};
    const struct options *given = call->options;
    strings_copy(words, call->arguments + 1, call->argument_count - 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (options_find(options_table(given), names[i]) != NULL && options_given(given, names[i]))
            strings_format(words, "run.%s%s=%s", names[i], strcmp(names[i], "seed") == 0 ? "s" : "",
                           options_as_text(given, names[i]));
}

status suite_word_key(char **key, const char *word, struct error *error)
{
    OWNED char *name = xstrndup(word, strcspn(word, "="));
    *key = NULL;
    if (strchr(name, '.') == NULL)
        TRY(suite_key_find(key, settings_sections, name, error));
    if (*key == NULL)
        *key = TAKE(name);
    return OK;
}

/* Refuses ambiguous keys: where two have one name, nobody sees which one counts. */
static status check_words(const struct suite *suite, const struct command_call *call, struct error *error)
{
    for (size_t i = 1; i < call->argument_count; i++) {
        OWNED char *key = NULL;
        TRY(suite_word_key(&key, call->arguments[i], error));
        TRY(suite_key_check(suite, call->arguments[i], key, error));
    }
    return OK;
}

status suite_words_load(struct suite **suite, const struct command_call *call, const struct strings *words,
                        struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *loaded = NULL;
    TRY(suite_load(&loaded, call->arguments[0], settings_sections, (const char *const *)words->items, words->count,
                   error));
    TRY(check_words(loaded, call, error));
    *suite = TAKE(loaded);
    return OK;
}

static bool is_typed(const struct strings *words, const char *key)
{
    for (size_t i = 0; i < words->count; i++)
        if (strncmp(words->items[i], key, strlen(key)) == 0 && words->items[i][strlen(key)] == '=')
            return true;
    return false;
}

status suite_words_consent(const struct command_call *call, const struct suite *suite, const struct strings *words,
                           struct error *error)
{
    static const char *const sections[] = {"method", "merge"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const struct options *options = suite_options(suite, sections[i]);
        char key[32];
        snprintf(key, sizeof key, "%s.command", sections[i]);
        if (options_find(options_table(options), "command") == NULL || options_list_size(options, "command") == 0 ||
            is_typed(words, key) || options_boolean(call->options, "allow-commands"))
            continue;
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: %s asks to run a program of the suite's file, %s; read it, and give --allow-commands if "
            "it may do all that you may, or type the command: %s=\"…\"",
            key, options_as_text(options, "command"), key);
    }
    return OK;
}
