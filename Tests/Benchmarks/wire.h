// The parts of Protocol Buffers that the service and the bound need, written by hand for speed.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace wire {

[[noreturn]] inline void fail(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::_Exit(1);
}

inline std::string fileContent(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void appendVarint(std::string &out, uint64_t value) {
  for (; value > 127; value >>= 7) out += char((value & 127) | 128);
  out += char(value);
}

inline void appendBytes(std::string &out, unsigned field, std::string_view bytes) {
  appendVarint(out, field << 3 | 2);
  appendVarint(out, bytes.size());
  out += bytes;
}

inline void appendNumber(std::string &out, unsigned field, uint64_t value) {
  appendVarint(out, field << 3);
  appendVarint(out, value);
}

// Reads the fields of a message, of which all are varints or delimited by their length.
class Reader {
 public:
  explicit Reader(std::string_view message) : at_(message.data()), end_(at_ + message.size()) {}

  // Whether another field follows; `field` and either `number` or `bytes` are set then.
  bool next() {
    if (at_ >= end_) return false;
    uint64_t tag = varint();
    field = unsigned(tag >> 3);
    number = varint();
    if ((tag & 7) == 0) return true;
    if ((tag & 7) != 2 || number > uint64_t(end_ - at_)) fail("a message is malformed");
    bytes = {at_, size_t(number)};
    at_ += number;
    return true;
  }

  unsigned field = 0;
  uint64_t number = 0;
  std::string_view bytes;

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; at_ < end_ && shift < 64; shift += 7) {
      auto byte = uint8_t(*at_++);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail("a message is malformed");
  }

  const char *at_, *end_;
};

inline grpc::ByteBuffer buffer(const std::string &message) {
  grpc::Slice slice(message);
  return {&slice, 1};
}

// Copies a message into `out` with `padding` bytes of room after it.
inline std::string_view flatten(const grpc::ByteBuffer &message, std::string &out, size_t padding = 0) {
  std::vector<grpc::Slice> slices;
  message.Dump(&slices);
  size_t size = message.Length();
  if (out.size() < size + padding) out.resize(size + padding);
  char *to = out.data();
  for (auto &slice : slices) to = std::copy(slice.begin(), slice.end(), to);
  return {out.data(), size};
}

}  // namespace wire
