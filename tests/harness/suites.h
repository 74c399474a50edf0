/* Suites as the program reads them.
 *
 *     struct suite *suite = must_read("data: {order: [dtd]}\n", "training.batch=7");     // overrides, or NULL
 *     expect_values(suite, "tasks.dtd.batch=7; run.seeds=1; one_moment=0");
 *     TEST_GROUP(NULL, forget_suites)
 */
#pragma once

#include "harness/run/settings.h"
#include "tests/test.h"

extern struct error error; /* of the last suite that was refused */

/* The suite of some YAML, called test.yaml, and overrides ended by NULL; or one that ships, with an override or NULL. It lives until
 * eight later ones. */
#define must_read(yaml, ...) suites_read(yaml, (const char *const[]){__VA_ARGS__, NULL})
struct suite *suites_read(const char *yaml, const char *const *overrides);
status suites_try(struct suite **suite, const char *yaml,
                  const char *const *overrides); /* the caller destroys the suite */
struct suite *suites_load(const char *name, const char *override);
int forget_suites(void **state);

/* The text of a key's value, "training.batch" or "tasks.dtd.batch". */
const char *value_of(const struct suite *suite, const char *key);

/* "key=value; …": values of keys, and of settings without a section: words such as order, method or selector, and numbers that are read
 * of keys, such as task_count, routers (of the adapters), groups (that are trained) or iterations (of the selector). */
void expect_values(const struct suite *suite, const char *expected);

/* What it writes reads back as itself. */
void expect_reread(const struct suite *suite);
