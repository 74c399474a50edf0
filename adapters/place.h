/* Which blocks of which towers have adapters, and which of them share.
 *
 *     struct adapter_place place = {0};                                     // all blocks of both towers
 *     TRY(block_choice_read(&place.blocks, words, count, error));           // "last_4", or "0", "3", "5"
 *     TRY(adapter_place_check("adapter", &place, &dimensions, error));
 *     if (adapter_place_has(&place, &dimensions, TOWER_IMAGE, 3)) …
 */
#pragma once

#include "core/text.h"
#include "models/block.h"
#include "models/files/clip_file.h"

enum block_rule {
    BLOCKS_ALL,
    BLOCKS_FIRST,    /* n of them */
    BLOCKS_LAST,     /* n of them */
    BLOCKS_EVERY,    /* the n-th, the 2n-th, …: every_2 is 1, 3, 5 */
    BLOCKS_BY_SCORE, /* the n of each tower with the highest scores, chosen before training (statistics.h) */
    BLOCKS_LISTED
};
struct block_choice {
    enum block_rule rule;
    size_t n;
    uint64_t listed[TOWERS]; /* bit i: block i of that tower, counted from 0 */
};

enum adapted_towers { ADAPT_BOTH, ADAPT_IMAGE, ADAPT_TEXT };
#define ADAPTED_TOWERS_CHOICES "both|image|text"

struct adapter_place {
    struct block_choice blocks; /* of either tower */
    enum adapted_towers towers;
    /* Runs of equal length into which the blocks with adapters of each tower are cut. The blocks of a run share one bank of
     * experts and one router (banks), or the routing decision of the first block (decisions). 0: each block has its own. */
    size_t banks, decisions;
};

/* From "all", "first_N", "last_N", "every_N", "by_score_N", or blocks: "3" of either tower, "image.3" or "text.3" of one.
 * ERROR_ARGUMENT without a file or key in its message. */
status block_choice_read(struct block_choice *choice, const char *const *words, size_t count, struct error *error);
/* Reads the choice from one text, whose words are separated by commas or spaces. */
status block_choice_parse(struct block_choice *choice, const char *text, struct error *error);
void block_choice_write(const struct block_choice *choice, struct text *text); /* the words, separated by ", " */

const char *adapted_towers_name(enum adapted_towers towers);

/* Whether a block has adapters. Before there are scores, BLOCKS_BY_SCORE means the last n, so that counts and costs
 * are right. */
bool adapter_place_has(const struct adapter_place *place, const struct clip_dimensions *dimensions, enum tower tower,
                       size_t block);
size_t adapter_place_count(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                           enum tower tower); /* blocks of a tower with adapters */

/* The same for blocks with experts of their own: all, or the first of each run. */
bool adapter_place_has_bank(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                            enum tower tower, size_t block);
size_t adapter_place_count_banks(const struct adapter_place *place, const struct clip_dimensions *dimensions,
                                 enum tower tower);

/* ERROR_ARGUMENT where blocks share their routing but not their experts. */
status adapter_place_check_sharing(const struct adapter_place *place, struct error *error);

/* The same check, and whether a model of these dimensions has every block that is named, adapters in each of the adapted
 * towers, and runs of equal length. */
status adapter_place_check(const char *section, const struct adapter_place *place,
                           const struct clip_dimensions *dimensions, struct error *error);
