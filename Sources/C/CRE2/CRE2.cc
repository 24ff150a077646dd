#include "CRE2.h"

#include <re2/re2.h>

#include <cstring>

struct cre2_pattern {
  re2::RE2 expression;

  cre2_pattern(re2::StringPiece text, const re2::RE2::Options &options)
      : expression(text, options) {}
};

extern "C" cre2_pattern *cre2_compile(
    const char *text, size_t count, int64_t max_mem, char *message, size_t capacity) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(max_mem);
  auto *pattern = new cre2_pattern(re2::StringPiece(text, count), options);
  if (pattern->expression.ok()) return pattern;
  const std::string &reason = pattern->expression.error();
  const size_t length = reason.size() < capacity ? reason.size() : capacity - 1;
  std::memcpy(message, reason.data(), length);
  message[length] = 0;
  delete pattern;
  return nullptr;
}

extern "C" void cre2_free(cre2_pattern *pattern) { delete pattern; }

extern "C" int cre2_size(const cre2_pattern *pattern) { return pattern->expression.ProgramSize(); }

extern "C" int cre2_matches(const cre2_pattern *pattern, const char *text, size_t count) {
  return re2::RE2::PartialMatch(re2::StringPiece(text, count), pattern->expression);
}
