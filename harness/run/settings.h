/* Reads the settings of a run from a suite: the table of all sections.
 *
 *     struct suite *suite;
 *     TRY(suite_load(&suite, "mini", settings_sections, overrides, count, error));
 *     struct settings settings;
 *     TRY(settings_read(&settings, suite, error));
 *     settings.merge.every …
 */
#pragma once

#include "harness/config/settings.h"

extern const struct suite_section settings_sections[];

/* Whether a key of a stored suite, with that value, changes only how a run is computed: "run.threads". */
bool settings_incidental(const char *key, const char *value);

#define SETTINGS_DATABASE "results.db" /* run.database, unless a command says otherwise */

/* Strings and options are borrowed from the suite. Also checks conditions on several keys (top_k above experts, no
 * task), and the seeds. */
status settings_read(struct settings *settings, const struct suite *suite, struct error *error);
/* Warns, a line each, about allowed settings that are seldom meant, such as warm-up that is longer than training.
 * False: no warning. */
bool settings_warn(const struct settings *settings, const struct suite *suite, const struct log *log);
bool settings_select(const struct settings *settings); /* whether a selector chooses the router at test time */

/* The seeds, one run each. */
size_t settings_seeds(const struct suite *suite);
uint64_t settings_seed(const struct suite *suite, size_t index);
