// One event of the bound: the header with its bitmaps, the fields, and the line or lines made of them.
#pragma once

#include "lines.h"

namespace lines {

// Fields that a list of the header names, and the parts of fields.
struct FieldSet {
  std::vector<uint64_t> words;
  std::vector<std::pair<size_t, uint64_t>> parts;

  void reset(size_t count) {
    words.assign((count + 63) / 64, 0);
    parts.clear();
  }

  bool has(size_t field) const { return words[field / 64] >> field % 64 & 1; }

  // An entry of the header: "0x…" of fields, or "12-0x…" of the parts of field 12.
  void add(std::string_view entry) {
    size_t x = entry.find('x');
    if (x == std::string_view::npos) fail("a bitmap is malformed");
    bool isTop = entry.size() > 1 && entry[0] == '0' && x == 1;
    size_t parent = 0;
    if (!isTop) std::from_chars(entry.data(), entry.data() + entry.size(), parent);
    uint64_t mask = 0;
    size_t bit = 0;
    for (size_t index = entry.size(); index-- > x + 1; bit += 4) {
      auto byte = uint8_t(entry[index]);
      uint64_t digit = byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10;
      if (digit == 0) continue;
      if (!isTop) {
        mask |= digit << bit;
      } else {
        if (bit / 64 >= words.size()) fail("a bitmap names a field that does not exist");
        words[bit / 64] |= digit << bit % 64;
      }
    }
    if (!isTop) parts.push_back({parent, mask});
  }

  template <typename Body>
  void forEach(size_t from, size_t to, Body body) const {
    for (size_t word = from / 64; word * 64 < to; word++) {
      uint64_t bits = words[word];
      if (word == from / 64) bits &= ~0ull << from % 64;
      for (; bits; bits &= bits - 1) {
        size_t field = word * 64 + size_t(__builtin_ctzll(bits));
        if (field >= to) return;
        body(field);
      }
    }
  }
};

struct Options {
  std::string topic;
  // A line per record, with every column; else a line per event without `_topic`, `_event_id` and `_kind`.
  bool isComplete;
};

class Encoder {
 public:
  Encoder(const std::string &schema, Options options) : plan_(schema), options_(std::move(options)) {
    if (options_.isComplete) head_ = "{\"_topic\":\"" + options_.topic + "\",\"_replay_id\":\"";
    else head_ = "{\"_replay_id\":\"";
    partsOf_.assign(plan_.fields.size(), 0);
    hasScalarValue_.assign(plan_.fields.size(), false);
    for (auto &field : plan_.fields) {
      size_t nulls = field.column.null.size();
      for (auto &child : field.children) nulls += child.column.null.size();
      valuesSize_ += nulls + padding;
      namesSize_ += 3 * nulls;
    }
  }

  // Reads an event. Its lines have at most so many bytes.
  size_t read(std::string_view payload) {
    clear();
    size_t size = 6 * payload.size() + valuesSize_;
    if (text_.size() < size) text_.resize(size);
    Input in(payload);
    if (plan_.isChange) readHeader(in);
    Output body{text_.data()};
    fields(in, body);
    if (!in.isAtEnd()) fail("a payload has bytes after its end");
    values_ = {text_.data(), size_t(body.at - text_.data())};
    return (plan_.isChange ? recordIDs_.size() : 1) * (values_.size() + namesSize_ + 4096);
  }

  // Writes the lines of the event that was read last, whose bytes are still there.
  void write(std::string_view eventID, std::string_view schemaID, std::string_view replayID, Output &out) {
    const char *begin = out.at;
    out.raw(head_);
    for (char byte : replayID) {
      *out.at++ = "0123456789abcdef"[uint8_t(byte) >> 4];
      *out.at++ = "0123456789abcdef"[byte & 15];
    }
    if (options_.isComplete) {
      out.raw("\",\"_event_id\":\"");
      out.raw(eventID);
    }
    out.raw("\",\"_schema_id\":\"");
    out.raw(schemaID);
    if (options_.isComplete) out.raw(plan_.isChange ? "\",\"_kind\":\"change" : "\",\"_kind\":\"event");
    out.raw("\",\"_entity\":");
    if (!plan_.isChange) {
      out.text(plan_.entity);
      out.raw(values_);
      return out.raw("}\n");
    }
    out.text(entity_);
    out.raw(",\"_change_type\":\"");
    out.raw(plan_.changeTypes[changeType_]);
    *out.at++ = '"';
    records(begin, out);
  }

 private:
  void readHeader(Input &in) {
    entity_ = in.text();
    recordIDs_.clear();
    in.texts([&](std::string_view id) { recordIDs_.push_back(id); });
    changeType_ = size_t(in.number());
    if (changeType_ >= plan_.changeTypes.size()) fail("a change type does not exist");
    origin_ = in.text();
    transaction_ = in.text();
    sequence_ = in.number();
    timestamp_ = in.number();
    commit_ = in.number();
    user_ = in.text();
    for (FieldSet *set : {&nulled_, &diff_, &changed_}) {
      set->reset(plan_.fields.size());
      in.texts([&](std::string_view entry) { set->add(entry); });
    }
    // An update says which fields it touches; those without a value are null.
    touched_.reset(plan_.fields.size());
    if (plan_.changeTypes[changeType_] != "UPDATE") return;
    for (size_t word = 0; word < touched_.words.size(); word++)
      touched_.words[word] = nulled_.words[word] | changed_.words[word];
    for (FieldSet *set : {&nulled_, &changed_}) {
      for (auto [parent, mask] : set->parts) {
        partsOf_.at(parent) |= mask;
        touched_.parts.push_back({parent, mask});
      }
    }
  }

  void clear() {
    for (auto [parent, _] : touched_.parts) partsOf_[parent] = 0;
    for (size_t field : withScalar_) hasScalarValue_[field] = false;
    withScalar_.clear();
    isRecord_.clear();
  }

  void fields(Input &in, Output &out) {
    size_t count = plan_.fields.size();
    for (size_t index = plan_.isChange ? 1 : 0; index < count; index++) {
      const Field &field = plan_.fields[index];
      if (field.run) {
        size_t skipped = in.nulls(field.run);
        if (plan_.isChange && skipped) nulls(index, index + skipped, out);
        index += skipped;
        if (index >= count) break;
      }
      value(plan_.fields[index], index, in, out);
    }
  }

  // What an update has set to null among these fields, which have no value.
  void nulls(size_t from, size_t to, Output &out) {
    size_t next = from;
    auto one = [&](size_t index) {
      const Field &field = plan_.fields[index];
      bool isTouched = touched_.has(index);
      if (isTouched && field.hasScalar) out.raw(field.column.null);
      for (size_t part = 0; part < field.children.size(); part++)
        if (isTouched || partsOf_[index] >> part & 1) out.raw(field.children[part].column.null);
    };
    if (touched_.parts.empty()) return touched_.forEach(from, to, one);
    for (; next < to; next++)
      if (touched_.has(next) || partsOf_[next]) one(next);
  }

  void value(const Field &field, size_t index, Input &in, Output &out) {
    size_t branch = field.branches.size() > 1 ? size_t(in.number()) : 0;
    if (branch >= field.branches.size()) fail("a union has no such branch");
    const Scalar &type = field.branches[branch];
    if (type.kind == Kind::null) return nulls(index, index + 1, out);
    if (type.kind != Kind::record) {
      out.raw(field.column.key);
      scalar(type, in, out);
      if (field.children.empty()) return;
      hasScalarValue_[index] = true;
      withScalar_.push_back(index);
      for (size_t part = 0; part < field.children.size(); part++)
        if (partsOf_[index] >> part & 1) out.raw(field.children[part].column.null);
      return;
    }
    bool isTouched = plan_.isChange && touched_.has(index);
    for (size_t part = 0; part < field.children.size(); part++) {
      const Child &child = field.children[part];
      auto choice = size_t(in.number());
      if (choice >= child.branches.size()) fail("a union has no such branch");
      if (child.branches[choice].kind != Kind::null) {
        out.raw(child.column.key);
        scalar(child.branches[choice], in, out);
      } else if (isTouched || partsOf_[index] >> part & 1) {
        out.raw(child.column.null);
      }
    }
    isRecord_.push_back(index);
  }

  void scalar(const Scalar &type, Input &in, Output &out) {
    switch (type.kind) {
      case Kind::boolean: return out.raw(*in.bytes(1) ? "true" : "false");
      case Kind::integer: {
        int64_t number = in.number();
        return type.meaning == Meaning::none ? out.integer(number) : out.moment(number, type.meaning);
      }
      case Kind::real: {
        double number;
        std::memcpy(&number, in.bytes(8), 8);
        return out.real(number);
      }
      case Kind::single: {
        float number;
        std::memcpy(&number, in.bytes(4), 4);
        return out.real(number);
      }
      case Kind::text: return out.text(in.text());
      case Kind::null:
      case Kind::record: fail("a value has no scalar type");
    }
  }

  void records(const char *begin, Output &out) {
    if (!options_.isComplete) {
      out.raw(",\"_record_ids\":[");
      for (size_t index = 0; index < recordIDs_.size(); index++) {
        if (index) *out.at++ = ',';
        out.text(recordIDs_[index]);
      }
      *out.at++ = ']';
      return tail(out);
    }
    std::string_view shared(begin, size_t(out.at - begin)), rest;
    for (size_t index = 0; index < recordIDs_.size(); index++) {
      if (index) out.raw(shared);
      out.raw(",\"_record_id\":");
      out.text(recordIDs_[index]);
      if (index) {
        out.raw(rest);
      } else {
        const char *from = out.at;
        tail(out);
        rest = {from, size_t(out.at - from)};
      }
    }
  }

  void tail(Output &out) {
    out.raw(",\"_commit_timestamp\":");
    out.moment(timestamp_, Meaning::dateTime);
    out.raw(",\"_commit_number\":\"");
    out.integer(commit_);
    out.raw("\",\"_commit_user\":");
    out.text(user_);
    out.raw(",\"_transaction_key\":");
    out.text(transaction_);
    out.raw(",\"_sequence_number\":");
    out.integer(sequence_);
    out.raw(",\"_change_origin\":");
    out.text(origin_);
    out.raw(",\"_changed_fields\":[");
    names(changed_, out);
    out.raw("],\"_nulled_fields\":[");
    names(nulled_, out);
    out.raw("],\"_diff_fields\":[");
    names(diff_, out);
    *out.at++ = ']';
    out.raw(values_);
    out.raw("}\n");
  }

  // The names of fields, then those of the parts of compound fields.
  void names(const FieldSet &set, Output &out) {
    bool isFirst = true;
    auto name = [&](const Column &column) {
      if (!isFirst) *out.at++ = ',';
      isFirst = false;
      out.raw(column.name);
    };
    parts_ = set.parts;
    set.forEach(0, plan_.fields.size(), [&](size_t index) {
      const Field &field = plan_.fields[index];
      bool isRecord = std::find(isRecord_.begin(), isRecord_.end(), index) != isRecord_.end();
      if (field.hasScalar && !isRecord) name(field.column);
      if (!field.children.empty() && !hasScalarValue_[index]) parts_.push_back({index, ~0ull});
    });
    if (parts_.empty()) return;
    std::sort(parts_.begin(), parts_.end());
    for (size_t at = 0; at < parts_.size();) {
      size_t index = parts_[at].first;
      uint64_t mask = 0;
      for (; at < parts_.size() && parts_[at].first == index; at++) mask |= parts_[at].second;
      auto &children = plan_.fields.at(index).children;
      for (size_t part = 0; part < children.size(); part++)
        if (mask >> part & 1) name(children[part].column);
    }
  }

  const Plan plan_;
  const Options options_;
  std::string head_, text_;
  size_t valuesSize_ = 0, namesSize_ = 0;
  std::string_view values_, entity_, origin_, transaction_, user_;
  std::vector<std::string_view> recordIDs_;
  size_t changeType_ = 0;
  int64_t sequence_ = 0, timestamp_ = 0, commit_ = 0;
  FieldSet nulled_, diff_, changed_, touched_;
  std::vector<uint64_t> partsOf_;
  std::vector<bool> hasScalarValue_;
  std::vector<size_t> withScalar_, isRecord_;
  std::vector<std::pair<size_t, uint64_t>> parts_;
};

}  // namespace lines
