#ifndef CSHORTEST_DECIMAL_H
#define CSHORTEST_DECIMAL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Room that the functions below need at `out`.
enum { SHORTEST_DECIMAL_CAPACITY = 40 };

/// Shortest decimal text that reads back as the same value, fixed or scientific, whichever is
/// shorter; not terminated. For finite values. Returns the count of bytes written.
size_t shortest_decimal_double(double value, char *out);
size_t shortest_decimal_float(float value, char *out);

#ifdef __cplusplus
}
#endif

#endif
