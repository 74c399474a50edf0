/* Part of settings.c: the section `data` of a suite, with the tasks, their order and their images, and the keys of the
 * section `evaluation`.
 *
 *     {.name = "data", .options = settings_data_options, .shorthand = settings_data_shorthand,
 *      .chooser = "split_by", .chosen = settings_split_keys}
 */
#ifndef MTIL_HARNESS_RUN_SETTINGS_DATA_H
#define MTIL_HARNESS_RUN_SETTINGS_DATA_H

#include "harness/run/settings.h"

extern const struct option settings_data_options[], settings_evaluation_options[];

/* The keys that come with split_by, and its values by number, NULL past the last. */
const char *settings_split_name(size_t index);
status settings_split_keys(const char *name, const struct option **table, struct error *error);

/* The names that a value stands for: the eleven of "order: II". */
const char *settings_data_shorthand(const char *key, const char *value);

/* Fills in the settings of the section; label_space is already set. */
void settings_read_data(struct settings *settings, const struct options *data);

/* Checks conditions on several keys. The setting that a suite states must be the one that it computes. */
status settings_check_data(const struct settings *settings, const struct options *data, struct error *error);

#endif
