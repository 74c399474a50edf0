#include "datasets/mini/layout.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"

size_t layout_items(const struct layout *layout, bool test, size_t *first)
{
    *first = test ? (size_t)layout->domain->train : 0;
    return (size_t)(test ? layout->domain->test : layout->domain->train);
}

int layout_label(const struct layout *layout, size_t item)
{
    return (int)(item % (size_t)layout->domain->classes);
}

/* "root/words"; the caller frees it. */
static char *below_root(const struct layout *layout, const char *format, va_list arguments)
{
    struct text path = {0};
    text_add(&path, "%s/", layout->root);
    text_add_list(&path, format, arguments);
    return path.data;
}

void layout_picture(struct layout *layout, size_t item, const char *format, ...)
{
    GROW(layout->pictures, layout->count);
    va_list arguments;
    va_start(arguments, format);
    char *path = below_root(layout, format, arguments);
    va_end(arguments);
    layout->pictures[layout->count++] = (struct layout_picture){path, item};
}

status layout_folder(const struct layout *layout, struct error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    OWNED char *path = below_root(layout, format, arguments);
    va_end(arguments);
    return directory_create(path, error);
}

void layout_free(struct layout *layout)
{
    for (size_t i = 0; i < layout->count; i++)
        free(layout->pictures[i].path);
    free(layout->pictures);
    text_free(&layout->list);
    *layout = (struct layout){0};
}

status layout_text(const struct layout *layout, const char *path, struct text *text, struct error *error)
{
    OWNED char *whole = path_format("%s/%s", layout->root, path);
    status result = file_write(whole, text->data, text->size, error);
    text_free(text);
    return result;
}

status layout_class_names(const struct layout *layout, const char *path, struct error *error)
{
    struct text text = {0};
    for (int i = 0; i < layout->domain->classes; i++)
        text_add(&text, "%s\n", layout->domain->class_names[i]);
    return layout_text(layout, path, &text, error);
}

/* --- the datasets that are folders of JPEG files and lists of text ------------------------------------------------ */

enum { NAME_CAPACITY = 64 };

static const char *class_name(const struct layout *layout, size_t item)
{
    return layout->domain->class_names[layout_label(layout, item)];
}

static void underscored(const char *name, char result[NAME_CAPACITY])
{
    size_t size = strnlen(name, NAME_CAPACITY - 1);
    for (size_t i = 0; i < size; i++)
        result[i] = name[i] == ' ' ? '_' : name[i];
    result[size] = '\0';
}

/* "crop fields" → "CropFields" */
static void joined(const char *name, char result[NAME_CAPACITY])
{
    size_t size = 0;
    bool start = true;
    for (; *name != '\0' && size + 1 < NAME_CAPACITY; name++) {
        if (*name != ' ')
            result[size++] = start ? (char)toupper((unsigned char)*name) : *name;
        start = *name == ' ';
    }
    result[size] = '\0';
}

status layout_aircraft(struct layout *layout, struct error *error)
{
    TRY(layout_folder(layout, error, "fgvc-aircraft-2013b/data/images"));
    TRY(layout_class_names(layout, "fgvc-aircraft-2013b/data/variants.txt", error));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        for (size_t item = first; item < first + count; item++) {
            layout_picture(layout, item, "fgvc-aircraft-2013b/data/images/%07zu.jpg", 500000 + 977 * item);
            text_add(&layout->list, "%07zu %s\n", 500000 + 977 * item, class_name(layout, item));
        }
        TRY(layout_text(layout,
                        test ? "fgvc-aircraft-2013b/data/images_variant_test.txt"
                             : "fgvc-aircraft-2013b/data/images_variant_train.txt",
                        &layout->list, error));
    }
    return OK;
}

/* Every item of the domain in a folder of its class, numbered from 1. */
static status numbered_files(struct layout *layout, const char *parent, struct error *error)
{
    bool camel = strcmp(layout->domain->name, "eurosat") == 0;
    size_t count = (size_t)layout->domain->train + (size_t)layout->domain->test;
    for (size_t item = 0; item < count; item++) {
        char folder[NAME_CAPACITY];
        size_t number = item / (size_t)layout->domain->classes + 1;
        if (camel)
            joined(class_name(layout, item), folder);
        else
            underscored(class_name(layout, item), folder);
        if (number == 1)
            TRY(layout_folder(layout, error, "%s/%s", parent, folder));
        if (camel)
            layout_picture(layout, item, "%s/%s/%s_%zu.jpg", parent, folder, folder, number);
        else
            layout_picture(layout, item, "%s/%s/image_%04zu.jpg", parent, folder, number);
    }
    return OK;
}

status layout_caltech101(struct layout *layout, struct error *error)
{
    TRY(numbered_files(layout, "caltech101/101_ObjectCategories", error));
    TRY(layout_folder(layout, error, "caltech101/101_ObjectCategories/BACKGROUND_Google")); /* torchvision expects it */
    return layout_class_names(layout, "caltech101/classnames.txt", error);
}

status layout_eurosat(struct layout *layout, struct error *error)
{
    TRY(numbered_files(layout, "eurosat/2750", error));
    return layout_class_names(layout, "eurosat/classnames.txt", error);
}

status layout_dtd(struct layout *layout, struct error *error)
{
    for (int i = 0; i < layout->domain->classes; i++)
        TRY(layout_folder(layout, error, "dtd/dtd/images/%s", layout->domain->class_names[i]));
    TRY(layout_folder(layout, error, "dtd/dtd/labels"));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        for (size_t item = first; item < first + count; item++) {
            const char *name = class_name(layout, item);
            layout_picture(layout, item, "dtd/dtd/images/%s/%s_%04zu.jpg", name, name, item + 1);
            text_add(&layout->list, "%s/%s_%04zu.jpg\n", name, name, item + 1);
        }
        TRY(layout_text(layout, test ? "dtd/dtd/labels/test1.txt" : "dtd/dtd/labels/train1.txt", &layout->list, error));
    }
    return OK;
}

/* {"class": ["class/id", …], …}, the class of the first item first. */
static void food_list(struct layout *layout, size_t first, size_t count)
{
    size_t classes = (size_t)layout->domain->classes;
    for (size_t k = 0; k < classes; k++) {
        const char *name = class_name(layout, first + k);
        text_add(&layout->list, "%s\"%s\": [", k == 0 ? "{" : "], ", name);
        for (size_t i = k; i < count; i += classes)
            text_add(&layout->list, "%s\"%s/%zu\"", i == k ? "" : ", ", name, 100000 + 37 * (first + i));
    }
    text_add(&layout->list, "]}");
}

status layout_food(struct layout *layout, struct error *error)
{
    for (int i = 0; i < layout->domain->classes; i++)
        TRY(layout_folder(layout, error, "food-101/images/%s", layout->domain->class_names[i]));
    TRY(layout_folder(layout, error, "food-101/meta"));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        for (size_t item = first; item < first + count; item++)
            layout_picture(layout, item, "food-101/images/%s/%zu.jpg", class_name(layout, item), 100000 + 37 * item);
        food_list(layout, first, count);
        TRY(layout_text(layout, test ? "food-101/meta/test.json" : "food-101/meta/train.json", &layout->list, error));
    }
    return layout_class_names(layout, "food-101/meta/classes.txt", error);
}

status layout_oxford_pet(struct layout *layout, struct error *error)
{
    static const char *const species[] = {"Cat", "Dog", "Rabbit"}; /* 1, 2 as in the original, and one more */
    TRY(layout_folder(layout, error, "oxford-iiit-pet/annotations"));
    TRY(layout_folder(layout, error, "oxford-iiit-pet/images"));
    for (int test = 0; test < SUITE_SPLITS; test++) {
        size_t first, count = layout_items(layout, test, &first);
        for (size_t item = first; item < first + count; item++) {
            char id[NAME_CAPACITY];
            int kind = 0, label = layout_label(layout, item);
            underscored(class_name(layout, item), id);
            while (kind < 2 && strstr(id, species[kind]) == NULL)
                kind++;
            layout_picture(layout, item, "oxford-iiit-pet/images/%s_%zu.jpg", id, item + 1);
            text_add(&layout->list, "%s_%zu %d %d %d\n", id, item + 1, label + 1, kind + 1, label + 1);
        }
        TRY(layout_text(layout,
                        test ? "oxford-iiit-pet/annotations/test.txt" : "oxford-iiit-pet/annotations/trainval.txt",
                        &layout->list, error));
    }
    return OK;
}

status layout_sun397(struct layout *layout, struct error *error)
{
    for (int i = 0; i < layout->domain->classes; i++) {
        const char *name = layout->domain->class_names[i];
        TRY(layout_folder(layout, error, "SUN397/%c/%s", name[0], name));
        text_add(&layout->list, "/%c/%s\n", name[0], name);
    }
    TRY(layout_text(layout, "SUN397/ClassName.txt", &layout->list, error));
    size_t count = (size_t)layout->domain->train + (size_t)layout->domain->test;
    for (size_t item = 0; item < count; item++) {
        const char *name = class_name(layout, item);
        char letters[17] = "aaaaaaaaaaaaaaaa";
        size_t rest = item;
        for (int place = 15; rest > 0; place--, rest /= 26)
            letters[place] = (char)('a' + rest % 26);
        layout_picture(layout, item, "SUN397/%c/%s/sun_%s.jpg", name[0], name, letters);
    }
    return OK;
}
