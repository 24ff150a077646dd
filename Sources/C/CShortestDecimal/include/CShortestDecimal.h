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

/// Reads decimal text, fixed or scientific, to the nearest value. Returns 0 when the text is anything
/// else, has anything before or behind it, or is out of range; `*value` is then undefined.
int parse_decimal_double(const char *text, size_t count, double *value);

#ifdef __cplusplus
}
#endif

#endif
