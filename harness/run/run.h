/* One run in memory: its identity, its model, its data and its method.
 *
 *     struct run *run;
 *     TRY(run_open(&run, suite, seed, log, error));
 *     ... trainer.h, evaluator.h, sequence.h ...
 *     run_close(run);
 */
#pragma once

#include <stdint.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/status.h"
#include "harness/run/settings.h"
#include "harness/train/method.h"

struct run {
    const struct suite *suite;
    char identity[DIGEST_SIZE];        /* hash of the settings until the inputs are read, then of both (inputs.h) */
    char identity_before[DIGEST_SIZE]; /* previous identity of a run resumed with changed data; "": none */
    struct model model;
    struct data data;
    struct method_run method; /* model NULL: nothing is trained */
};

/* Opens datasets, model and adapters, and draws the adapters' initial values. The suite and the log outlive the run. */
status run_open(struct run **run, const struct suite *suite, uint64_t seed, const struct log *log, struct error *error);

/* The data of a run alone, without a model: nothing is computed, except where data.split_by: labels needs features of
 * class names. DATA_COUNTED: missing datasets have their published sizes (task.planned). */
enum run_data { DATA_READ, DATA_COUNTED };
status run_open_data(struct run **run, const struct suite *suite, uint64_t seed, enum run_data data,
                     const struct log *log, struct error *error);

/* The same to estimate the time and memory of a run: missing datasets, vocabulary and weights of OpenAI have their
 * published sizes. Nothing can be computed. ERROR_IO where something else is missing. */
status run_open_planned(struct run **run, const struct suite *suite, uint64_t seed, const struct log *log,
                        struct error *error);

/* The same for evaluation only: nothing is trained, and there are no adapters until the caller opens some into
 * `model.adapters`, which the run then owns. */
status run_open_frozen(struct run **run, const struct suite *suite, uint64_t seed, const struct log *log,
                       struct error *error);

/* Opens the model anew from its current settings, with `groups` trained; tasks, tokenizer and cache stay. MODEL_ALONE:
 * without the method and its replicas. */
enum run_parts { WITH_METHOD, MODEL_ALONE };
status run_reopen(struct run *run, unsigned groups, enum run_parts parts, struct error *error);
void run_close(struct run *run); /* NULL is allowed */
SCOPED_POINTER(struct run, run_close)

/* The folder of a new run, FOLDER/SUITE-HASH/seedN; and the paths of the resume file and of the scores of blocks in a
 * folder. The caller frees. */
char *run_folder(const struct run *run);
char *run_resume_file(const char *folder);
char *run_scores_file(const char *folder);
char *run_state_file(const char *folder, size_t task); /* with run.checkpoints: states, after that task */

/* --- The files of runs --- */

/* The files of a run, all in one folder: adapters or weights, resume file, and temporary files left by a killed
 * process.
 *
 *     struct run_files files;
 *     TRY(run_files_find(&files, folder, seed, error));       // also locks the folder
 *     … files.count, files.bytes …
 *     TRY(run_files_remove(&files, error));                  // also removes the folders if they are empty then
 *     run_files_close(&files);
 *
 * A database may come from elsewhere and name any folder. So only a folder that is named like a run's
 * (SUITE-HASH/seedN) is accepted, only regular files with the names of a run's files and the folders of a run of another
 * program are removed, and no link is followed.
 */

struct run_files {
    char *folder;   /* NULL: there is none */
    int descriptor; /* of the folder, locked; −1: not open */
    struct directory entries;
    char **name; /* of the files, borrowed from entries */
    size_t count;
    size_t others; /* entries that are not the run's, which stay */
    uint64_t bytes;
};

/* folder may be NULL or absent: then nothing is found. ERROR_BUSY when a run uses it, ERROR_ARGUMENT when it is not
 * the folder of a run with this seed. The caller closes, also after a failure. */
status run_files_find(struct run_files *files, const char *folder, int64_t seed, struct error *error);
/* "SUITE-0123456789ab/seedN" at the end of such a folder, as run_folder names it; NULL: it is none. */
const char *run_files_place(const char *folder, int64_t seed);
status run_files_remove(struct run_files *files, struct error *error);
void run_files_close(struct run_files *files);
