/* Turns signals into stop requests (core/threads.h): Ctrl-C, SIGTERM, SIGHUP, SIGXCPU, and SIGPIPE, when the reader of the
 * output is gone.
 *
 *     stop_on_signals(&stop);
 *     …
 *     stop_hold(&stop);                       // from here on there is something to save
 *     result = train(&stop);                  // ends soon after a request, having saved
 *     if (result != ERROR_STOPPED)            // else it only closes what is open and says where it stopped
 *         stop_release(&stop);
 *
 * A program that is still running one second after a request ends as if the signal had not been handled, except between
 * stop_hold and stop_release. A second Ctrl-C ends it at once. A second signal of the other kinds has no effect,
 * because `timeout`, batch systems and closed terminals send them twice.
 */
#pragma once

#include "core/threads.h"

/* stop must live until the program ends. An ignored SIGHUP (nohup) stays ignored. SIGXFSZ is ignored from now on, so
 * that reaching the file size limit is a failed write with a message. */
void stop_on_signals(struct stop *stop);

void stop_hold(struct stop *stop); /* NULL is allowed, as below */
void stop_release(struct stop *stop);

/* The exit status of the program. docs/reproducibility.md has the list for users. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,   /* ERROR_ARGUMENT */
    EXIT_BUSY = 75,   /* ERROR_BUSY: another process has what is needed; EX_TEMPFAIL of sysexits.h */
    EXIT_SIGNAL = 128 /* and the signal's number: stopped */
};
