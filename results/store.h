/* The results database: every number a run produces, in one SQLite file.
 *
 *     struct store *store;
 *     TRY(store_open(&store, "results.sqlite", STORE_WRITE, error));
 *     TRY(store_run_start(store, &description, &start, error));     // finds or creates the run, and locks it
 *     store_begin(store);
 *     TRY(store_add(store, start.run, "steps", NAMED({"task", value_integer(0)}, {"loss", value_real(1.25)}, …), error));
 *     TRY(store_commit(store, error));
 *     TRY(store_run_end(store, start.run, RUN_FINISHED, NULL, error));
 *     store_close(store);
 *
 * Observations are in append-only tables (results/store/schema.sql), derived values in views (results/store/views.sql).
 * Outside store_begin … store_commit every call is a transaction of its own. Many processes may write different runs of
 * one file. A store is used from one thread at a time.
 *
 * Only `runs`, `settings`, `timings`, `artifacts`, `inputs` and `sessions` depend on the clock or the machine's
 * folders; the other tables have the same rows for a run that was stopped and continued as for one that was not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"
#include "results/store/database.h"
#include "results/store/per_image.h"

struct stop; /* core/threads.h */
struct store;

/* Opens path; the caller closes with store_close. ERROR_FORMAT for a damaged database, one of another program or one
 * with another schema, ERROR_IO when the file cannot be read; each message names the file. After a request to stop, reads
 * and waits for other programs end with ERROR_STOPPED; writes are still done. */
status store_open(struct store **store, const char *path, enum store_mode mode, struct error *error);
status store_open_stoppable(struct store **store, const char *path, enum store_mode mode, const struct stop *stop,
                            struct error *error);
void store_close(struct store *store); /* rolls back uncommitted rows and releases the locks; NULL is allowed */
SCOPED_POINTER(struct store, store_close)

const char *store_path(const struct store *store); /* borrowed until close */

/* For code that reads rows by itself (results/store/database.h); borrowed until close. */
struct database *store_database(struct store *store);

/* Rows are kept in memory from here on, until store_commit writes them in one short transaction: hours may lie between
 * the two, and other processes write the same file meanwhile. An error in a row is reported when the row is written. A
 * failed store_commit keeps the rows in memory and leaves none in the file; it also fails when the file, its lock file or
 * rows of the run were removed meanwhile. */
void store_begin(struct store *store);
status store_commit(struct store *store, struct error *error); /* harmless without store_begin, like the next one */
void store_rollback(struct store *store);                      /* forgets the rows */

enum run_status { RUN_RUNNING, RUN_STOPPED, RUN_FINISHED, RUN_FAILED };

/* Something that a run is computed from: a file, or the images of a split. */
struct input_row {
    int64_t task;     /* −1: of the whole run */
    const char *kind; /* "weights", "configuration", "vocabulary", "prompts", "train", "test" */
    const char *path; /* where it was found */
    int64_t files, bytes;
    const char *digest; /* of its contents, digest_text's form */
};

/* A setting of a run as resolved. */
struct setting_row {
    const char *key;   /* "merge.every", "tasks.mnist.learning_rate" */
    const char *value; /* "50"; true, false and lists as suites write them: "[1, 2]" */
    const char *type;  /* "integer", "real", "boolean", "text", "list" */
};

/* The description of a run when it starts. All strings but folder are required, and borrowed for the call. */
struct run_description {
    const char *suite;         /* its name: "mini" */
    const char *suite_text;    /* as resolved, with defaults and overrides */
    const char *suite_hash;    /* digest_text (core/digest.h) of everything that determines the numbers but the seed */
    const char *settings_hash; /* of the settings alone */
    const char *folder;        /* of the run's files; may be NULL */
    const struct input_row *inputs;
    size_t input_count;
    const struct setting_row *settings; /* all that the run uses, with defaults */
    size_t setting_count;
    const char *setting; /* "full_shot", "few_shot", "x_tail", "class_incremental", "open_domain" */
    const char *method, *policy, *selector;
    const char *selection; /* how the selector decides: "per_image", "per_batch", "oracle", "none" */
    const char *order;     /* "I", "II", or the suite's own name for it */
    const char *model;
    const char *backend, *precision;
    const char *program_version;
    int64_t seed;
    int64_t tasks;                /* T */
    int64_t trainable_parameters; /* of one task; 0 when unknown */
};

struct run_start {
    int64_t run;          /* the row's id, positive */
    bool created;         /* false: the run was there before, or begins anew in the place of one that was */
    enum run_status past; /* its status before; RUN_RUNNING and not created: its process died */
};

/* Finds the run of (suite_hash, seed) or creates it, marks it running (a finished one stays finished) and locks it
 * until store_run_end or store_close. ERROR_BUSY, which names the process, when a living one has locked it. Not to be
 * called between store_begin and store_commit. */
status store_run_start(struct store *store, const struct run_description *description, struct run_start *start,
                       struct error *error);

/* The same for a known run, whatever its suite_hash: it continues, or (RUN_ANEW) loses all its rows and becomes the
 * described run. */
enum run_claim { RUN_GOES_ON, RUN_ANEW };
status store_run_claim(struct store *store, int64_t run, enum run_claim claim,
                       const struct run_description *description, struct run_start *start, struct error *error);

/* Replaces the inputs of a run, and the hash that follows from them. */
status store_run_change_inputs(struct store *store, int64_t run, const char *suite_hash, const struct input_row *inputs,
                               size_t count, struct error *error);

/* Records how many parameters a run trains, which was not known when it began. */
status store_run_measure(struct store *store, int64_t run, int64_t parameters, struct error *error);

/* Records the folder that the run goes on in. */
status store_run_move(struct store *store, int64_t run, const char *folder, struct error *error);

/* Records how a run ended (message: why it failed, or NULL) and unlocks it. The lock is released even on failure.
 * RUN_FINISHED succeeds only when the file, opened anew by its path, has all rows of the run that this store wrote, or
 * found at the last rewind. */
status store_run_end(struct store *store, int64_t run, enum run_status end, const char *message, struct error *error);

/* Finds a run without locking it; *run is 0 when there is none. */
status store_run_find(struct store *store, const char *suite_hash, int64_t seed, int64_t *run, enum run_status *past,
                      struct error *error);

/* The identity of a run, and the folder of its files. */
struct run_row {
    int64_t run, seed;
    char *suite, *suite_text, *suite_hash, *status;
    char *folder; /* NULL: unknown */
};
/* The caller frees, after a failure too. ERROR_ARGUMENT when there is no such run. */
status store_read_run(struct store *store, int64_t run, struct run_row *row, struct error *error);
void run_row_free(struct run_row *row);

/* Locks a run that is not being written until store_close; ERROR_BUSY: it is. */
status store_run_lock(struct store *store, int64_t run, struct error *error);

/* Removes the rows of a locked run in one transaction, and releases the lock. Its files go first, so that a run whose
 * files are partly removed can still be named. */
status store_run_erase(struct store *store, int64_t run, struct error *error);

/* Deletes what a run wrote after a checkpoint taken when `iteration` iterations of `task` were done (0: the task had
 * not begun, so (t + 1, 0) is the state after task t, its evaluations included). The zero-shot row goes only with task
 * −1. */
status store_run_rewind(struct store *store, int64_t run, int64_t task, int64_t iteration, struct error *error);

/* Gives a run the rows of a finished one of fewer tasks whose settings, inputs and seed are the same, after its tasks were added:
 * all that training and tests of these tasks wrote, but for zero-shot CLIP's, and for the experts of the last test. */
status store_run_extend(struct store *store, int64_t run, int64_t from, struct error *error);

/* A digest of the rows of a run from before such a checkpoint, which store_run_rewind would keep, without the tables that
 * depend on the clock or the machine's folders. Not negative. */
status store_digest_rows(struct store *store, int64_t run, int64_t task, int64_t iteration, int64_t *digest,
                         struct error *error);

/* Adds a row to a table of schema.sql, which describes its columns. Columns without a value are null. Do not name
 * `run`, numbers that count rows, `started` and `position`. Names and values are borrowed for the call.
 *
 * A row with the key of an existing one is ERROR_ARGUMENT, with these exceptions: an artifact replaces it, a
 * similarity is left out, and a task, its classes and its labels, which a resumed run describes again, have to be the
 * same. */
status store_add(struct store *store, int64_t run, const char *table, const struct named_value *row, size_t count,
                 struct error *error);

/* A cell of the accuracy matrix; its results per image become a row of their own. */
struct evaluation_row {
    int64_t after_task; /* the last task trained; −1: zero-shot CLIP */
    int64_t task;
    int64_t correct, images;
    const struct per_image *per_image; /* NULL: none kept */
};
status store_add_evaluation(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error);

/* Changes the numbers of training images of an existing task, whose data were repaired before it was trained. */
status store_change_task(struct store *store, int64_t run, int64_t task, int64_t training_images, int64_t missing,
                         int64_t unreadable, struct error *error);

/* The results per image of one evaluation. The caller frees with per_image_free; kind is PER_IMAGE_NONE if none were
 * kept. */
status store_read_per_image(struct store *store, int64_t run, int64_t after_task, int64_t task,
                            struct per_image *per_image, struct error *error);
