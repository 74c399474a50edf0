/* Text drawn into an image with a small font of its own: printable ASCII, five by nine dots a character, any size.
 *
 *     struct lettering lettering = {.scale = 2, .colour = {20, 20, 20}};
 *     int lines = lettering_draw(&lettering, &image, (struct image_box){8, 200, 240, 80}, "a photo of a café");
 *
 * The text is UTF-8: letters with marks lose them ("é" is drawn as "e"), all other characters, and bytes that are no
 * UTF-8, become a box.
 */
#ifndef MTIL_HARNESS_TERMINAL_LETTERING_H
#define MTIL_HARNESS_TERMINAL_LETTERING_H

#include "datasets/image/image.h"

enum { LETTERING_ADVANCE = 6, LETTERING_LEADING = 10 }; /* dots from one character and one line to the next */

struct lettering {
    int scale; /* pixels a dot */
    uint8_t colour[3];
};

/* Draws text into box, broken between words where a line is full, and gives the number of lines drawn. What does not
 * fit is left out, which three dots say; nothing outside of box or image is touched. */
int lettering_draw(const struct lettering *lettering, struct image *image, struct image_box box, const char *text);

#endif
