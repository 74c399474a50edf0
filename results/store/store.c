/* Opens a results database: recognises or creates its schema, renews its views. The list of tables, and the writing of their
 * rows; results per image, which are more than their columns. */
#include "results/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/threads.h"
#include "results/metrics.h"
#include "results/store/store_internal.h"

#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
#define AFTER_ITERATION "(task, iteration) > (?2, ?3)"
#define AFTER_TASK "after_task >= ?2"
#define OF_TASK "task >= ?2" /* written when the task ends */

const struct store_table store_tables[STORE_TABLES] = {
    {"runs", .local = true, .computed = "started", .by = NOW},
    {"settings", .local = true},
    {"inputs", .local = true},
    {"sessions", .local = true, .computed = "started",
     .by = "max(" NOW ", (SELECT started FROM runs WHERE run = :run))"},
    {"tasks", .again = AGAIN_IS_SAME, .changed = "put the data back, or start anew in another database"},
    {"operations", .local = true, .again = AGAIN_REPLACES},
    {"task_classes", .optional = true, .again = AGAIN_IS_SAME,
     .changed = "names changed or the dataset was cut in another way; continue with the original machine, data and "
                "model, or start anew in another database"},
    {"task_similarities", .again = AGAIN_KEEPS},
    {"evaluations", .after = AFTER_TASK},
    {"per_image", .after = AFTER_TASK},
    {"test_labels", .optional = true, .again = AGAIN_IS_SAME,
     .changed = "restore the data, or start anew in another database"},
    {"class_experts", .after = AFTER_TASK, .optional = true},
    {"patch_experts", .after = AFTER_TASK, .optional = true},
    {"expert_counts", .after = OF_TASK},
    {"expert_sketches", .after = AFTER_ITERATION, .optional = true},
    {"expert_events", .after = AFTER_ITERATION " OR (task = ?2 AND event = 'freeze')", .computed = "position",
     .by = "(SELECT count(*) FROM expert_events WHERE (run, task, iteration, encoder, block) = "
           "(:run, :task, :iteration, :encoder, :block))"},
    {"merge_effects", .after = "(task, known) > (?2, ?3)", .optional = true},
    {"router_choices", .after = AFTER_TASK},
    {"selector_thresholds", .after = OF_TASK},
    {"trials", .local = true, .computed = "trial",
     .by =
         "(SELECT coalesce(max(trial) FILTER (WHERE settings = :settings), max(trial) + 1, 1) FROM trials WHERE run = "
         ":run)"},
    {"steps", .after = AFTER_ITERATION},
    {"skipped_steps", .after = OF_TASK},
    {"timings", .after = AFTER_ITERATION, .local = true},
    {"resources", .after = OF_TASK, .local = true, .again = AGAIN_REPLACES},
    {"artifacts", .after = "task >= max(?2, 0)", .local = true, .again = AGAIN_REPLACES},
};

/* --- Writing rows --- */

static void add_names(struct text *sql, const struct named_value *row, size_t count, const char *prefix)
{
    for (size_t i = 0; i < count; i++)
        text_add(sql, "%s%s\"%s\"", i ? ", " : "", prefix, row[i].name);
}

/* A row that is the same changes one row, another one none. */
static status open_insert(struct store *store, const struct store_table *table, const struct named_value *row,
                          size_t count, struct statement **insert, struct error *error)
{
    SCOPED(text_free) struct text sql = {0};
    const char *last = row[count - 1].name;
    text_add(&sql, "INSERT %sINTO %s (", table->again == AGAIN_REPLACES ? "OR REPLACE " : "", table->name);
    add_names(&sql, row, count, "");
    text_add(&sql, "%s%s) VALUES (", table->computed ? ", " : "", table->computed ? table->computed : "");
    for (size_t i = 0; i < count; i++)
        text_add(&sql, "%s:%s", i ? ", " : "", row[i].name);
    text_add(&sql, "%s%s)", table->by ? ", " : "", table->by ? table->by : "");
    if (table->again == AGAIN_KEEPS)
        text_add(&sql, " ON CONFLICT DO NOTHING");
    if (table->again == AGAIN_IS_SAME) {
        text_add(&sql, " ON CONFLICT DO UPDATE SET \"%s\" = \"%s\" WHERE (", last, last);
        add_names(&sql, row, count, "");
        text_add(&sql, ") IS (");
        add_names(&sql, row, count, "excluded.");
        text_add(&sql, ")");
    }
    return statement_open(insert, store->database, sql.data, error);
}

/* Numbers and texts say which row it is. */
static status refuse_change(const struct store *store, const struct store_table *table, const struct named_value *row,
                            size_t count, struct error *error)
{
    SCOPED(text_free) struct text words = {0};
    for (size_t i = 0; i < count; i++)
        if (row[i].value.kind == VALUE_INTEGER)
            text_add(&words, "%s%s %" PRId64, i ? ", " : "", row[i].name, row[i].value.integer);
        else if (row[i].value.kind == VALUE_TEXT)
            text_add(&words, ", %s \"%.60s\"", row[i].name, (const char *)row[i].value.bytes.data);
    error_set(error, ERROR_ARGUMENT, "%s: %s was recorded with other data than it now has (%s): %s",
              database_path(store->database), table->name, words.data, table->changed);
    return ERROR_ARGUMENT;
}

/* The statement of the row before is used again if it takes the same names. */
static status write_row(struct store *store, size_t table, const struct named_value *row, size_t count,
                        struct error *error)
{
    struct statement **insert = &store->insert[table];
    if (*insert == NULL || !statement_takes(*insert, row, count)) {
        statement_close(*insert);
        TRY(open_insert(store, &store_tables[table], row, count, insert, error));
    }
    struct value values[TABLE_COLUMNS];
    for (size_t i = 0; i < count; i++)
        values[i] = row[i].value;
    TRY(statement_run(*insert, values, count, error));
    return store_tables[table].again == AGAIN_IS_SAME && database_changes(store->database) != 1
               ? refuse_change(store, &store_tables[table], row, count, error)
               : OK;
}

/* --- Rows that wait ---
 * Hours may lie between two commits of a run, and a transaction open for so long would keep others from writing. */

struct pending_row {
    size_t table, count;
    struct named_value values[]; /* [count]; names, texts and blobs lie behind them */
};

static bool has_bytes(const struct value *value)
{
    return (value->kind == VALUE_TEXT || value->kind == VALUE_BLOB) && value->bytes.size > 0;
}

/* A copy of bytes and a NUL behind them, in a block that has room. */
static const char *put(char **behind, const void *bytes, size_t size)
{
    char *copy = memcpy(*behind, bytes, size);
    *behind += size + 1;
    return copy;
}

static void keep_row(struct store *store, size_t table, const struct named_value *row, size_t count)
{
    size_t size = sizeof(struct pending_row) + count * sizeof *row;
    for (size_t i = 0; i < count; i++)
        size += strlen(row[i].name) + 1 + (has_bytes(&row[i].value) ? row[i].value.bytes.size + 1 : 0);
    struct pending_row *kept = xcalloc(1, size);
    char *behind = (char *)&kept->values[count];
    *kept = (struct pending_row){.table = table, .count = count};
    for (size_t i = 0; i < count; i++) {
        kept->values[i] = row[i];
        kept->values[i].name = put(&behind, row[i].name, strlen(row[i].name));
        if (has_bytes(&row[i].value))
            kept->values[i].value.bytes.data = put(&behind, row[i].value.bytes.data, row[i].value.bytes.size);
    }
    GROW(store->pending, store->pending_count);
    store->pending[store->pending_count++] = kept;
}

status pending_write(struct store *store, struct error *error)
{
    for (size_t i = 0; i < store->pending_count; i++) {
        const struct pending_row *row = store->pending[i];
        TRY(write_row(store, row->table, row->values, row->count, error));
    }
    return OK;
}

void pending_clear(struct store *store)
{
    for (size_t i = 0; i < store->pending_count; i++)
        free(store->pending[i]);
    free(store->pending);
    store->pending = NULL;
    store->pending_count = 0;
}

status store_add(struct store *store, int64_t run, const char *table, const struct named_value *row, size_t count,
                 struct error *error)
{
    struct named_value values[TABLE_COLUMNS];
    size_t number = 0;
    while (number < STORE_TABLES && strcmp(store_tables[number].name, table) != 0)
        number++;
    if (number == STORE_TABLES || count >= TABLE_COLUMNS)
        return error_set(error, ERROR_ARGUMENT, "run %" PRId64 ": there is no table %s of %zu columns", run, table,
                         count);
    values[0] = (struct named_value){"run", value_count(run)};
    memcpy(values + 1, row, count * sizeof *row);
    if (store->collects) {
        keep_row(store, number, values, count + 1);
        return OK;
    }
    store->rows.known = false; /* callers that write single rows check them themselves */
    if (write_row(store, number, values, count + 1, error) != OK)
        return error_context(error, "run %" PRId64, run);
    return OK;
}

/* --- Results per image --- */

static status add_per_image(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    const struct per_image *kept = row->per_image;
    SCOPED(bytes_free) struct bytes packed = {0};
    if ((int64_t)kept->images != row->images || (int64_t)per_image_correct(kept) != row->correct)
        return error_set(error, ERROR_ARGUMENT,
                         "run %" PRId64 ": the per-image results hold %zu right of %zu images, the evaluation %" PRId64
                         " of %" PRId64,
                         run, per_image_correct(kept), kept->images, row->correct, row->images);
    TRY(per_image_pack(kept, &packed, error));
    return store_add(store, run, "per_image",
                     NAMED({"task", value_integer(row->task)}, {"after_task", value_integer(row->after_task)},
                           {"kind", value_text(per_image_name(kept->kind))},
                           {"data", value_blob(packed.data, packed.size)}),
                     error);
}

status store_add_evaluation(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    bool began = false;
    if (!store->collects)
        TRY(database_begin(store->database, &began, error));
    status result = store_add(store, run, "evaluations",
                              NAMED({"task", value_integer(row->task)}, {"after_task", value_integer(row->after_task)},
                                    {"correct", value_integer(row->correct)}, {"images", value_integer(row->images)}),
                              error);
    if (result == OK && row->per_image && row->per_image->kind != PER_IMAGE_NONE)
        result = add_per_image(store, run, row, error);
    return database_end(store->database, began, result, error);
}

status store_read_per_image(struct store *store, int64_t run, int64_t after_task, int64_t task,
                            struct per_image *per_image, struct error *error)
{
    SCOPED(statement_close_at) struct statement *row = NULL;
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    TRY(database_row(store->database,
                     "SELECT images, kind, data FROM evaluations JOIN per_image USING (run, task, after_task) "
                     "WHERE run = ?1 AND after_task = ?2 AND task = ?3",
                     VALUES(value_integer(run), value_integer(after_task), value_integer(task)), &row, error));
    if (!row)
        return OK;
    struct value data = statement_value(row, 2);
    int64_t images = data.kind == VALUE_BLOB ? statement_integer(row, 0) : 0;
    return per_image_unpack(per_image,
                            strcmp(statement_text(row, 1), "predictions") == 0 ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS,
                            images > 0 ? (size_t)images : 0, data.bytes.data, images > 0 ? data.bytes.size : 0, error);
}

/* --- The schema --- */

#define SCHEMA_APPLICATION 0x4d54494c /* SQLite's application_id: "MTIL" */
#define SCHEMA_LOCK 0                 /* runs count from 1 */
#define VIEW_START "\nCREATE VIEW "

enum { SCHEMA_VERSION = 1 }; /* SQLite's user_version */

EMBEDDED_FILES(schema_files); /* the tables, then the views */

/* *empty: the file has nothing yet. Refuses another program's database, and another schema. */
static status recognise(struct database *database, bool *empty, struct error *error)
{
    /* One state, though another process may be creating the schema. */
    SCOPED(statement_close_at) struct statement *row = NULL;
    TRY(database_row(database,
                     "SELECT application_id, user_version, count(name), max(name) FILTER (WHERE type = 'table') FROM "
                     "pragma_application_id, pragma_user_version LEFT JOIN sqlite_schema",
                     NO_VALUES, &row, error));
    const char *path = database_path(database);
    int64_t application = statement_integer(row, 0), version = statement_integer(row, 1);
    *empty = application == 0 && version == 0 && statement_integer(row, 2) == 0;
    if (!*empty && application != SCHEMA_APPLICATION)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected a results database (application id %#x), found one of another program "
                         "(application id %#" PRIx64 ", table \"%.60s\"); name another file",
                         path, SCHEMA_APPLICATION, application, statement_text(row, 3));
    if (!*empty && version != SCHEMA_VERSION)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected schema %d, found %" PRId64
                         ": a newer version of mtil wrote it, or another program changed "
                         "PRAGMA user_version; use that version, set it back, or take the file from a backup",
                         path, SCHEMA_VERSION, version);
    return OK;
}

/* The tables of an empty file, in one transaction with its version. */
static status create_tables(struct database *database, struct error *error)
{
    int64_t version;
    SCOPED(text_free) struct text script = {0};
    TRY(database_integer(database, "PRAGMA user_version", &version, error));
    if (version != 0)
        return OK;
    text_add(&script, "%s; PRAGMA application_id = %d; PRAGMA user_version = %d", (const char *)schema_files[0].data,
             SCHEMA_APPLICATION, SCHEMA_VERSION);
    return database_execute(database, script.data, error);
}

/* With drops the views of the file are replaced, else they are hidden on this connection. */
static void write_views(struct text *script, const char *at, bool drops)
{
    const char *next;
    for (; (next = strstr(at, VIEW_START)); at = next + strlen(VIEW_START)) {
        const char *name = next + strlen(VIEW_START);
        text_add(script, "%.*s\n", (int)(next - at), at);
        if (drops)
            text_add(script, "DROP VIEW IF EXISTS \"%.*s\";\n", (int)strcspn(name, " "), name);
        text_add(script, "CREATE %s ", drops ? "VIEW" : "TEMP VIEW IF NOT EXISTS");
    }
    text_add(script, "%s", at);
}

/* A table that came after the file was written: it is created there, or empty on this connection. */
static status add_table(struct database *database, const char *name, bool creates, struct text *script,
                        struct error *error)
{
    int64_t there;
    char start[80];
    TRY(database_ask(database, "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1",
                     VALUES(value_text(name)), &there, error));
    snprintf(start, sizeof start, "CREATE TABLE %s (", name);
    const char *made = strstr((const char *)schema_files[0].data, start);
    if (there == 0 && made != NULL)
        text_add(script, "CREATE %s IF NOT EXISTS %.*s;\n", creates ? "TABLE" : "TEMP TABLE",
                 (int)(strstr(made, ";\n") - made - (int)strlen("CREATE TABLE ")), made + strlen("CREATE TABLE "));
    return OK;
}

/* This program's views in place of the database's or, without replace, before them on this connection. always: also where they
 * are the same. */
static status use_views(struct database *database, bool replace, bool always, struct error *error)
{
    char digest[DIGEST_SIZE];
    int64_t same;
    SCOPED(text_free) struct text script = {0}, views = {0};
    metrics_expand(&views, (const char *)schema_files[1].data, NULL);
    digest_text(views.data, digest);
    TRY(database_ask(database, "SELECT value = ?1 FROM properties WHERE name = 'views'", VALUES(value_text(digest)),
                     &same, error));
    if (same && !always)
        return OK;
    for (size_t i = 0; i < STORE_TABLES; i++)
        TRY(add_table(database, store_tables[i].name, replace, &script, error));
    write_views(&script, views.data, replace);
    if (replace)
        text_add(&script, ";\nINSERT OR REPLACE INTO properties VALUES ('views', '%s')", digest);
    return database_execute(database, script.data, error);
}

status store_hide_views(struct store *store, struct error *error)
{
    return use_views(store->database, false, true, error);
}

static status create_schema(struct store *store, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = create_tables(store->database, error);
    NEXT(result, use_views(store->database, true, false, error));
    return database_end(store->database, began, result, error);
}

/* --- Opening --- */

/* Changing the journal mode does not wait for others, so processes that open a new file take turns. */
static status prepare_to_write(struct store *store, const struct stop *stop, struct error *error)
{
    struct database *database = store->database;
    TRY(lock_file_open(&store->locks, database_full_path(database), true, error));
    store->locks.stop = stop;
    bool taken;
    TRY(lock_take(&store->locks, SCHEMA_LOCK, DATABASE_PATIENCE, &taken, error));
    if (!taken && stop_requested(stop))
        return error_set(error, ERROR_STOPPED, "%s: stopped while another program was opening it",
                         database_path(database));
    if (!taken)
        return error_set(error, ERROR_BUSY,
                         "%s: another program has been opening it for %g seconds; end it or try again",
                         database_path(database), DATABASE_PATIENCE / 1000.0);
    status result = database_execute(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", error);
    NEXT(result, create_schema(store, error));
    lock_give(&store->locks, SCHEMA_LOCK);
    return result;
}

static status open_schema(struct store *store, enum store_mode mode, const struct stop *stop, struct error *error)
{
    bool empty;
    if (mode == STORE_MEMORY)
        return create_schema(store, error);
    TRY(recognise(store->database, &empty, error));
    if (mode == STORE_WRITE)
        return prepare_to_write(store, stop, error);
    if (empty)
        return error_set(error, ERROR_FORMAT, "%s: expected schema %d, found an empty file; `mtil run` fills it",
                         store_path(store), SCHEMA_VERSION);
    return use_views(store->database, false, false, error);
}

status store_open_stoppable(struct store **opened, const char *path, enum store_mode mode, const struct stop *stop,
                            struct error *error)
{
    SCOPED(store_close_at) struct store *store = xcalloc(1, sizeof *store);
    *opened = NULL;
    store->locks.descriptor = -1;
    TRY(database_open(&store->database, path, mode, stop, error));
    TRY(open_schema(store, mode, stop, error));
    *opened = TAKE(store);
    return OK;
}

status store_open(struct store **opened, const char *path, enum store_mode mode, struct error *error)
{
    return store_open_stoppable(opened, path, mode, NULL, error);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < STORE_TABLES; i++)
        statement_close(store->insert[i]);
    pending_clear(store);
    if (store->database)
        database_rollback(store->database);
    database_close(store->database);
    lock_file_close(&store->locks);
    free(store);
}

const char *store_path(const struct store *store)
{
    return database_path(store->database);
}

struct database *store_database(struct store *store)
{
    return store->database;
}
