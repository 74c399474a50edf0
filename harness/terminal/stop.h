/* Signals as requests to stop (core/stop.h): Ctrl-C, SIGTERM, SIGHUP, SIGXCPU, and SIGPIPE, when nobody reads the output any
 * more.
 *
 *     stop_on_signals(&stop);
 *     …
 *     stop_hold(&stop);                       // from here on there is something to save
 *     result = train(&stop);                  // ends soon after a request, having saved
 *     stop_release(&stop);
 *
 * What does not end within a second after a request is ended then, as the signal would have done by itself, unless it
 * holds. A second Ctrl-C ends the program at once, whatever it does. Of the others a second one is no more than the first:
 * `timeout`, batch systems and closed terminals send them twice.
 */
#ifndef MTIL_HARNESS_TERMINAL_STOP_H
#define MTIL_HARNESS_TERMINAL_STOP_H

#include "core/stop.h"

/* stop must live until the program ends. SIGHUP that is ignored (nohup) stays so; SIGXFSZ is ignored from now on: a file
 * that reaches the limit is a failed write, with a message. */
void stop_on_signals(struct stop *stop);

void stop_hold(struct stop *stop); /* NULL is allowed, as below */
void stop_release(struct stop *stop);

#endif
