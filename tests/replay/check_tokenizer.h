/* Checks the tokenizer against a folder like fixtures/data/tokenizer: tokens.jsonl and a vocabulary. Where that lies
 * elsewhere, it is taken from the fixtures beside the project.
 *
 *     int failed = check_tokenizer("fixtures/data/tokenizer");
 *
 * Prints "tokenizer: N items, D deviations, S skipped (ftfy repairs that are left out)", and before it the first deviations.
 */
#pragma once

/* 0 when every line that was not skipped agrees and at least one was compared; 1 otherwise. */
int check_tokenizer(const char *folder);
