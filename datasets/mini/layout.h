/* What the layouts share: a list of pictures to draw and encode, and small files of text. */
#ifndef MTIL_DATASETS_MINI_LAYOUT_H
#define MTIL_DATASETS_MINI_LAYOUT_H

#include <stdbool.h>

#include "core/text.h"
#include "datasets/mini/mini.h"
#include "datasets/mini/suite.h"

/* One dataset being written: folder is where its reader looks, pictures are drawn when the layout function is
   through. */
struct layout {
    const struct domain *domain;
    const struct mini_settings *settings;
    const char *root;
    struct layout_picture *pictures;
    size_t count;
    struct text list; /* the text file in the making */
};

/* Item i of the domain, training items first, then test items; classes take turns. */
size_t layout_items(const struct layout *layout, bool test, size_t *first);
int layout_label(const struct layout *layout, size_t item);

/* Asks for item's picture at this path below the root (printf's words); the folder must be made. */
status layout_picture(struct layout *layout, size_t item, struct error *error, const char *format, ...)
    PRINTF_LIKE(4, 5);
status layout_folder(const struct layout *layout, struct error *error, const char *format, ...) PRINTF_LIKE(3, 4);

/* The item of the i-th picture that was asked for, and its whole path, borrowed. */
size_t layout_picture_at(const struct layout *layout, size_t i, const char **path);

/* CoOp's split file, for datasets that have one: of all pictures that were asked for. */
status layout_coop_split(const struct layout *layout, struct error *error);

/* Draws, encodes and writes every picture that was asked for; looks now and then whether to stop. */
status layout_draw(struct layout *layout, struct error *error);
void layout_free(struct layout *layout);

/* ERROR_STOPPED when the owner of the settings asks to stop. */
status layout_go_on(const struct mini_settings *settings, const char *root, struct error *error);

/* Writes text to path below the root and frees it. */
status layout_text(const struct layout *layout, const char *path, struct text *text, struct error *error);
status layout_class_names(const struct layout *layout, const char *path, struct error *error); /* one a line */

/* One function per layout. */
status layout_aircraft(struct layout *layout, struct error *error);
status layout_caltech101(struct layout *layout, struct error *error);
status layout_cifar100(struct layout *layout, struct error *error);
status layout_dtd(struct layout *layout, struct error *error);
status layout_eurosat(struct layout *layout, struct error *error);
status layout_flowers(struct layout *layout, struct error *error);
status layout_food(struct layout *layout, struct error *error);
status layout_mnist(struct layout *layout, struct error *error);
status layout_oxford_pet(struct layout *layout, struct error *error);
status layout_stanford_cars(struct layout *layout, struct error *error);
status layout_sun397(struct layout *layout, struct error *error);

#endif
