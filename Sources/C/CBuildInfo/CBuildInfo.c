#include "CBuildInfo.h"

#ifdef DEBUG
#define KIND "debug"
#else
#define KIND "release"
#endif

// scripts/install compiles this file once more, with the commit, and links the object: it takes the
// place of the weak function. Building needs no git, and a new commit compiles nothing else again.
#ifdef PUBSUB_ETL_COMMIT
#define LINKAGE
#else
#define PUBSUB_ETL_COMMIT "unknown"
#define LINKAGE __attribute__((weak))
#endif

LINKAGE const char *pubsub_etl_build(void) {
  return PUBSUB_ETL_VERSION " (commit " PUBSUB_ETL_COMMIT ", " KIND ")";
}
