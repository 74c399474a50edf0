/* cmocka, with tests that are listed where they are written:
 *
 *     TEST(sums_are_right)
 *     {
 *         assert_int_equal(1 + 1, 2);
 *     }
 *
 * They run in the order of the file, by the main of test.c. A test of TEST_WITH has a set-up and a tear-down around it, and
 * TEST_GROUP gives those around all tests of the file. In each, state is cmocka's. */
#ifndef MTIL_TESTS_TEST_H
#define MTIL_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/status.h"

#define TEST(name) TEST_WITH(name, NULL, NULL)

#define TEST_WITH(name, set_up, tear_down)                                                                             \
    static void name(void **state);                                                                                    \
    __attribute__((constructor)) static void name##_is_listed(void)                                                    \
    {                                                                                                                  \
        test_list(__LINE__, (struct CMUnitTest){#name, name, set_up, tear_down, NULL});                                \
    }                                                                                                                  \
    static void name(__attribute__((unused)) void **state)

#define TEST_GROUP(set_up, tear_down)                                                                                  \
    __attribute__((constructor)) static void group_is_set(void)                                                        \
    {                                                                                                                  \
        test_group(set_up, tear_down);                                                                                 \
    }

/* Runs them; main, unless the file has a main of its own that calls it. */
int test_run(void);

/* Adds a test behind those of smaller lines; the strings and the state are borrowed. */
void test_list(int line, struct CMUnitTest test);

void test_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* MTIL_TEST_EVERY, 1 unless set: of many cases of a kind, one in so many is tried. Sanitizers and emulated kernels take long. */
size_t test_every(void);

void test_write_file(const char *path, const void *bytes, size_t size);

/* cmocka's assert_in_range has other names from version 2 on. */
static inline bool test_between(double value, double least, double most)
{
    return value >= least && value <= most;
}

#define assert_between(value, least, most)                                                                             \
    do {                                                                                                               \
        double value_ = (double)(value);                                                                               \
        if (!test_between(value_, (double)(least), (double)(most)))                                                    \
            fail_msg("%s: %g, expected %g to %g", #value, value_, (double)(least), (double)(most));                    \
    } while (0)

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
            fail_msg("%s: status %d, \"%s\", expected %d, \"%s\"", #expression, (int)result_, error.message,           \
                     (int)(expected), (words));                                                                        \
    } while (0)

#endif
