#ifndef CRE2_H
#define CRE2_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled regular expression in the syntax of RE2. It may be used by several threads at a time.
typedef struct cre2_pattern cre2_pattern;

/// Compiles UTF-8 text. The pattern and the automata made from it stay within `max_mem` bytes.
///
/// Returns NULL if the text is no regular expression or needs more memory; `message` then holds the
/// reason, cut to `capacity` bytes including the terminating zero.
cre2_pattern *cre2_compile(
    const char *text, size_t count, int64_t max_mem, char *message, size_t capacity);

void cre2_free(cre2_pattern *pattern);

/// Instructions of the pattern's program. Searching a byte takes that many steps at worst.
int cre2_size(const cre2_pattern *pattern);

/// 1 if the pattern matches any part of the text, else 0. Takes time linear in the text.
int cre2_matches(const cre2_pattern *pattern, const char *text, size_t count);

#ifdef __cplusplus
}
#endif

#endif
