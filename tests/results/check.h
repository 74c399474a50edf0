/* cmocka and what it needs before it, and a check that shows an error's message. */
#ifndef MTIL_TESTS_RESULTS_CHECK_H
#define MTIL_TESTS_RESULTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/status.h"

#define assert_ok(expression)                                                                                          \
    do {                                                                                                               \
        struct error error = {0};                                                                                      \
        if ((expression) != OK)                                                                                        \
            fail_msg("%s: %s", #expression, error.message);                                                            \
    } while (0)

/* The expression fails with code and says words, which names what is wrong. */
#define assert_fails(expression, expected, words)                                                                      \
    do {                                                                                                               \
        struct error error = {0};                                                                                      \
        status result_ = (expression);                                                                                 \
        if (result_ != (expected) || !strstr(error.message, (words)))                                                  \
            fail_msg("%s: status %s, \"%s\", expected %s, \"%s\"", #expression, status_name(result_), error.message,   \
                     status_name(expected), (words));                                                                  \
    } while (0)

#endif
