/* All keys that suites may have, and the key that a word on a command line stands for.
 *
 *     struct suite_keys keys;
 *     suite_keys_read(&keys, settings_sections);
 *     keys.list[i].section->name, keys.list[i].option->name, keys.list[i].with.data …      // "merge", "sources", "most_used"
 *     suite_keys_free(&keys);
 */
#pragma once

#include <stddef.h>

#include "core/text.h"
#include "harness/config/suite.h"

struct suite_key {
    const struct suite_section *section;
    const struct option *option;          /* borrowed from the tables */
    const struct suite_section *inherits; /* section whose value is the default; NULL: the key has its own */
    struct text with;                     /* "mean, ties": values of the section's chooser with this key; empty: all */
};

struct suite_keys {
    struct suite_key *list; /* section by section */
    size_t count;
};

/* A key that several choices share is one entry, or several where defaults differ. The caller frees. */
void suite_keys_read(struct suite_keys *keys, const struct suite_section *sections);
void suite_keys_free(struct suite_keys *keys);

/* The full key of a short name: "merge.policy" for "policy", "run.seeds" for "seed"; *key NULL: no key has that name.
 * The caller frees. ERROR_ARGUMENT: several sections have such a key. */
status suite_key_find(char **key, const struct suite_section *sections, const char *name, struct error *error);

/* ERROR_ARGUMENT: the word, "dropout=0.1", stands for key, but what the suite chose, its method say, has a key of that name, too. */
status suite_key_check(const struct suite *suite, const char *word, const char *key, struct error *error);

/* The full key closest to a word, "training.learning_rate" for "lr", and its edit distance, 0 for a synonym; NULL: none
 * is close. The caller frees. */
char *suite_key_near(const struct suite_section *sections, const char *word, size_t *distance);
