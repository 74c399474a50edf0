/* Of tests: a call that ends the program, which runs in a child. */
#ifndef MTIL_TESTS_FAULT_H
#define MTIL_TESTS_FAULT_H

/* It aborts, and says all words, ended by NULL, on standard error. */
void expect_fault(void (*call)(void), const char *const *words);

#endif
