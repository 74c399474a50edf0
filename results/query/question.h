/* Questions: each is one SQL file, whose first lines say how its answer is shown, or the same below a line "-- === NAME" in a
 * file of results/questions/, which travel in the program; a folder adds a reader's own.
 *
 *     -- title: accuracy on each task after each task, a row per trained task      (none: it only answers for others)
 *     -- column: run,"data seed" once     columns and how they are shown, any number of such lines:
 *                                         once (per block, for people), hidden, of-dataset (hidden unless one is
 *                                         asked for), optional (left out where it is empty), extra (left out where
 *                                         a terminal is too narrow, the last one first), left, right, a number: decimals
 *     -- column: * right 1                columns that come out of rows (wide)
 *     -- block: run                       a new block where this column changes
 *     -- wide: title value                neighbouring rows that differ in these two columns alone are one row
 *     -- mark: supported                  wide values of rows where this column is not 0 stand out, as those of a column
 *                                         "last" do where a column "last marked" is not 0
 *     -- empty: no run was merged         said where the chosen runs have no rows
 *     SELECT … FROM chosen …
 *
 * A line `-- each: TEXT` stands for one per metric (results/metrics.h). A line `-- include: NAME`, anywhere, stands for the part
 * NAME of results/query/parts.sql, its WITH included. Those of results/sections/ are questions that the page of a report shows;
 * they have more lines in their heads (results/report/README.md).
 *
 * Behind the answer other statements may follow, each behind a line of its own:
 *
 *     -- instead:    the name of the question that answers, or no row
 *     -- refuse:     a message, which is an error, or no row
 *     -- note:       a text that is shown with the answer, or no row
 *
 * `chosen` has the rows of `runs` that the filter chooses (but their suite_text), `asked` (place, key) the settings of --by.
 * Parameters: the texts of the filter by name, such as :dataset (null unless given), :baseline, and :published (0, 1). All
 * functions of METRICS.md are there, and tables of published numbers (results/published/).
 */
#pragma once

#include <stdbool.h>

#include "core/status.h"
#include "results/table.h"

struct question_column {
    char *name;
    struct table_column about; /* title NULL: the column's own */
    bool hidden, of_dataset, optional;
};

/* Lines of the head that are for a report's page. */
enum question_key {
    ON_PAGE, /* "-- section: 130 Router Choice of the router" */
    ON_DRAW,
    ON_NAME,
    ON_CHOICE,
    ON_CAPTION,
    ON_DETAILS,
    ON_X,
    ON_Y,
    ON_VALUE,
    ON_RANGE,
    ON_FRAMED,
    QUESTION_KEYS
};

struct question {
    char *name; /* of its file or part, without .sql */
    char *title;
    struct question_column *column;
    size_t columns;
    char *block, *wide_title, *wide_value, *mark; /* names of columns; NULL: none */
    char *empty;                                  /* why there may be no rows */
    char *answer, *instead, *refuse, *note;
    char *shown[QUESTION_KEYS]; /* by enum question_key: how a page shows it; NULL: the head does not say */
};

struct questions {
    struct question *question; /* by name within the program's own, then within the folder's */
    size_t count;
};

/* Reads the program's questions and, unless folder is NULL, its files *.sql; a file with the name of a question
 * replaces it. The caller closes, after a failure too. */
status questions_open(struct questions *questions, const char *folder, struct error *error);

/* The same of a report's page: those of results/sections/ and those of the folder that have a line "-- section". */
status questions_open_page(struct questions *questions, const char *folder, struct error *error);
void questions_close(struct questions *questions);
const struct question *questions_find(const struct questions *questions, const char *name); /* NULL: there is none */

/* Whether the question, or one that answers instead of it, reads a table or a parameter. */
bool question_uses(const struct questions *questions, const struct question *question, const char *name);

bool question_is_file(const char *word); /* it ends in .sql */

/* ERROR_ARGUMENT with the line for a head that is not as above. where: of messages. */
status question_parse(struct question *question, const char *name, const char *where, const char *text,
                      struct error *error);
status question_read(struct question *question, const char *path, struct error *error);
void question_free(struct question *question);

/* Whether the column is not in the table, because a line of the head shows its value or because it says how a row is
 * drawn. */
bool question_says(const struct question *question, const char *column);

/* How a column is shown that the head does not mention. */
struct table_column question_usual_column(const char *title);
