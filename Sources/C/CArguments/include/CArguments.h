#ifndef CARGUMENTS_H
#define CARGUMENTS_H

/// The number of arguments that this process was started with, its own name included.
int c_argument_count(void);

/// The argument at an index below the count.
const char *c_argument(int index);

#endif
