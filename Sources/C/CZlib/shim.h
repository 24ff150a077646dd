#pragma once
#include <zlib.h>

// Macros that pass the size of the structure do not reach Swift.
static inline int c_inflate_init(z_stream *stream, int window_bits) {
  return inflateInit2(stream, window_bits);
}
static inline int c_deflate_init(z_stream *stream, int window_bits) {
  return deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, 8,
                      Z_DEFAULT_STRATEGY);
}
