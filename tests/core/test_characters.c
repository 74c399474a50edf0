#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/characters.h"

static void shows(const char *string, const char *expected)
{
    struct text text = {0};
    text_add_visible(&text, string);
    assert_false(text.failed);
    assert_string_equal(text.data, expected);
    assert_int_equal(text_is_visible(string), strcmp(string, expected) == 0);
    text_free(&text);
}

static void what_obeys_nothing_stays(void **state)
{
    (void)state;
    shows("", "");
    shows("a \"b\" \\ c, d", "a \"b\" \\ c, d");
    shows("Gr\xc3\xbc\xc3\x9f"
          "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88 …",
          "Gr\xc3\xbc\xc3\x9f"
          "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88 …");
    shows("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"); /* from right to left by nature */
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    shows("a\nb\tc\rd", "a\\nb\\tc\\rd");
    shows("\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f");
    shows("\xc2\x9b"
          "31m\xc2\x85",
          "\\x9b31m\\x85"); /* C1: another way to begin an escape sequence */
    shows("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029");
}

static void turned_directions_are_escaped(void **state)
{
    (void)state;
    shows("\xe2\x80\xaegpj.exe", "\\u202egpj.exe");
    shows("\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069");
}

static void bytes_that_are_no_utf8_are_escaped(void **state)
{
    (void)state;
    shows("a\xff"
          "b\xc3",
          "a\\xff"
          "b\\xc3");
    shows("\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"); /* too long, half of a pair */
}

static void the_first_invalid_byte_is_found(void **state)
{
    static const char text[] = "a\xc3\xa5\xff!";
    (void)state;
    assert_ptr_equal(text_find_invalid(text), text + 3);
    assert_null(text_find_invalid("a\xc3\xa5\x1b"));
}

static void a_byte_order_mark_is_stepped_over_once(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_obeys_nothing_stays),        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(turned_directions_are_escaped),   cmocka_unit_test(bytes_that_are_no_utf8_are_escaped),
        cmocka_unit_test(the_first_invalid_byte_is_found), cmocka_unit_test(a_byte_order_mark_is_stepped_over_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
