/* Progress of a command: one rewritten line on a terminal, occasional plain lines elsewhere.
 *
 *     struct progress *progress;
 *     progress_create(&progress, &(struct progress_settings){.stream = stderr});
 *     struct log log = progress_log(progress, LOG_INFO);              // messages that do not tear the line
 *     progress_report(progress, &(struct progress_state){.activity = "train", .subject = "dtd", .task = 4, .tasks = 11,
 *                                                        .step = 40, .steps = 100, .loss = 1.25, .images = 2560});
 *     progress_destroy(progress);                                     // leaves the last state on its own line
 *
 * Reports are cheap: most are dropped after reading the clock. Safe from several threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"
#include "harness/terminal/time_left.h"

enum progress_style {
    PROGRESS_AUTOMATIC, /* a line when the stream is a terminal of at least 60 columns, else plain */
    PROGRESS_LINE,      /* rewritten, at most ten times a second */
    PROGRESS_PLAIN,     /* one line at every new activity or subject, and every five seconds */
    PROGRESS_QUIET      /* warnings only */
};

struct progress_settings {
    FILE *stream; /* borrowed */
    enum progress_style style;
    double (*clock)(void); /* seconds, monotonic; NULL: the system's */
    int columns;           /* of PROGRESS_LINE; 0: ask the terminal */
};

/* The current activity. Zero and NULL fields are not shown. */
struct progress_state {
    const char *activity; /* "train", "evaluate"; needed */
    const char *subject;  /* a dataset, a file */
    size_t task, tasks;   /* task of tasks, from 1 */
    uint64_t step, steps; /* iterations or items done, of the total */
    double loss;
    uint64_t images; /* since the activity began on this subject, for the rate */
    /* For the time left, read only during the call; NULL: step of steps, unless these are part of work reported before. */
    const struct progress_work *work;
    double at_least; /* least number of seconds left; 0: unknown */
};

/* The content of a line, for listeners. */
struct progress_news {
    const struct progress_state *state;
    double images_per_second; /* 0: unknown */
    double done;              /* share of the work */
    double seconds_left;      /* negative: unknown */
};

struct progress;

void progress_create(struct progress **progress, const struct progress_settings *settings);
void progress_destroy(struct progress *progress); /* NULL is allowed */

/* progress may be NULL: nothing happens. The state's strings are read only during the call. */
void progress_report(struct progress *progress, const struct progress_state *state);

/* Calls notify at every new activity and then once a second, in the reporting thread, with any style; notify NULL: no
 * longer. */
typedef void progress_listener(void *context, const struct progress_news *news);
void progress_listen(struct progress *progress, progress_listener *notify, void *context);

/* Ends the rewritten line, so that something else can be printed. The remaining time is then computed from later
 * reports. */
void progress_end(struct progress *progress);

/* A log that writes messages of at least this level above the progress line. Valid until progress_destroy. */
struct log progress_log(struct progress *progress, enum log_level least);
