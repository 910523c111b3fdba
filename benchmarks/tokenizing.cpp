// How fast the lines of a text are encoded: benchmarks/compare/tokenizing.py runs it.
//
//   build/bin/vitrail_bench_tokenizing TOKENIZER TEXT THREADS RUNS
//
// TOKENIZER is a folder or a file that load_tokenizer() reads. Prints one JSON object: the number of tokens, and the
// seconds of each of the runs, which encode all lines at once.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/tokenizer.h"

namespace {

using namespace vitrail;

void run(const char* const* arguments) {
  const text::Tokenizer tokenizer = text::load_tokenizer(arguments[1]);
  const std::vector<std::string> lines = io::lines_of(io::read_text(arguments[2]));
  std::vector<double> seconds;
  std::size_t tokens = 0;
  for (int i = 0; i < std::stoi(arguments[4]); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<text::Encoding> encodings = tokenizer.encode_batch(lines, true, std::stoi(arguments[3]));
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    tokens = 0;
    for (const text::Encoding& encoding : encodings) {
      tokens += encoding.ids.size();
    }
  }
  fmt::print("{{\"tokens\": {}, \"seconds\": [{:.6f}]}}\n", tokens, fmt::join(seconds, ", "));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    check(count == 5, "usage: vitrail_bench_tokenizing TOKENIZER TEXT THREADS RUNS");
    run(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
