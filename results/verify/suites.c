/* Checks that a run's settings, its suite's text and settings_hash say the same. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/text.h"
#include "results/verify/internal.h"

/* A line of a suite's text. The value is without quotes; NULL: its quotes hold more than \" and \\. */
struct said {
    char key[200];
    char *value;
    bool known;
};

/* What the text of a suite says, by key, and the hash of those that determine the numbers. */
struct suite {
    char *text; /* a copy, cut into values */
    struct said *said;
    size_t count;
    char hash[DIGEST_SIZE];
};

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct said *)a)->key, ((const struct said *)b)->key);
}

static void suite_free(struct suite *suite)
{
    free(suite->text);
    free(suite->said);
    *suite = (struct suite){0};
}

/* In place; whether every escape was known. */
static bool unquote(char *value)
{
    size_t length = strlen(value);
    char *to = value;
    if (*value != '"' || length < 2)
        return true;
    value[length - 1] = 0;
    for (const char *from = value + 1; *from != 0; from++) {
        if (*from == '\\' && from[1] != '"' && from[1] != '\\')
            return false;
        from += *from == '\\';
        *to++ = *from;
    }
    *to = 0;
    return true;
}

/* Headings are written before the first key below them that is kept. */
struct reader {
    struct text identity;
    const char *heading[2]; /* section and entry, as lines; NULL: written, or none */
    char name[2][80];
};

static void keep(struct reader *reader, const char *line)
{
    for (int i = 0; i < 2; i++)
        if (reader->heading[i] != NULL)
            text_add(&reader->identity, "%s\n", reader->heading[i]);
    reader->heading[0] = reader->heading[1] = NULL;
    text_add(&reader->identity, "%s\n", line);
}

static void read_line(const struct verifying *v, struct suite *suite, struct reader *reader, char *line)
{
    size_t depth = strspn(line, " ") / 2;
    char *name = line + 2 * depth, *colon = strchr(*name == '"' ? name + 1 + strcspn(name + 1, "\"") : name, ':');
    if (colon == NULL || depth > 2)
        return;
    if (colon[1] == 0) {
        depth = depth > 1 ? 1 : depth;
        reader->heading[depth] = line;
        reader->heading[1] = depth == 0 ? NULL : reader->heading[1];
        snprintf(reader->name[depth], sizeof *reader->name, "%.*s.", (int)(colon - name), name);
        *reader->name[1] = depth == 0 ? 0 : *reader->name[1];
        return;
    }
    struct said *said = &suite->said[suite->count++];
    snprintf(said->key, sizeof said->key, "%s%s%.*s", depth > 0 ? reader->name[0] : "",
             depth > 1 ? reader->name[1] : "", (int)(colon - name), name);
    char value[200]; /* a list is without brackets there */
    bool list = colon[2] == '[';
    snprintf(value, sizeof value, "%.*s", (int)(strlen(colon + 2) - 2 * list), colon + 2 + list);
    if (!v->verification->incidental(said->key, value))
        keep(reader, line);
    said->value = colon + 2;
    said->known = unquote(said->value);
}

static void suite_read(const struct verifying *v, struct suite *suite, const char *text)
{
    struct reader reader = {0};
    size_t lines = 1;
    for (const char *at = text; *at != 0; at++)
        lines += *at == '\n';
    *suite = (struct suite){.text = xstrdup(text), .said = xcalloc(lines, sizeof *suite->said)};
    for (char *line = suite->text, *next; *line != 0; line = next) {
        next = line + strcspn(line, "\n");
        if (*next != 0)
            *next++ = 0;
        read_line(v, suite, &reader, line);
    }
    digest_text(reader.identity.data != NULL ? reader.identity.data : "", suite->hash);
    text_free(&reader.identity);
    qsort(suite->said, suite->count, sizeof *suite->said, compare_keys);
}

/* stored: key, value. */
static bool same_value(struct statement *stored, const struct said *said)
{
    struct value value = statement_value(stored, 1);
    return !said->known || (value.kind == VALUE_REAL ? value.real == strtod(said->value, NULL)
                                                     : strcmp(statement_text(stored, 1), said->value) == 0);
}

/* Both in the order of their keys. */
static status compare_settings(const struct verifying *v, int64_t run, const struct suite *suite,
                               struct statement *stored, struct error *error)
{
    size_t i = 0;
    bool row;
    TRY(statement_bind(stored, VALUES(value_integer(run)), error));
    TRY(statement_step(stored, &row, error));
    while (row || i < suite->count) {
        const struct said *said = i < suite->count ? &suite->said[i] : NULL;
        int order = said == NULL ? 1 : !row ? -1 : strcmp(said->key, statement_text(stored, 0));
        if (order != 0 || !same_value(stored, said))
            verify_fault(v, run, "settings", order <= 0 ? said->key : statement_text(stored, 0),
                         order <= 0 ? said->value : "none, as in suite_text",
                         order >= 0 ? statement_text(stored, 1) : "none");
        i += order <= 0;
        if (order >= 0)
            TRY(statement_step(stored, &row, error));
    }
    return OK;
}

/* A run with the suite that was read last, or another one. */
struct suites {
    const struct verifying *v;
    struct statement *stored;
    struct suite last;
    char *text;
};

/* A row of: run, suite_text, settings_hash. */
static status take_run(void *context, struct statement *row, struct error *error)
{
    struct suites *suites = context;
    int64_t run = statement_integer(row, 0);
    const char *text = statement_text(row, 1);
    if (suites->text == NULL || strcmp(suites->text, text) != 0) {
        suite_free(&suites->last);
        free(suites->text);
        suites->text = xstrdup(text);
        suite_read(suites->v, &suites->last, text);
    }
    if (strcmp(suites->last.hash, statement_text(row, 2)) != 0)
        verify_fault(suites->v, run, "identity", "settings_hash", suites->last.hash, statement_text(row, 2));
    return compare_settings(suites->v, run, &suites->last, suites->stored, error);
}

status verify_suites(const struct verifying *v, struct error *error)
{
    struct suites suites = {.v = v};
    struct database *database = v->store->database;
    if (v->verification->incidental == NULL)
        return OK;
    TRY(statement_open(&suites.stored, database, "SELECT key, value FROM settings WHERE run = ?1 ORDER BY key", error));
    status result =
        database_each(database,
                      "SELECT run, suite_text, settings_hash FROM looked_at JOIN runs USING (run) WHERE EXISTS "
                      "(SELECT 1 FROM settings WHERE settings.run = runs.run) ORDER BY run",
                      NO_VALUES, take_run, &suites, error);
    suite_free(&suites.last);
    free(suites.text);
    statement_close(suites.stored);
    return result;
}
