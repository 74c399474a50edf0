/* replay_data DIR…: checks folders in the format of fixtures/data/README.md. Exit status 0 only when nothing
 * deviates and every folder has at least one part. */
#include "tests/replay/replay_data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "tests/replay/check_tokenizer.h"

void part_check(struct part *part, bool good, const char *description, ...)
{
    enum { SHOWN = 5 };
    part->items++;
    if (good)
        return;
    if (part->deviations++ >= SHOWN)
        return;
    va_list arguments;
    va_start(arguments, description);
    printf("  %s: ", part->name);
    vprintf(description, arguments);
    printf("\n");
    va_end(arguments);
}

bool part_finish(const struct part *part)
{
    if (part->absent)
        printf("%s: not in this folder\n", part->name);
    else
        printf("%s: %zu items, %zu deviations\n", part->name, part->items, part->deviations);
    return part->absent || (part->deviations == 0 && part->items > 0);
}

json_t *part_json(struct part *part, const char *folder, const char *name)
{
    json_error_t wrong;
    char *path = path_format("%s/%s", folder, name);
    json_t *json = NULL;
    part->absent = path == NULL || !file_exists(path);
    if (!part->absent) {
        json = json_load_file(path, 0, &wrong);
        if (json == NULL)
            part_check(part, false, "%s:%d: %s", path, wrong.line, wrong.text);
    }
    free(path);
    return json;
}

static bool check_folder(const char *folder)
{
    static const struct {
        const char *name;
        void (*check)(struct part *part, const char *folder);
    } checks[] = {
        {"roots", part_roots},   {"mat variants", part_mat_variants}, {"splits", part_splits},
        {"decode", part_decode}, {"preprocess", part_preprocess},     {"corrupted", part_corrupted},
    };
    bool good = true, found = false;
    printf("%s\n", folder);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct part part = {.name = checks[i].name};
        checks[i].check(&part, folder);
        good = part_finish(&part) && good;
        found = found || !part.absent;
    }
    char *tokenizer = path_format("%s/tokenizer", folder);
    if (tokenizer != NULL && file_is_directory(tokenizer)) {
        good = check_tokenizer(tokenizer) == 0 && good;
        found = true;
    }
    free(tokenizer);
    if (!found)
        printf("nothing to check here: expected roots/, splits.json, preprocess/, corrupted/ or tokenizer/\n");
    return good && found;
}

int main(int count, char **arguments)
{
    bool good = count > 1;
    if (!good)
        fprintf(stderr, "usage: replay_data DIR…   (folders in the format of fixtures/data)\n");
    for (int i = 1; i < count; i++)
        good = check_folder(arguments[i]) && good;
    return good ? 0 : 1;
}
