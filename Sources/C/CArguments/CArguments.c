#include "CArguments.h"

static int count = 0;
static char **arguments = 0;

// Swift looks for the arguments on the stack before the environment, or in /proc. It finds none when a preloaded
// library has called setenv, which moves the environment, or when /proc is not mounted. The C library passes
// them to each constructor.
__attribute__((constructor)) static void keep_arguments(int argc, char **argv) {
  count = argc;
  arguments = argv;
}

int c_argument_count(void) { return count; }

const char *c_argument(int index) { return arguments[index]; }
