/* The main of a test program. */
#include "tests/test.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    struct CMUnitTest tests[400];
    int lines[400];
    size_t count;
    CMFixtureFunction set_up, tear_down;
} listed;

void test_list(int line, struct CMUnitTest test)
{
    size_t at = listed.count++;
    assert(at < sizeof listed.lines / sizeof *listed.lines);
    for (; at > 0 && listed.lines[at - 1] > line; at--) {
        listed.tests[at] = listed.tests[at - 1];
        listed.lines[at] = listed.lines[at - 1];
    }
    listed.tests[at] = test;
    listed.lines[at] = line;
}

void test_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    listed.set_up = set_up;
    listed.tear_down = tear_down;
}

size_t test_every(void)
{
    const char *every = getenv("MTIL_TEST_EVERY");
    return every != NULL && atoi(every) > 0 ? (size_t)atoi(every) : 1;
}

void test_write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

int test_run(void)
{
    return _cmocka_run_group_tests("tests", listed.tests, listed.count, listed.set_up, listed.tear_down);
}

/* Memory is guarded in all tests (core/alloc.h), and in the programs that they start. */
__attribute__((constructor)) static void guard_memory(void)
{
    setenv("MTIL_GUARD", "1", 0);
}

__attribute__((weak)) int main(void)
{
    return test_run();
}
