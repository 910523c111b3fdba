#include "vitrail/data/sets/sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/source_fields.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

enum class DrawnTask { sort, centres };
constexpr std::array<std::string_view, 2> drawn_tasks = {"sort", "centres"};
constexpr double border = 0.1;             // between the square's sides and the nearest centre
constexpr std::int64_t most_draws = 1000;  // of a centre that is apart from the others

// What a source of sets asks for.
struct DrawnSets {
  DrawnTask task = DrawnTask::sort;
  std::int64_t count = 0;
  std::int64_t validation = 0;  // 0: a tenth of count
  std::int64_t first = 0;
  std::uint64_t seed = 0;
  std::pair<std::int64_t, std::int64_t> size = {2, 8};
  std::pair<std::int64_t, std::int64_t> centres = {2, 5};
  std::int64_t points = 12;
  double spread = 0.05;

  std::int64_t validation_count() const { return validation > 0 ? validation : std::max<std::int64_t>(count / 10, 1); }
};

std::pair<std::int64_t, std::int64_t> sizes_of_field(std::string_view key, const std::string& value,
                                                     std::int64_t most) {
  const auto range = range_of_field(fmt::format("'{}'", key), value);
  check(range.first >= 1 && range.first <= range.second && range.second <= most, "'{}' is from 1 to {}, not '{}'", key,
        most, value);
  return range;
}

SourceFields<DrawnSets> fields_of_sets() {
  return {
      {"task", [](DrawnSets& what,
                  const std::string& value) { what.task = choice_of_field<DrawnTask>("task", value, drawn_tasks); }},
      {"count",
       [](DrawnSets& what, const std::string& value) { what.count = number_of_field("count", value, 1, 100'000'000); }},
      {"validation",
       [](DrawnSets& what, const std::string& value) {
         what.validation = number_of_field("validation", value, 1, 100'000'000);
       }},
      {"start", [](DrawnSets& what,
                   const std::string& value) { what.first = number_of_field("start", value, 0, 1'000'000'000); }},
      {"seed",
       [](DrawnSets& what, const std::string& value) {
         what.seed = static_cast<std::uint64_t>(number_of_field("seed", value, 0, INT64_MAX));
       }},
      {"size", [](DrawnSets& what, const std::string& value) { what.size = sizes_of_field("size", value, 1000); }},
      {"centres",
       [](DrawnSets& what, const std::string& value) { what.centres = sizes_of_field("centres", value, 100); }},
      {"points",
       [](DrawnSets& what, const std::string& value) { what.points = number_of_field("points", value, 1, 10'000); }},
      {"spread",
       [](DrawnSets& what, const std::string& value) {
         std::size_t read = 0;
         try {
           what.spread = std::stod(value, &read);
         } catch (const std::exception&) {
           read = 0;
         }
         check(read > 0 && read == value.size() && what.spread >= 0 && what.spread <= 1,
               "'spread' is a number from 0 to 1, not '{}'", value);
       }},
  };
}

DrawnSets read_set_source(const fs::path& source) {
  DrawnSets what;
  try {
    const std::set<std::string> given =
        read_source_fields(std::string_view(source.native()).substr(set_scheme.size()), fields_of_sets(), what);
    check(given.contains("task"), "'task' is missing: sort or centres");
    check(given.contains("count"), "'count' is missing: how many sets");
    const bool sorts = what.task == DrawnTask::sort;
    for (const char* name : {"centres", "points", "spread"}) {
      check(!sorts || !given.contains(name), "'{}' is for task=centres", name);
    }
    check(sorts || !given.contains("size"), "'size' is for task=sort");
  } catch (const Error& error) {
    fail("{}: {}", source.string(), error.what());
  }
  return what;
}

SetExample numbers_to_sort(const DrawnSets& what, Draws& draws) {
  SetExample example;
  const std::int64_t size = draws.integer(what.size.first, what.size.second + 1);
  for (std::int64_t i = 0; i < size; ++i) {
    example.elements.push_back(static_cast<float>(draws.uniform()));
    example.labels.push_back(i);
  }
  example.values = example.elements;
  std::ranges::sort(example.values);
  return example;
}

SetExample points_around_centres(const DrawnSets& what, Draws& draws) {
  SetExample example;
  const std::int64_t count = draws.integer(what.centres.first, what.centres.second + 1);
  std::vector<float>& centres = example.values;
  for (std::int64_t tries = 0; std::ssize(centres) < 2 * count; ++tries) {
    check(tries < most_draws, "there is no room for {} centres {} apart", count, 4 * what.spread);
    const double x = draws.uniform(border, 1 - border);
    const double y = draws.uniform(border, 1 - border);
    bool apart = true;
    for (std::size_t i = 0; i < centres.size(); i += 2) {
      apart = apart && std::hypot(x - static_cast<double>(centres[i]), y - static_cast<double>(centres[i + 1])) >=
                           4 * what.spread;
    }
    if (apart) {
      centres.push_back(static_cast<float>(x));
      centres.push_back(static_cast<float>(y));
      tries = 0;
    }
  }
  example.labels.assign(static_cast<std::size_t>(count), 0);
  std::vector<std::size_t> order(static_cast<std::size_t>(count * what.points));
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(i)))]);
  }
  for (const std::size_t point : order) {
    const std::size_t centre = point % static_cast<std::size_t>(count);
    for (const std::size_t axis : {0U, 1U}) {
      example.elements.push_back(
          static_cast<float>(static_cast<double>(centres[2 * centre + axis]) + what.spread * draws.normal()));
    }
  }
  return example;
}

Sets drawn_sets(const fs::path& source, const std::string& split) {
  const DrawnSets what = read_set_source(source);
  const bool sorts = what.task == DrawnTask::sort;
  const bool trains = !is_drawn_for_validation(split, "sets");
  Sets sets;
  sets.input_size = sorts ? 1 : 2;
  sets.output_size = sets.input_size;
  if (sorts) {
    for (std::int64_t i = 1; i <= what.size.second; ++i) {
      sets.labels.push_back(std::to_string(i));
    }
  } else {
    sets.labels = {"centre"};
  }
  sets.most_targets = sorts ? what.size.second : what.centres.second;
  sets.most_elements = sorts ? what.size.second : what.centres.second * what.points;
  sets.count = trains ? what.count : what.validation_count();
  const std::int64_t first = trains ? what.first : what.first + what.count;
  const std::uint64_t seed = mix(what.seed, hash("sets"));
  sets.example = [what, first, seed](std::int64_t index) {
    Draws draws(Philox(seed, static_cast<std::uint64_t>(first + index)));
    return what.task == DrawnTask::sort ? numbers_to_sort(what, draws) : points_around_centres(what, draws);
  };
  sets.example(0);  // throws where there is no room
  return sets;
}

// The numbers of an element, `size` of them; 0: as many as it has, which then is the size.
void append_numbers(const nlohmann::json& numbers, std::string_view what, std::int64_t& size, std::vector<float>& to) {
  check(numbers.is_array() && !numbers.empty(), "{} is no list of numbers", what);
  size = size == 0 ? std::ssize(numbers) : size;
  check(std::ssize(numbers) == size, "{} has {} numbers, the ones before it have {}", what, numbers.size(), size);
  for (const nlohmann::json& number : numbers) {
    check(number.is_number() && std::isfinite(number.get<float>()), "{} has something that is no finite number", what);
    to.push_back(number.get<float>());
  }
}

// `known`: whether the classes are settled; `targets`: whether what is to be said of the set must be there.
SetExample read_example(const std::string& line, Sets& sets, bool known, bool targets) {
  const nlohmann::json json = io::parse_json(line, "the line");
  check(json.is_object() && json.contains("set") && json["set"].is_array(), "it has no \"set\", a list of elements");
  check(!json["set"].empty(), "its \"set\" has no elements");
  SetExample example;
  for (const nlohmann::json& element : json["set"]) {
    append_numbers(element, "an element", sets.input_size, example.elements);
  }
  for (const auto& [key, value] : json.items()) {
    check(!targets || key == "set" || key == "targets",
          "there is a key \"{}\", but only \"set\" and \"targets\" were expected", io::shown(key));
  }
  if (!json.contains("targets")) {
    check(!targets, "it has no \"targets\", a list of what is to be said of the set: [] for nothing");
    return example;
  }
  check(json["targets"].is_array(), "its \"targets\" are no list");
  for (const nlohmann::json& target : json["targets"]) {
    check(target.is_object() && target.contains("class") && target["class"].is_string() && target.contains("values"),
          "a target has a \"class\", a text, and \"values\", a list of numbers");
    const auto name = target["class"].get<std::string>();
    const auto found = std::ranges::find(sets.labels, name);
    check(found != sets.labels.end() || !known, "a target is of the class '{}', which the network does not know", name);
    example.labels.push_back(found - sets.labels.begin());
    if (found == sets.labels.end()) {
      sets.labels.push_back(name);
    }
    append_numbers(target["values"], "a target", sets.output_size, example.values);
  }
  return example;
}

Sets read_sets(const fs::path& source, const std::vector<std::string>& labels, bool targets) {
  Sets sets;
  sets.labels = labels;
  sets.input_size = 0;
  sets.output_size = 0;
  auto examples = std::make_shared<std::vector<SetExample>>();
  const std::string text = io::read_text(source);
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    try {
      examples->push_back(read_example(line, sets, !labels.empty(), targets));
    } catch (const Error& error) {
      fail("{}, line {}: {}", source.string(), number, error.what());
    }
    const SetExample& example = examples->back();
    sets.most_elements = std::max(sets.most_elements, std::ssize(example.elements) / sets.input_size);
    sets.most_targets = std::max<std::int64_t>(sets.most_targets, std::ssize(example.labels));
  }
  check(!examples->empty(), "{}: there is no set in it", source.string());
  sets.count = std::ssize(*examples);
  sets.example = [examples](std::int64_t index) { return (*examples)[static_cast<std::size_t>(index)]; };
  return sets;
}

class SetSamples final : public Samples<SetBatch> {
 public:
  explicit SetSamples(const Sets& data) : data_(data) {}

  std::string name(std::int64_t index) const override { return fmt::format("{}, set {}", data_.source, index); }
  SetBatch begin(const BatchPlan& plan) const override {
    SetBatch batch;
    batch.examples.resize(plan.picks.size());
    return batch;
  }
  void fill(SetBatch& batch, const BatchPlan& plan, std::int64_t i) const override {
    const auto place = static_cast<std::size_t>(i);
    batch.examples[place] = data_.example(plan.picks[place].index);
  }
  void finish(SetBatch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    std::vector<SetExample> examples;
    std::vector<std::int64_t> indices;
    for (const std::int64_t i : whole) {
      const auto place = static_cast<std::size_t>(i);
      examples.push_back(std::move(batch.examples[place]));
      indices.push_back(plan.picks[place].index);
    }
    batch = batch_of_sets(std::move(examples), data_.input_size);
    batch.indices = std::move(indices);
    batch.number = plan.number;
  }

 private:
  const Sets& data_;
};

}  // namespace

Sets open_sets(const fs::path& source, const std::string& split, const std::vector<std::string>& labels, bool targets) {
  if (!is_set_source(source)) {
    check(io::is_file(source) && source.extension() == ".jsonl",
          "'{}' is no .jsonl of sets, nor are they drawn, as in sets:task=sort,count=20000", source.string());
  }
  Sets sets = is_set_source(source) ? drawn_sets(source, split) : read_sets(source, labels, targets);
  if (!labels.empty()) {
    const bool known =
        sets.labels.size() <= labels.size() && std::equal(sets.labels.begin(), sets.labels.end(), labels.begin());
    check(known, "{}: its classes ({}) are not the network's ({})", source.string(), fmt::join(sets.labels, ", "),
          fmt::join(labels, ", "));
    sets.labels = labels;
  }
  sets.source = source.string();
  return sets;
}

bool is_file_of_sets(const fs::path& file) {
  if (file.extension() != ".jsonl" || !io::is_file(file)) {
    return false;
  }
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line) && line.find_first_not_of(" \t\r") == std::string::npos) {
  }
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  return json.is_object() && json.contains("set") && json["set"].is_array();
}

Sets set_of_text(const std::string& text) {
  const nlohmann::json whole = io::parse_json(text, "the set " + io::shown(text));
  const nlohmann::json json = whole.is_object() ? whole.value("set", nlohmann::json()) : whole;
  check(json.is_array() && !json.empty(), "the set {} has no elements", io::shown(text));
  Sets sets;
  sets.source = io::shown(text);
  sets.input_size = 0;
  SetExample example;
  for (const nlohmann::json& element : json) {
    const nlohmann::json numbers = element.is_array() ? element : nlohmann::json::array({element});
    append_numbers(numbers, fmt::format("an element of the set {}", io::shown(text)), sets.input_size,
                   example.elements);
  }
  sets.most_elements = std::ssize(json);
  sets.count = 1;
  sets.example = [example](std::int64_t) { return example; };
  return sets;
}

SetBatch batch_of_sets(std::vector<SetExample> examples, std::int64_t input_size) {
  SetBatch batch;
  const auto width = static_cast<std::size_t>(input_size);
  std::size_t most = 0;
  std::size_t fewest = SIZE_MAX;
  for (const SetExample& example : examples) {
    most = std::max(most, example.elements.size() / width);
    fewest = std::min(fewest, example.elements.size() / width);
  }
  const auto count = std::ssize(examples);
  const auto longest = static_cast<std::int64_t>(most);
  batch.x = Tensor::zeros({count, longest, input_size});
  batch.mask = fewest < most ? Tensor::zeros({count, longest}, DType::boolean) : Tensor();
  for (std::int64_t b = 0; b < count; ++b) {
    const std::vector<float>& elements = examples[static_cast<std::size_t>(b)].elements;
    std::ranges::copy(elements, batch.x.data<float>() + b * longest * input_size);
    if (batch.mask.defined()) {
      std::fill_n(batch.mask.data<bool>() + b * longest, elements.size() / width, true);
    }
  }
  batch.examples = std::move(examples);
  return batch;
}

std::unique_ptr<SetLoader> set_loader(const Sets& data, const LoaderOptions& options) {
  return std::make_unique<SetLoader>(std::make_shared<SetSamples>(data),
                                     plan_batches(plan_options(data.count, options)),
                                     prefetch_options(data.most_elements * data.input_size, options));
}

}  // namespace vitrail::data
