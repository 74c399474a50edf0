/* A database to report on, of made-up but fixed numbers and names that mean harm.
 *
 *     sample_report_write(store);            // two sequences of tasks, five configurations, one of them unfinished
 */
#pragma once

#include "results/store.h"

enum { SAMPLE_REPORT_TASKS = 11, SAMPLE_REPORT_RUNS = 14, SAMPLE_REPORT_CONFIGURATIONS = 5 };

/* A name that would end an element, an attribute, or a string of JavaScript, if anything let it. */
#define SAMPLE_REPORT_HARM                                                                                             \
    "<script>alert(1)</script>\"' onload=x `touch harm` %s %d \\'; system('touch harm') # \x01\xff&amp;"

status sample_report_write(struct store *store, struct error *error);

/* Two policies on a suite "single" of one task, which has no Transfer. */
status sample_report_write_single(struct store *store, struct error *error);

/* The rows "Merging" and "No merging" of a suite "rows". */
status sample_report_write_rows(struct store *store, struct error *error);

/* A suite "colours": the policy coactivated with two settings, and random. */
status sample_report_write_colours(struct store *store, struct error *error);

/* The accuracy in images of 200 after a task (−1: none) on a task, of the first configuration. */
int64_t sample_report_correct(int64_t seed, int64_t after_task, int64_t task);
