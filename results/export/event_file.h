/* The files that TensorBoard reads: events, each a protocol buffer in a TFRecord with its checksums.
 *
 *     struct event_file file = {0};
 *     event_file_begin(&file, started);
 *     event_file_scalar(&file, &(struct event_time){.clock = seconds, .step = 100}, "training/loss", 1.25);
 *     event_file_text(&file, &(struct event_time){.clock = started}, "suite", "| key | value |\n…");
 *     TRY(event_file_write(&file, "logs/run/events.out.tfevents.1767225600.mtil", error));
 *     event_file_free(&file);
 *
 * Formats: tensorflow/core/lib/io/record_writer.h, core/util/event.proto, core/framework/summary.proto and tensor.proto;
 * of the three messages only the fields that are needed. The name of a file must hold "tfevents".
 */
#ifndef MTIL_RESULTS_EXPORT_EVENT_FILE_H
#define MTIL_RESULTS_EXPORT_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"

/* Zero-initialised is empty; kept in memory until it is written. */
struct event_file {
    struct text bytes;
};

struct event_time {
    double clock; /* seconds since 1970, UTC */
    int64_t step; /* not negative */
};

/* The first event, which says what the file is. */
void event_file_begin(struct event_file *file, double clock);

void event_file_scalar(struct event_file *file, const struct event_time *time, const char *tag, double value);
void event_file_text(struct event_file *file, const struct event_time *time, const char *tag, const char *markdown);

/* All of it or nothing. ERROR_MEMORY where something could not be added. */
status event_file_write(const struct event_file *file, const char *path, struct error *error);
void event_file_free(struct event_file *file);

/* CRC-32C (Castagnoli), and TFRecord's masked form of it. */
uint32_t event_file_checksum(const void *data, size_t size);
uint32_t event_file_masked(uint32_t checksum);

#endif
