/* The contents of a run's inputs, as values among its settings, so that a comparison of settings compares contents: the
 * same weights in two places are equal, two files that were at one path in turn are not.
 *
 *     struct run_contents contents;
 *     contents_begin(&contents, store);
 *     TRY(contents_add(&contents, run, &values, error));         // for each run whose suite values are compared
 *     contents_end(&contents);
 *
 * Sets model.weights, model.configuration (heads and activation), model.vocabulary, data.root (the training images),
 * prompts and test images. A value is the path in the suite, with the beginning of the digest if another content
 * already has that path. Where no content is recorded, it says so.
 */
#ifndef MTIL_RESULTS_STORE_CONTENTS_H
#define MTIL_RESULTS_STORE_CONTENTS_H

#include <stdbool.h>

#include "results/store.h"
#include "results/store/setting_values.h"

#define CONTENTS_PROMPTS "prompts"
#define CONTENTS_TESTS "test images"

struct statement;
struct contents_name;

struct run_contents {
    struct store *store;
    struct statement *read; /* opened when first used */
    struct contents_name *names;
    size_t count;
};

void contents_begin(struct run_contents *contents, struct store *store);
void contents_end(struct run_contents *contents);
status contents_add(struct run_contents *contents, int64_t run, struct setting_values *values, struct error *error);

/* Whether a key is one of these. */
bool contents_has_key(const char *key);

#endif
