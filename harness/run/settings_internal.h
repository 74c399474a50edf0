/* Parts of settings.c in settings_data.c: the section `data`, the keys of `evaluation`, the checks of `training` and `tasks`, and
 * which keys a method reads. */
#pragma once

#include "harness/run/settings.h"

extern const struct option settings_data_options[], settings_evaluation_options[];

/* The keys that come with split_by, and its values by number, NULL past the last. */
const char *settings_split_name(size_t index);
status settings_split_keys(const char *name, const struct option **table, struct error *error);

/* The names that a value stands for: the eleven tasks of "order: II". */
const char *settings_data_shorthand(const char *key, const char *value);

/* Fills in the settings of the section; label_space is already set. */
void settings_read_data(struct settings *settings, const struct options *data);

/* Opens the dataset where the number of tasks follows from that of its classes. */
status settings_count_parts(struct settings *settings, const struct suite *suite, struct error *error);

/* Checks conditions on several keys. The setting that a suite states must be the one that it computes. */
status settings_check_data(const struct settings *settings, const struct options *data, struct error *error);

/* Fills in the settings of `training` and `tasks`; method, head and `data`, which they depend on, are known by then. */
status settings_read_training(struct settings *settings, const struct suite *suite, struct error *error);

/* Whether the suite's choices read a key, beside the conditions of its row. */
bool settings_reads(const struct suite *suite, const char *section, const char *key);
