#include "vitrail/cli/texts.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <numeric>

#include <CLI/CLI.hpp>

#include "vitrail/models/text/sentence_model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/corpus.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

bool is_text_model(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  return models::is_sentence_folder(name) || models::names_text_model(name);
}

std::string text_model_folder(const ModelFlags& flags) {
  const std::string name = flags.name_or_folder();
  check(fs::is_directory(name),
        "'{}' is the name of a model, whose weights are random: name a folder with trained ones", flags.model);
  check_usage(flags.kwargs.empty() && !flags.num_classes && !flags.img_size,
              "'{}' is a model of texts: it takes no --model-kwargs, --num-classes or --img-size", flags.model);
  return name;
}

std::vector<std::string> list_texts(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts;
  for (const std::string& argument : arguments) {
    std::error_code none;
    if (argument == "-") {
      const std::string all(std::istreambuf_iterator<char>(std::cin), {});
      text::check_corpus(all, "standard input");
      std::ranges::copy(text::lines_of(all), std::back_inserter(texts));
    } else if (fs::is_regular_file(argument, none)) {
      std::ranges::copy(text::lines_of(text::read_corpus(argument)), std::back_inserter(texts));
    } else {
      text::check_corpus(argument, "the command line");
      texts.push_back(argument);
    }
  }
  std::erase_if(texts, [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; });
  check(!texts.empty(), "there are no texts");
  return texts;
}

std::string csv_field(const std::string& value) {
  return value.find_first_of(",\"\r\n") == std::string::npos
             ? value
             : "\"" + CLI::detail::find_and_replace(value, "\"", "\"\"") + "\"";
}

std::vector<std::size_t> largest(const std::vector<float>& values, std::int64_t most) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto shown = std::min<std::ptrdiff_t>(std::max<std::int64_t>(most, 1), std::ssize(order));
  std::ranges::partial_sort(order, order.begin() + shown,
                            [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(static_cast<std::size_t>(shown));
  return order;
}

}  // namespace vitrail::cli
