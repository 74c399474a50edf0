/* A text redrawn periodically: over the whole terminal, or as plain lines without one.
 *
 *     struct screen screen = {.out = stdout};
 *     do
 *         screen_show(&screen, text.data);                     // cut to the terminal
 *     while (screen_wait(&screen, 1.0, stop));                 // false: a stop request, or out cannot be written
 *     screen_close(&screen);                                   // the last text stays
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "core/text.h"
#include "harness/terminal/stop.h"

struct screen {
    FILE *out;         /* borrowed */
    struct text shown; /* last */
};

/* The width of a stream's terminal; 0: the stream is no terminal. */
int screen_columns(FILE *stream);
bool screen_obeys(FILE *stream); /* it is a terminal, and not TERM=dumb, which shows escape sequences as they are */

/* text: lines of valid UTF-8 without control characters. Plain lines are printed only when they differ from the
 * last. */
void screen_show(struct screen *screen, const char *text);

bool screen_wait(const struct screen *screen, double seconds, const struct stop *stop);
void screen_close(struct screen *screen);

/* The number of leading bytes of a line of UTF-8 that fill at most columns. */
size_t screen_fitting(const char *line, size_t size, size_t columns);

/* Appends the lines of text, at most rows of them, each cut to columns. */
void screen_fit(struct text *fitted, const char *text, size_t columns, size_t rows);
