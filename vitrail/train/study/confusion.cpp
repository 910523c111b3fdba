#include "vitrail/train/study/confusion.h"

#include <numeric>

#include <fmt/format.h>

#include "vitrail/io/charts/chart.h"
#include "vitrail/io/wording.h"

namespace vitrail::train {

Confusion::Confusion(std::vector<std::string> names)
    : classes(std::move(names)), counts(classes.size() * classes.size()) {}

void Confusion::add(const Tensor& predicted, std::span<const std::int64_t> truth) {
  const std::span<const std::int64_t> guesses = predicted.span<std::int64_t>();
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] >= 0) {
      ++counts.at(static_cast<std::size_t>(truth[i]) * classes.size() + static_cast<std::size_t>(guesses[i]));
    }
  }
}

std::int64_t Confusion::total() const { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

std::int64_t Confusion::right() const {
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    sum += counts[c * classes.size() + c];
  }
  return sum;
}

std::string confusion_svg(const Confusion& confusion, std::string_view items) {
  const std::int64_t total = confusion.total();
  io::HeatMap map;
  map.title = fmt::format("Confusion matrix: {:.1f} % of {} right",
                          total > 0 ? 100 * static_cast<double>(confusion.right()) / static_cast<double>(total) : 0.0,
                          io::counted(total, items));
  map.row_label = "true class";
  map.column_label = "predicted class";
  map.rows = map.columns = confusion.classes;
  map.values.assign(confusion.counts.begin(), confusion.counts.end());
  map.shade_by_row = true;
  return io::heat_map_svg(map);
}

std::vector<std::pair<std::string, std::string>> confusion_picture(const Confusion& confusion, std::string_view items) {
  constexpr std::size_t most_classes = 200;
  if (confusion.total() == 0 || confusion.classes.size() > most_classes) {
    return {};
  }
  return {{"confusion.svg", confusion_svg(confusion, items)}};
}

}  // namespace vitrail::train
