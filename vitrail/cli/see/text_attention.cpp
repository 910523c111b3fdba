#include "vitrail/cli/see/text_attention.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/explain/attention.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/explain/text_attention.h"
#include "vitrail/generate/translate.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using explain::TextAttention;
using models::TextAttentionKind;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t most_tokens = 256;  // of a text whose words can still be told apart in a drawing

// The part of a UTF-8 text from code point `begin` to `end`.
std::string code_points(const std::string& text, std::int64_t begin, std::int64_t end) {
  std::string part;
  std::int64_t at = -1;
  for (const char c : text) {
    at += (static_cast<unsigned char>(c) >> 6) != 2 ? 1 : 0;
    if (at >= begin && at < end) {
      part += c;
    }
  }
  return part;
}

// Blanks as signs that can be seen, where there is nothing else.
std::string visible(const std::string& word) {
  const std::size_t first = word.find_first_not_of(" \n\t");
  if (first != std::string::npos) {
    return word.substr(first);
  }
  std::string signs;
  for (const char c : word) {
    signs += c == '\n' ? "⏎" : c == '\t' ? "⇥" : "␣";
  }
  return signs;
}

// A piece without the sign that a word begins with it.
std::string without_mark(const std::string& piece) {
  constexpr std::string_view mark = "\xE2\x96\x81";  // sentencepiece's ▁
  return piece.starts_with(mark) && piece.size() > mark.size() ? piece.substr(mark.size()) : piece;
}

// A token as it is written: the part of the text that it stands for, or its name in the vocabulary.
std::vector<std::string> words_of(const text::Encoding& encoding, const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const auto [begin, end] = encoding.offsets[i];
    words.push_back(begin == end ? encoding.tokens[i] : visible(code_points(text, begin, end)));
  }
  return words;
}

Tensor row_of_ids(const Ids& ids) { return Tensor::from(ids, {1, std::ssize(ids)}); }

// The text, and what the model writes while it reads it.
struct Reading {
  models::TextInputs inputs;
  explain::TextWords words;
  std::string translation;
};

Reading read_text(const TextAttentionFlags& flags, const fs::path& folder, const models::TextModel& model,
                  const text::Tokenizer& tokenizer) {
  const text::Encoding encoding = tokenizer.encode(flags.text);
  const std::int64_t most_positions = model.net->shape().max_positions;
  check(encoding.size() > 0, "--text is empty: there is nothing to look at");
  check(std::ssize(encoding.ids) <= most_positions,
        "--text has {} tokens, but the model is made for at most {}: --truncate cuts it", encoding.size(),
        most_positions);
  check(std::ssize(encoding.ids) <= most_tokens,
        "--text has {} tokens, of which at most {} can be drawn: --truncate cuts it", encoding.size(), most_tokens);
  models::check_vocabulary(text::ordinary_tokens(tokenizer), model.net->shape().vocab_size, folder.string());
  Reading reading;
  reading.inputs.input_ids = row_of_ids(encoding.ids);
  reading.words.input = words_of(encoding, flags.text);
  if (const models::Translator* translator = model.net->translator()) {
    generate::GenerationConfig config = generate::read_generation_config(folder);
    generate::give_length(config, translator->max_positions());
    const std::vector<std::string> lines = {flags.text};
    const auto translated = generate::translate(*translator, tokenizer, config, lines);
    const generate::TranslatedLine& best = translated.front().best.front();
    Ids in = {generate::start_token(config)};
    in.insert(in.end(), best.ids.begin(), best.ids.end() - 1);
    const auto name = [&](const Ids& ids) {
      std::vector<std::string> names;
      for (const std::int64_t id : ids) {
        names.push_back(tokenizer.has(id) ? without_mark(tokenizer.token_of(id)) : fmt::format("<{}>", id));
      }
      return names;
    };
    reading.inputs.decoder_input_ids = row_of_ids(in);
    reading.words.decoder_input = name(in);
    reading.words.predicted = name(best.ids);
    reading.translation = best.text;
  }
  return reading;
}

// Throws Error unless each kind of attention has the layer and the head that are asked for.
void check_chosen(const TextAttentionFlags& flags, const std::vector<TextAttention>& attentions) {
  const auto check_one = [](const char* what, const std::optional<std::int64_t>& asked, std::int64_t count) {
    const std::int64_t index = chosen(asked, count).front();
    check(index >= 0 && index < count, "there is no {} {}, only 0 … {}", what, index, count - 1);
  };
  for (const TextAttention& one : attentions) {
    check_one("layer", flags.layer, std::ranges::count(attentions, one.kind, &TextAttention::kind));
    check_one("head", flags.head, one.probabilities.size(0));
  }
}

// Writes the drawings of one text.
class TextReport {
 public:
  TextReport(const TextAttentionFlags& flags, Reading reading, std::vector<TextAttention> attentions)
      : flags_(flags), folder_(flags.output), reading_(std::move(reading)), attentions_(std::move(attentions)) {}

  void write() {
    std::vector<explain::Section> sections;
    for (const TextAttentionKind kind :
         {TextAttentionKind::cross, TextAttentionKind::self, TextAttentionKind::decoder}) {
      std::vector<const TextAttention*> layers;
      for (const TextAttention& one : attentions_) {
        if (one.kind == kind) {
          layers.push_back(&one);
        }
      }
      if (!layers.empty()) {
        draw(kind, layers, sections);
      }
    }
    std::string lead = fmt::format("“{}”, read by {}.", flags_.text, flags_.model);
    if (!reading_.translation.empty()) {
      lead += fmt::format(" Its translation: “{}”.", reading_.translation);
    }
    lead += " A line is as thick as the attention that the word on its left pays to the one on its right.";
    io::write_atomically(folder_ / "index.html", explain::html_page("Attention", lead, sections));
    if (!flags_.raw.empty()) {
      io::NamedTensors tensors;
      for (const TextAttention& one : attentions_) {
        tensors.emplace_back(fmt::format("{}.{}", models::name_of(one.kind), one.layer),
                             one.probabilities.unsqueeze(0));
      }
      io::save_safetensors(flags_.raw, tensors);
    }
    fmt::print("{} drawings in {}: index.html\n", count_, folder_.string());
  }

 private:
  explain::Figure save(const std::string& name, const std::string& caption, const std::string& svg) {
    io::write_atomically(folder_ / (name + ".svg"), svg);
    ++count_;
    return {name + ".svg", caption};
  }
  // Lines and a heat map of one map.
  void both(explain::Section& section, const std::string& name, const std::string& title, const TextAttention& one,
            const Tensor& map) {
    section.figures.push_back(save(name, title, explain::attention_lines_svg(title, one.queries, one.keys, map)));
    section.figures.push_back(save(name + "-map", title + ", as a map",
                                   io::heat_map_svg(explain::attention_heat_map(title, one.queries, one.keys, map))));
  }
  void draw(TextAttentionKind kind, const std::vector<const TextAttention*>& layers,
            std::vector<explain::Section>& sections) {
    const std::string prefix = kind == TextAttentionKind::self      ? ""
                               : kind == TextAttentionKind::decoder ? "decoder-"
                                                                    : "cross-";
    const std::string what =
        kind == TextAttentionKind::self      ? (reading_.translation.empty() ? "Words" : "The source's words")
        : kind == TextAttentionKind::decoder ? "The translation's words among themselves"
                                             : "The translation's words and the source's: alignment";
    explain::Section section{.title = what, .text = {}, .table = {}, .figures = {}, .figure_width = 460};
    const auto depth = std::ssize(layers);
    std::vector<std::vector<io::Image>> tiles;
    explain::SheetLabels labels;
    const std::int64_t cell =
        std::max<std::int64_t>(1, 120 / std::max(std::ssize(layers[0]->queries), std::ssize(layers[0]->keys)));
    if (kind != TextAttentionKind::cross && !flags_.layer) {
      const Tensor whole = explain::rollout(attentions_, kind);
      both(section, prefix + "rollout", "attention rollout over all layers", *layers[0], whole);
    }
    for (const std::int64_t layer : chosen(flags_.layer, depth)) {
      const TextAttention& one = *layers[static_cast<std::size_t>(layer)];
      tiles.emplace_back();
      labels.rows.push_back(fmt::format("layer {}", layer));
      const std::string name = fmt::format("{}layer{:02}", prefix, layer);
      both(section, name, one.title() + ", the mean of its heads", one, one.map(explain::all_heads));
      for (const std::int64_t head : chosen(flags_.head, one.probabilities.size(0))) {
        const Tensor map = one.map(head);
        tiles.back().push_back(explain::attention_tile(map, cell));
        if (tiles.back().size() > labels.columns.size()) {
          labels.columns.push_back(fmt::format("head {}", head));
        }
        both(section, fmt::format("{}-head{:02}", name, head), fmt::format("{}, head {}", one.title(), head), one, map);
      }
    }
    io::write_png(folder_ / (prefix + "sheet.png"), explain::sheet(tiles, labels));
    ++count_;
    sections.push_back(
        {.title = what,
         .text = {},
         .table = {},
         .figures = {{prefix + "sheet.png", "a row a layer, a column a head; in each, a row a word that looks"}},
         .figure_width = 460});
    section.title = what + ", one by one";
    sections.push_back(std::move(section));
  }

  const TextAttentionFlags& flags_;
  fs::path folder_;
  Reading reading_;
  std::vector<TextAttention> attentions_;
  std::size_t count_ = 0;
};

}  // namespace

void draw_text_attention(const TextAttentionFlags& flags) {
  const fs::path folder = train::model_of(flags.model);
  check(fs::is_directory(folder), "'{}' is no folder: attention of a text needs trained weights and their tokenizer",
        flags.model);
  const models::TextModel model = models::load_text_model(folder);
  const text::Tokenizer whole = text::load_tokenizer(folder);
  const std::int64_t most = std::min(model.net->shape().max_positions, most_tokens);
  const text::Tokenizer tokenizer =
      flags.truncate ? whole.with_truncation(text::Truncation{.max_length = most}) : whole;
  Reading reading = read_text(flags, folder, model, tokenizer);
  std::vector<TextAttention> attentions =
      explain::record_text_attention(*model.net, reading.inputs, reading.words, flags.dtype);
  check(!attentions.empty(), "{} has no attention to show", model.name);
  check_chosen(flags, attentions);
  make_page_folder(flags.output);
  TextReport(flags, std::move(reading), std::move(attentions)).write();
}

}  // namespace vitrail::cli
