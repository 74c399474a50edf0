#include "harness/terminal/contact_sheet.h"

#include <string.h>

#include "harness/terminal/lettering.h"

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
    struct image fitted;
    int left = GAP + (int)(sheet->count % sheet->columns) * CELL_WIDTH,
        top = GAP + (int)(sheet->count / sheet->columns) * CELL_HEIGHT;
    if (top + CELL_HEIGHT > sheet->page.height)
        return error_set(error, ERROR_ARGUMENT, "this page has room for %zu pictures, found more", sheet->count);
    TRY(fit(picture, &fitted, error));
    paste(&sheet->page, &fitted, left + (SIDE - fitted.width) / 2, top + SIDE - fitted.height);
    image_free(&fitted);
    struct image_box text = {left, top + SIDE + GAP / 2, SIDE, TITLE};
    int lines = lettering_draw(&title_letters, &sheet->page, text, title);
    text.top += lines * LINE;
    text.height = TEXT - lines * LINE;
    lettering_draw(&caption_letters, &sheet->page, text, caption);
    sheet->count++;
    return OK;
}
