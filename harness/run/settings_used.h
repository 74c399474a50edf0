/* Part of settings.c: which keys are read with the choices of a suite. What nothing reads identifies no run.
 *
 *     {.name = "merge", .options = merge_options, .used = settings_uses_merge}
 */
#ifndef MTIL_HARNESS_RUN_SETTINGS_USED_H
#define MTIL_HARNESS_RUN_SETTINGS_USED_H

#include "harness/config/suite.h"

bool settings_uses_head(const struct suite *suite, const char *section, const char *key);
bool settings_uses_data(const struct suite *suite, const char *section, const char *key);
bool settings_uses_adapter(const struct suite *suite, const char *section, const char *key);
bool settings_uses_merge(const struct suite *suite, const char *section, const char *key);    /* and combine */
bool settings_uses_training(const struct suite *suite, const char *section, const char *key); /* and tasks */
bool settings_uses_evaluation(const struct suite *suite, const char *section, const char *key);
bool settings_uses_selector(const struct suite *suite, const char *section, const char *key);

#endif
