/* A row per configuration, a column per setting in which they differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/report/section.h"
#include "results/store/setting_values.h"

enum { ROWS_MOST = 200, KEYS_MOST = 10 };

struct keys {
    struct report *report;
    size_t count, all;
    const char *key[KEYS_MOST];
};

static void take_key(void *context, const char *key, const char *a, const char *b)
{
    struct keys *keys = context;
    if (report_is_incidental(keys->report, key, a, b))
        return;
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->key[i], key) == 0)
            return;
    keys->all++;
    if (keys->count < KEYS_MOST)
        keys->key[keys->count++] = report_copy(keys->report, key);
}

/* Whether all values of a setting are numbers, which are sorted as such. */
static bool is_number(const struct setting_values *values, size_t rows, const char *key)
{
    for (size_t i = 0; i < rows; i++) {
        const char *value = setting_values_find(&values[i], key);
        double number;
        if (value != NULL && !parse_real(value, &number))
            return false;
    }
    return true;
}

static void add_value(struct table *table, const char *value, bool number)
{
    double real;
    if (value != NULL && number && parse_real(value, &real))
        table_add_real(table, real);
    else if (value != NULL)
        table_add_text(table, value);
    else
        table_add_empty(table);
}

static void show(const struct section_call *call, const struct keys *keys, const struct setting_values *values,
                 size_t rows)
{
    struct table table = {0};
    bool number[KEYS_MOST];
    table_add_column(&table, &(struct table_column){.title = "configuration"});
    table_add_column(&table, &(struct table_column){.title = "Last", .decimals = 1, .best = BEST_HIGHEST});
    for (size_t k = 0; k < keys->count; k++) {
        number[k] = is_number(values, rows, keys->key[k]);
        table_add_column(&table, &(struct table_column){.title = keys->key[k], .decimals = DECIMALS_ALL});
    }
    for (size_t i = 0; i < rows; i++) {
        table_add_text(&table, call->board->configuration[i]->label);
        table_add_real(&table, call->board->configuration[i]->metric[LAST].mean);
        for (size_t k = 0; k < keys->count; k++)
            add_value(&table, setting_values_find(&values[i], keys->key[k]), number[k]);
    }
    const char *cut =
        keys->all > keys->count ? report_format(call->report, " More settings differ than these %d.", KEYS_MOST) : "";
    html_table(call->page,
               &(struct html_table){.table = &table,
                                    .name = section_name(call, "hyperparameters"),
                                    .heads = 1,
                                    .wrapped = true,
                                    .caption = report_format(call->report,
                                                             "Settings in which configurations differ, best "
                                                             "Last first; –: the setting does not apply.%s",
                                                             cut)});
    table_free(&table);
}

status section_hyperparameters(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    size_t rows = board->count < ROWS_MOST ? board->count : ROWS_MOST;
    struct setting_values *values = report_take(call->report, rows, sizeof *values);
    struct keys keys = {.report = call->report};
    TRY(report_check(call->report, error));
    status result = OK;
    for (size_t i = 0; i < rows && result == OK; i++)
        result = report_values(call->report, board->configuration[i], &values[i], error);
    for (size_t i = 1; i < rows && result == OK; i++)
        setting_values_compare(&values[0], &values[i], take_key, &keys);
    if (result == OK && keys.count > 0)
        show(call, &keys, values, rows);
    for (size_t i = 0; i < rows; i++)
        setting_values_free(&values[i]);
    return result == OK ? report_check(call->report, error) : result;
}
