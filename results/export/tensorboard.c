/* Events, each a protocol buffer in a TFRecord with its checksums. Formats: tensorflow/core/lib/io/record_writer.h,
 * core/util/event.proto, core/framework/summary.proto and tensor.proto, tensorboard/plugins/hparams/plugin_data.proto; only
 * the needed fields of the messages. */
#include "results/export/files.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/store/store_internal.h"

/* --- TFRecord --- */

/* Adds the CRC-32C (Castagnoli) of the bytes in TFRecord's masked form. */
static void add_checksum(struct text *file, const char *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    text_add_bytes(file, (const char *)&crc, sizeof crc);
}

/* Frees the event. Numbers have their lowest byte first, as in memory. */
static void add_record(struct text *file, struct text *event)
{
    uint64_t size = event->size;
    text_add_bytes(file, (const char *)&size, sizeof size);
    add_checksum(file, (const char *)&size, sizeof size);
    text_add_bytes(file, event->data, event->size);
    add_checksum(file, event->data, event->size);
    text_free(event);
}

/* --- Protocol buffers --- */

static void add_varint(struct text *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        text_add_bytes(to, &(char){(char)(value | 128)}, 1);
    text_add_bytes(to, &(char){(char)value}, 1);
}

static void add_integer(struct text *to, unsigned field, uint64_t value)
{
    add_varint(to, field << 3);
    add_varint(to, value);
}

static void add_double(struct text *to, unsigned field, double value)
{
    add_varint(to, field << 3 | 1);
    text_add_bytes(to, (const char *)&value, sizeof value);
}

static void add_bytes(struct text *to, unsigned field, const char *bytes, size_t size)
{
    add_varint(to, field << 3 | 2);
    add_varint(to, size);
    text_add_bytes(to, size > 0 ? bytes : "", size);
}

static void add_string(struct text *to, unsigned field, const char *string)
{
    add_bytes(to, field, string, strlen(string));
}

/* Frees the message. */
static void add_message(struct text *to, unsigned field, struct text *message)
{
    add_bytes(to, field, message->data, message->size);
    text_free(message);
}

/* --- Events; the numbers are those of the .proto files --- */

/* clock: seconds since 1970, UTC. */
static struct text begin_event(double clock, int64_t step)
{
    struct text event = {0};
    add_double(&event, 1, clock);
    add_integer(&event, 2, (uint64_t)step);
    return event;
}

/* A summary of one value: its tag, and the message or number of the field. Frees fields. */
static void add_value(struct text *file, double clock, int64_t step, const char *tag, struct text *fields)
{
    struct text event = begin_event(clock, step), summary = {0}, value = {0};
    add_string(&value, 1, tag);
    text_add_bytes(&value, fields->data, fields->size);
    text_free(fields);
    add_message(&summary, 1, &value);
    add_message(&event, 5, &summary);
    add_record(file, &event);
}

/* Data of the tab HParams: how a session started (field 3) or ended (4). Frees session. */
static void add_session(struct text *file, double clock, const char *tag, unsigned field, struct text *session)
{
    struct text fields = {0}, metadata = {0}, plugin = {0}, content = {0};
    add_message(&content, field, session);
    add_string(&plugin, 1, "hparams");
    add_message(&plugin, 2, &content);
    add_message(&metadata, 1, &plugin);
    add_message(&fields, 9, &metadata);
    add_value(file, clock, 0, tag, &fields);
}

/* --- A run --- */

struct run_events {
    double started; /* seconds since 1970 */
    struct text file, settings;
    size_t values;
};

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
    "logged AS (SELECT *, iteration + (SELECT coalesce(sum(iterations), 0) FROM trained WHERE task < spent.task) "
    "  AS step FROM spent WHERE is_step), "
    "rows(part, a, b, seconds, step, tag, value) AS ("
    "SELECT 0, step, 0, clock, step, 'training/loss', loss FROM logged "
    "UNION ALL SELECT 0, step, 1, clock, step, 'training/learning_rate', learning_rate FROM logged "
    "UNION ALL SELECT 1, after_task, task, (SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task), "
    "  after_task + 1, 'accuracy/' || name, accuracy FROM matrix WHERE run = ?1 "
    "UNION ALL SELECT 2, after_task, 0, (SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task), "
    "  after_task + 1, 'metrics/mean_accuracy', accuracy FROM mean_accuracy WHERE run = ?1 "
    "UNION ALL SELECT 3, id, 0, (SELECT total(seconds) FROM timings WHERE run = ?1), tasks, 'metrics/' || key, atom "
    "  FROM metrics JOIN runs USING (run), json_each(json_object('transfer', transfer, 'average', average, 'last', "
    "  last, 'forgetting', forgetting, 'backward_transfer', backward_transfer, 'forward_transfer', forward_transfer, "
    "  'gain', gain, 'zero_shot', zero_shot)) WHERE run = ?1 AND atom IS NOT NULL) "
    "SELECT seconds, step, tag, value FROM rows ORDER BY part, a, b";

static status take_scalar(void *context, struct statement *row, struct error *error)
{
    (void)error;
    struct run_events *run = context;
    struct text fields = {0};
    float value = (float)real(row, 3);
    add_varint(&fields, 2 << 3 | 5);
    text_add_bytes(&fields, (const char *)&value, sizeof value);
    add_value(&run->file, run->started + real(row, 0), statement_integer(row, 1), statement_text(row, 2), &fields);
    run->values++;
    return OK;
}

/* Tag and Markdown: the run, and its suite key by key. */
static const char texts_sql[] =
    "WITH rows(tag, place, key, value) AS ("
    "SELECT 'run', id, key, coalesce(atom, '') FROM runs, json_each(json_object('run', run, 'suite', suite, 'setting', "
    "  setting, 'method', method, 'policy', policy, 'selector', selector, 'selection', selection, 'order', task_order, "
    "  'model', model, 'backend', backend, 'precision', \"precision\", 'program_version', program_version, 'seed', "
    "  seed, 'tasks', tasks, 'trainable_parameters', trainable_parameters, 'status', status, 'message', message, "
    "  'started', started, 'finished', finished, 'suite_hash', suite_hash)) WHERE run = ?1 "
    "UNION ALL SELECT 'hyperparameters', key, key, CASE typeof(value) WHEN 'real' THEN format('%.15g', value) ELSE "
    "  value END FROM settings WHERE run = ?1 ORDER BY 1 DESC, 2) "
    "SELECT tag, '| key | value |' || char(10) || '| --- | --- |' || char(10) || group_concat('| ' || key || ' | ' || "
    "  replace(replace(value, '|', '\\|'), char(10), ' ') || ' |' || char(10), '') FROM rows GROUP BY tag ORDER BY tag "
    "DESC";

/* The text is a tensor of one string, without a shape. */
static status take_text(void *context, struct statement *row, struct error *error)
{
    (void)error;
    enum { TYPE_STRING = 7, CLASS_TENSOR = 2 };
    struct run_events *run = context;
    struct text fields = {0}, tensor = {0}, metadata = {0}, plugin = {0};
    add_integer(&tensor, 1, TYPE_STRING);
    add_string(&tensor, 2, "");
    add_string(&tensor, 8, statement_text(row, 1));
    add_message(&fields, 8, &tensor);
    add_string(&plugin, 1, "text");
    add_message(&metadata, 1, &plugin);
    add_integer(&metadata, 4, CLASS_TENSOR);
    add_message(&fields, 9, &metadata);
    add_value(&run->file, run->started, 0, statement_text(row, 0), &fields);
    return OK;
}

/* The settings in which the chosen runs differ. Seeds differ within a group. */
static const char differing_sql[] =
    "SELECT key, CAST(value AS TEXT) FROM settings WHERE run = ?1 AND key IN (SELECT key FROM settings JOIN chosen "
    "USING "
    "  (run) WHERE key NOT IN ('run.seeds', 'method.name', 'merge.policy') GROUP BY key "
    "  HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM chosen)) "
    "UNION ALL SELECT 'method', method FROM chosen WHERE run = ?1 UNION ALL SELECT 'policy', policy FROM chosen "
    "  WHERE run = ?1 UNION ALL SELECT 'suite', suite FROM chosen WHERE run = ?1 ORDER BY 1";

/* What reads as a number or a truth value is one there. */
static status take_setting(void *context, struct statement *row, struct error *error)
{
    (void)error;
    struct run_events *run = context;
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
    add_message(&run->settings, 1, &entry);
    return OK;
}

/* --- Files --- */

/* The outcome's number is HParams' own: success, failure, running. */
static const char runs_sql[] =
    "SELECT run, coalesce(CAST(strftime('%s', started) AS INTEGER), 0), seed, suite_hash, suite, method, policy, "
    "  CASE status WHEN 'finished' THEN 1 WHEN 'running' THEN 3 ELSE 2 END, "
    "  (SELECT total(seconds) FROM timings WHERE timings.run = chosen.run) FROM chosen ORDER BY run";

/* How the run started and ended. */
static void add_sessions(struct run_events *run, struct statement *row)
{
    double ended = run->started + real(row, 8);
    struct text end = {0};
    add_string(&run->settings, 4, statement_text(row, 3));
    add_double(&run->settings, 5, run->started);
    add_session(&run->file, run->started, "_hparams_/session_start_info", 3, &run->settings);
    add_integer(&end, 1, (uint64_t)statement_integer(row, 7));
    add_double(&end, 2, ended);
    add_session(&run->file, ended, "_hparams_/session_end_info", 4, &end);
}

/* A word as part of a path: letters, digits and ".-_" alone, and no leading dot. */
static void add_part(struct text *path, const char *word, char end)
{
    for (const char *at = word; *at; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '-' || *at == '_' || (*at == '.' && at > word);
        text_add(path, "%c", plain ? *at : '_');
    }
    text_add(path, "%c", end);
}

static status add_run(void *context, struct statement *row, struct error *error)
{
    struct export_files *files = context;
    struct database *database = files->store->database;
    struct run_events run = {.started = real(row, 1)};
    struct value number = value_integer(statement_integer(row, 0));
    struct text path = {0}, version = begin_event(run.started, 0);
    add_string(&version, 3, "brain.Event:2");
    add_record(&run.file, &version);
    status result = database_each(database, texts_sql, &number, 1, take_text, &run, error);
    NEXT(result, database_each(database, differing_sql, &number, 1, take_setting, &run, error));
    if (result == OK)
        add_sessions(&run, row);
    NEXT(result, database_each(database, scalars_sql, &number, 1, take_scalar, &run, error));
    add_part(&path, statement_text(row, 4), '/');
    add_part(&path, statement_text(row, 5), '-');
    add_part(&path, statement_text(row, 6), '-');
    text_add(&path, "%.12s/seed%" PRId64 "/events.out.tfevents.%010.0f.mtil", statement_text(row, 3),
             statement_integer(row, 2), run.started);
    NEXT(result, file_group_add(&files->group, path.data, run.file.data, run.file.size, error));
    files->counts->files++;
    files->counts->entries += run.values;
    text_free(&path);
    text_free(&run.settings);
    text_free(&run.file);
    return result;
}

status export_tensorboard(struct store *store, const struct query_filter *filter, const char *folder,
                          struct export_counts *counts, struct error *error)
{
    struct export_files files = {.store = store, .counts = counts};
    return export_files(&files, filter, folder, runs_sql, add_run, error);
}
