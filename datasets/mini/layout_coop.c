/* CoOp's split files beside the pictures: the suite's own test pictures, and every fifth training picture of a class to
 * validate with. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "datasets/mini/layout.h"
#include "datasets/split/coop.h"

enum { LISTS = 3, VALIDATED = 5 };

static const char *const keys[LISTS] = {"train", "val", "test"};

/* The position of its list in keys. */
static int list_of(const struct layout *layout, size_t item)
{
    size_t train = (size_t)layout->domain->train, test = (size_t)layout->domain->test;
    if (item >= train)
        return item < train + test ? 2 : 1; /* flowers has some more, to validate with */
    return item / (size_t)layout->domain->classes % VALIDATED == VALIDATED - 1 ? 1 : 0;
}

static void add_list(const struct layout *layout, int list, size_t prefix, struct text *text)
{
    const char *before = "";
    text_add(text, "\"%s\": [", keys[list]);
    for (size_t i = 0; i < layout->count; i++) {
        const char *path;
        size_t item = layout_picture_at(layout, i, &path);
        int label = layout_label(layout, item);
        if (list_of(layout, item) != list)
            continue;
        text_add(text, "%s\n[\"%s\", %d, \"%s\"]", before, path + prefix, label, layout->domain->class_names[label]);
        before = ",";
    }
    text_add(text, "]");
}

static status write_split(const struct layout *layout, const char *path, size_t prefix, struct error *error)
{
    struct text text = {0};
    for (int list = 0; list < LISTS; list++) {
        text_add(&text, list == 0 ? "{" : ",\n");
        add_list(layout, list, prefix, &text);
    }
    text_add(&text, "}\n");
    return layout_text(layout, path, &text, error);
}

status layout_coop_split(const struct layout *layout, struct error *error)
{
    const struct dataset_reader *reader;
    TRY(dataset_reader_find(&reader, layout->domain->name, error));
    const struct coop *coop = reader->coop;
    for (size_t i = 0; coop != NULL && coop->file != NULL && i < COOP_PLACES && coop->places[i].folder != NULL; i++) {
        const struct coop_place *place = &coop->places[i];
        const char *first;
        layout_picture_at(layout, 0, &first);
        char *prefix = path_format("%s/%s/%s%s", layout->root, place->folder, place->images, *place->images ? "/" : ""),
             *path = path_format("%s/%s", place->folder, coop->file);
        bool here = strncmp(first, prefix, strlen(prefix)) == 0;
        status result = OK;
        if (here)
            result = write_split(layout, path, strlen(prefix), error);
        free(prefix);
        free(path);
        if (here || result != OK)
            return result;
    }
    return OK;
}
