/* The words key=value of a command that takes a suite. The options --backend, --precision, --device and, in some
 * commands, --gpus are such words too: run.backend=… after the suite.
 *
 *     static const struct option options[] = {BACKEND_OPTIONS(NULL, NULL, NULL), {0}};
 *     struct strings words = {0};
 *     suite_words_add(&words, call);
 *     TRY(suite_words_load(&suite, call, &words, error));
 *     strings_free(&words);
 */
#pragma once

#include "datasets/formats/strings.h"
#include "harness/commands/command.h"
#include "harness/run/settings.h"
#include "models/backend_options.h"

/* Appends the arguments after the first, then the options in this form. */
void suite_words_add(struct strings *words, const struct command_call *call);

/* Commands that a suite's file names are run only with this option; those on the command line are always run. */
#define ALLOW_COMMANDS_OPTION                                                                                          \
    OPTION(BOOLEAN, "allow-commands", "no",                                                                            \
           "run the programs that the suite's file names (method.command, merge.command)")
status suite_words_consent(const struct command_call *call, const struct suite *suite, const struct strings *words,
                           struct error *error);

/* The full key of a word, "merge.every" of "every=3". The caller frees. */
status suite_word_key(char **key, const char *word, struct error *error);

/* The suite that the first argument names, with these words; the last word of a key counts. The suite does not borrow
 * from them. */
status suite_words_load(struct suite **suite, const struct command_call *call, const struct strings *words,
                        struct error *error);
