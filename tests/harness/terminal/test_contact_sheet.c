/* Letters as dots, lines that break, text of any bytes, and pages of pictures of any shape. */
#include <string.h>

#include "harness/terminal/contact_sheet.h"
#include "tests/test.h"

static const struct lettering ink = {1, {255, 255, 255}};

static struct image black_image(int width, int height)
{
    struct image image;
    struct error error;
    assert_int_equal(image_create(&image, width, height, &error), OK);
    memset(image.pixels, 0, (size_t)width * (size_t)height * 3);
    return image;
}

static size_t dots(const struct image *image)
{
    size_t count = 0;
    for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; i++)
        count += image->pixels[3 * i] != 0;
    return count;
}

/* The image that text gives in a box of columns × lines characters; *drawn is the number of lines. */
static struct image draw(const char *text, int columns, int lines, int *drawn)
{
    struct image image = black_image(columns * LETTERING_ADVANCE, lines * LETTERING_LEADING);
    *drawn = lettering_draw(&ink, &image, (struct image_box){0, 0, image.width, image.height}, text);
    return image;
}

static void expect_same(const char *a, const char *b, int columns, int lines)
{
    int drawn[2];
    struct image one = draw(a, columns, lines, &drawn[0]), two = draw(b, columns, lines, &drawn[1]);
    assert_int_equal(drawn[0], drawn[1]);
    assert_memory_equal(one.pixels, two.pixels, (size_t)one.width * (size_t)one.height * 3);
    image_free(&one);
    image_free(&two);
}

TEST(letters_have_their_shape)
{
    static const char *const shape[] = {"#####", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  "};
    int drawn;
    struct image image = draw("T", 1, 1, &drawn);
    assert_int_equal(drawn, 1);
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 5; x++)
            assert_int_equal(image.pixels[(y * image.width + x) * 3] != 0, shape[y][x] == '#');
    image_free(&image);
}

/* No two characters look alike, and only the blank is empty. */
TEST(letters_differ)
{
    static uint8_t seen[96][LETTERING_ADVANCE * LETTERING_LEADING * 3];
    for (int i = 0; i < 95; i++) {
        char text[] = {(char)(' ' + i), 0};
        int drawn;
        struct image image = draw(text, 1, 1, &drawn);
        memcpy(seen[i], image.pixels, sizeof seen[i]);
        assert_int_equal(dots(&image) == 0, i == 0);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(seen[i], seen[j], sizeof seen[i]);
        image_free(&image);
    }
}

TEST(marks_are_dropped_and_the_rest_is_a_box)
{
    expect_same("caf\xc3\xa9 e\xcc\x81 \xef\xbc\xa1", "cafe e A", 12, 1);
    expect_same("\xe6\xbc\xa2", "\xff", 2, 1);
    expect_same("\xe6\xbc\xa2", "\n", 2, 1);
    expect_same("a\xe6\xbc", "a\xff\xff", 4, 1); /* cut inside a character */
}

TEST(lines_break_between_words)
{
    expect_same("a photo of", "a     photo of", 6, 3);
    expect_same("abcdefghij", "abcdef ghij", 6, 2);
    expect_same("one two three four", "one   two   th...", 5, 3); /* not all fits */
    for (int words = 0; words < 2; words++) {
        int drawn;
        struct image image = draw(words > 0 ? "one two three four" : "", 5, 3, &drawn);
        assert_int_equal(drawn, 3 * words);
        image_free(&image);
    }
}

TEST(nothing_outside_is_touched)
{
    struct image image = black_image(20, 20);
    struct image_box boxes[] = {{-8, -8, 12, 12}, {15, 15, 400, 400}, {3, 3, 0, 0}, {3, 3, 5, 100}};
    for (size_t i = 0; i < 4; i++)
        lettering_draw(&ink, &image, boxes[i], "WWWWWWWW");
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 20; x++)
            if (x >= 4 && x < 15)
                assert_int_equal(image.pixels[(y * 20 + x) * 3], 0);
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_int_equal(lettering_draw(&ink, &image, (struct image_box){0, 0, 20, 20}, text), 2);
    image_free(&image);
}

TEST(pages_take_pictures_of_any_shape)
{
    static const int sizes[][2] = {{1, 1}, {3000, 2}, {2, 3000}, {32, 32}, {640, 480}};
    struct contact_sheet sheet;
    struct error error;
    assert_int_equal(contact_sheet_create(&sheet, 5, &error), OK);
    for (size_t i = 0; i < 5; i++) {
        struct image picture = black_image(sizes[i][0], sizes[i][1]);
        assert_int_equal(contact_sheet_add(&sheet, &picture, "1: a name that is longer than two lines of the page are",
                                           "a photo of \xe6\xbc\xa2.", &error),
                         OK);
        image_free(&picture);
    }
    contact_sheet_free(&sheet);
    struct image picture = black_image(4, 4);
    assert_int_equal(contact_sheet_create(&sheet, 1, &error), OK);
    assert_int_equal(contact_sheet_add(&sheet, &picture, "", "", &error), OK);
    assert_int_equal(contact_sheet_add(&sheet, &picture, "", "", &error), ERROR_ARGUMENT); /* it is full */
    contact_sheet_free(&sheet);
    image_free(&picture);
    assert_int_equal(contact_sheet_create(&sheet, 0, &error), ERROR_ARGUMENT);
    assert_int_equal(contact_sheet_create(&sheet, CONTACT_SHEET_MOST + 1, &error), ERROR_ARGUMENT);
}
