/* What a run is computed from: the contents of weights, vocabulary and datasets, wherever they lie; with the settings they
 * make two runs the same.
 *
 *     struct inputs inputs;
 *     TRY(inputs_read(&inputs, &surveyor, suite, experiment, error));
 *     … inputs.hash, inputs.rows[0].digest …
 *     inputs_free(&inputs);
 *
 * Few-shot runs of all seeds have the same inputs: all training images, of which each seed chooses. So have runs on parts
 * of one dataset, whose inputs are those of the whole (task −1).
 */
#ifndef MTIL_HARNESS_RUN_INPUTS_H
#define MTIL_HARNESS_RUN_INPUTS_H

#include "harness/run/experiment.h"
#include "harness/run/surveyor.h"
#include "results/store.h"

struct inputs {
    /* weights, configuration, vocabulary, what the method's options name, then of each dataset prompts, train and test */
    struct input_row *rows;
    size_t count;
    char hash[DIGEST_SIZE]; /* of the settings' hash and all digests: what identifies a run, but for its seed */
};

/* experiment: after tasks_survey, so that its datasets need not be opened again; NULL: they are. The caller frees, after a
 * failure too. ERROR_FORMAT where a file was written to since the experiment read it. */
status inputs_read(struct inputs *inputs, struct surveyor *surveyor, const struct suite *suite,
                   const struct experiment *experiment, struct error *error);
void inputs_free(struct inputs *inputs);

/* What identifies a run of other settings on the same inputs. */
status inputs_identify(const struct inputs *inputs, const char *settings_hash, char hash[DIGEST_SIZE],
                       struct error *error);

/* The digest of all that a suite says of where its inputs are and how they are read: two suites of one key have the same
 * inputs. */
status inputs_key(const struct suite *suite, char key[DIGEST_SIZE], struct error *error);

/* "the test images of mnist (/data/MNIST)", for messages. The caller frees; NULL when out of memory. */
char *inputs_describe(const struct input_row *row, const struct experiment *experiment);

#endif
