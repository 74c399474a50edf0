#include "datasets/prompts.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "core/alloc.h"
#include "core/file.h"

EMBEDDED_FILES(prompt_files); /* the last one is that of any other dataset */

static void add_lines(const char *dataset, bool templates, struct strings *strings)
{
    const struct embedded_file *file = prompt_files;
    SCOPED(strings_free) struct strings lines = {0};
    size_t length = strlen(dataset);
    while (file[1].name != NULL && (strncmp(file->name, dataset, length) != 0 || file->name[length] != '.'))
        file++;
    strings_add_lines(&lines, (const char *)file->data, file->size);
    for (size_t i = 0; i < lines.count; i++)
        if ((strstr(lines.items[i], "{}") != NULL) == templates)
            strings_add(strings, lines.items[i], strlen(lines.items[i]));
}

void prompts_add_templates(const char *dataset, struct strings *templates)
{
    add_lines(dataset, true, templates);
}

void prompts_add_classes(const char *dataset, struct strings *classes)
{
    add_lines(dataset, false, classes);
}

/* --- names that are the same -------------------------------------------------------------------------------------- */

struct name {
    char *text;
    size_t index;
};

static utf8proc_int32_t plain(utf8proc_int32_t point, void *context)
{
    bool blank = (point >= '\t' && point <= '\r') || utf8proc_category(point) == UTF8PROC_CATEGORY_ZS;
    return blank ? ' ' : utf8proc_tolower(point);
}

/* Leaves single blanks between words. */
static void squeeze(char *text)
{
    char *end = text;
    for (const char *p = text; *p != 0; p++)
        if (*p != ' ' || (end > text && end[-1] != ' '))
            *end++ = *p;
    *end = 0;
    if (end > text && end[-1] == ' ')
        end[-1] = 0;
}

/* The name composed and in lower case; bytes that are not UTF-8 are kept. */
static char *normalize(const char *name)
{
    utf8proc_uint8_t *text = NULL;
    utf8proc_option_t composed = (utf8proc_option_t)(UTF8PROC_NULLTERM | UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (utf8proc_map_custom((const utf8proc_uint8_t *)name, 0, &text, composed, plain, NULL) < 0)
        return xstrdup(name);
    squeeze((char *)text);
    return (char *)text;
}

static int compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* names is sorted. */
static void count_same(struct same_names *same, const struct name *names, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1].text, names[i].text) != 0)
            continue;
        if (same->count++ == 0 || names[i].index < same->second) {
            same->first = names[i - 1].index;
            same->second = names[i].index;
        }
    }
}

void prompts_find_same_names(struct same_names *same, const char *const *names, size_t count)
{
    *same = (struct same_names){0};
    OWNED struct name *sorted = xcalloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct name){normalize(names[i]), i};
    qsort(sorted, count, sizeof *sorted, compare);
    count_same(same, sorted, count);
    for (size_t i = 0; i < count; i++)
        free(sorted[i].text);
}
