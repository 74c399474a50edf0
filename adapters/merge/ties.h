/* The arithmetic of TIES merging (Yadav et al., NeurIPS 2023, arXiv 2306.01708), for experts and for whole models.
 *
 *     ties_trim(values, n, density, trimmed);                       // of each model
 *     merged[i] = ties_elect(positive, positives, negative, negatives);
 */
#pragma once

#include <stddef.h>

/* trimmed [n]: the ⌊density · n⌋ values of largest magnitude (ties: the first ones), zero elsewhere. Values are finite;
 * trimmed may be values itself. */
void ties_trim(const float *values, size_t n, double density, float *trimmed);

/* The mean of the trimmed values of one entry that have the sign of their sum; 0 where the sum is 0. positive, negative:
 * the sums of those above and below 0, of which there are positives and negatives. */
float ties_elect(double positive, size_t positives, double negative, size_t negatives);
