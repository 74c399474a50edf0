/* The keys of a suite for the selector. */
#pragma once

#include "harness/config/settings.h"

/* A new selector is a file in this folder and a line here (selectors.h). */
#define SELECTORS(X) X(clip) X(alexnet) X(gaussian) X(task_gaussian) X(text) X(oracle) X(none)

extern const struct option selector_options[];
struct selector_settings selector_settings_of(const struct options *options);

/* The default of a key that is another one with this kind; NULL: its own. For suite_section.preset. */
const char *selector_preset(const char *kind, const char *section, const char *key);

/* Whether the kind and the decision that the options name look at the key. */
bool selector_settings_read(const struct options *options, const char *key);

/* What the kind needs and does not have, or has and does not use: ERROR_ARGUMENT. */
status selector_settings_check(const struct selector_settings *settings, struct error *error);

/* A file that it needs and that is not there: ERROR_IO, which says where it is to be had. */
status selector_settings_look(const struct selector_settings *settings, struct error *error);
