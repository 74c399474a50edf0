/* Comparisons: the cases of compare.txt, whose head says how they are written. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "results/compare.h"
#include "results/store/store_internal.h"
#include "tests/results/compare_sample.h"
#include "tests/results/sample.h"

enum { PARTS = COMPARE_NOTES + 1, WORDS_MOST = 16 };

static const char *const part_names[PARTS] = {"contexts", "groups",      "pairs", "details",
                                              "images",   "discordance", "words", "notes"};

struct fixture {
    char *path;
    struct store *store;
    struct comparison comparison;
    struct error error; /* of the last question */
    struct table part[PARTS];
    struct text csv[PARTS];
};

static void forget(struct fixture *f)
{
    comparison_free(&f->comparison);
    for (size_t i = 0; i < PARTS; i++) {
        table_free(&f->part[i]);
        text_free(&f->csv[i]);
    }
}

static void fixture_close(struct fixture *f)
{
    forget(f);
    store_close(f->store);
    if (f->path)
        sample_remove(f->path);
    *f = (struct fixture){0};
}

/* Cuts a line into words, and a word into a list at commas. */
static size_t cut(char *line, const char *marks, const char **words)
{
    size_t count = 0;
    char *rest;
    for (char *word = strtok_r(line, marks, &rest); word; word = strtok_r(NULL, marks, &rest)) {
        assert_true(count < WORDS_MOST);
        words[count++] = word;
    }
    return count;
}

/* The value behind "key="; NULL: there is none. */
static char *find(const char *const *words, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(words[i], key, strlen(key)) == 0 && words[i][strlen(key)] == '=')
            return (char *)words[i] + strlen(key) + 1;
    return NULL;
}

static int64_t integer(const char *const *words, size_t count, const char *key)
{
    const char *value = find(words, count, key);
    return value ? atoll(value) : 0;
}

/* "merge.decay:0.5" as lines of a suite; merge is the section that the sample ends with. */
static void make_own(const char *own, char text[static 100])
{
    const char *key = strchr(own, '.') + 1, *value = strchr(key, ':') + 1;
    int section = (int)(key - own) - 1, size = (int)(value - key);
    if (strncmp(own, "merge.", 6) == 0)
        snprintf(text, 100, "  %.*s %s\n", size, key, value);
    else
        snprintf(text, 100, "%.*s:\n  %.*s %s\n", section, own, size, key, value);
}

/* POLICY FIRST LAST key=value…: runs of these seeds. */
static void add(struct fixture *f, char *line)
{
    const char *words[WORDS_MOST];
    size_t count = cut(line, " ", words);
    const char *kept = find(words, count, "kept"), *own = find(words, count, "own");
    struct compare_sample sample = {.policy = words[0],
                                    .lift = integer(words, count, "lift"),
                                    .noise = integer(words, count, "noise"),
                                    .threads = integer(words, count, "threads"),
                                    .more_images = integer(words, count, "more"),
                                    .stopped = integer(words, count, "stopped"),
                                    .holes = integer(words, count, "holes"),
                                    .untrained = integer(words, count, "untrained"),
                                    .version = find(words, count, "version"),
                                    .weights = find(words, count, "weights"),
                                    .training = find(words, count, "training"),
                                    .tests = find(words, count, "tests"),
                                    .path = find(words, count, "path")};
    char text[100] = "";
    if (own)
        make_own(own, text);
    sample.own = text;
    sample.kept = !kept ? PER_IMAGE_NONE : *kept == 'b' ? PER_IMAGE_BITS : PER_IMAGE_PREDICTIONS;
    const char *every = find(words, count, "every"), *last = every ? strstr(every, "..") : NULL;
    sample.every = every ? atoll(every) : 50;
    do
        for (sample.seed = atoll(words[1]); sample.seed <= atoll(words[2]); sample.seed++)
            compare_sample_add(f->store, &sample);
    while (last && ++sample.every <= atoll(last + 2));
}

/* Every run again in contexts 2 … count, which differ in merge.every, with up to 50 images more or fewer right. */
static void copy(struct fixture *f, const char *count)
{
    static const char *const tables[] = {"runs", "settings", "tasks", "evaluations"};
    struct database *database = f->store->database;
    assert_ok(database_run(database,
                           "CREATE TEMP TABLE copied AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n "
                           "WHERE i < CAST(?1 AS INTEGER)) SELECT i FROM n",
                           VALUES(value_text(count)), &error));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct statement *columns;
        struct text sql = {0};
        bool row;
        assert_ok(statement_open(
            &columns, database,
            "SELECT group_concat(CASE name WHEN 'run' THEN 'run + 1000 * i' WHEN 'suite_hash' THEN 'suite_hash || i' "
            "WHEN 'value' THEN 'iif(key = ''merge.every'', i, value)' WHEN 'correct' THEN 'correct + abs(run * 7919 + "
            "i * "
            "104729 + task * 1299709 + after_task * 15485863) % 101 - 50' ELSE '\"' || name || '\"' END) "
            "FROM pragma_table_info(?1)",
            &error));
        assert_ok(statement_bind(columns, VALUES(value_text(tables[i])), &error));
        assert_ok(statement_step(columns, &row, &error));
        text_add(&sql, "INSERT INTO %s SELECT %s FROM copied CROSS JOIN %s", tables[i], statement_text(columns, 0),
                 tables[i]);
        statement_close(columns);
        assert_ok(database_execute(database, sql.data, &error));
        text_free(&sql);
    }
}

/* A path is incidental; what lies there is not. */
static bool says_how(const char *key, const char *value)
{
    return (strncmp(key, "run.", 4) == 0 && strcmp(value, "99") != 0) || strcmp(key, "model.weights") == 0;
}

static void read_parts(struct fixture *f)
{
    for (unsigned i = 0; i < PARTS; i++) {
        table_free(&f->part[i]);
        text_free(&f->csv[i]);
        assert_ok(compare_table(&f->comparison, i, &f->part[i], &error));
        assert_ok(table_render(&f->part[i], TABLE_CSV, false, &f->csv[i], &error));
    }
}

/* key=value…: as the options of mtil compare. */
static void ask(struct fixture *f, char *line)
{
    char policy[] = "policy", three[] = "transfer,average,last";
    const char *words[WORDS_MOST], *by[WORDS_MOST], *metrics[WORDS_MOST], *only[WORDS_MOST];
    size_t count = cut(line, " ", words);
    const char *detail = find(words, count, "detail"), *detect = find(words, count, "detect");
    char *given_by = find(words, count, "by"), *given = find(words, count, "metric"),
         *groups = find(words, count, "only"), *factors = find(words, count, "factors"),
         *margin = find(words, count, "equivalence");
    struct comparison_request request = {.by = by,
                                         .by_count = cut(factors    ? factors
                                                         : given_by ? given_by
                                                                    : policy,
                                                         ",", by),
                                         .metrics = metrics,
                                         .metric_count = cut(given ? given : three, ",", metrics),
                                         .baseline = find(words, count, "baseline"),
                                         .only = only,
                                         .only_count = groups ? cut(groups, ",", only) : 0,
                                         .detail = !detail          ? COMPARE_MEANS
                                                   : *detail == 'i' ? COMPARE_IMAGES
                                                                    : COMPARE_DATASETS,
                                         .factors = factors != NULL,
                                         .primary = find(words, count, "primary"),
                                         .unpaired = find(words, count, "unpaired") != NULL,
                                         .equivalence = margin ? atof(margin) : 0,
                                         .detect = detect ? atof(detect) : 0,
                                         .seed = (uint64_t)integer(words, count, "draws"),
                                         .filter = {.dataset = find(words, count, "dataset"),
                                                    .policy = find(words, count, "policy"),
                                                    .status = find(words, count, "status"),
                                                    .seed = find(words, count, "seed"),
                                                    .incidental = says_how}};
    forget(f);
    f->error.message[0] = 0;
    if (compare_runs(f->store, &request, &f->comparison, &f->error) == OK)
        read_parts(f);
}

/* ROW column=number…: each to a part in 10^9; n/a: an empty cell. */
static void check_numbers(const struct table *table, char *line)
{
    const char *words[WORDS_MOST];
    size_t count = cut(line, " ", words), row = (size_t)atoll(words[0]);
    assert_true(row < table_rows(table));
    for (size_t i = 1; i < count; i++) {
        size_t column = 0, size = strcspn(words[i], "=");
        while (column < table->columns && (strlen(table->column[column].title) != size ||
                                           strncmp(table->column[column].title, words[i], size) != 0))
            column++;
        if (column == table->columns)
            fail_msg("there is no column %s", words[i]);
        const struct table_cell *cell = table_cell_at(table, row, column);
        double found = cell->kind == CELL_INTEGER ? (double)cell->integer
                       : cell->kind == CELL_REAL  ? cell->real
                                                  : (double)NAN;
        const char *expected = words[i] + size + 1;
        bool good =
            strcmp(expected, "n/a") == 0 ? isnan(found) : fabs(found - atof(expected)) <= 1e-9 * fabs(atof(expected));
        if (!good)
            fail_msg("found %.17g in row %zu, expected %s", found, row, words[i]);
    }
}

/* PART has WORDS, PART lacks WORDS, PART rows N, PART row ROW column=number… */
static void check(struct fixture *f, const char *part, const char *what, char *rest)
{
    size_t i = 0;
    while (i < PARTS && strcmp(part_names[i], part) != 0)
        i++;
    if (i == PARTS || f->error.message[0])
        fail_msg("%s %s %s: %s", part, what, rest, f->error.message);
    bool has = f->csv[i].data && strstr(f->csv[i].data, rest);
    if (strcmp(what, "row") == 0)
        check_numbers(&f->part[i], rest);
    else if (strcmp(what, "rows") == 0 ? table_rows(&f->part[i]) != (size_t)atoll(rest) : has != (*what == 'h'))
        fail_msg("expected: %s %s %s\nfound:\n%s", part, what, rest, f->csv[i].data);
}

static void obey(struct fixture *f, char *line)
{
    size_t first = strcspn(line, " ");
    char *rest = line + first + (line[first] == ' ');
    line[first] = 0;
    if (strcmp(line, "test") == 0) {
        fixture_close(f);
        f->path = sample_path("results.sqlite");
        assert_ok(store_open(&f->store, f->path, STORE_WRITE, &error));
    } else if (strcmp(line, "add") == 0) {
        add(f, rest);
    } else if (strcmp(line, "copy") == 0) {
        copy(f, rest);
    } else if (strcmp(line, "ask") == 0) {
        ask(f, rest);
    } else if (strcmp(line, "refused") == 0) {
        if (!strstr(f->error.message, rest))
            fail_msg("expected \"%s\", found \"%s\"", rest, f->error.message);
    } else {
        size_t second = strcspn(rest, " ");
        assert_true(rest[second] == ' ');
        rest[second] = 0;
        check(f, line, rest, rest + second + 1);
    }
}

TEST(the_cases_hold)
{
    struct fixture f = {0};
    char line[600];
    FILE *file = fopen(CASES, "r");
    assert_non_null(file);
    for (size_t number = 1; fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "\n")] = 0;
        if (*line && *line != '#') {
            print_message("%zu: %s\n", number, line);
            obey(&f, line);
        }
    }
    fclose(file);
    fixture_close(&f);
}

/* What a table of numbers shows: the best cell of a block, where all metrics have the same better end. */
TEST(columns_of_means_know_their_better_end)
{
    struct fixture f = {.path = sample_path("results.sqlite")};
    assert_ok(store_open(&f.store, f.path, STORE_WRITE, &error));
    add(&f, (char[]){"none 1 2"});
    add(&f, (char[]){"most_used 1 2 lift=4"});
    static const struct {
        const char *metrics;
        enum table_best best;
        size_t blocks;
    } cases[] = {{"last,gain", BEST_HIGHEST, 1}, {"forgetting", BEST_LOWEST, 0}, {"last,forgetting", BEST_NONE, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[60];
        snprintf(line, sizeof line, "metric=%s", cases[i].metrics);
        ask(&f, line);
        assert_int_equal(f.part[COMPARE_GROUPS].column[3].best, cases[i].best);
        assert_int_equal(f.part[COMPARE_GROUPS].blocks, cases[i].blocks);
        assert_string_equal(f.part[COMPARE_GROUPS].column[0].title, "policy");
    }
    fixture_close(&f);
}
