/* A page of pictures with captions.
 *
 *     struct contact_sheet sheet;
 *     TRY(contact_sheet_create(&sheet, 24, error));                                     // for 24 pictures
 *     TRY(contact_sheet_add(&sheet, &image, "3: airplane", "a photo of a airplane.", error));
 *     TRY(image_write_png("sheet.png", &sheet.page, error));
 *     contact_sheet_free(&sheet);
 */
#pragma once

#include "datasets/image/image.h"

enum { CONTACT_SHEET_MOST = 1000 };

struct contact_sheet {
    struct image page;
    size_t columns, count;
};

/* An empty page for 1 to CONTACT_SHEET_MOST pictures, with about as many rows as columns. */
status contact_sheet_create(struct contact_sheet *sheet, size_t pictures, struct error *error);
void contact_sheet_free(struct contact_sheet *sheet);

/* Fills the next place, row by row: the whole picture, as large as fits, a title and a caption (UTF-8). */
status contact_sheet_add(struct contact_sheet *sheet, const struct image *picture, const char *title,
                         const char *caption, struct error *error);

/* --- Letters --- */

enum { LETTERING_ADVANCE = 6, LETTERING_LEADING = 10 }; /* dots from one character and one line to the next */

/* A built-in font has printable ASCII, five by nine dots per character. */
struct lettering {
    int scale; /* pixels per dot */
    uint8_t colour[3];
};

/* Draws UTF-8 into box, broken between words, and returns the number of lines drawn. Letters lose their diacritics ("é" is
 * drawn as "e"); other characters and invalid bytes become a box of their own. Text that does not fit is cut and ends with
 * three dots; nothing outside box and image is changed. */
int lettering_draw(const struct lettering *lettering, struct image *image, struct image_box box, const char *text);
