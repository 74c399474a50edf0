/* Shared by the layouts: a list of pictures to draw and encode, and small text files. */
#pragma once

#include <stdbool.h>

#include "core/text.h"
#include "datasets/mini/mini.h"
#include "datasets/mini/suite.h"

/* One dataset being written. Its pictures are drawn after the layout function has returned. */
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

/* Lists item's picture, to be drawn at a path below the root (formatted as by printf), whose folder must exist. */
void layout_picture(struct layout *layout, size_t item, const char *format, ...) PRINTF_LIKE(3, 4);
status layout_folder(const struct layout *layout, struct error *error, const char *format, ...) PRINTF_LIKE(3, 4);

/* The item of the i-th listed picture, and its whole path, borrowed. */
size_t layout_picture_at(const struct layout *layout, size_t i, const char **path);

/* CoOp's split file of all listed pictures, for datasets that have one. */
status layout_coop_split(const struct layout *layout, struct error *error);

/* Draws, encodes and writes every listed picture; polls `stopped` now and then. */
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
