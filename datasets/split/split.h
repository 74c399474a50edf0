/* The seeded 80/20 split for datasets without one, equal to PyTorch's.
 *
 *     size_t train = split_train_count(n);
 *     split_permutation(SPLIT_SEED, n, order);      // train: order[0 … train−1], test: the rest, in that order
 *
 * torch.utils.data.random_split with a fresh CPU generator: randperm by MT19937 (Matsumoto and Nishimura, 1998), one
 * 32-bit draw per position and no rejection. Everything else in this project draws from core/rng.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SPLIT_SEED = 42 };          /* the benchmark's */
#define SPLIT_ITEMS_MOST 214748364 /* above this torch uses another algorithm */

/* torch.randperm(n) into order [n]; n below SPLIT_ITEMS_MOST. Only the seed's low 32 bits count. */
void split_permutation(uint64_t seed, size_t n, uint32_t *order);

/* np.random.seed(seed); np.random.permutation(n) into order [n], n below 2^32: NumPy's legacy generator, which shuffles from the
 * end and draws again what is out of range. */
void split_numpy_permutation(uint32_t seed, size_t n, uint32_t *order);

size_t split_train_count(size_t n); /* (long)(0.8 · n) */
