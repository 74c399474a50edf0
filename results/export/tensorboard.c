/* Events, each a protocol buffer in a TFRecord with its checksums. Formats: tensorflow/core/lib/io/record_writer.h,
 * core/util/event.proto, core/framework/summary.proto and tensor.proto, tensorboard/plugins/hparams/plugin_data.proto; only
 * the needed fields of the messages. */
#include "results/export/tensorboard.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/file_group.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

#define CONFIGURATION_DIGITS 12 /* of the suite's digest */

/* --- TFRecord --- */

/* CRC-32C (Castagnoli), in TFRecord's masked form. */
static uint32_t checksum(const char *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Frees the event. Numbers have their lowest byte first, as in memory. */
static void add_record(struct text *file, struct text *event)
{
    uint64_t size = event->size;
    uint32_t of_size = checksum((const char *)&size, sizeof size), of_event = checksum(event->data, event->size);
    text_add_bytes(file, (const char *)&size, sizeof size);
    text_add_bytes(file, (const char *)&of_size, sizeof of_size);
    text_add_bytes(file, event->data, event->size);
    text_add_bytes(file, (const char *)&of_event, sizeof of_event);
    file->failed |= event->failed;
    text_free(event);
}

/* --- Protocol buffers --- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_varint(struct text *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        text_add_bytes(to, &(char){(char)(value | 128)}, 1);
    text_add_bytes(to, &(char){(char)value}, 1);
}

static void add_integer(struct text *to, unsigned field, uint64_t value)
{
    add_varint(to, field << 3 | WIRE_VARINT);
    add_varint(to, value);
}

static void add_double(struct text *to, unsigned field, double value)
{
    add_varint(to, field << 3 | WIRE_64);
    text_add_bytes(to, (const char *)&value, sizeof value);
}

static void add_float(struct text *to, unsigned field, float value)
{
    add_varint(to, field << 3 | WIRE_32);
    text_add_bytes(to, (const char *)&value, sizeof value);
}

static void add_string(struct text *to, unsigned field, const char *string)
{
    add_varint(to, field << 3 | WIRE_BYTES);
    add_varint(to, strlen(string));
    text_add(to, "%s", string);
}

/* Frees the message. */
static void add_message(struct text *to, unsigned field, struct text *message)
{
    add_varint(to, field << 3 | WIRE_BYTES);
    add_varint(to, message->size);
    if (message->size > 0)
        text_add_bytes(to, message->data, message->size);
    to->failed |= message->failed;
    text_free(message);
}

/* --- Events; the numbers are those of the .proto files --- */

struct event_time {
    double clock; /* seconds since 1970, UTC */
    int64_t step;
};

static struct text begin_event(struct event_time time)
{
    struct text event = {0};
    add_double(&event, 1, time.clock);
    add_integer(&event, 2, (uint64_t)time.step);
    return event;
}

/* A summary of one value: its tag, and the message or number of the field. */
static void add_value(struct text *file, struct event_time time, const char *tag, struct text *fields)
{
    struct text event = begin_event(time), summary = {0}, value = {0};
    add_string(&value, 1, tag);
    text_add_bytes(&value, fields->data, fields->size);
    value.failed |= fields->failed;
    text_free(fields);
    add_message(&summary, 1, &value);
    add_message(&event, 5, &summary);
    add_record(file, &event);
}

static void add_scalar(struct text *file, struct event_time time, const char *tag, double number)
{
    struct text fields = {0};
    add_float(&fields, 2, (float)number);
    add_value(file, time, tag, &fields);
}

/* The text is a tensor of one string, without a shape. */
static void add_text(struct text *file, struct event_time time, const char *tag, const char *markdown)
{
    enum { TYPE_STRING = 7, CLASS_TENSOR = 2 };
    struct text fields = {0}, tensor = {0}, metadata = {0}, plugin = {0};
    add_integer(&tensor, 1, TYPE_STRING);
    add_string(&tensor, 2, "");
    add_string(&tensor, 8, markdown);
    add_message(&fields, 8, &tensor);
    add_string(&plugin, 1, "text");
    add_message(&metadata, 1, &plugin);
    add_integer(&metadata, 4, CLASS_TENSOR);
    add_message(&fields, 9, &metadata);
    add_value(file, time, tag, &fields);
}

/* Data of the tab HParams: how a session started (field 3) or ended (4). Frees session. */
static void add_session(struct text *file, struct event_time time, const char *tag, unsigned field,
                        struct text *session)
{
    struct text fields = {0}, metadata = {0}, plugin = {0}, content = {0};
    add_message(&content, field, session);
    add_string(&plugin, 1, "hparams");
    add_message(&plugin, 2, &content);
    add_message(&metadata, 1, &plugin);
    add_message(&fields, 9, &metadata);
    add_value(file, time, tag, &fields);
}

/* --- A run --- */

struct run_export {
    double started; /* seconds since 1970 */
    struct text file, settings;
    size_t values;
};

/* Calls take for each row of sql, in which ?1 is the run. */
typedef void take_row(struct run_export *out, struct statement *row);

static status each_row(struct store *store, const char *sql, int64_t run, take_row *take, struct run_export *out,
                       struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, sql, error));
    bool row = true;
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    while (result == OK && (result = statement_step(statement, &row, error)) == OK && row)
        take(out, statement);
    statement_close(statement);
    return result;
}

static double real(struct statement *row, size_t column)
{
    struct value value = statement_value(row, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

/* Seconds, step, tag and value. Iterations are counted through all tasks; a run of one task has no Transfer. */
static const char scalars_sql[] =
    "WITH spent AS (SELECT task, iteration, is_step, loss, learning_rate, sum(seconds) OVER (ORDER BY task, iteration, "
    "  is_step ROWS UNBOUNDED PRECEDING) AS clock FROM ("
    "  SELECT task, iteration, 0 AS is_step, seconds, NULL AS loss, NULL AS learning_rate FROM timings WHERE run = ?1 "
    "  UNION ALL SELECT task, iteration, 1, 0.0, loss, learning_rate FROM steps WHERE run = ?1)), "
    "trained AS (SELECT task, max(iteration) AS iterations FROM steps WHERE run = ?1 GROUP BY task), "
    "logged AS (SELECT *, iteration + (SELECT coalesce(sum(iterations), 0) FROM trained WHERE trained.task < "
    "spent.task) "
    "  AS step FROM spent WHERE is_step), "
    "rows(part, a, b, seconds, step, tag, value) AS ("
    "SELECT 0, step, 0, clock, step, 'training/loss', loss FROM logged "
    "UNION ALL SELECT 0, step, 1, clock, step, 'training/learning_rate', learning_rate FROM logged "
    "UNION ALL SELECT 1, after_task, task, (SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task), "
    "  after_task + 1, 'accuracy/' || name, accuracy FROM matrix WHERE run = ?1 "
    "UNION ALL SELECT 2, after_task, 0, (SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task), "
    "  after_task + 1, 'metrics/mean_accuracy', accuracy FROM mean_accuracy WHERE run = ?1 "
    "UNION ALL SELECT 3, number, 0, (SELECT total(seconds) FROM timings WHERE run = ?1), tasks, 'metrics/' || name, "
    "  CASE number WHEN 1 THEN transfer WHEN 2 THEN average WHEN 3 THEN last WHEN 4 THEN forgetting "
    "  WHEN 5 THEN backward_transfer WHEN 6 THEN forward_transfer WHEN 7 THEN gain ELSE zero_shot END "
    "  FROM metrics JOIN runs USING (run), (SELECT column1 AS number, column2 AS name FROM (VALUES (1, 'transfer'), "
    "  (2, 'average'), (3, 'last'), (4, 'forgetting'), (5, 'backward_transfer'), (6, 'forward_transfer'), (7, 'gain'), "
    "  (8, 'zero_shot'))) WHERE run = ?1) "
    "SELECT seconds, step, tag, value FROM rows WHERE part < 3 OR value IS NOT NULL ORDER BY part, a, b";

static void take_scalar(struct run_export *out, struct statement *row)
{
    struct event_time time = {out->started + real(row, 0), statement_integer(row, 1)};
    add_scalar(&out->file, time, statement_text(row, 2), real(row, 3));
    out->values++;
}

/* Tag and Markdown: the run, and its suite key by key. */
static const char texts_sql[] =
    "WITH rows(tag, place, key, value) AS ("
    "SELECT 'run', id, key, coalesce(atom, '') FROM runs, json_each(json_object('run', run, 'suite', suite, 'setting', "
    "setting,"
    "  'method', method, 'policy', policy, 'selector', selector, 'selection', selection, 'order', task_order, 'model', "
    "model,"
    "  'backend', backend, 'precision', \"precision\", 'program_version', program_version, 'seed', seed, 'tasks', "
    "tasks,"
    "  'trainable_parameters', trainable_parameters, 'status', status, 'message', message, 'started', started, "
    "'finished', "
    "  finished, 'suite_hash', suite_hash)) WHERE run = ?1 "
    "UNION ALL SELECT 'hyperparameters', key, key, CASE typeof(value) WHEN 'real' THEN format('%.15g', value) ELSE "
    "value END "
    "  FROM settings WHERE run = ?1 ORDER BY 1 DESC, 2) "
    "SELECT tag, '| key | value |' || char(10) || '| --- | --- |' || char(10) || group_concat('| ' || key || ' | ' || "
    "  replace(replace(value, '|', '\\|'), char(10), ' ') || ' |' || char(10), '') FROM rows GROUP BY tag ORDER BY tag "
    "DESC";

static void take_text(struct run_export *out, struct statement *row)
{
    add_text(&out->file, (struct event_time){.clock = out->started}, statement_text(row, 0), statement_text(row, 1));
}

/* The settings in which the chosen runs differ. Seeds differ within a group. */
static const char differing_sql[] = "SELECT key, CAST(value AS TEXT) FROM settings WHERE run = ?1 AND key IN (SELECT "
                                    "key FROM settings JOIN chosen USING "
                                    "(run) WHERE key NOT IN ('run.seeds', 'method.name', 'merge.policy') GROUP BY key "
                                    "HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM chosen)) "
                                    "UNION ALL SELECT 'method', method FROM chosen WHERE run = ?1 UNION ALL SELECT "
                                    "'policy', policy FROM chosen WHERE run = ?1 "
                                    "UNION ALL SELECT 'suite', suite FROM chosen WHERE run = ?1 ORDER BY 1";

/* What reads as a number or a truth value is one there. */
static void take_setting(struct run_export *out, struct statement *row)
{
    struct text entry = {0}, variant = {0};
    const char *setting = statement_text(row, 1);
    double number;
    bool is_true = strcmp(setting, "true") == 0;
    if (parse_real(setting, &number))
        add_double(&variant, 2, number);
    else if (is_true || strcmp(setting, "false") == 0)
        add_integer(&variant, 4, is_true);
    else
        add_string(&variant, 3, setting);
    add_string(&entry, 1, statement_text(row, 0));
    add_message(&entry, 2, &variant);
    add_message(&out->settings, 1, &entry);
}

/* The outcome's number is HParams' own: success, failure, running. */
static const char end_sql[] =
    "SELECT suite_hash, CASE status WHEN 'finished' THEN 1 WHEN 'running' THEN 3 ELSE 2 END, total(seconds) "
    "FROM runs JOIN timings USING (run) WHERE run = ?1";

static void take_end(struct run_export *out, struct statement *row)
{
    struct event_time begun = {.clock = out->started}, ended = {.clock = out->started + real(row, 2)};
    struct text end = {0};
    add_string(&out->settings, 4, statement_text(row, 0));
    add_double(&out->settings, 5, begun.clock);
    add_session(&out->file, begun, "_hparams_/session_start_info", 3, &out->settings);
    add_integer(&end, 1, (uint64_t)statement_integer(row, 1));
    add_double(&end, 2, ended.clock);
    add_session(&out->file, ended, "_hparams_/session_end_info", 4, &end);
}

static status fill(struct run_export *out, struct store *store, int64_t run, struct error *error)
{
    struct text version = begin_event((struct event_time){.clock = out->started});
    add_string(&version, 3, "brain.Event:2");
    add_record(&out->file, &version);
    TRY(each_row(store, texts_sql, run, take_text, out, error));
    TRY(each_row(store, differing_sql, run, take_setting, out, error));
    TRY(each_row(store, end_sql, run, take_end, out, error));
    return each_row(store, scalars_sql, run, take_scalar, out, error);
}

/* --- Files --- */

/* A word as part of a path: letters, digits and ".-_" alone, and no leading dot. */
static void add_part(struct text *path, const char *word)
{
    for (const char *at = word; *at; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '-' || *at == '_' || (*at == '.' && at > word);
        text_add(path, "%c", plain ? *at : '_');
    }
}

/* Frees what fill and the path have. */
static status export_run(struct store *store, const struct table_cell *run, struct file_group *group,
                         struct tensorboard_counts *counts, struct error *error)
{
    struct run_export out = {.started = (double)run[1].integer};
    struct text path = {0};
    add_part(&path, run[4].text);
    text_add(&path, "/");
    add_part(&path, run[5].text);
    text_add(&path, "-");
    add_part(&path, run[6].text);
    text_add(&path, "-%.*s/seed%" PRId64 "/events.out.tfevents.%010.0f.mtil", CONFIGURATION_DIGITS, run[3].text,
             run[2].integer, out.started);
    status result = fill(&out, store, run[0].integer, error);
    if (result == OK && (path.failed || out.file.failed))
        result = error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", run[0].integer);
    NEXT(result, file_group_add(group, path.data, out.file.data, out.file.size, error));
    counts->runs++;
    counts->values += out.values;
    text_free(&path);
    text_free(&out.settings);
    text_free(&out.file);
    return result;
}

static const char runs_sql[] =
    "SELECT run, coalesce(CAST(strftime('%s', started) AS INTEGER), 0), seed, suite_hash, suite, "
    "method, policy FROM chosen ORDER BY run";

status tensorboard_export(struct store *store, const struct query_filter *filter, const char *folder,
                          struct tensorboard_counts *counts, struct error *error)
{
    struct file_group group;
    struct table runs = {0};
    *counts = (struct tensorboard_counts){0};
    TRY(query_check_chosen(store, filter, error));
    status result = file_group_begin(&group, folder, error);
    NEXT(result, query_sql(store, runs_sql, &runs, error));
    for (size_t i = 0; result == OK && i < table_rows(&runs); i++)
        result = export_run(store, table_cell_at(&runs, i, 0), &group, counts, error);
    NEXT(result, file_group_commit(&group, error));
    file_group_abandon(&group);
    table_free(&runs);
    return result;
}
