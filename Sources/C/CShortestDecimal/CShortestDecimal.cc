#include "CShortestDecimal.h"

#include <charconv>

// The longest shortest form of a double has 24 bytes (-2.2250738585072014e-308); the capacity
// leaves room, so to_chars cannot fail.
extern "C" size_t shortest_decimal_double(double value, char *out) {
  return std::to_chars(out, out + SHORTEST_DECIMAL_CAPACITY, value).ptr - out;
}

extern "C" size_t shortest_decimal_float(float value, char *out) {
  return std::to_chars(out, out + SHORTEST_DECIMAL_CAPACITY, value).ptr - out;
}

extern "C" int parse_decimal_double(const char *text, size_t count, double *value) {
  const auto result = std::from_chars(text, text + count, *value);
  return result.ec == std::errc() && result.ptr == text + count;
}
