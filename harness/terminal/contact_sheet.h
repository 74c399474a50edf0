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
