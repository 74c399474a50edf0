/* Parts of settings.c: the section `data` and the keys of `evaluation` (settings_data.c), the sections `training` and `tasks`
 * and which keys are read (settings_data.c). */
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

/* Fills in the settings of `training` and `tasks`; method, head and `data`, which they depend on, are known by then.
 * Refuses a value that nothing reads beside the others: two runs that compute the same would have two identities. */
status settings_read_training(struct settings *settings, const struct suite *suite, struct error *error);

/* Which keys are read with the choices of a suite. A key that nothing reads is no part of a run's identity. */
bool settings_uses_head(const struct suite *suite, const char *section, const char *key);
bool settings_uses_data(const struct suite *suite, const char *section, const char *key);
bool settings_uses_adapter(const struct suite *suite, const char *section, const char *key);
bool settings_uses_delta(const struct suite *suite, const char *section, const char *key);
bool settings_uses_merge(const struct suite *suite, const char *section, const char *key);    /* and combine */
bool settings_uses_training(const struct suite *suite, const char *section, const char *key); /* and tasks */
bool settings_uses_evaluation(const struct suite *suite, const char *section, const char *key);
bool settings_uses_selector(const struct suite *suite, const char *section, const char *key);
