#include "harness/commands/inputs/run_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"

enum { RUNS_MOST = 1000000 };

static status add(struct run_list *list, int64_t run, struct error *error)
{
    if (list->count == RUNS_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: expected at most %d runs, found more", RUNS_MOST);
    GROW(list->runs, list->count);
    list->runs[list->count++] = run;
    return OK;
}

/* "5" or "5-9". */
static status add_part(struct run_list *list, char *part, struct error *error)
{
    int64_t first, last;
    char *dash = strchr(part, '-');
    if (dash != NULL)
        *dash = 0;
    bool numbers = parse_integer(part, &first) && parse_integer(dash != NULL ? dash + 1 : part, &last);
    if (!numbers || first < 1 || last < first) {
        if (dash != NULL)
            *dash = '-';
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected runs as 3, 1,4 or 5-9 (mtil query runs has their numbers), found "
                         "\"%.60s\"",
                         part);
    }
    for (int64_t run = first; run <= last; run++)
        TRY(add(list, run, error));
    return OK;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void sort(struct run_list *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->runs, list->count, sizeof *list->runs, compare_numbers);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->runs[kept - 1] != list->runs[i])
            list->runs[kept++] = list->runs[i];
    list->count = kept;
}

/* strsep, so that an empty part is an error too. */
static status add_word(struct run_list *list, const char *word, struct error *error)
{
    OWNED char *copy = xstrdup(word);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, ",")) != NULL;)
        TRY(add_part(list, part, error));
    return OK;
}

status run_list_read(struct run_list *list, const char *const *words, size_t count, struct error *error)
{
    *list = (struct run_list){0};
    for (size_t i = 0; i < count; i++)
        TRY(add_word(list, words[i], error));
    sort(list);
    return OK;
}

void run_list_free(struct run_list *list)
{
    free(list->runs);
    *list = (struct run_list){0};
}
