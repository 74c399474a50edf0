/* Internal: the layout of a survey file, shared with the tests: the header, then `count` records sorted by name. */
#ifndef MTIL_DATASETS_SURVEY_SURVEY_LAYOUT_H
#define MTIL_DATASETS_SURVEY_SURVEY_LAYOUT_H

#include "datasets/survey/survey_file.h"

#define SURVEY_MAGIC "mtilsrv1" /* the last character changes with the layout */

enum { SURVEY_BYTE_ORDER = 0x01020304 };

struct survey_header {
    char magic[8];
    uint32_t byte_order, unused;
    uint64_t count, records_checksum[2];
    struct survey_label label;
    uint64_t checksum; /* of all that is before it */
};
_Static_assert(sizeof(struct survey_header) == 40 + sizeof(struct survey_label) + 8, "without gaps");
_Static_assert(sizeof(struct survey_record) == 72, "without gaps");

uint64_t survey_header_checksum(const struct survey_header *header);
void survey_header_seal(struct survey_header *header, const struct survey_record *records); /* both checksums */

#endif
