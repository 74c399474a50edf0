/* The data of a report: the chosen runs, by configuration and by sequence of tasks.
 *
 *     struct report report = {.store = store, .request = request};
 *     TRY(report_load(&report, error));
 *     for (size_t b = 0; b < report.board_count; b++)
 *         use(report.board[b].names, report.board[b].configuration[0]->label);
 *
 * All memory is in the report's arena and is freed with it.
 */
#ifndef MTIL_RESULTS_REPORT_DATA_H
#define MTIL_RESULTS_REPORT_DATA_H

#include <stdint.h>

#include "core/arena.h"
#include "core/text.h"
#include "results/compare.h"
#include "results/report.h"
#include "results/store/contents.h"
#include "results/store/database.h"

enum { REPORT_METRICS = 8 }; /* those of metrics.h, in their order */

enum report_metric { TRANSFER, AVERAGE, LAST, FORGETTING, BACKWARD_TRANSFER, FORWARD_TRANSFER, GAIN, ZERO_SHOT };

/* Columns of runs that tell configurations apart, in the order of report_fields. */
enum { REPORT_FIELDS = 9 };
extern const char *const report_fields[REPORT_FIELDS];

struct report_run {
    int64_t run, seed;
    const char *status;
    bool finished;
    double metric[REPORT_METRICS]; /* NAN: the matrix is not complete */
};

/* A mean over runs and half the width of its 95% interval; NAN where n is too small for one. */
struct estimate {
    size_t n;
    double mean, half;
};

/* Runs that differ in the seed alone, by seed, finished ones first. */
struct configuration {
    const char *hash, *field[REPORT_FIELDS];
    const char *label;  /* what distinguishes it from the others of its board */
    const char *legend; /* the same with its method, for figures */
    size_t colour;      /* of those that are drawn */
    struct report_run *run;
    size_t runs, finished;
    size_t board;                           /* while loading: its number, from 1; 0: none */
    size_t used;                            /* of run: the finished ones, or all where none is */
    struct estimate metric[REPORT_METRICS]; /* over the finished runs */
};

/* Configurations that learn the same tasks in the same order, best Last first. */
struct board {
    const char **names; /* [tasks] */
    size_t tasks;
    struct configuration **configuration;
    size_t count, finished; /* finished: those with a finished run, the first ones */
    size_t shown;           /* drawn in figures: of the finished ones, or of all where there is none */
};

struct report {
    struct store *store;
    const struct report_request *request;
    struct arena arena;
    struct run_contents contents; /* of the runs whose settings are shown */
    bool failed;                  /* out of memory at some point */
    struct report_run *run;
    struct configuration *configuration;
    struct board *board;
    size_t run_count, configuration_count, board_count;
    size_t boards_left_out;
    const char *folder;            /* being written */
    struct comparison *comparison; /* NULL: there is none */
    const char *not_compared;      /* why, where it is no mistake of the user's */
    size_t figures;                /* written for papers so far */
};

status report_load(struct report *report, struct error *error);

/* After report_load: fills comparison, which the caller frees. */
status report_compare(struct report *report, struct error *error);

/* Zeroed memory of the report; NULL, and report->failed, when out of memory. */
void *report_take(struct report *report, size_t count, size_t size);

/* A formatted string in the report's memory; "" and report->failed when out of memory. */
const char *report_format(struct report *report, const char *format, ...) PRINTF_LIKE(2, 3);
const char *report_copy(struct report *report, const char *string);

status report_check(const struct report *report, struct error *error);   /* ERROR_MEMORY after a failure */
status report_stopped(const struct report *report, struct error *error); /* ERROR_STOPPED after a stop request */

/* The settings and contents of a configuration. The caller frees, after a failure too. */
status report_values(struct report *report, const struct configuration *configuration, struct setting_values *values,
                     struct error *error);

/* Whether a suite key with both values (NULL: absent) is incidental, as in comparison_request. */
bool report_is_incidental(const struct report *report, const char *key, const char *a, const char *b);

/* Calls take for each row of SQL with ?1 bound to run. */
typedef void report_row(void *context, struct statement *row);
status report_rows(struct report *report, const char *sql, int64_t run, report_row *take, void *context,
                   struct error *error);

double row_real(struct statement *row, size_t column); /* NAN for null */

#endif
