/* Results databases in which values are not what this program writes: of every four bytes of input, the first three
 * choose a column, one of its values, and what stands in its place from then on. Whatever that is, a database is
 * queried, watched, compared, verified, exported and joined, or refused. */
#include "tests/fuzz/target.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "results/compare.h"
#include "results/export/files.h"
#include "results/query/question.h"
#include "results/store/join.h"
#include "results/verify.h"
#include "tests/fuzz/input.h"
#include "tests/results/compare_sample.h"

enum { COLUMNS_MOST = 256, CHANGES_MOST = 8, CHANGE = 4 };

static const char *const values[] = {"0",
                                     "-1",
                                     "1",
                                     "2",
                                     "2147483647",
                                     "4294967296",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "0.5",
                                     "9e999",
                                     "-1e308",
                                     "NULL",
                                     "''",
                                     "'x'",
                                     "'%s%n\xff\n\"'",
                                     "'merge: [a, {'",
                                     "'2026-02-31T25:61:61Z'",
                                     "hex(zeroblob(5000))",
                                     "'running'",
                                     "x''",
                                     "x'ff00'",
                                     "zeroblob(25)",
                                     "zeroblob(100000)"};
enum { VALUES_COUNT = sizeof values / sizeof *values };

static struct bytes sound; /* a database as it should be */
static struct column {
    char table[64], name[64];
} columns[COLUMNS_MOST];
static size_t column_count;

static char *path_of(const char *name)
{
    return path_format("%s/%s", input_folder(), name);
}

static void must(int right)
{
    if (!right)
        abort();
}

static void list_columns(const char *path)
{
    static const char sql[] = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c "
                              "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY 1, 2";
    sqlite3 *database;
    sqlite3_stmt *statement;
    must(sqlite3_open(path, &database) == SQLITE_OK &&
         sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK);
    while (column_count < COLUMNS_MOST && sqlite3_step(statement) == SQLITE_ROW) {
        struct column *column = &columns[column_count++];
        snprintf(column->table, sizeof column->table, "%s", (const char *)sqlite3_column_text(statement, 0));
        snprintf(column->name, sizeof column->name, "%s", (const char *)sqlite3_column_text(statement, 1));
    }
    must(sqlite3_finalize(statement) == SQLITE_OK && sqlite3_close(database) == SQLITE_OK);
}

static void make_template(void)
{
    static const char *const policies[] = {"none", "most_used"};
    struct store *store;
    struct error error;
    char *path = path_of("template.db");
    must(store_open(&store, path, STORE_WRITE, &error) == OK);
    for (int i = 0; i < 4; i++)
        compare_sample_add(store, &(struct compare_sample){.policy = policies[i % 2],
                                                           .seed = 1 + i / 2,
                                                           .every = 50,
                                                           .lift = i % 2,
                                                           .kept = PER_IMAGE_PREDICTIONS});
    store_close(store);
    must(file_read(path, FILE_LIMIT, &sound, &error) == OK);
    list_columns(path);
    free(path);
}

/* What a constraint refuses is left as it was. */
static void change(sqlite3 *database, const uint8_t bytes[CHANGE])
{
    char sql[512];
    const struct column *c = &columns[bytes[0] % column_count];
    snprintf(sql, sizeof sql,
             "UPDATE OR IGNORE \"%s\" SET \"%s\" = %s WHERE \"%s\" IS (SELECT \"%s\" FROM \"%s\" LIMIT 1 OFFSET %d)",
             c->table, c->name, values[bytes[2] % VALUES_COUNT], c->name, c->name, c->table, bytes[1]);
    sqlite3_exec(database, sql, NULL, NULL, NULL);
}

static void write_database(const char *path, const uint8_t *data, size_t size)
{
    sqlite3 *database;
    input_folder_write("results.db", sound.data, sound.size);
    must(sqlite3_open(path, &database) == SQLITE_OK);
    sqlite3_exec(database, "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    for (size_t i = 0; i < CHANGES_MOST && size >= CHANGE; i++, data += CHANGE, size -= CHANGE)
        change(database, data);
    sqlite3_close(database);
}

static void query_all(struct store *store)
{
    struct error error;
    struct query_filter everything = {0};
    struct questions questions;
    must(questions_open(&questions, NULL, &error) == OK);
    for (size_t i = 0; i < questions.count; i++) {
        struct table table = {0};
        if (strcmp(questions.question[i].name, "paper-table") ==
            0) /* the long one; paper-table-spread has all its rows */
            continue;
        query_ask(store, &questions, &questions.question[i], &everything, &table, NULL, &error);
        table_free(&table);
    }
    questions_close(&questions);
    for (int64_t run = 0; run < 3; run++) {
        struct table table = {0};
        query_named(store, "end-of-run", &(struct query_filter){.run = run}, &table, &error);
        table_free(&table);
    }
}

static void compare_all(struct store *store)
{
    static const char *const by[] = {"policy"}, *const metrics[] = {"transfer", "last"};
    struct comparison_request request = {.by = by,
                                         .by_count = 1,
                                         .metrics = metrics,
                                         .metric_count = 2,
                                         .detail = COMPARE_IMAGES,
                                         .detect = 1,
                                         .draws = 8};
    struct comparison comparison;
    struct error error;
    if (compare_runs(store, &request, &comparison, &error) != OK)
        return;
    for (int part = COMPARE_CONTEXTS; part <= COMPARE_NOTES; part++) {
        struct table table = {0};
        compare_table(&comparison, (enum comparison_part)part, &table, &error);
        table_free(&table);
    }
    comparison_free(&comparison);
}

/* On a connection of its own: it finds the tables that others leave there. Nothing keeps it from the checks of a sound database. */
static void verify_all(const char *path, bool is_sound)
{
    struct store *store;
    struct verification verification = {0};
    struct error error;
    if (store_open(&store, path, STORE_READ, &error) != OK)
        return;
    status result = verify_database(store, &verification, &error);
    must(!is_sound || (result == OK && verification.checked.count > 0));
    verification_free(&verification);
    store_close(store);
}

static void join(const char *path)
{
    char *output = path_of("joined.db"), *right = path_of("template.db");
    struct join_settings settings = {0};
    struct join_counts counts[2];
    struct error error;
    unlink(output);
    join_databases(output, (const char *const[]){path, right}, 2, &settings, counts, &error);
    free(output);
    free(right);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct store *store;
    struct export_counts counts;
    struct error error;
    if (sound.data == NULL)
        make_template();
    char *path = path_of("results.db"), *folder = path_of("csv");
    write_database(path, data, size);
    if (store_open(&store, path, STORE_READ, &error) == OK) {
        query_all(store);
        compare_all(store);
        export_csv(store, &(struct query_filter){0}, folder, &counts, &error);
        store_close(store);
        verify_all(path, size == 0);
    }
    if (size > 0 && data[size - 1] % 4 == 0)
        join(path);
    free(path);
    free(folder);
    return 0;
}
