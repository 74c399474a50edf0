#include "tests/replay/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct report_line *line_of(struct report *report, const char *quantity)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->lines[i].quantity, quantity) == 0)
            return &report->lines[i];
    if (report->count == REPORT_LINES)
        abort();
    struct report_line *line = &report->lines[report->count++];
    *line = (struct report_line){0};
    snprintf(line->quantity, sizeof line->quantity, "%s", quantity);
    return line;
}

void report_value(struct report *report, const char *quantity, double got, double expected, double tolerance)
{
    struct report_line *line = line_of(report, quantity);
    double deviation = fabs(got - expected), share = deviation / tolerance;
    line->compared++;
    if (!(deviation <= tolerance)) {
        if (line->failed++ == 0)
            snprintf(line->first_failure, sizeof line->first_failure, "found %.9g, expected %.9g", got, expected);
    }
    if (line->compared == 1 || !(share <= line->worst_share)) {
        line->worst_share = share;
        line->deviation = deviation;
        line->tolerance = tolerance;
    }
}

void report_values(struct report *report, const char *quantity, const float *got, const float *expected, size_t n,
                   double tolerance)
{
    for (size_t i = 0; i < n; i++)
        report_value(report, quantity, (double)got[i], (double)expected[i], tolerance);
}

void report_digest(struct report *report, const char *quantity, const float *values, size_t n, const float expected[3],
                   double tolerance)
{
    double sum = 0, squares = 0, weighted = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i];
        sum += v;
        squares += v * v;
        weighted += v * (double)(i % 97) / 97.0;
    }
    report_value(report, quantity, sum / (double)n, (double)expected[0], tolerance);
    report_value(report, quantity, sqrt(squares / (double)n), (double)expected[1], tolerance);
    report_value(report, quantity, weighted / (double)n, (double)expected[2], tolerance);
}

void report_exact(struct report *report, const char *quantity, bool equal, const char *what, ...)
{
    struct report_line *line = line_of(report, quantity);
    line->exact = true;
    line->compared++;
    if (equal)
        return;
    if (line->failed++ == 0) {
        va_list arguments;
        va_start(arguments, what);
        vsnprintf(line->first_failure, sizeof line->first_failure, what, arguments);
        va_end(arguments);
    }
}

static bool holds(const struct report *report, const struct report_line *line)
{
    double allowed = line->exact ? report->decisions_outside : report->values_outside;
    return (double)line->failed <= allowed * (double)line->compared;
}

bool report_finish(const struct report *report)
{
    size_t failed = 0, compared = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct report_line *line = &report->lines[i];
        bool good = holds(report, line);
        failed += !good;
        compared += line->compared;
        printf("%-28s %-8s ", line->quantity, good ? "ok" : "FAILED");
        if (line->exact)
            printf("%zu of %zu equal", line->compared - line->failed, line->compared);
        else
            printf("largest deviation %.3g, tolerance %.3g, %zu values", line->deviation, line->tolerance,
                   line->compared);
        if (line->failed > 0)
            printf("; %zu outside%s, first: %s", line->failed, good ? ", as allowed" : "", line->first_failure);
        putchar('\n');
    }
    printf("%s: %s, %zu quantities, %zu values\n", report->folder, failed == 0 && compared > 0 ? "all hold" : "FAILED",
           report->count, compared);
    return failed == 0 && compared > 0;
}

_Noreturn void report_abort(const struct error *error)
{
    bool absent = error->code == ERROR_DEVICE;
    fflush(stdout);
    fprintf(stderr, "%s%s\n", absent ? "skipped, " : "", error->message);
    exit(absent ? 77 : 1);
}
