#include "harness/terminal/lettering.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "core/embedded.h"

enum {
    FIRST = ' ',
    LAST = '~',
    BOX = LAST + 1,
    BAND = 16,
    WIDTH = 5,
    HEIGHT = 9,
    LINE = BAND * (WIDTH + 1),
    LONGEST = 1024
};

/* font.txt: bands of sixteen characters, HEIGHT lines each, a blank between neighbours; the last one is the box. */
EMBEDDED_FILES(embedded_font);

/* --- from UTF-8 to the font ------------------------------------------------------------------------------ */

/* The base letter of a character, or BOX. 0: a lone combining mark, which is left out. */
static char base_letter(utf8proc_int32_t character)
{
    utf8proc_int32_t parts[32];
    int boundary = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char(character, parts, sizeof parts / sizeof *parts,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_STRIPMARK, &boundary);
    if (count == 0)
        return 0;
    return count > 0 && parts[0] >= FIRST && parts[0] <= LAST ? (char)parts[0] : BOX;
}

/* letters: NUL-terminated, of LONGEST + 1 bytes. */
static size_t to_letters(const char *text, char *letters)
{
    size_t count = 0;
    for (utf8proc_ssize_t left = (utf8proc_ssize_t)strlen(text); left > 0 && count < LONGEST;) {
        utf8proc_int32_t character;
        utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)text, left, &character);
        char letter = used > 0 ? base_letter(character) : BOX;
        if (letter != 0)
            letters[count++] = letter;
        used = used > 0 ? used : 1;
        text += used;
        left -= used;
    }
    letters[count] = 0;
    return count;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* The number of letters that fit on a line of `columns`, broken at a blank if possible; *next is the start of the
 * rest. */
static size_t break_line(const char *letters, size_t columns, size_t *next)
{
    size_t count = strlen(letters), end = columns;
    if (count <= columns) {
        *next = count;
        return count;
    }
    while (end > 0 && letters[end] != ' ')
        end--;
    if (end == 0)
        end = columns;
    *next = end + strspn(letters + end, " ");
    return end;
}

/* --- dots --------------------------------------------------------------------------------------------------------- */

static bool has_dot(char letter, int x, int y)
{
    int place = letter - FIRST;
    return embedded_font->data[(place / BAND * HEIGHT + y) * LINE + place % BAND * (WIDTH + 1) + x] == '#';
}

static bool inside(const struct image *image, struct image_box box, int x, int y)
{
    return x >= 0 && y >= 0 && x >= box.left && y >= box.top && x < box.left + box.width && y < box.top + box.height &&
           x < image->width && y < image->height;
}

static void draw_letter(const struct lettering *lettering, struct image *image, struct image_box box, int left, int top,
                        char letter)
{
    int scale = lettering->scale;
    for (int y = 0; y < HEIGHT * scale; y++)
        for (int x = 0; x < WIDTH * scale; x++)
            if (has_dot(letter, x / scale, y / scale) && inside(image, box, left + x, top + y))
                memcpy(image->pixels + ((size_t)(top + y) * (size_t)image->width + (size_t)(left + x)) * 3,
                       lettering->colour, 3);
}

int lettering_draw(const struct lettering *lettering, struct image *image, struct image_box box, const char *text)
{
    char letters[LONGEST + 1];
    int columns = box.width / (LETTERING_ADVANCE * lettering->scale), lines = 0,
        most = box.height / (LETTERING_LEADING * lettering->scale);
    to_letters(text, letters);
    for (const char *rest = letters; *rest != 0 && columns > 0 && lines < most; lines++) {
        size_t next, count = break_line(rest, (size_t)columns, &next);
        int top = box.top + lines * LETTERING_LEADING * lettering->scale;
        bool cut = lines + 1 == most && rest[next] != 0;
        for (size_t i = 0; i < (cut ? (size_t)columns : count); i++) {
            bool dots = cut && i + 3 >= (size_t)columns;
            char letter = dots ? '.' : i < count ? rest[i] : ' ';
            draw_letter(lettering, image, box, box.left + (int)i * LETTERING_ADVANCE * lettering->scale, top, letter);
        }
        rest += next;
    }
    return lines;
}
