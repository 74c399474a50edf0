/* The inputs of a run: the contents of weights, vocabulary and datasets, whatever their paths. Together with the
 * settings they identify a run.
 *
 *     struct inputs inputs;
 *     TRY(inputs_read(&inputs, &surveyor, suite, run, error));
 *     … inputs.hash, inputs.rows[0].digest …
 *     inputs_free(&inputs);
 *
 * Few-shot runs of all seeds have the same inputs, namely all training images, from which each seed chooses. Runs on
 * parts of one dataset have the inputs of the whole dataset (task −1).
 */
#pragma once

#include "core/digest.h"
#include "harness/run/identity/surveyor.h"
#include "results/store.h"

struct inputs {
    /* weights, configuration, vocabulary, files and folders of the method's options, then prompts, train and test of
     * each dataset */
    struct input_row *rows;
    size_t count;
    char hash[DIGEST_SIZE]; /* of the settings' hash and all digests; with the seed it identifies a run */
};

/* run: after surveyor_tasks, which opened its datasets; NULL: datasets are opened here. The caller frees, also
 * after a failure. ERROR_FORMAT if a file changed since the run read it. */
status inputs_read(struct inputs *inputs, struct surveyor *surveyor, const struct suite *suite, const struct run *run,
                   struct error *error);
void inputs_free(struct inputs *inputs);

/* Computes the hash of a run with other settings on the same inputs. */
void inputs_identify(const struct inputs *inputs, const char *settings_hash, char hash[DIGEST_SIZE]);

/* The digest of all settings that locate the inputs and determine how they are read. Suites with the same key have the
 * same inputs. */
void inputs_key(const struct suite *suite, char key[DIGEST_SIZE]);

/* "the test images of mnist (/data/MNIST)", for messages. The caller frees. */
char *inputs_describe(const struct input_row *row, const struct run *run);
