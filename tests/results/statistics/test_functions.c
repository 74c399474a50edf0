/* The functions of SQL against functions.txt, which says where its numbers come from. More samples: replay_stats. */
#include "tests/results/check.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/statistics/functions.h"

/* "n/a", "error" or a number with the tolerance that stands before an expression. */
static void check_line(sqlite3 *connection, const char *line)
{
    char expected[32], tolerance[32], sql[1024];
    sqlite3_stmt *statement;
    int begin = 0;
    assert_int_equal(sscanf(line, "%31s %31s %n", expected, tolerance, &begin), 2);
    snprintf(sql, sizeof sql, "SELECT %s", line + begin);
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", line, sqlite3_errmsg(connection));
    int code = sqlite3_step(statement);
    double found = sqlite3_column_double(statement, 0), number = atof(expected);
    double share = atof(*tolerance == '~' ? tolerance + 1 : tolerance) * (*tolerance == '~' ? 1 : fabs(number));
    int good =
        strcmp(expected, "error") == 0 ? code == SQLITE_ERROR
        : strcmp(expected, "n/a") == 0
            ? code == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_NULL
            : code == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL && fabs(found - number) <= share;
    if (!good)
        fail_msg("found %.17g (%s): %s", found, sqlite3_errmsg(connection), line);
    sqlite3_finalize(statement);
}

static void every_line_of_the_file_holds(void **state)
{
    (void)state;
    sqlite3 *connection;
    char line[1024];
    FILE *file = fopen(FUNCTIONS, "r");
    assert_non_null(file);
    assert_int_equal(sqlite3_open(":memory:", &connection), SQLITE_OK);
    assert_int_equal(functions_register(connection), SQLITE_OK);
    for (size_t count = 0; fgets(line, sizeof line, file) || (assert_true(count > 80), 0); count++) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "CREATE", 6) == 0)
            assert_int_equal(sqlite3_exec(connection, line, NULL, NULL, NULL), SQLITE_OK);
        else if (*line && *line != '#')
            check_line(connection, line);
    }
    fclose(file);
    sqlite3_close(connection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_line_of_the_file_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
