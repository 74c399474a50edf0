#include <string.h>

#include "core/characters.h"
#include "tests/test.h"

static void shows(const char *string, const char *expected)
{
    struct text text = {0};
    text_add_visible(&text, string);
    assert_false(text.failed);
    assert_string_equal(text.data, expected);
    assert_int_equal(text_is_visible(string), strcmp(string, expected) == 0);
    text_free(&text);
}

TEST(what_obeys_nothing_stays)
{
    shows("", "");
    shows("a \"b\" \\ c, d", "a \"b\" \\ c, d");
    shows("Gr\xc3\xbc\xc3\x9f"
          "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88 …",
          "Gr\xc3\xbc\xc3\x9f"
          "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88 …");
    shows("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"); /* from right to left by nature */
}

TEST(control_characters_are_escaped)
{
    shows("a\nb\tc\rd", "a\\nb\\tc\\rd");
    shows("\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f");
    shows("\xc2\x9b"
          "31m\xc2\x85",
          "\\x9b31m\\x85"); /* C1: another way to begin an escape sequence */
    shows("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029");
}

TEST(turned_directions_are_escaped)
{
    shows("\xe2\x80\xaegpj.exe", "\\u202egpj.exe");
    shows("\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069");
}

TEST(bytes_that_are_no_utf8_are_escaped)
{
    shows("a\xff"
          "b\xc3",
          "a\\xff"
          "b\\xc3");
    shows("\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"); /* too long, half of a pair */
}

TEST(the_first_invalid_byte_is_found)
{
    static const char text[] = "a\xc3\xa5\xff!";
    assert_ptr_equal(text_find_invalid(text), text + 3);
    assert_null(text_find_invalid("a\xc3\xa5\x1b"));
}

TEST(a_byte_order_mark_is_stepped_over_once)
{
    const char *text = "\xef\xbb\xbf\xef\xbb\xbf"
                       "a";
    size_t size = 7;
    text_skip_mark(&text, &size);
    assert_int_equal(size, 4);
    text = "\xef\xbb";
    size = 2;
    text_skip_mark(&text, &size);
    assert_int_equal(size, 2);
}
