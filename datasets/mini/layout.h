/* The on-disk layouts of the suite's datasets: each lists the pictures to draw and encode, and writes its small files. */
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
    struct layout_picture {
        char *path; /* with the root */
        size_t item;
    } * pictures;
    size_t count;
    struct text list; /* the text file in the making */
};

/* Item i of the domain, training items first, then test items; classes take turns. */
size_t layout_items(const struct layout *layout, bool test, size_t *first);
int layout_label(const struct layout *layout, size_t item);

/* Lists item's picture, to be drawn at a path below the root (formatted as by printf), whose folder must exist. */
void layout_picture(struct layout *layout, size_t item, const char *format, ...) PRINTF_LIKE(3, 4);
status layout_folder(const struct layout *layout, struct error *error, const char *format, ...) PRINTF_LIKE(3, 4);

void layout_free(struct layout *layout);

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
