/* The exit status of the program. docs/reproducibility.md has the list for users. */
#pragma once

enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,   /* ERROR_ARGUMENT */
    EXIT_BUSY = 75,   /* ERROR_BUSY: another process has what is needed; EX_TEMPFAIL of sysexits.h */
    EXIT_SIGNAL = 128 /* and the signal's number: stopped */
};
