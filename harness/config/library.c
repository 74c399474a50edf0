/* Finds suites: those that ship, and files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/config/internal.h"

enum { FILE_SIZE = 256 * 1024 /* at most, of a suite */ };

EMBEDDED_FILES(embedded_suites);

size_t suite_library_size(void)
{
    size_t count = 0;
    while (embedded_suites[count].name != NULL)
        count++;
    return count;
}

struct shipped_suite suite_library_get(size_t index)
{
    const struct embedded_file *file = &embedded_suites[index];
    struct shipped_suite suite = {.text = (const char *)file->data, .size = file->size};
    snprintf(suite.name, sizeof suite.name, "%.*s", (int)strcspn(file->name, "."), file->name);
    if (*suite.text == '#') {
        const char *summary = suite.text + strspn(suite.text, "# ");
        snprintf(suite.summary, sizeof suite.summary, "%.*s", (int)strcspn(summary, "\n"), summary);
    }
    static const char heading[] = "# Table: ";
    const char *second = suite.text + strcspn(suite.text, "\n");
    if (strncmp(second + (*second != 0), heading, strlen(heading)) == 0) {
        const char *table = second + 1 + strlen(heading);
        snprintf(suite.table, sizeof suite.table, "%.*s", (int)strcspn(table, "\n"), table);
    }
    return suite;
}

bool suite_library_find(struct shipped_suite *suite, const char *name)
{
    for (size_t i = 0; i < suite_library_size(); i++) {
        *suite = suite_library_get(i);
        if (strcmp(suite->name, name) == 0)
            return true;
    }
    return false;
}

/* --- Suites by name or path --- */

/* The length of a name without .yaml or .yml. */
static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0) ? (size_t)(dot - name) : strlen(name);
}

static bool is_nearer(const char *word, const char *name, size_t *least)
{
    char stems[2][256];
    snprintf(stems[0], sizeof stems[0], "%.*s", (int)stem_length(word), word);
    snprintf(stems[1], sizeof stems[1], "%.*s", (int)stem_length(name), name);
    size_t distance = edit_distance(stems[0], stems[1]);
    bool nearer = distance < *least;
    *least = nearer ? distance : *least;
    return nearer;
}

static void find_near_shipped(const char *word, size_t *least, char **near)
{
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite shipped = suite_library_get(i);
        if (is_nearer(word, shipped.name, least)) {
            free(*near);
            *near = xstrdup(shipped.name);
        }
    }
}

static void find_near_file(const char *path, const char *word, size_t *least, char **near)
{
    OWNED char *folder = path_parent(path);
    SCOPED(directory_free) struct directory files = {0};
    if (folder != NULL && directory_list(&files, folder, NULL) == OK)
        for (size_t i = 0; i < files.count; i++)
            if (files.names[i][stem_length(files.names[i])] != 0 && is_nearer(word, files.names[i], least)) {
                free(*near);
                *near = path_format("%.*s%s", (int)(word - path), path, files.names[i]);
            }
}

/* The suite that ships, or the .yaml file in the same folder, with the nearest name; of two equally near, the one of
 * the requested kind. The caller frees; NULL: none is near. */
static char *find_near(const char *name_or_path)
{
    const char *slash = strrchr(name_or_path, '/'), *word = slash != NULL ? slash + 1 : name_or_path;
    bool is_path = strpbrk(name_or_path, "/.") != NULL;
    size_t least = (stem_length(word) + 1) / 3 + 1;
    char *near = NULL;
    if (is_path)
        find_near_file(name_or_path, word, &least, &near);
    find_near_shipped(word, &least, &near);
    if (!is_path)
        find_near_file(name_or_path, word, &least, &near);
    return near;
}

static status missing_file(const char *path, struct error *error)
{
    OWNED char *near = find_near(path);
    return error_set(error, ERROR_IO,
                     "%s: there is no such suite%s%s%s; mtil list suites shows those that ship, mtil init writes one",
                     path, near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
                     near != NULL ? "\"?)" : "");
}

status suite_unknown(const char *where, const char *name, bool files, struct error *error)
{
    OWNED char *near = NULL;
    size_t least = (stem_length(name) + 1) / 3 + 1;
    if (files)
        near = find_near(name);
    else
        find_near_shipped(name, &least, &near);
    return error_set(error, ERROR_ARGUMENT,
                     "%s: unknown suite \"%s\"%s%s%s; expected one that mtil list suites shows%s", where, name,
                     near != NULL ? " (did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?)" : "",
                     files ? ", or the path of a .yaml file" : "");
}

status suite_file_open(struct suite_file *file, const char *name_or_path, struct error *error)
{
    *file = (struct suite_file){.name = name_or_path};
    if (strpbrk(name_or_path, "/.") != NULL) {
        if (!file_exists(name_or_path))
            return missing_file(name_or_path, error);
        TRY(file_read(name_or_path, FILE_SIZE, &file->bytes, error));
        file->text = (const char *)file->bytes.data;
        file->size = file->bytes.size;
        return OK;
    }
    struct shipped_suite shipped;
    if (!suite_library_find(&shipped, name_or_path))
        return suite_unknown("command line", name_or_path, true, error);
    file->text = shipped.text;
    file->size = shipped.size;
    return OK;
}

void suite_file_close(struct suite_file *file)
{
    bytes_free(&file->bytes);
}
