#ifndef CBUILDINFO_H
#define CBUILDINFO_H

#include <stddef.h>

/// The version of both programs.
#define PUBSUB_ETL_VERSION "0.1.0"

/// The first line of `--version`: the version, the commit and the kind of build.
const char *pubsub_etl_build(void);

/// Writes the second line of `--version`: the libraries of the system that this process has loaded, and
/// their versions. Takes a millisecond, because libcurl sets up LDAP to learn its version.
///
/// - Parameter capacity: of `text`, in bytes; 512 suffice. What does not fit is cut off.
/// - Returns: the number of bytes written, without a final zero.
size_t pubsub_etl_libraries(unsigned char *text, size_t capacity);

#endif
