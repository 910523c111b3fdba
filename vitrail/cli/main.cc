#include "vitrail/cli/app.h"

int main(int argc, char** argv) { return vitrail::cli::run({argv + 1, argv + argc}); }
