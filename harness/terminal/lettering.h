/* Draws text into an image with a built-in font: printable ASCII, five by nine dots per character, any scale.
 *
 *     struct lettering lettering = {.scale = 2, .colour = {20, 20, 20}};
 *     int lines = lettering_draw(&lettering, &image, (struct image_box){8, 200, 240, 80}, "a photo of a café");
 *
 * The text is UTF-8. Letters lose their diacritics ("é" is drawn as "e"); other characters and invalid bytes become a
 * box.
 */
#pragma once

#include "datasets/image/image.h"

enum { LETTERING_ADVANCE = 6, LETTERING_LEADING = 10 }; /* dots from one character and one line to the next */

struct lettering {
    int scale; /* pixels per dot */
    uint8_t colour[3];
};

/* Draws text into box, broken between words, and returns the number of lines drawn. Text that does not fit is cut
 * and ends with three dots; nothing outside box and image is changed. */
int lettering_draw(const struct lettering *lettering, struct image *image, struct image_box box, const char *text);
