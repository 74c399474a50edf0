/* Part of settings.c: the sections `training` and `tasks`, with what they ask of method, head and `data`.
 *
 *     TRY(settings_read_training(s, suite, error)); // after method and head are known
 */
#ifndef MTIL_HARNESS_RUN_SETTINGS_TRAINING_H
#define MTIL_HARNESS_RUN_SETTINGS_TRAINING_H

#include "harness/run/settings.h"

/* Fills in one_moment. Refuses a value that nothing reads beside the others: two runs that compute the same would have two
 * identities. */
status settings_read_training(struct settings *settings, const struct suite *suite, struct error *error);

#endif
