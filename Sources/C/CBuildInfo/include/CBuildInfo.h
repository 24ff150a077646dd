#ifndef CBUILDINFO_H
#define CBUILDINFO_H

/// The version of both programs.
#define PUBSUB_ETL_VERSION "0.1.0"

/// What `--version` prints: the version, the commit and the kind of build.
const char *pubsub_etl_build(void);

#endif
