/* replay_data DIR…: checks folders in the format of fixtures/data/README.md. Exit status 0 only when nothing
 * deviates and every folder has at least one part. */
#include "tests/replay/replay_data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void part_skip(struct part *part, const char *description, ...)
{
    va_list arguments;
    va_start(arguments, description);
    part->skipped++;
    printf("  %s: skipped: ", part->name);
    vprintf(description, arguments);
    printf("\n");
    va_end(arguments);
}

bool part_finish(const struct part *part)
{
    if (part->items == 0)
        printf("%s: skipped: %s\n", part->name, part->absent ? "not in this folder" : "nothing to compare with");
    else
        printf("%s: %zu items, %zu deviations\n", part->name, part->items, part->deviations);
    return part->deviations == 0;
}

const char *part_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* Integers beyond 63 bits, which jansson refuses, become strings: seeds can be that large. The caller frees it. */
static char *quote_large_integers(const char *text, size_t size, size_t *quoted_size)
{
    enum { DIGITS_MOST = 18 };
    char *quoted = malloc(3 * size + 1);
    size_t count = 0;
    bool in_string = false;
    for (size_t i = 0; quoted != NULL && i < size;) {
        size_t digits = in_string ? 0 : strspn(text + i, "0123456789");
        bool large = digits > DIGITS_MOST && (i == 0 || strchr(".-eE+", text[i - 1]) == NULL) &&
                     strchr(".eE", text[i + digits]) == NULL;
        if (in_string && text[i] == '\\' && i + 1 < size)
            quoted[count++] = text[i++];
        else if (text[i] == '"')
            in_string = !in_string;
        digits = digits > 0 ? digits : 1;
        if (large)
            quoted[count++] = '"';
        memcpy(quoted + count, text + i, digits);
        count += digits;
        if (large)
            quoted[count++] = '"';
        i += digits;
    }
    *quoted_size = count;
    return quoted;
}

static json_t *load_json(struct part *part, const char *path)
{
    json_error_t wrong = {.line = 0, .text = "no memory"};
    struct bytes bytes;
    struct error error;
    size_t size = 0;
    if (file_read(path, FILE_LIMIT, &bytes, &error) != OK) {
        part_check(part, false, "%s", error.message);
        return NULL;
    }
    char *text = quote_large_integers((const char *)bytes.data, bytes.size, &size);
    json_t *json = text != NULL ? json_loadb(text, size, 0, &wrong) : NULL;
    if (json == NULL)
        part_check(part, false, "%s:%d: %s", path, wrong.line, wrong.text);
    free(text);
    bytes_free(&bytes);
    return json;
}

json_t *part_json(struct part *part, const char *folder, const char *name)
{
    char *path = path_format("%s/%s", folder, name);
    part->absent = path == NULL || !file_exists(path);
    json_t *json = part->absent ? NULL : load_json(part, path);
    free(path);
    return json;
}

/* Parts that this program knows nothing of are told, so that nobody takes them for checked. */
static void tell_unknown(const char *folder)
{
    static const char *const known[] = {"README.md", "roots",  "splits.json",  "preprocess",     "corrupted",
                                        "tokenizer", "digits", "prompts.json", "raw_names.json", "versions.json"};
    struct directory directory;
    struct error error;
    if (directory_list(&directory, folder, &error) != OK) {
        printf("%s\n", error.message);
        return;
    }
    for (size_t i = 0; i < directory.count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            is_known = is_known || strcmp(directory.names[i], known[k]) == 0;
        if (!is_known)
            printf("%s: skipped: not known to this program\n", directory.names[i]);
    }
    directory_free(&directory);
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
        found = found || part.items > 0;
    }
    char *tokenizer = path_format("%s/tokenizer", folder), *tokens = path_format("%s/tokenizer/tokens.jsonl", folder);
    if (tokens != NULL && !file_exists(tokens)) {
        printf("tokenizer: skipped: not in this folder\n");
    } else {
        good = check_tokenizer(tokenizer) == 0 && good;
        found = true;
    }
    free(tokenizer);
    free(tokens);
    tell_unknown(folder);
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
