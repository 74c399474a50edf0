#include "core/characters.h"
#include "tests/test.h"

TEST(what_obeys_nothing_stays_and_the_rest_is_escaped)
{
    static const struct {
        const char *text, *shown; /* NULL: the same */
    } cases[] = {{"", NULL},
                 {"a \"b\" \\ c, d", NULL},
                 {"Grüße 日本 🐈 …", NULL},
                 {"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", NULL}, /* from right to left by nature */
                 {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
                 {"\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f"},
                 {"\302\23331m\xc2\x85", "\\x9b31m\\x85"}, /* C1: another way to begin an escape sequence */
                 {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
                 {"\xe2\x80\xaegpj.exe", "\\u202egpj.exe"}, /* turned directions */
                 {"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069"},
                 {"a\377b\xc3", "a\\xffb\\xc3"},                         /* no UTF-8 */
                 {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"}}; /* too long, half of a pair */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text = {0};
        text_add_visible(&text, cases[i].text);
        assert_string_equal(text.data, cases[i].shown != NULL ? cases[i].shown : cases[i].text);
        assert_int_equal(text_is_visible(cases[i].text), cases[i].shown == NULL);
        text_free(&text);
    }
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
