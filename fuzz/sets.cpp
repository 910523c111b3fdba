// Any bytes as a file of sets, a line as a set itself and behind "sets:": an Error, or sets whose parts fit each other.
#include "vitrail/data/sets/sets.h"

#include <algorithm>

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

namespace {

void look_at(const vitrail::data::Sets& sets) {
  require(sets.count > 0 && sets.input_size > 0);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(sets.count, 3); ++i) {
    const vitrail::data::SetExample example = sets.example(i);
    require(!example.elements.empty() && std::ssize(example.elements) % sets.input_size == 0);
    require(std::ssize(example.values) == std::ssize(example.labels) * sets.output_size);
    for (const std::int64_t label : example.labels) {
      require(label >= 0 && label < std::ssize(sets.labels));
    }
    vitrail::data::batch_of_sets({example}, sets.input_size);
  }
}

template <class Read>
void try_to(Read&& read) {
  try {
    look_at(read());
  } catch (const vitrail::Error&) {  // says what is wrong
  }
}

}  // namespace

FUZZ_TARGET(sets)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder("sets");
  const MemoryLimit limit;
  const std::string text(text_of(data, size));
  folder.write("input.jsonl", text);
  try_to([&] { return vitrail::data::open_sets(folder.path() / "input.jsonl", "train"); });
  try_to([&] { return vitrail::data::open_sets(folder.path() / "input.jsonl", "train", {"a", "b"}); });
  const std::string line = text.substr(0, std::min(text.find('\n'), text.size()));
  try_to([&] { return vitrail::data::set_of_text(line); });
  // What is drawn may be as much as it is asked for: a few digits are enough here.
  if (line.size() < 100 && line.find_first_of("0123456789") != std::string::npos &&
      std::ranges::count_if(line, [](char c) { return c >= '0' && c <= '9'; }) <= 6) {
    try_to([&] { return vitrail::data::open_sets("sets:" + line, "train"); });
  }
  return 0;
}
