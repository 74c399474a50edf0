/* A folder that goes away, and runs of made-up but fixed numbers. */
#pragma once

#include <stdint.h>

#include "results/store.h"

#define SAMPLE_TASKS 4
#define SAMPLE_ITERATIONS 20 /* of each task, merges at every tenth */

/* "FOLDER/name" in a new folder under the system's temporary one; the caller frees it with sample_remove. */
char *sample_path(const char *name);
void sample_remove(char *path); /* and everything in its folder */

struct run_description sample_description(int64_t seed);

struct sample_task {
    int64_t task;
    const char *name;
    int64_t classes, training_images, test_images, missing_images, unreadable_images;
    const char *test_digest;
};
status sample_add_task(struct store *store, int64_t run, const struct sample_task *row, struct error *error);
status sample_add_step(struct store *store, int64_t run, int64_t task, int64_t iteration, double loss,
                       struct error *error);

/* Suite text and settings from lines of "section:" and "  key: value"; borrowed until the next call. */
void sample_tell(struct run_description *description, const char *text);

/* The right ones of 200 images, fixed by all three. */
int64_t sample_correct(int64_t seed, int64_t after_task, int64_t task);
#define SAMPLE_IMAGES 200

/* Writes what a run writes from after `iteration` of `task` on (task −1: all of it), as the trainer does; stops before
 * (stop_task, stop_iteration), or never where stop_task is −1. */
status sample_write(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration, int64_t stop_task,
                    int64_t stop_iteration, struct error *error);

/* The same in one transaction. */
status sample_write_at_once(struct store *store, int64_t run, int64_t seed, int64_t task, int64_t iteration,
                            int64_t stop_task, int64_t stop_iteration, struct error *error);

/* Reads the whole file; ERROR_FORMAT when something in it is damaged. */
status sample_check(struct store *store, struct error *error);

/* Runs SQL on a file as another program would, without foreign keys. */
status sample_execute(const char *path, const char *sql, struct error *error);

/* The first column of the first row of a query; ends the program where it fails. */
int64_t sample_ask(struct store *store, const char *sql);

/* A finished run; its id. */
int64_t sample_finished_run(struct store *store, int64_t seed);
