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
    bool file;                     /* without a digest its path is all that is known */
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
    status result;
    while ((result = statement_step(contents->read, &row, error)) == OK && row) {
        const char *digest = statement_text(contents->read, 1), *name = statement_text(contents->read, 2);
        for (size_t i = 0; i < KINDS; i++)
            if (strcmp(statement_text(contents->read, 0), kinds[i].kind) == 0) {
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
    return result;
}

/* --- Names --- */

static bool is_taken(const struct run_contents *contents, size_t kind, const char *label)
{
    for (size_t i = 0; i < contents->count; i++)
        if (contents->names[i].kind == kind && strcmp(contents->names[i].label, label) == 0)
            return true;
    return false;
}

/* What a content without a digest is called: random weights, say, are in no file, and their form is in the settings. */
static const char *name_unrecorded(size_t kind, const char *path)
{
    if (kinds[kind].file)
        return path;
    bool scratch = strcmp(kinds[kind].key, "model.configuration") == 0 && strcmp(path, "scratch") == 0;
    return scratch ? "none" : "not recorded";
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
    GROW(contents->names, contents->count);
    struct contents_name name = {.kind = kind, .path = strdup(path)};
    struct text label = {0};
    text_add(&label, "%s", path);
    if (is_taken(contents, kind, path))
        text_add(&label, " (%.*s)", *digest != 0 ? DIGITS : DIGEST_SIZE, *digest != 0 ? digest : "not recorded");
    name.label = label.data;
    if (name.path == NULL || label.failed) {
        free(name.path);
        text_free(&label);
        return error_set(error, ERROR_MEMORY, "%s: out of memory for what runs were computed from",
                         store_path(contents->store));
    }
    memcpy(name.digest, digest, strlen(digest) + 1);
    contents->names[contents->count++] = name;
    return OK;
}

static status find_label(struct run_contents *contents, size_t kind, const char *digest,
                         const struct setting_values *values, const char **label, struct error *error)
{
    const char *path = setting_values_find(values, kinds[kind].path);
    path = path != NULL ? path : "not set";
    path = *digest == 0 ? name_unrecorded(kind, path) : path;
    if (known_label(contents, kind, digest, path) == NULL)
        TRY(add_name(contents, kind, digest, path, error));
    *label = known_label(contents, kind, digest, path);
    return OK;
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
