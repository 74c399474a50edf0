/* What runs were told: their settings, and the contents of their inputs as values among them, so that a comparison of
 * settings compares contents: the same weights in two places are equal, two files that were at one path in turn are not.
 *
 *     TRY(contents_read(store, "SELECT configuration, run FROM configuration", error));
 *
 * fills the temporary table run_values (place, key, value, content) for the runs of a query, whose first column is their
 * place. Values are text: "50", "true", "[1, 2]". Where content is 1, the value names what an input holds: model.weights,
 * model.configuration (heads and activation), model.vocabulary, data.root (the training images), prompts, test images.
 * Where no content is recorded, it says so.
 */
#pragma once

#include "results/store.h"

status contents_read(struct store *store, const char *runs, struct error *error);
