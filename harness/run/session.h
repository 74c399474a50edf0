/* Inside a sequence: its state, and the parts that other files have: training.c trains a task, evaluation.c tests the model, own.c
 * runs a method that trains and answers by itself, timings.c records what they took, and resume/ goes back to where a stop was. */
#pragma once

#include "harness/run/identity/image_watch.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/run/resume/extension.h"
#include "harness/run/sequence.h"
#include "harness/terminal/progress.h"

/* State of a call besides the run. */
struct session {
    struct sequence *sequence;
    struct run *run;
    struct recorder recorder;
    struct selector *selector; /* NULL: not needed */
    struct evaluator *evaluator;
    struct inputs inputs;
    struct continuation continuation;
    struct extension extension;
    struct image_watch images;
    struct checkpoint_writer writer; /* of the resume file */
    char *folder, *resume;
    int folder_lock;         /* descriptor of the folder; −1: not held */
    bool begun;              /* by another session */
    bool stays_stopped;      /* after a failure: the resume file lies elsewhere, or is not to be used */
    double saved;            /* when the last resume point was written */
    const struct task *task; /* being trained */
    struct progress_work work;
    struct cache_progress decoding;
    size_t encoded; /* test images, and the seconds that they took, at the last row of timings */
    double encoding;
    double before, iteration; /* work of training: before this task, and of one of its iterations */
    double last_loss;
    struct {
        double inputs, files, files_of_training, images_of_training;
    } took; /* seconds: to read the inputs; to commit rows and write files; waiting for images */
};

/* --- timings.c --- */

/* A row of timings: how long a phase has taken since then, and the memory so far. */
status session_record_time(struct session *s, int64_t task, int64_t iteration, const char *phase, double since,
                           int64_t iterations, int64_t images, struct error *error);

/* --- resume/points.c --- */

/* Commits the rows, and writes the resume file of this place, while the run goes on. */
status session_save_place(struct session *s, size_t task, size_t iteration, struct error *error);

/* Commits the rows after a number of tasks, and writes the state alone: a stop before the next resume file computes them again. */
status session_keep_state(struct session *s, size_t task, struct error *error);

/* The failure of a resume file that is written while the run goes on; never waits. */
status session_check_file(struct session *s, struct error *error);

/* Waits for the resume file. result, how the run ended, unless only that file failed. */
status session_finish_files(struct session *s, status result, struct error *error);

/* What the run had when its resume file was written, in memory and in the database; resumed is false when there is none. */
status session_go_back(struct session *s, struct checkpoint_place *place, bool *resumed, struct error *error);

/* Removes what a kill at the end of a finished run has left. */
void session_tidy_finished(struct session *s);

/* --- resume/folder.c --- */

/* Names the folder and the resume file. ERROR_ARGUMENT when the run is to go on elsewhere than its resume file lies. */
status session_find_folder(struct session *s, struct error *error);
/* Finds, creates and locks it, and records where it is. ERROR_BUSY when another run uses it. */
status session_open_folder(struct session *s, struct error *error);
/* ERROR_IO when the folder was replaced meanwhile. */
status session_check_folder(const struct session *s, struct error *error);

/* --- record/live.c --- */

void session_report_live(void *context, const struct progress_news *news);

/* --- training.c --- */

/* Trains the task from an iteration on. */
status session_train(struct session *s, size_t task, size_t first, struct error *error);

/* --- evaluation.c --- */

void session_report_evaluation(struct session *s, const char *activity, size_t j);
status session_zero_shot_row(struct session *s, bool record, struct error *error);
status session_train_selector(struct session *s, size_t task, struct error *error);
/* After a task, of the tasks from `from` on. */
status session_evaluate_and_save(struct session *s, size_t task, size_t from, struct error *error);

/* --- resume/extension.c --- */

/* Tests the further tasks with each state of the run that is extended, and leaves the last one; the rows of that run are there. */
status session_extend(struct session *s, struct checkpoint_place *place, struct error *error);

/* --- own.c --- */

/* Starts the method, and tests it before training if it can answer then. trained: tasks before a stop. */
status session_start_own(struct session *s, size_t trained, bool resumed, struct error *error);

/* Runs the tasks from place on. */
status session_run_own(struct session *s, size_t first, struct error *error);
