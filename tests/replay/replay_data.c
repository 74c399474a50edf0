/* replay_data DIR…: checks folders in the format of fixtures/data/README.md. Exit status 0 only when nothing deviates and every
 * folder has at least one part. */
#include "tests/replay/replay_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

json_t *part_json(struct report *report, const char *part, const char *folder, const char *name)
{
    char *path = path_format("%s/%s", folder, name);
    struct error error;
    json_t *json = NULL;
    if (!file_exists(path))
        printf("%s: skipped: not in this folder\n", part);
    else if (pyjson_read(&json, path, &error) != OK)
        report_exact(report, part, false, "%s", error.message);
    free(path);
    return json;
}

bool image_fits(const struct image *image, const json_t *entry, char hex[DIGEST_SIZE])
{
    digest_bytes(image->pixels, (size_t)image->width * (size_t)image->height * 3, hex);
    return image->width == pyjson_integer(entry, "w") && image->height == pyjson_integer(entry, "h");
}

int recorded_difference(const json_t *file)
{
    return (int)json_integer_value(json_array_get(json_object_get(file, "system_jpeg_diff"), 0));
}

bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), length = strlen(end);
    return size >= length && strcmp(name + size - length, end) == 0;
}

/* Parts that this program knows nothing of are told, so that nobody takes them for checked. */
static void tell_unknown(const char *folder)
{
    static const char *const known[] = {"README.md", "roots",  "splits.json",  "preprocess",     "corrupted",
                                        "tokenizer", "digits", "prompts.json", "raw_names.json", "versions.json"};
    struct directory directory;
    must(directory_list(&directory, folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            is_known = is_known || strcmp(directory.names[i], known[k]) == 0;
        if (!is_known)
            printf("%s: skipped: not known to this program\n", directory.names[i]);
    }
    directory_free(&directory);
}

int main(int count, char **arguments)
{
    static void (*const parts[])(struct report * report, const char *folder) = {part_roots, part_splits, part_images,
                                                                                part_corrupted, part_tokenizer};
    bool good = count > 1;
    if (!good)
        fprintf(stderr, "usage: replay_data DIR…   (folders in the format of fixtures/data)\n");
    for (int i = 1; i < count; i++) {
        struct report report = {.folder = arguments[i]};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            parts[k](&report, arguments[i]);
        tell_unknown(arguments[i]);
        good = report_finish(&report) && good;
    }
    return good ? 0 : 1;
}
