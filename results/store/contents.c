#include "results/store/contents.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/digest.h"
#include "core/text.h"
#include "results/store/store_internal.h"

enum { DIGITS = 12, KINDS = 6 };

static const struct {
    const char *key, *kind, *path; /* path: the key whose value names the content */
    bool file;                     /* runs of older programs name it by its path */
} kinds[KINDS] = {{"model.weights", "weights", "model.weights", true},
                  {"model.configuration", "configuration", "model.weights", false},
                  {"model.vocabulary", "vocabulary", "model.vocabulary", true},
                  {"data.root", "train", "data.root", false},
                  {CONTENTS_PROMPTS, "prompts", "data.root", false},
                  {CONTENTS_TESTS, "test", "data.root", false}};

/* The name of a content. */
struct contents_name {
    size_t kind;
    char digest[DIGEST_SIZE]; /* "": not recorded */
    char *path, *label;
};

void contents_begin(struct run_contents *contents, struct store *store)
{
    *contents = (struct run_contents){.store = store};
}

void contents_end(struct run_contents *contents)
{
    for (size_t i = 0; i < contents->count; i++) {
        free(contents->names[i].path);
        free(contents->names[i].label);
    }
    free(contents->names);
    statement_close(contents->read);
    *contents = (struct run_contents){0};
}

bool contents_has_key(const char *key)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].key, key) == 0)
            return true;
    return false;
}

static status out_of_memory(const struct run_contents *contents, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory for what runs were computed from",
                     store_path(contents->store));
}

/* --- Digests of a run --- */

/* By name, whatever the order in which the tasks are trained. */
static const char read_sql[] =
    "SELECT kind, digest, coalesce(name, '') AS name FROM inputs LEFT JOIN tasks USING (run, "
    "task) WHERE run = ?1 ORDER BY name, task";

static status read_digests(struct run_contents *contents, int64_t run, char digests[KINDS][DIGEST_SIZE],
                           struct error *error)
{
    struct digest running[KINDS];
    bool any[KINDS] = {false}, row = true;
    for (size_t i = 0; i < KINDS; i++)
        running[i] = digest_begin();
    if (contents->read == NULL)
        TRY(statement_open(&contents->read, contents->store->database, read_sql, error));
    TRY(statement_bind(contents->read, VALUES(value_integer(run)), error));
    for (;;) {
        TRY(statement_step(contents->read, &row, error));
        if (!row)
            break;
        for (size_t i = 0; i < KINDS; i++) {
            if (strcmp(statement_text(contents->read, 0), kinds[i].kind) != 0)
                continue;
            const char *digest = statement_text(contents->read, 1), *name = statement_text(contents->read, 2);
            digest_add(&running[i], name, strlen(name) + 1);
            digest_add(&running[i], digest, strlen(digest) + 1);
            any[i] = true;
        }
    }
    for (size_t i = 0; i < KINDS; i++) {
        digest_end(&running[i], digests[i]);
        if (!any[i])
            digests[i][0] = 0;
    }
    return OK;
}

/* --- Names --- */

static bool is_taken(const struct run_contents *contents, size_t kind, const char *label)
{
    for (size_t i = 0; i < contents->count; i++)
        if (contents->names[i].kind == kind && strcmp(contents->names[i].label, label) == 0)
            return true;
    return false;
}

/* Where nothing was recorded, the paths are all that is known. */
static void add_unrecorded(struct text *label, size_t kind, const struct setting_values *values)
{
    if (kinds[kind].file) {
        const char *path = setting_values_find(values, kinds[kind].path);
        text_add(label, "%s", path != NULL ? path : "not set");
        return;
    }
    /* random weights are in no file, and their form is in the settings */
    const char *value = setting_values_find(values, kinds[kind].path);
    if (strcmp(kinds[kind].key, "model.configuration") == 0 && value != NULL && strcmp(value, "scratch") == 0) {
        text_add(label, "none");
        return;
    }
    text_add(label, "not recorded");
    for (size_t i = 0; i < values->count; i++) {
        const char *key = values->value[i].key, *last = strrchr(key, '.');
        if (strncmp(key, "tasks.", strlen("tasks.")) == 0 && (strcmp(last, ".root") == 0 || strcmp(last, ".path") == 0))
            text_add(label, ", %s = %s", key, values->value[i].value);
    }
}

static const char *known_label(const struct run_contents *contents, size_t kind, const char *digest, const char *path)
{
    for (size_t i = 0; i < contents->count; i++) {
        const struct contents_name *name = &contents->names[i];
        if (name->kind == kind && strcmp(name->digest, digest) == 0 && (*digest != 0 || strcmp(name->path, path) == 0))
            return name->label;
    }
    return NULL;
}

/* Its path, with the digest where another content has the path already. */
static status add_name(struct run_contents *contents, size_t kind, const char *digest, const char *path,
                       struct error *error)
{
    TRY(ARRAY_GROW(contents->names, contents->count, "names of contents", error));
    struct contents_name name = {.kind = kind, .path = strdup(path)};
    struct text label = {0};
    text_add(&label, "%s", path);
    if (is_taken(contents, kind, path))
        text_add(&label, " (%.*s)", *digest != 0 ? DIGITS : DIGEST_SIZE, *digest != 0 ? digest : "not recorded");
    name.label = label.data;
    if (name.path == NULL || label.failed) {
        free(name.path);
        text_free(&label);
        return out_of_memory(contents, error);
    }
    memcpy(name.digest, digest, strlen(digest) + 1);
    contents->names[contents->count++] = name;
    return OK;
}

static status find_label(struct run_contents *contents, size_t kind, const char *digest,
                         const struct setting_values *values, const char **label, struct error *error)
{
    struct text path = {0};
    const char *value = setting_values_find(values, kinds[kind].path);
    if (*digest == 0)
        add_unrecorded(&path, kind, values);
    else
        text_add(&path, "%s", value != NULL ? value : "not set");
    status result = path.failed ? out_of_memory(contents, error) : OK;
    if (result == OK && known_label(contents, kind, digest, path.data) == NULL)
        result = add_name(contents, kind, digest, path.data, error);
    if (result == OK)
        *label = known_label(contents, kind, digest, path.data);
    text_free(&path);
    return result;
}

status contents_add(struct run_contents *contents, int64_t run, struct setting_values *values, struct error *error)
{
    char digests[KINDS][DIGEST_SIZE];
    const char *labels[KINDS];
    TRY(read_digests(contents, run, digests, error));
    for (size_t i = 0; i < KINDS; i++)
        TRY(find_label(contents, i, digests[i], values, &labels[i], error));
    for (size_t i = 0; i < KINDS; i++)
        TRY(setting_values_set(values, kinds[i].key, labels[i], error));
    return OK;
}
