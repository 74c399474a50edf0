/* CLIP's byte-pair encoding, and the SentencePiece models of SigLIP and SigLIP 2 (models/tokenizer/sentencepiece.h).
 *
 *     struct tokenizer *tokenizer;
 *     TRY(tokenizer_open(&tokenizer, "bpe_simple_vocab_16e6.txt.gz", error));   // or a folder with vocab.json and merges.txt
 *     int32_t row[77];
 *     size_t tokens;                                                            // of the text before it is cut
 *     TRY(tokenizer_encode(tokenizer, "a photo of a cat.", row, 77, &tokens, error));
 *
 * The text is cleaned as in the reference (models/tokenizer/clean.h lists the steps, and the rules of ftfy that are left out):
 * ftfy's cheap rules, HTML entities twice, white space, lower case. It is then split by a regular expression and merged by
 * rank (Sennrich et al., ACL 2016).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"

struct tokenizer;

/* path: OpenAI's gzipped merges (.txt.gz or .txt), a folder that holds vocab.json and merges.txt (or either file of it), or
 * else tokenizer.json, or that file;
 * for SigLIP a SentencePiece model, whose name ends in .model. */
status tokenizer_open(struct tokenizer **tokenizer, const char *path, struct error *error);

void tokenizer_close(struct tokenizer *tokenizer); /* NULL is allowed */
SCOPED_POINTER(struct tokenizer, tokenizer_close)

size_t tokenizer_vocabulary(const struct tokenizer *tokenizer); /* ids are below this */
int32_t tokenizer_start(const struct tokenizer *tokenizer);     /* −1: SigLIP has none */
int32_t tokenizer_end(const struct tokenizer *tokenizer);       /* CLIP's: the highest id */
int32_t tokenizer_pad(
    const struct tokenizer *tokenizer); /* what stands after the end: CLIP 0, SigLIP its end, SigLIP 2 <pad> */

/* Fills row[context], context >= 2: start (but for SigLIP), pieces, end, padding. A text with more than context tokens keeps
 * its end token in the last place; *tokens is its full length, so the caller can warn. Text that is not UTF-8 or longer than 64
 * KiB is an error. Safe to call from several threads. */
status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *row, size_t context,
                        size_t *tokens, struct error *error);
