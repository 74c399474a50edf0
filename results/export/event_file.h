/* The files that TensorBoard reads: events, each a protocol buffer in a TFRecord with its checksums.
 *
 *     struct event_file file = {0};
 *     event_file_begin(&file, started);
 *     event_file_scalar(&file, &(struct event_time){.clock = seconds, .step = 100}, "training/loss", 1.25);
 *     event_file_text(&file, &(struct event_time){.clock = started}, "suite", "| key | value |\n…");
 *     event_file_settings(&file, &(struct event_time){.clock = started}, "most_used", settings, count);
 *     event_file_end(&file, &(struct event_time){.clock = ended}, EVENT_FINISHED);
 *     … file.bytes, unless file.bytes.failed …
 *     event_file_free(&file);
 *
 * Formats: tensorflow/core/lib/io/record_writer.h, core/util/event.proto, core/framework/summary.proto and
 * tensor.proto, tensorboard/plugins/hparams/plugin_data.proto; only the needed fields of the messages. The name of a
 * file must contain "tfevents".
 */
#ifndef MTIL_RESULTS_EXPORT_EVENT_FILE_H
#define MTIL_RESULTS_EXPORT_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

/* Zero-initialised is empty. */
struct event_file {
    struct text bytes;
};

struct event_time {
    double clock; /* seconds since 1970, UTC */
    int64_t step; /* not negative */
};

/* The first event, which identifies the format. */
void event_file_begin(struct event_file *file, double clock);

void event_file_scalar(struct event_file *file, const struct event_time *time, const char *tag, double value);
void event_file_text(struct event_file *file, const struct event_time *time, const char *tag, const char *markdown);

/* For the tab HParams: the settings of the run, and its group of runs that differ in the seed alone. Values that read
 * as numbers are numbers there. */
struct event_setting {
    const char *key, *value;
};
void event_file_settings(struct event_file *file, const struct event_time *time, const char *group,
                         const struct event_setting *settings, size_t count);

enum event_outcome { EVENT_FINISHED = 1, EVENT_FAILED = 2, EVENT_RUNNING = 3 }; /* numbers of the format */
void event_file_end(struct event_file *file, const struct event_time *time, enum event_outcome outcome);

void event_file_free(struct event_file *file);

/* CRC-32C (Castagnoli), and TFRecord's masked form of it. */
uint32_t event_file_checksum(const void *data, size_t size);
uint32_t event_file_masked(uint32_t checksum);

#endif
