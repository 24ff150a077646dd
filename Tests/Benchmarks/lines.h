// Avro payloads to the lines of pubsub-etl (LinesAndColumns.md), for one schema, as fast as we can write it by hand.
//
// It knows what schemas of Salesforce have: fields that are [null, scalar], [null, record of scalars] or both. A run of
// null branches is a run of zero bytes, skipped 32 at a time; keys are rendered once. It has no budgets and no dead
// letters: an event that it cannot read ends the program.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "wire.h"

namespace lines {

using google::protobuf::Value;
using wire::fail;

// The reader and the writer may touch so many bytes after the end.
constexpr size_t padding = 64;

enum class Kind { null, boolean, integer, real, single, text, record };
enum class Meaning { none, dateTime, date, time };

struct Scalar {
  Kind kind;
  Meaning meaning = Meaning::none;
};

struct Column {
  std::string name, key, null;

  explicit Column(const std::string &name)
      : name("\"" + name + "\""), key(",\"" + name + "\":"), null(key + "null") {}
};

struct Child {
  Column column;
  std::vector<Scalar> branches;
};

struct Field {
  Column column;
  std::vector<Scalar> branches;
  std::vector<Child> children;
  bool isNullable = false, hasScalar = false;
  // From this field on, so many begin their union with null.
  size_t run = 0;
};

inline const Value &member(const Value &object, const std::string &name) {
  static const Value none;
  auto &fields = object.struct_value().fields();
  auto found = fields.find(name);
  return found == fields.end() ? none : found->second;
}

// The schema of a topic as a plan.
class Plan {
 public:
  std::vector<Field> fields;
  std::vector<std::string> changeTypes;
  std::string entity;
  bool isChange = false;

  explicit Plan(const std::string &schema) {
    Value document;
    if (!google::protobuf::util::JsonStringToMessage(schema, &document).ok()) fail("the schema is not JSON");
    auto &list = member(document, "fields").list_value().values();
    isChange = member(list[0], "name").string_value() == "ChangeEventHeader";
    if (isChange) {
      auto &header = member(member(list[0], "type"), "fields").list_value().values();
      for (auto &symbol : member(member(header[2], "type"), "symbols").list_value().values())
        changeTypes.push_back(symbol.string_value());
    } else {
      entity = member(document, "name").string_value();
    }
    for (auto &field : list) fields.push_back(compile(field));
    for (size_t index = fields.size(); index-- > 0;) {
      if (!fields[index].isNullable) continue;
      fields[index].run = 1 + (index + 1 < fields.size() ? fields[index + 1].run : 0);
    }
  }

 private:
  std::map<std::string, Value> records_;

  Field compile(const Value &field) {
    std::string name = member(field, "name").string_value(), doc = member(field, "doc").string_value();
    Field made{Column(name), {}, {}};
    if (name == "ChangeEventHeader") return made;
    auto &type = member(field, "type");
    if (!type.has_list_value()) {
      made.branches.push_back(scalar(type.string_value(), doc));
      made.hasScalar = true;
      return made;
    }
    for (auto &branch : type.list_value().values()) {
      std::string word = branch.string_value();
      if (member(branch, "type").string_value() == "record") {
        word = member(branch, "name").string_value();
        records_[word] = branch;
      }
      if (records_.count(word)) {
        made.branches.push_back({Kind::record});
        for (auto &child : member(records_[word], "fields").list_value().values()) {
          Child part{Column(name + "_" + member(child, "name").string_value()), {}};
          for (auto &choice : member(child, "type").list_value().values())
            part.branches.push_back(scalar(choice.string_value(), ""));
          made.children.push_back(part);
        }
        if (made.children.size() > 64) fail(name + " has more than 64 parts");
      } else {
        made.branches.push_back(scalar(word, doc));
        made.hasScalar |= word != "null";
      }
    }
    made.isNullable = made.branches[0].kind == Kind::null;
    return made;
  }

  static Scalar scalar(const std::string &type, const std::string &doc) {
    static const std::map<std::string, Kind> kinds = {
        {"null", Kind::null}, {"boolean", Kind::boolean}, {"int", Kind::integer}, {"long", Kind::integer},
        {"double", Kind::real}, {"float", Kind::single}, {"string", Kind::text}};
    auto found = kinds.find(type);
    if (found == kinds.end()) fail("the bound does not know the type '" + type + "'");
    Meaning meaning = Meaning::none;
    if (type == "long") {
      auto colon = doc.find(':');
      std::string word = colon == std::string::npos ? "" : doc.substr(colon + 1);
      word = word.substr(0, word.find(':'));
      if (word == "DateTime") meaning = Meaning::dateTime;
      if (word == "DateOnly" || word == "Birthday") meaning = Meaning::date;
      if (word == "TimeOnly") meaning = Meaning::time;
    }
    return {found->second, meaning};
  }
};

// Reads a payload. `padding` bytes after it can be read.
class Input {
 public:
  explicit Input(std::string_view bytes) : at_((const uint8_t *)bytes.data()), end_(at_ + bytes.size()) {}

  bool isAtEnd() const { return at_ == end_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= end_) break;
      uint8_t byte = *at_++;
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail("a payload ends inside a number");
  }

  int64_t number() {
    uint64_t value = varint();
    return int64_t(value >> 1) ^ -int64_t(value & 1);
  }

  const uint8_t *bytes(size_t count) {
    if (size_t(end_ - at_) < count) fail("a payload ends inside a value");
    at_ += count;
    return at_ - count;
  }

  std::string_view text() {
    size_t count = size_t(number());
    return {(const char *)bytes(count), count};
  }

  // Calls `each` with the texts of an array.
  template <typename Body>
  void texts(Body each) {
    while (int64_t count = number()) {
      if (count < 0) {
        count = -count;
        number();
      }
      while (count-- > 0) each(text());
    }
  }

  // Skips null branches, `limit` at most; returns their number.
  size_t nulls(size_t limit) {
    limit = std::min(limit, size_t(end_ - at_));
    size_t count = 0;
#ifdef __AVX2__
    while (count < limit) {
      auto block = _mm256_loadu_si256((const __m256i *)(at_ + count));
      auto other = ~uint32_t(_mm256_movemask_epi8(_mm256_cmpeq_epi8(block, _mm256_setzero_si256())));
      count += other ? size_t(__builtin_ctz(other)) : 32;
      if (other) break;
    }
    count = std::min(count, limit);
#else
    while (count < limit && at_[count] == 0) count++;
#endif
    at_ += count;
    return count;
  }

 private:
  const uint8_t *at_, *end_;
};

inline bool isUTF8(std::string_view text) {
  auto byte = [&](size_t index) { return index < text.size() ? uint8_t(text[index]) : uint8_t(0); };
  for (size_t at = 0; at < text.size();) {
    uint8_t lead = byte(at), second = byte(at + 1);
    if (lead < 0x80) {
      at++;
      continue;
    }
    size_t more = lead >= 0xC2 && lead < 0xE0 ? 1 : (lead & 0xF0) == 0xE0 ? 2 : lead >= 0xF0 && lead < 0xF5 ? 3 : 0;
    if (more == 0) return false;
    for (size_t index = 1; index <= more; index++)
      if ((byte(at + index) & 0xC0) != 0x80) return false;
    if (lead == 0xE0 && second < 0xA0) return false;
    if (lead == 0xED && second > 0x9F) return false;
    if (lead == 0xF0 && second < 0x90) return false;
    if (lead == 0xF4 && second > 0x8F) return false;
    at += more + 1;
  }
  return true;
}

// Writes JSON. The caller makes room.
class Output {
 public:
  char *at = nullptr;

  void raw(std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  }

  void natural(uint64_t value) { at = std::to_chars(at, at + 20, value).ptr; }

  void integer(int64_t value) { at = std::to_chars(at, at + 20, value).ptr; }

  void padded(unsigned value, int width) {
    for (int index = width; index-- > 0; value /= 10) at[index] = char('0' + value % 10);
    at += width;
  }

  template <typename Number>
  void real(Number value) {
    if (!std::isfinite(value)) fail("the bound does not know NaN and infinities");
    char *begin = at;
    // Whole numbers, which most are, need no search for the shortest form.
    if (std::abs(value) < 1e15 && std::trunc(value) == value && (value != 0 || !std::signbit(value))) {
      integer(int64_t(value));
      return raw(".0");
    }
    at = std::to_chars(at, at + 40, value).ptr;
    if (std::find_if(begin, at, [](char c) { return c == '.' || c == 'e'; }) == at) raw(".0");
  }

  void day(int64_t days) {
    // Howard Hinnant's civil_from_days.
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    auto dayOfEra = unsigned(z - era * 146097);
    unsigned yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
    unsigned dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
    unsigned part = (5 * dayOfYear + 2) / 153, month = part < 10 ? part + 3 : part - 9;
    padded(unsigned(int64_t(yearOfEra) + era * 400 + (month <= 2)), 4);
    *at++ = '-';
    padded(month, 2);
    *at++ = '-';
    padded(dayOfYear - (153 * part + 2) / 5 + 1, 2);
  }

  void time(unsigned milliseconds) {
    unsigned seconds = milliseconds / 1000;
    padded(seconds / 3600, 2);
    *at++ = ':';
    padded(seconds / 60 % 60, 2);
    *at++ = ':';
    padded(seconds % 60, 2);
    *at++ = '.';
    padded(milliseconds % 1000, 3);
  }

  void moment(int64_t milliseconds, Meaning meaning) {
    constexpr int64_t dayLength = 86'400'000;
    int64_t days = milliseconds / dayLength - (milliseconds % dayLength < 0);
    *at++ = '"';
    if (meaning != Meaning::time) day(days);
    if (meaning == Meaning::dateTime) *at++ = 'T';
    if (meaning != Meaning::date) time(unsigned(milliseconds - days * dayLength));
    if (meaning == Meaning::dateTime) *at++ = 'Z';
    *at++ = '"';
  }

  void text(std::string_view value) {
    *at++ = '"';
    size_t index = 0;
    bool isASCII = true;
#ifdef __AVX2__
    const auto quote = _mm256_set1_epi8('"'), slash = _mm256_set1_epi8('\\'), control = _mm256_set1_epi8(31);
    for (; index < value.size(); index += 32) {
      auto block = _mm256_loadu_si256((const __m256i *)(value.data() + index));
      _mm256_storeu_si256((__m256i *)(at + index), block);
      auto special = _mm256_or_si256(_mm256_cmpeq_epi8(block, quote), _mm256_cmpeq_epi8(block, slash));
      special = _mm256_or_si256(special, _mm256_cmpeq_epi8(_mm256_max_epu8(block, control), control));
      auto escapes = uint32_t(_mm256_movemask_epi8(special)), high = uint32_t(_mm256_movemask_epi8(block));
      size_t left = value.size() - index;
      uint32_t inside = left < 32 ? (1u << left) - 1 : ~0u;
      isASCII &= (high & inside) == 0;
      if (escapes & inside) {
        at += index;
        return escaped(value, index);
      }
    }
    at += value.size();
    if (!isASCII && !isUTF8(value)) fail("a text is not UTF-8");
    *at++ = '"';
#else
    escaped(value, 0);
#endif
  }

 private:
  void escaped(std::string_view value, size_t index) {
    if (!isUTF8(value)) fail("a text is not UTF-8");
    for (; index < value.size(); index++) {
      auto byte = uint8_t(value[index]);
      if (byte == '"' || byte == '\\') *at++ = '\\';
      if (byte >= 32) {
        *at++ = char(byte);
      } else {
        raw("\\u00");
        *at++ = "01"[byte >> 4];
        *at++ = "0123456789abcdef"[byte & 15];
      }
    }
    *at++ = '"';
  }
};

}  // namespace lines
