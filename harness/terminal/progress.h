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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/scope.h"
#include "core/status.h"

struct cache;
struct stop;

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
SCOPED_POINTER(struct progress, progress_destroy)

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

/* --- The time left --- */

/* Estimates how long the rest of some work takes from the amounts done so far and their times. The caller reports both;
 * no clock is read here.
 *
 *     struct time_left left = {0};
 *     time_left_note(&left, now, &work);                 // at every report, in their order
 *     double seconds = time_left_seconds(&left, &work);  // TIME_UNKNOWN: too early to say
 *
 * Work is of several kinds, with amounts in one unit. The pace of each kind is measured with exponential weights over
 * half a minute or a quarter of its time so far, whichever is longer; a kind that has not begun is assumed to go at the
 * mean pace of the others. Outliers are limited: the first report of a kind includes warming up and is forgotten at the
 * second, and no interval counts for more than 8 times or less than an eighth of its expected time (a resume file is
 * written, the machine sleeps, features were found in a cache).
 *
 * No time is known before 5 reports and 3 seconds of work have been seen, nor while kinds with fewer than 3 reports are
 * more than half of the rest.
 */

enum { WORK_KINDS = 4 };

struct progress_work {
    double done[WORK_KINDS], total[WORK_KINDS];
};

/* How fast a kind of work is done. */
struct pace {
    double seconds, amount; /* with exponentially fading weights */
    double watched;         /* seconds of this kind in all */
    size_t reports;         /* with new work of this kind */
};

struct time_left {
    struct pace paces[WORK_KINDS];
    struct progress_work last;
    double when; /* time of `last` */
    bool begun;
};

static const double TIME_UNKNOWN = -1;

/* Different totals mean different work: the estimate starts anew. */
void time_left_note(struct time_left *left, double now, const struct progress_work *work);

double time_left_seconds(const struct time_left *left, const struct progress_work *work);

double work_share(const struct progress_work *work); /* the share that is done, in [0, 1] */

/* --- Decoding of images --- */

/* Progress while images are decoded into a cache file, and stopping it.
 *
 *     struct cache_progress decoding = {progress, stop};
 *     cache_progress_begin(data->cache, &decoding);             // decoding lives until …
 *     cache_progress_end(data->cache);
 */

struct cache_progress {
    struct progress *progress; /* either may be NULL */
    const struct stop *stop;
};

void cache_progress_begin(struct cache *cache, struct cache_progress *shown);
void cache_progress_end(struct cache *cache);
