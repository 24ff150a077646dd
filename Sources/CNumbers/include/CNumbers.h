#ifndef CNUMBERS_H
#define CNUMBERS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Room that the functions below need at `out`.
enum { CNUMBERS_SHORTEST_CAPACITY = 40 };

/// Shortest decimal text that reads back as the same value, fixed or scientific, whichever is
/// shorter; not terminated. For finite values. Returns the count of bytes written.
size_t cnumbers_shortest_double(double value, char *out);
size_t cnumbers_shortest_float(float value, char *out);

#ifdef __cplusplus
}
#endif

#endif
