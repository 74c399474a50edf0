/* The options --backend, --precision, --device and, in some commands, --gpus of commands that take a suite; equivalent
 * to run.backend=… after the suite.
 *
 *     static const struct option options[] = {BACKEND_OPTIONS(NULL, NULL, NULL), {0}};
 *     struct suite_words words;
 *     suite_words_read(&words, call);
 *     TRY(suite_load(&suite, call->arguments[0], settings_sections, words.list, words.count, error));
 *     suite_words_free(&words);
 */
#pragma once

#include "harness/commands/command.h"
#include "models/backend_options.h"

enum { BACKEND_CHOICES = 4 };

struct suite_words {
    const char **list; /* key=value: arguments after the first, then options in this form */
    size_t count;
    char *made[BACKEND_CHOICES]; /* storage of the options' words */
};

/* The caller frees; suites do not borrow from the words. */
void suite_words_read(struct suite_words *words, const struct command_call *call);
void suite_words_free(struct suite_words *words);
