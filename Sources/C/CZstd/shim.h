#pragma once
#define ZSTD_STATIC_LINKING_ONLY
#define ZSTD_DISABLE_DEPRECATE_WARNINGS
#include <zstd.h>

// Frames without inner buffers: deprecated since 1.5.5 and no part of the stable interface, so a
// later library may lack them. They are weak symbols, and the program then starts without them.
#if ZSTD_VERSION_NUMBER < 10600

#pragma weak ZSTD_getParams
#pragma weak ZSTD_compressBegin_advanced
#pragma weak ZSTD_compressContinue

static inline int czstd_has_bufferless(void) {
  return ZSTD_getParams && ZSTD_compressBegin_advanced && ZSTD_compressContinue &&
         ZSTD_versionNumber() < 10600;
}

// Begins a frame without content size, checksum and dictionary ID. A log of 0 leaves the table at
// the size of the level.
static inline size_t czstd_begin(ZSTD_CCtx *context, int level, unsigned windowLog,
                                 unsigned tableLog) {
  ZSTD_parameters parameters = ZSTD_getParams(level, 0, 0);
  parameters.cParams.windowLog = windowLog;
  if (tableLog) parameters.cParams.hashLog = parameters.cParams.chainLog = tableLog;
  parameters.fParams.contentSizeFlag = 0;
  parameters.fParams.checksumFlag = 0;
  parameters.fParams.noDictIDFlag = 1;
  return ZSTD_compressBegin_advanced(context, 0, 0, parameters, ZSTD_CONTENTSIZE_UNKNOWN);
}

static inline size_t czstd_continue(ZSTD_CCtx *context, void *target, size_t capacity,
                                    const void *source, size_t count) {
  return ZSTD_compressContinue(context, target, capacity, source, count);
}

#else

static inline int czstd_has_bufferless(void) { return 0; }

static inline size_t czstd_begin(ZSTD_CCtx *context, int level, unsigned windowLog,
                                 unsigned tableLog) {
  return (size_t)-1;
}

static inline size_t czstd_continue(ZSTD_CCtx *context, void *target, size_t capacity,
                                    const void *source, size_t count) {
  return (size_t)-1;
}

#endif
