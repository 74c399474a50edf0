/* Answers about classes, from what is kept of each test image: accuracies class by class, and which class or which task's
 * classes images were taken for. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

enum { TASKS_LIMIT = 4096 }; /* the schema's */

/* The classes of all tasks of a run, one task after another. */
struct run_classes {
    int64_t run;
    bool joint; /* predictions are counted over tasks, not within the image's own */
    size_t tasks;
    size_t *first; /* [tasks + 1] */
    char **task;   /* [tasks] names */
    char **name;   /* [first[tasks]]; NULL: not stored */
};

/* The images of a task after a task: truth [n] and, if kind says so, what was predicted. */
struct answers {
    uint16_t *truth;
    size_t n;
    struct per_image images;
};

static status no_memory(const struct store *store, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
}

/* --- Reading --- */

static void free_classes(struct run_classes *c)
{
    for (size_t k = 0; c->task && k < c->tasks; k++)
        free(c->task[k]);
    for (size_t i = 0; c->name && c->first && i < c->first[c->tasks]; i++)
        free(c->name[i]);
    free(c->task);
    free(c->name);
    free(c->first);
    *c = (struct run_classes){0};
}

/* Calls take for the rows of sql, with ?1 the run, until it fails. */
static status each_row(struct store *store, struct run_classes *c, const char *sql,
                       bool (*take)(struct run_classes *c, struct statement *row), struct error *error)
{
    struct statement *rows;
    TRY(statement_open(&rows, store->database, sql, error));
    status result = statement_bind(rows, VALUES(value_integer(c->run)), error);
    for (bool row; result == OK && (result = statement_step(rows, &row, error)) == OK && row;)
        if (!take(c, rows))
            result = error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ": its tasks or their classes are damaged",
                               store_path(store), c->run);
    statement_close(rows);
    return result;
}

static bool take_task(struct run_classes *c, struct statement *row)
{
    size_t task = (size_t)statement_integer(row, 0), classes = (size_t)statement_integer(row, 2);
    if (task != c->tasks || task >= TASKS_LIMIT || classes > UINT16_MAX)
        return false;
    c->task[task] = strdup(statement_text(row, 1));
    c->first[task + 1] = c->first[task] + classes;
    c->tasks++;
    return c->task[task] != NULL;
}

static bool take_class(struct run_classes *c, struct statement *row)
{
    size_t task = (size_t)statement_integer(row, 0), class = (size_t)statement_integer(row, 1);
    if (task >= c->tasks || class >= c->first[task + 1] - c->first[task])
        return false;
    char **name = &c->name[c->first[task] + class];
    free(*name);
    *name = strdup(statement_text(row, 2));
    return *name != NULL;
}

static status read_classes(struct store *store, int64_t run, bool joint, struct run_classes *c, struct error *error)
{
    *c = (struct run_classes){.run = run,
                              .joint = joint,
                              .first = calloc(TASKS_LIMIT + 1, sizeof *c->first),
                              .task = calloc(TASKS_LIMIT, sizeof *c->task)};
    status result = c->first && c->task ? OK : no_memory(store, error);
    NEXT(result,
         each_row(store, c, "SELECT task, name, classes FROM tasks WHERE run = ?1 ORDER BY task", take_task, error));
    if (result == OK && !(c->name = calloc(c->first[c->tasks] + 1, sizeof *c->name)))
        result = no_memory(store, error);
    NEXT(result, each_row(store, c, "SELECT task, class, name FROM task_classes WHERE run = ?1", take_class, error));
    if (result != OK)
        free_classes(c);
    return result;
}

static void free_answers(struct answers *answers)
{
    free(answers->truth);
    per_image_free(&answers->images);
}

/* kind PER_IMAGE_NONE: nothing is kept of that cell, or no true classes are. */
static status read_answers(struct store *store, const struct run_classes *c, size_t task, int64_t after_task,
                           struct answers *answers, struct error *error)
{
    *answers = (struct answers){.images = {.kind = PER_IMAGE_NONE}};
    TRY(store_read_test_labels(store, c->run, (int64_t)task, &answers->truth, &answers->n, error));
    status result = OK;
    if (answers->n > 0)
        result = store_read_per_image(store, c->run, after_task, (int64_t)task, &answers->images, error);
    bool fits = answers->images.kind == PER_IMAGE_NONE || answers->images.images == answers->n;
    size_t classes = c->first[task + 1] - c->first[task], most = c->joint ? c->first[c->tasks] : classes;
    for (size_t i = 0; fits && i < answers->n; i++)
        fits = answers->truth[i] < classes &&
               (answers->images.kind != PER_IMAGE_PREDICTIONS || answers->images.predicted[i] < most);
    if (result == OK && !fits)
        result = error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ", task %zu: classes that do not fit its images",
                           store_path(store), c->run, task);
    if (result != OK)
        free_answers(answers);
    return result;
}

/* The last task after which images of the task were kept; −2: none. */
static status last_tested(struct store *store, int64_t run, size_t task, int64_t *after_task, struct error *error)
{
    struct text sql = {0};
    text_add(&sql, "SELECT coalesce(max(after_task), -2) FROM per_image WHERE run = %" PRId64 " AND task = %zu", run,
             task);
    status result =
        sql.failed ? no_memory(store, error) : database_integer(store->database, sql.data, after_task, error);
    text_free(&sql);
    return result;
}

typedef status answer_run(struct store *store, const struct run_classes *c, const struct query_filter *filter,
                          struct table *table, struct error *error);

static status each_run(struct store *store, const struct query_filter *filter, answer_run *answer, struct table *table,
                       struct error *error)
{
    struct statement *runs;
    TRY(statement_open(&runs, store->database,
                       CHOSEN "SELECT run, setting IN ('x_tail', 'class_incremental') FROM chosen ORDER BY run",
                       error));
    status result = query_bind_filter(runs, filter, error);
    for (bool row; result == OK && (result = statement_step(runs, &row, error)) == OK && row;) {
        struct run_classes c;
        result = read_classes(store, statement_integer(runs, 0), statement_integer(runs, 1) != 0, &c, error);
        if (result != OK)
            break;
        result = answer(store, &c, filter, table, error);
        free_classes(&c);
        if (result == OK && table->failed)
            result = no_memory(store, error);
        if (result == OK && table->count > QUERY_CELLS_LIMIT)
            result =
                error_set(error, ERROR_ARGUMENT, "%s: run %" PRId64 " makes the answer too long; choose fewer runs",
                          store_path(store), statement_integer(runs, 0));
    }
    statement_close(runs);
    return result;
}

static bool wanted(const struct query_filter *filter, const struct run_classes *c, size_t task)
{
    return !filter->dataset || strcmp(filter->dataset, c->task[task]) == 0;
}

/* --- Classes --- */

enum { ZERO_SHOT, LEARNED, LAST, MOMENTS };

/* right [MOMENTS, classes]: percent; NAN where nothing is known. counts [classes]: images. */
static status class_accuracies(struct store *store, const struct run_classes *c, size_t task, size_t *counts,
                               double *right, struct error *error)
{
    size_t classes = c->first[task + 1] - c->first[task];
    int64_t last;
    TRY(last_tested(store, c->run, task, &last, error));
    const int64_t after[MOMENTS] = {-1, (int64_t)task, last >= 0 ? last : -2};
    for (size_t m = 0; m < MOMENTS; m++) {
        struct answers answers;
        double *of_class = right + m * classes;
        TRY(read_answers(store, c, task, after[m], &answers, error));
        bool known = answers.images.kind != PER_IMAGE_NONE;
        memset(counts, 0, classes * sizeof *counts);
        for (size_t k = 0; k < classes; k++)
            of_class[k] = known ? 0 : (double)NAN;
        for (size_t i = 0; i < answers.n; i++) {
            counts[answers.truth[i]]++;
            of_class[answers.truth[i]] += known && answers.images.right[i] ? 100 : 0;
        }
        for (size_t k = 0; k < classes; k++)
            of_class[k] = counts[k] > 0 ? of_class[k] / (double)counts[k] : (double)NAN;
        free_answers(&answers);
    }
    return OK;
}

static void add_classes(const struct run_classes *c, size_t task, const size_t *counts, const double *right,
                        struct table *table)
{
    size_t classes = c->first[task + 1] - c->first[task];
    for (size_t k = 0; k < classes; k++) {
        const char *name = c->name[c->first[task] + k];
        if (name == NULL && counts[k] == 0)
            continue;
        table_add_integer(table, c->run);
        table_add_integer(table, (int64_t)task);
        table_add_text(table, c->task[task]);
        table_add_integer(table, (int64_t)k);
        table_add_text(table, name);
        if (counts[k] > 0)
            table_add_integer(table, (int64_t)counts[k]);
        else
            table_add_empty(table);
        for (size_t m = 0; m < MOMENTS; m++)
            table_add_real(table, right[m * classes + k]);
    }
}

static status answer_classes(struct store *store, const struct run_classes *c, const struct query_filter *filter,
                             struct table *table, struct error *error)
{
    status result = OK;
    for (size_t task = 0; task < c->tasks && result == OK; task++) {
        size_t classes = c->first[task + 1] - c->first[task];
        if (!wanted(filter, c, task))
            continue;
        size_t *counts = calloc(classes + 1, sizeof *counts);
        double *right = calloc(MOMENTS * classes + 1, sizeof *right);
        result = counts && right ? class_accuracies(store, c, task, counts, right, error) : no_memory(store, error);
        if (result == OK)
            add_classes(c, task, counts, right, table);
        free(counts);
        free(right);
    }
    return result;
}

status query_classes(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    static const char *const titles[] = {"run", "task", "name", "class", "class_name", "images"},
                             *const accuracies[] = {"zero_shot", "learned", "last"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_add_column(table, &(struct table_column){.title = titles[i], .once = i == 0});
    for (size_t m = 0; m < MOMENTS; m++)
        table_add_column(table, &(struct table_column){.title = accuracies[m], .align = ALIGN_RIGHT, .decimals = 1});
    return each_run(store, filter, answer_classes, table, error);
}

/* --- Confusion of classes --- */

/* The number of a prediction among the classes of all tasks. */
static size_t predicted_class(const struct run_classes *c, size_t task, const struct answers *answers, size_t i)
{
    return answers->images.predicted[i] + (c->joint ? 0 : c->first[task]);
}

static size_t task_of(const struct run_classes *c, size_t class)
{
    size_t task = 0;
    while (task + 1 < c->tasks && class >= c->first[task + 1])
        task++;
    return task;
}

static void add_class_row(const struct run_classes *c, size_t task, size_t truth, size_t predicted, size_t count,
                          size_t images, struct table *table)
{
    table_add_integer(table, c->run);
    table_add_text(table, c->task[task]);
    table_add_integer(table, (int64_t)truth);
    table_add_text(table, c->name[c->first[task] + truth]);
    table_add_text(table, c->task[task_of(c, predicted)]);
    table_add_integer(table, (int64_t)(predicted - c->first[task_of(c, predicted)]));
    table_add_text(table, c->name[predicted]);
    table_add_integer(table, (int64_t)count);
    table_add_real(table, 100.0 * (double)count / (double)images);
}

static status add_confused_classes(struct store *store, const struct run_classes *c, size_t task,
                                   const struct answers *answers, struct table *table, struct error *error)
{
    size_t all = c->first[c->tasks], classes = c->first[task + 1] - c->first[task];
    size_t *counts = calloc(array_size(classes + 1, all * sizeof *counts), 1),
           *images = calloc(classes + 1, sizeof *images);
    status result = counts && images ? OK : no_memory(store, error);
    for (size_t i = 0; result == OK && i < answers->n; i++) {
        counts[answers->truth[i] * all + predicted_class(c, task, answers, i)]++;
        images[answers->truth[i]]++;
    }
    for (size_t k = 0; result == OK && k < classes; k++)
        for (size_t p = 0; p < all; p++)
            if (counts[k * all + p] > 0)
                add_class_row(c, task, k, p, counts[k * all + p], images[k], table);
    free(counts);
    free(images);
    return result;
}

static status answer_class_confusion(struct store *store, const struct run_classes *c,
                                     const struct query_filter *filter, struct table *table, struct error *error)
{
    for (size_t task = 0; task < c->tasks; task++) {
        int64_t last;
        struct answers answers;
        if (!wanted(filter, c, task))
            continue;
        TRY(last_tested(store, c->run, task, &last, error));
        TRY(read_answers(store, c, task, last, &answers, error));
        status result = answers.images.kind == PER_IMAGE_PREDICTIONS
                            ? add_confused_classes(store, c, task, &answers, table, error)
                            : OK;
        free_answers(&answers);
        TRY(result);
    }
    return OK;
}

/* --- Confusion of tasks --- */

enum { TASK_COLUMNS = 3 }; /* run, task, images; then one per task */

static bool same_tasks(const struct table *table, const struct run_classes *c)
{
    bool same = table->columns == c->tasks + TASK_COLUMNS;
    for (size_t k = 0; same && k < c->tasks; k++)
        same = strcmp(table->column[k + TASK_COLUMNS].title, c->task[k]) == 0;
    return same;
}

static status add_confused_tasks(struct store *store, const struct run_classes *c, size_t task, struct table *table,
                                 struct error *error)
{
    int64_t last;
    struct answers answers;
    TRY(last_tested(store, c->run, task, &last, error));
    TRY(read_answers(store, c, task, last, &answers, error));
    size_t *counts = calloc(c->tasks + 1, sizeof *counts);
    status result = counts ? OK : no_memory(store, error);
    if (result == OK && answers.images.kind == PER_IMAGE_PREDICTIONS) {
        for (size_t i = 0; i < answers.n; i++)
            counts[task_of(c, predicted_class(c, task, &answers, i))]++;
        table_add_integer(table, c->run);
        table_add_text(table, c->task[task]);
        table_add_integer(table, (int64_t)answers.n);
        for (size_t k = 0; k < c->tasks; k++)
            table_add_real(table, 100.0 * (double)counts[k] / (double)answers.n);
    }
    free(counts);
    free_answers(&answers);
    return result;
}

static status answer_task_confusion(struct store *store, const struct run_classes *c, const struct query_filter *filter,
                                    struct table *table, struct error *error)
{
    (void)filter;
    if (!c->joint) /* images can be taken for classes of their own task alone */
        return OK;
    bool first = table->columns == TASK_COLUMNS;
    for (size_t k = 0; first && k < c->tasks; k++)
        table_add_column(table, &(struct table_column){.title = c->task[k], .align = ALIGN_RIGHT, .decimals = 1});
    if (!table->failed && !same_tasks(table, c))
        return error_set(error, ERROR_ARGUMENT,
                         "%s: run %" PRId64 " has other tasks than those before it; choose runs by number, suite or "
                         "setting",
                         store_path(store), c->run);
    table_begin_block(table);
    for (size_t task = 0; task < c->tasks; task++)
        TRY(add_confused_tasks(store, c, task, table, error));
    return OK;
}

status query_confusion(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    static const char *const classes[] =
        {"run", "name", "class", "class_name", "predicted", "predicted_class", "predicted_name", "count"},
                             *const tasks[] = {"run", "task", "images"};
    const char *const *titles = filter->dataset ? classes : tasks;
    size_t count = filter->dataset ? sizeof classes / sizeof *classes : sizeof tasks / sizeof *tasks;
    for (size_t i = 0; i < count; i++)
        table_add_column(table, &(struct table_column){.title = titles[i], .once = i == 0});
    if (filter->dataset)
        table_add_column(table, &(struct table_column){.title = "share", .align = ALIGN_RIGHT, .decimals = 1});
    return each_run(store, filter, filter->dataset ? answer_class_confusion : answer_task_confusion, table, error);
}
