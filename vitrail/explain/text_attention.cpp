#include "vitrail/explain/text_attention.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/explain/attention.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/io/charts/svg.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::explain {
namespace {

using models::TextAttentionKind;

constexpr double line_height = 26;        // pixels from word to word
constexpr double links_width = 230;       // between the two columns of words
constexpr double most_thick = 9;          // of a line, where the attention is 1
constexpr double least_shown = 0.01;      // fainter lines are left out
constexpr std::size_t longest_word = 24;  // letters that are written

// A word as it is written: its beginning, if it is long.
std::string written(const std::string& word) {
  std::size_t end = 0;
  for (std::size_t letters = 0; end < word.size(); ++end) {
    letters += (static_cast<unsigned char>(word[end]) >> 6) != 2 ? 1 : 0;
    if (letters > longest_word) {
      return word.substr(0, end) + "…";
    }
  }
  return word;
}

double widest_word(const std::vector<std::string>& words) {
  double width = 0;
  for (const std::string& word : words) {
    width = std::max(width, io::svg_text_width(written(word)));
  }
  return width;
}

}  // namespace

std::string TextAttention::title() const {
  constexpr std::array names = {"layer", "decoder, layer", "cross-attention"};
  return fmt::format("{} {}", names.at(static_cast<std::size_t>(kind)), layer);
}

Tensor TextAttention::map(std::int64_t head) const {
  if (head == all_heads) {
    return ops::mean(probabilities, {0});
  }
  check(head >= 0 && head < probabilities.size(0), "{} has the heads 0 … {}, not {}", title(),
        probabilities.size(0) - 1, head);
  return probabilities.select(0, head).contiguous();
}

std::vector<TextAttention> record_text_attention(const models::TextNetwork& net, const models::TextInputs& inputs,
                                                 const TextWords& words, DType dtype) {
  check(inputs.input_ids.rank() == 2 && inputs.input_ids.size(0) == 1, "attention is shown of one text at a time");
  const autograd::NoGrad no_grad;
  nn::Recorder recorder(false, true);
  nn::Pass pass{.dtype = dtype};
  pass.recorder = &recorder;
  net.run(inputs, pass);
  std::vector<TextAttention> result;
  for (const models::TextAttentionMap& record : net.attention_maps(recorder)) {
    TextAttention one;
    one.kind = record.kind;
    one.layer = record.layer;
    one.queries = one.kind == TextAttentionKind::self ? words.input : words.predicted;
    one.keys = one.kind == TextAttentionKind::decoder ? words.decoder_input : words.input;
    one.probabilities = record.map.select(0, 0).contiguous();
    check(one.probabilities.size(1) == std::ssize(one.queries) && one.probabilities.size(2) == std::ssize(one.keys),
          "the map of '{}' is {}, but there are {} and {} tokens", record.name, one.probabilities.shape(),
          one.queries.size(), one.keys.size());
    result.push_back(std::move(one));
  }
  return result;
}

Tensor rollout(const std::vector<TextAttention>& layers, TextAttentionKind kind) {
  std::vector<Tensor> maps;
  for (const TextAttention& layer : layers) {
    if (layer.kind == kind) {
      maps.push_back(layer.probabilities);
    }
  }
  return maps.empty() ? Tensor() : rolled_out(maps);
}

std::string attention_lines_svg(const std::string& title, const std::vector<std::string>& queries,
                                const std::vector<std::string>& keys, const Tensor& map) {
  check(map.shape() == Shape({std::ssize(queries), std::ssize(keys)}), "a map {} does not join {} words with {}",
        map.shape(), queries.size(), keys.size());
  constexpr double top = 62;
  const double left = 20 + std::max(widest_word(queries), io::svg_text_width("looks")) + 10;
  const double right = left + links_width;
  const double width = right + 10 + std::max(widest_word(keys), io::svg_text_width("is looked at")) + 20;
  const auto y_of = [](std::size_t i) { return top + line_height * (static_cast<double>(i) + 0.5); };
  std::string out = io::svg_open(std::max(width, 40 + 1.3 * io::svg_text_width(title)),
                                 top + line_height * static_cast<double>(std::max(queries.size(), keys.size())) + 16);
  out +=
      "<style>.word:hover path{stroke-opacity:1} svg:has(.word:hover) .word:not(:hover) "
      "path{stroke-opacity:0}</style>\n";
  out += io::svg_text(20, 28, "start", io::svg_ink, title, " font-size=\"17\" font-weight=\"600\"");
  out += io::svg_text(left - 10, 52, "end", io::svg_muted, "looks");
  out += io::svg_text(right + 10, 52, "start", io::svg_muted, "is looked at");
  const float* values = map.data<float>();
  for (std::size_t i = 0; i < queries.size(); ++i) {
    out += "<g class=\"word\">\n";
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const double share = values[i * keys.size() + j];
      if (share < least_shown) {
        continue;
      }
      const double from = y_of(i), to = y_of(j), middle = (left + right) / 2;
      out += fmt::format(
          "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
          "stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\"><title>{} → {}: {:.3f}</title></path>\n",
          left, from, middle, from, middle, to, right, to, io::svg_palette.at(i % io::svg_palette.size()),
          most_thick * share, 0.25 + 0.6 * share, io::escape_xml(queries[i]), io::escape_xml(keys[j]), share);
    }
    out += io::svg_text(left - 10, y_of(i) + 5, "end", io::svg_ink, written(queries[i]));
    out += "</g>\n";
  }
  for (std::size_t j = 0; j < keys.size(); ++j) {
    out += io::svg_text(right + 10, y_of(j) + 5, "start", io::svg_ink, written(keys[j]));
  }
  return out + "</svg>\n";
}

io::HeatMap attention_heat_map(const std::string& title, const std::vector<std::string>& queries,
                               const std::vector<std::string>& keys, const Tensor& map) {
  io::HeatMap result{.title = title,
                     .row_label = "looks",
                     .column_label = "is looked at",
                     .rows = queries,
                     .columns = keys,
                     .values = {},
                     .shade_by_row = true};
  for (const float value : map.values()) {
    result.values.push_back(value);
  }
  return result;
}

io::Image attention_tile(const Tensor& map, std::int64_t cell) {
  const std::int64_t rows = map.size(0), columns = map.size(1);
  io::Image image = white_image(columns * cell, rows * cell);
  for (std::int64_t y = 0; y < rows * cell; ++y) {
    for (std::int64_t x = 0; x < columns * cell; ++x) {
      const Color color = inferno(map.data<float>()[y / cell * columns + x / cell]);
      std::ranges::copy(color, image.pixels.begin() + (y * image.width + x) * 3);
    }
  }
  return image;
}

}  // namespace vitrail::explain
