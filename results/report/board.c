#include "results/report/board.h"

#include "results/metrics.h"
#include "results/store/store_internal.h"

enum { SETTINGS_OF_MOST = 200 };

static const char create_sql[] =
    "DELETE FROM temp.asked; DROP TABLE IF EXISTS temp.configurations; DROP TABLE IF EXISTS temp.shown; DROP TABLE IF "
    "EXISTS temp.board; "
    "DROP TABLE IF EXISTS temp.metric_names; DROP TABLE IF EXISTS temp.differing; DROP TABLE IF EXISTS temp.drawn; "
    "CREATE TEMP TABLE configurations (number INTEGER PRIMARY KEY, run, hash, label, legend, colour, runs, "
    "finished, used, seeds); "
    "CREATE TEMP TABLE shown (run INTEGER PRIMARY KEY, number, turn, seed, status, finished, used, transfer, "
    "average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot); "
    "CREATE TEMP TABLE board (task INTEGER PRIMARY KEY, name, title, wanted); "
    "CREATE TEMP TABLE metric_names (place INTEGER PRIMARY KEY, metric, title, formula, source, best); "
    "CREATE TEMP TABLE differing (number, key, value, incidental, PRIMARY KEY (number, key))";

static const char drawn_sql[] =
    "CREATE TEMP TABLE drawn (run INTEGER PRIMARY KEY, number, turn, seed, label, legend, colour, seeds); "
    "INSERT INTO temp.drawn SELECT shown.run, number, turn, seed, label, legend, colour, seeds "
    "FROM temp.shown JOIN temp.configurations USING (number) WHERE shown.used AND colour IS NOT NULL";

static struct value flag(bool holds)
{
    return value_integer(holds);
}

static status offer_run(struct report *report, int64_t number, const struct configuration *configuration, size_t place,
                        struct error *error)
{
    const struct report_run *run = &configuration->run[place];
    const double *metric = run->metric;
    return store_run_once(
        report->store,
        "INSERT INTO temp.shown VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        VALUES(value_integer(run->run), value_integer(number), value_integer((int64_t)place), value_integer(run->seed),
               value_text(run->status), flag(run->finished), flag(place < configuration->used), value_real(metric[0]),
               value_real(metric[1]), value_real(metric[2]), value_real(metric[3]), value_real(metric[4]),
               value_real(metric[5]), value_real(metric[6]), value_real(metric[7])),
        error);
}

static status offer_settings(struct report *report, int64_t number, const struct configuration *configuration,
                             struct error *error)
{
    struct setting_values values;
    status result = report_values(report, configuration, &values, error);
    for (size_t i = 0; result == OK && i < values.count; i++)
        result = store_run_once(
            report->store, "INSERT INTO temp.differing VALUES (?1, ?2, ?3, ?4)",
            VALUES(value_integer(number), value_text(values.value[i].key), value_text(values.value[i].value),
                   flag(report_is_incidental(report, values.value[i].key, values.value[i].value, NULL))),
            error);
    setting_values_free(&values);
    return result;
}

static status offer_configuration(struct report *report, const struct board *board, size_t i, struct error *error)
{
    const struct configuration *configuration = board->configuration[i];
    int64_t number = (int64_t)i + 1;
    const char *seeds = report_format(report, "%zu seed%s%s", configuration->used, configuration->used == 1 ? "" : "s",
                                      configuration->finished ? "" : ", unfinished");
    TRY(store_run_once(
        report->store, "INSERT INTO temp.configurations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        VALUES(value_integer(number), value_integer(configuration->run[0].run), value_text(configuration->hash),
               value_text(configuration->label), value_text(configuration->legend),
               i < board->shown ? value_integer((int64_t)configuration->colour) : value_null(),
               value_integer((int64_t)configuration->runs), value_integer((int64_t)configuration->finished),
               value_integer((int64_t)configuration->used), value_text(seeds)),
        error));
    for (size_t place = 0; place < configuration->runs; place++)
        TRY(offer_run(report, number, configuration, place, error));
    return i < SETTINGS_OF_MOST ? offer_settings(report, number, configuration, error) : OK;
}

static status offer_names(struct report *report, const struct board *board, struct error *error)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    for (size_t i = 0; i < board->tasks; i++)
        TRY(store_run_once(
            report->store, "INSERT INTO temp.board VALUES (?1, ?2, (?1 + 1) || '  ' || ?2, ?3 IS NULL OR ?3 = ?2)",
            VALUES(value_integer((int64_t)i), value_text(board->names[i]), value_text(report->request->filter.dataset)),
            error));
    for (size_t i = 0; i < count; i++)
        TRY(store_run_once(report->store, "INSERT INTO temp.metric_names VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                           VALUES(value_integer((int64_t)i), value_text(metrics[i].name), value_text(metrics[i].title),
                                  value_text(metrics[i].formula), value_text(metrics[i].source),
                                  value_text(metrics[i].lower_is_better ? "lowest" : "highest")),
                           error));
    return OK;
}

status board_offer(struct report *report, const struct board *board, struct error *error)
{
    const struct report_request *request = report->request;
    TRY(database_execute(report->store->database, create_sql, error));
    for (size_t i = 0; i < request->by_count; i++)
        if (strchr(request->by[i], '.') != NULL) /* others, such as "policy", are part of a configuration's label */
            TRY(store_run_once(report->store, "INSERT INTO temp.asked (key) VALUES (?1)",
                               VALUES(value_text(request->by[i])), error));
    TRY(offer_names(report, board, error));
    for (size_t i = 0; i < board->count; i++)
        TRY(offer_configuration(report, board, i, error));
    return database_execute(report->store->database, drawn_sql, error);
}
