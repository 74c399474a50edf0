#include "harness/terminal/contact_sheet.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "core/file.h"
#include "core/scope.h"

enum {
    FIRST = ' ',
    LAST = '~',
    BOX = LAST + 1,
    BAND = 16,
    WIDTH = 5,
    HEIGHT = 9,
    FONT_LINE = BAND * (WIDTH + 1),
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
    return embedded_font->data[(place / BAND * HEIGHT + y) * FONT_LINE + place % BAND * (WIDTH + 1) + x] == '#';
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

/* --- pages -------------------------------------------------------------------------------------------------------- */

enum {
    SIDE = 240, /* side of the square that a picture fits into */
    SCALE = 2,  /* scale of the letters: 20 per line */
    LINE = LETTERING_LEADING * SCALE,
    TITLE = 2 * LINE,
    TEXT = 6 * LINE, /* lines of title and caption */
    GAP = 12,
    CELL_WIDTH = SIDE + GAP,
    CELL_HEIGHT = SIDE + GAP / 2 + TEXT + GAP
};

static const uint8_t paper[3] = {250, 250, 248};
static const struct lettering title_letters = {SCALE, {16, 16, 20}}, caption_letters = {SCALE, {90, 90, 100}};

status contact_sheet_create(struct contact_sheet *sheet, size_t pictures, struct error *error)
{
    *sheet = (struct contact_sheet){.columns = 1};
    if (pictures < 1 || pictures > CONTACT_SHEET_MOST)
        return error_set(error, ERROR_ARGUMENT, "a page of %zu pictures: expected 1 to %d", pictures,
                         CONTACT_SHEET_MOST);
    while (sheet->columns * CELL_WIDTH * sheet->columns * CELL_WIDTH < pictures * CELL_WIDTH * CELL_HEIGHT &&
           sheet->columns < pictures)
        sheet->columns++;
    size_t rows = (pictures + sheet->columns - 1) / sheet->columns;
    TRY(image_create(&sheet->page, (int)(sheet->columns * CELL_WIDTH + GAP), (int)(rows * CELL_HEIGHT + GAP), error));
    for (size_t i = 0; i < (size_t)sheet->page.width * (size_t)sheet->page.height; i++)
        memcpy(sheet->page.pixels + 3 * i, paper, sizeof paper);
    return OK;
}

void contact_sheet_free(struct contact_sheet *sheet)
{
    image_free(&sheet->page);
}

static void paste(struct image *page, const struct image *picture, int left, int top)
{
    for (int y = 0; y < picture->height; y++)
        memcpy(page->pixels + ((size_t)(top + y) * (size_t)page->width + (size_t)left) * 3,
               picture->pixels + (size_t)y * (size_t)picture->width * 3, (size_t)picture->width * 3);
}

static int at_least_one(int64_t pixels)
{
    return pixels > 0 ? (int)pixels : 1;
}

/* The picture with its longer side SIDE pixels long. */
static status fit(const struct image *picture, struct image *fitted, struct error *error)
{
    int longer = picture->width > picture->height ? picture->width : picture->height;
    return image_resize(picture, (struct image_box){0, 0, picture->width, picture->height},
                        at_least_one((int64_t)picture->width * SIDE / longer),
                        at_least_one((int64_t)picture->height * SIDE / longer), fitted, error);
}

status contact_sheet_add(struct contact_sheet *sheet, const struct image *picture, const char *title,
                         const char *caption, struct error *error)
{
    SCOPED(image_free) struct image fitted = {0};
    int left = GAP + (int)(sheet->count % sheet->columns) * CELL_WIDTH,
        top = GAP + (int)(sheet->count / sheet->columns) * CELL_HEIGHT;
    if (top + CELL_HEIGHT > sheet->page.height)
        return error_set(error, ERROR_ARGUMENT, "this page has room for %zu pictures, found more", sheet->count);
    TRY(fit(picture, &fitted, error));
    paste(&sheet->page, &fitted, left + (SIDE - fitted.width) / 2, top + SIDE - fitted.height);
    struct image_box text = {left, top + SIDE + GAP / 2, SIDE, TITLE};
    int lines = lettering_draw(&title_letters, &sheet->page, text, title);
    text.top += lines * LINE;
    text.height = TEXT - lines * LINE;
    lettering_draw(&caption_letters, &sheet->page, text, caption);
    sheet->count++;
    return OK;
}
