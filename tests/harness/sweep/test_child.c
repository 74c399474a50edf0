/* Other programs: what they say comes back, and how they end is told. */
#include <string.h>

#include "harness/sweep/child.h"
#include "tests/test.h"

static struct error error;

#define RUN(...) child_run((const char *[]){__VA_ARGS__, NULL}, &output, &error)

TEST(output_comes_back)
{
    struct text output = {0};
    assert_int_equal(RUN("sh", "-c", "echo one; echo two >&2; cat; printf %s \"$1\"", "sh", "a b'c"), OK);
    assert_string_equal(output.data, "one\ntwo\na b'c");
    text_free(&output);
    assert_int_equal(RUN("true"), OK);
    assert_string_equal(output.data, "");
    text_free(&output);
}

TEST(much_output_comes_back)
{
    struct text output = {0};
    assert_int_equal(RUN("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"), OK);
    assert_int_equal(output.size, 300000);
    text_free(&output);
}

TEST(failures_are_told)
{
    struct text output = {0};
    assert_int_equal(RUN("sh", "-c", "echo first; echo the reason >&2; echo; exit 3"), ERROR_IO);
    assert_string_equal(error.message, "sh: exit status 3: the reason");
    text_free(&output);
    assert_int_equal(RUN("sh", "-c", "kill -9 $$"), ERROR_IO);
    assert_non_null(strstr(error.message, "sh: ended by signal 9"));
    text_free(&output);
    assert_int_equal(RUN("no-such-program-anywhere"), ERROR_IO);
    assert_non_null(strstr(error.message, "no-such-program-anywhere: there is no such program"));
    text_free(&output);
}
