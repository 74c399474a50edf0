/* The lines that a fixture runner prints: per quantity the largest deviation, its tolerance and how much was compared.
 *
 *     report_values(&report, "features", got, expected, n, tolerance);
 *     report_exact(&report, "events", "task 1, merge 3: target 4, expected 5", equal);
 *     return report_finish(&report) ? 0 : 1;
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum { REPORT_LINES = 64 };

struct report_line {
    char quantity[64], first_failure[160];
    double deviation, tolerance, worst_share; /* of the value nearest to (or farthest past) its tolerance */
    size_t compared, failed;
    bool exact;
};

struct report {
    const char *folder;
    double values_outside, decisions_outside; /* shares of a quantity that may be; 0: none */
    size_t count;
    struct report_line lines[REPORT_LINES];
};

/* Largest |got − expected| against an absolute tolerance; a NaN fails. */
void report_values(struct report *report, const char *quantity, const float *got, const float *expected, size_t n,
                   double tolerance);
void report_value(struct report *report, const char *quantity, double got, double expected, double tolerance);
/* A decision that must be the same; what describes it. */
void report_exact(struct report *report, const char *quantity, bool equal, const char *what, ...) PRINTF_LIKE(4, 5);

/* The three numbers that stand for a large tensor: mean, root mean square, and the mean weighted by (i mod 97) / 97. */
void report_digest(struct report *report, const char *quantity, const float *values, size_t n, const float expected[3],
                   double tolerance);

/* Ends the program with what failed: with 77 where a device is absent, else with 1. */
#define must(expression)                                                                                               \
    do {                                                                                                               \
        struct error error = {0};                                                                                      \
        if ((expression) != OK)                                                                                        \
            report_abort(&error);                                                                                      \
    } while (0)
_Noreturn void report_abort(const struct error *error);

/* Prints the lines; true when everything holds and something was compared. */
bool report_finish(const struct report *report);
