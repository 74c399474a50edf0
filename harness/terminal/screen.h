/* A text redrawn periodically: over the whole terminal, or as plain lines without one.
 *
 *     struct screen screen;
 *     screen_open(&screen, stdin, stdout);
 *     do
 *         screen_show(&screen, text.data);                     // cut to the terminal
 *     while (screen_wait(&screen, 1.0, stop));                 // false: q, a stop request, or out cannot be written
 *     screen_close(&screen);                                   // the terminal is as it was, the last text stays on it
 */
#ifndef MTIL_HARNESS_TERMINAL_SCREEN_H
#define MTIL_HARNESS_TERMINAL_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

#include "core/text.h"
#include "harness/terminal/stop.h"

struct screen {
    FILE *in, *out; /* borrowed */
    bool whole;     /* out is a terminal */
    bool keys;      /* in is a terminal in raw mode */
    struct termios before;
    struct text shown; /* last */
};

void screen_open(struct screen *screen, FILE *in, FILE *out);

/* The width of a stream's terminal; 0: the stream is no terminal. */
int screen_columns(FILE *stream);

/* text: lines of valid UTF-8 without control characters. Plain lines are printed only when they differ from the
 * last. */
void screen_show(struct screen *screen, const char *text);

bool screen_wait(struct screen *screen, double seconds, const struct stop *stop);
void screen_close(struct screen *screen);

/* Appends the lines of text, at most rows of them, each cut to columns. */
void screen_fit(struct text *fitted, const char *text, size_t columns, size_t rows);

#endif
