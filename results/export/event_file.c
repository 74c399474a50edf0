#include "results/export/event_file.h"

#include <string.h>

/* --- TFRecord --- */

uint32_t event_file_checksum(const void *data, size_t size)
{
    static const uint32_t of_nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                           0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                           0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *bytes = data;
    uint32_t checksum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        checksum ^= bytes[i];
        checksum = checksum >> 4 ^ of_nibble[checksum & 15];
        checksum = checksum >> 4 ^ of_nibble[checksum & 15];
    }
    return ~checksum;
}

uint32_t event_file_masked(uint32_t checksum)
{
    return (checksum >> 15 | checksum << 17) + 0xa282ead8u;
}

/* The lowest byte first. */
static void add_little(struct text *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text_add_bytes(to, &(char){(char)(value >> 8 * i & 255)}, 1);
}

static void add_record(struct event_file *file, const struct text *event)
{
    struct text length = {0};
    add_little(&length, event->size, 8);
    if (length.failed || event->failed) {
        file->bytes.failed = true;
    } else {
        text_add_bytes(&file->bytes, length.data, length.size);
        add_little(&file->bytes, event_file_masked(event_file_checksum(length.data, length.size)), 4);
        text_add_bytes(&file->bytes, event->data, event->size);
        add_little(&file->bytes, event_file_masked(event_file_checksum(event->data, event->size)), 4);
    }
    text_free(&length);
}

/* --- Protocol buffers --- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void add_varint(struct text *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        add_little(to, (value & 127) | 128, 1);
    add_little(to, value, 1);
}

static void add_key(struct text *to, unsigned field, enum wire wire)
{
    add_varint(to, field << 3 | (unsigned)wire);
}

static void add_integer(struct text *to, unsigned field, uint64_t value)
{
    add_key(to, field, WIRE_VARINT);
    add_varint(to, value);
}

static void add_double(struct text *to, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(to, field, WIRE_64);
    add_little(to, bits, 8);
}

static void add_float(struct text *to, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(to, field, WIRE_32);
    add_little(to, bits, 4);
}

static void add_bytes(struct text *to, unsigned field, const char *bytes, size_t size)
{
    add_key(to, field, WIRE_BYTES);
    add_varint(to, size);
    if (size > 0)
        text_add_bytes(to, bytes, size);
}

static void add_string(struct text *to, unsigned field, const char *string)
{
    add_bytes(to, field, string, strlen(string));
}

/* Adds a message and frees it. */
static void add_message(struct text *to, unsigned field, struct text *message)
{
    add_bytes(to, field, message->data, message->size);
    to->failed |= message->failed;
    text_free(message);
}

/* --- Events; the numbers are those of the .proto files --- */

enum event_field { EVENT_CLOCK = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum summary_field { SUMMARY_VALUE = 1 };
enum value_field { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum metadata_field { METADATA_PLUGIN = 1, METADATA_CLASS = 4 };
enum plugin_field { PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum tensor_field { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRINGS = 8 };
enum { TYPE_STRING = 7, CLASS_TENSOR = 2 };
enum hparams_field { HPARAMS_START = 3, HPARAMS_END = 4 };
enum start_field { START_SETTINGS = 1, START_GROUP = 4, START_CLOCK = 5 };
enum end_field { END_OUTCOME = 1, END_CLOCK = 2 };
enum entry_field { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum variant_field { VARIANT_NUMBER = 2, VARIANT_STRING = 3, VARIANT_BOOLEAN = 4 };

static struct text begin_event(const struct event_time *time)
{
    struct text event = {0};
    add_double(&event, EVENT_CLOCK, time->clock);
    add_integer(&event, EVENT_STEP, (uint64_t)time->step);
    return event;
}

static void end_event(struct event_file *file, struct text *event)
{
    add_record(file, event);
    text_free(event);
}

static void add_value(struct event_file *file, const struct event_time *time, struct text *value)
{
    struct text event = begin_event(time), summary = {0};
    add_message(&summary, SUMMARY_VALUE, value);
    add_message(&event, EVENT_SUMMARY, &summary);
    end_event(file, &event);
}

void event_file_begin(struct event_file *file, double clock)
{
    struct text event = begin_event(&(struct event_time){.clock = clock});
    add_string(&event, EVENT_FILE_VERSION, "brain.Event:2");
    end_event(file, &event);
}

void event_file_scalar(struct event_file *file, const struct event_time *time, const char *tag, double number)
{
    struct text value = {0};
    add_string(&value, VALUE_TAG, tag);
    add_float(&value, VALUE_SIMPLE, (float)number);
    add_value(file, time, &value);
}

void event_file_text(struct event_file *file, const struct event_time *time, const char *tag, const char *markdown)
{
    struct text value = {0}, metadata = {0}, plugin = {0}, tensor = {0}, scalar_shape = {0};
    add_string(&plugin, PLUGIN_NAME, "text");
    add_message(&metadata, METADATA_PLUGIN, &plugin);
    add_integer(&metadata, METADATA_CLASS, CLASS_TENSOR);
    add_integer(&tensor, TENSOR_TYPE, TYPE_STRING);
    add_message(&tensor, TENSOR_SHAPE, &scalar_shape);
    add_string(&tensor, TENSOR_STRINGS, markdown);
    add_string(&value, VALUE_TAG, tag);
    add_message(&value, VALUE_TENSOR, &tensor);
    add_message(&value, VALUE_METADATA, &metadata);
    add_value(file, time, &value);
}

/* The data of a plugin on a tag without values; frees message. */
static void add_plugin_data(struct event_file *file, const struct event_time *time, const char *tag,
                            enum hparams_field field, struct text *message)
{
    struct text value = {0}, metadata = {0}, plugin = {0}, content = {0};
    add_message(&content, field, message);
    add_string(&plugin, PLUGIN_NAME, "hparams");
    add_message(&plugin, PLUGIN_CONTENT, &content);
    add_message(&metadata, METADATA_PLUGIN, &plugin);
    add_string(&value, VALUE_TAG, tag);
    add_message(&value, VALUE_METADATA, &metadata);
    add_value(file, time, &value);
}

static void add_setting(struct text *start, const struct event_setting *setting)
{
    struct text entry = {0}, variant = {0};
    double number;
    bool is_true = strcmp(setting->value, "true") == 0;
    if (parse_real(setting->value, &number))
        add_double(&variant, VARIANT_NUMBER, number);
    else if (is_true || strcmp(setting->value, "false") == 0)
        add_integer(&variant, VARIANT_BOOLEAN, is_true);
    else
        add_string(&variant, VARIANT_STRING, setting->value);
    add_string(&entry, ENTRY_KEY, setting->key);
    add_message(&entry, ENTRY_VALUE, &variant);
    add_message(start, START_SETTINGS, &entry);
}

void event_file_settings(struct event_file *file, const struct event_time *time, const char *group,
                         const struct event_setting *settings, size_t count)
{
    struct text start = {0};
    for (size_t i = 0; i < count; i++)
        add_setting(&start, &settings[i]);
    add_string(&start, START_GROUP, group);
    add_double(&start, START_CLOCK, time->clock);
    add_plugin_data(file, time, "_hparams_/session_start_info", HPARAMS_START, &start);
}

void event_file_end(struct event_file *file, const struct event_time *time, enum event_outcome outcome)
{
    struct text end = {0};
    add_integer(&end, END_OUTCOME, outcome);
    add_double(&end, END_CLOCK, time->clock);
    add_plugin_data(file, time, "_hparams_/session_end_info", HPARAMS_END, &end);
}

void event_file_free(struct event_file *file)
{
    text_free(&file->bytes);
}
