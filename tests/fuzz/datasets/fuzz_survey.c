/* Files of what was found in images. The header gets right checksums, so that what it claims is looked at: the number of
 * records, of which the input has as many as follow. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/survey/survey_layout.h"
#include "tests/fuzz/input_file.h"

static void read_all(const uint8_t *data, size_t size, const struct survey_label *label)
{
    struct input_file input;
    struct survey_file file;
    struct survey_label found;
    struct survey_record record = {.name = survey_name("new.jpg"), .width = 1, .height = 1};
    struct error error;
    size_t count;
    input_file_open(&input, data, size);
    survey_file_describe(input.path, &found, &count, &error);
    if (survey_file_read(&file, input.path, label, &error) == OK) {
        fuzz_touch(file.records, file.count * sizeof *file.records);
        for (size_t i = 0; i < file.count; i++)
            if (survey_file_find(&file, file.records[i].name) != &file.records[i])
                abort();
        survey_file_add(&file, &record, 1);
        if (survey_file_find(&file, record.name) == NULL)
            abort();
        survey_file_free(&file);
    }
    input_file_close(&input);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct survey_header header;
    memset(&header, 0, sizeof header);
    read_all(data, size, &header.label);
    if (size < sizeof header.count)
        return 0;
    size_t left = size - sizeof header.count, records = left / sizeof(struct survey_record);
    uint8_t *file = malloc(sizeof header + left + sizeof(struct survey_record));
    if (file == NULL)
        return 0;
    memcpy(file + sizeof header, data + sizeof header.count, left);
    memcpy(header.magic, SURVEY_MAGIC, sizeof header.magic);
    header.byte_order = SURVEY_BYTE_ORDER;
    header.count = records;
    survey_header_seal(&header, (const struct survey_record *)(const void *)(file + sizeof header));
    memcpy(&header.count, data, sizeof header.count);
    header.checksum = survey_header_checksum(&header);
    memcpy(file, &header, sizeof header);
    read_all(file, sizeof header + left, &header.label);
    free(file);
    return 0;
}
