#include "vitrail/data/scenes/wordings.h"

#include <algorithm>
#include <optional>

namespace vitrail::data {
namespace {

// Wordings of one question, that of scene_questions() first. "{}" stands for words that all have in common, once or
// twice, in the same order.
using Wordings = std::vector<std::string_view>;

// What is more special comes first: "what colour is the head of the large bird?" fits "what colour is the {}?" too.
const std::vector<Wordings>& all_wordings() {
  static const std::vector<Wordings> all = {
      {"how many {} are there?", "how many {} are in this image?", "how many {} are in the picture?",
       "how many {} do you see?", "how many {} can you see in this picture?", "what is the number of {}?",
       "count the {}"},
      {"is there {}?", "is there {} in this image?", "do you see {}?", "can you see {} in the picture?",
       "does this picture have {}?"},
      {"are there more {} than {}?", "are there more {} than {} in this image?", "do you see more {} than {}?",
       "does the picture have more {} than {}?"},
      {"what colour is the {} of the {}?", "what is the colour of the {} of the {}?", "what color is the {} of the {}?",
       "what is the color of the {} of the {}?", "which colour does the {} of the {} have?"},
      {"what colour is the {}?", "what is the colour of the {}?", "what color is the {}?",
       "what is the color of the {}?", "which colour does the {} have?", "which color is the {} in this image?"},
      {"what shape is the {}?", "what is the shape of the {}?", "which shape does the {} have?"},
      {"what size is the {}?", "what is the size of the {}?", "how large is the {}?", "how big is the {}?",
       "is the {} small or large?"},
      {"which way does the {} face?", "which way does the {} look?", "in which direction does the {} look?",
       "does the {} face left or right?"},
      {"what is left of the {}?", "what is to the left of the {}?", "what is on the left of the {}?",
       "what do you see left of the {}?", "which shape is left of the {}?"},
      {"what is right of the {}?", "what is to the right of the {}?", "what is on the right of the {}?",
       "what do you see right of the {}?", "which shape is right of the {}?"},
      {"what is above the {}?", "what is over the {}?", "what do you see above the {}?",
       "which shape is above the {}?"},
      {"what is below the {}?", "what is under the {}?", "what do you see below the {}?",
       "which shape is below the {}?"},
      {"is the {} bird the same species as the {} bird?", "is the {} bird of the same species as the {} bird?",
       "are the {} bird and the {} bird of the same species?", "do the {} bird and the {} bird belong to one species?"},
  };
  return all;
}

constexpr std::string_view hole = "{}";
constexpr std::string_view thing = "thing";  // of any shape

// What stands in the holes of a wording, if the text fits it.
std::optional<std::vector<std::string_view>> words_in_holes(std::string_view wording, std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t before = wording.find(hole);
    if (before == std::string_view::npos) {
      return text == wording ? std::optional(words) : std::nullopt;
    }
    if (!text.starts_with(wording.substr(0, before))) {
      return {};
    }
    text.remove_prefix(before);
    wording.remove_prefix(before + hole.size());
    const std::string_view behind = wording.substr(0, wording.find(hole));
    const std::size_t end = wording == behind ? text.size() - std::min(text.size(), behind.size()) : text.find(behind);
    if (end == std::string_view::npos || end == 0) {
      return {};
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::string filled(std::string_view wording, const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    const std::size_t at = wording.find(hole);
    text.append(wording.substr(0, at)).append(word);
    wording.remove_prefix(at + hole.size());
  }
  return text.append(wording);
}

}  // namespace

std::vector<std::string> wordings_of(std::string_view question) {
  for (const Wordings& wordings : all_wordings()) {
    if (const auto words = words_in_holes(wordings.front(), question)) {
      std::vector<std::string> texts;
      texts.reserve(2 * wordings.size());
      for (const std::string_view wording : wordings) {
        texts.push_back(filled(wording, *words));
      }
      const std::size_t count = question.find(thing) == std::string_view::npos ? 0 : texts.size();
      for (std::size_t i = 0; i < count; ++i) {
        texts.push_back(texts[i]);
        texts.back().replace(texts.back().find(thing), thing.size(), "object");
      }
      return texts;
    }
  }
  return {std::string(question)};
}

}  // namespace vitrail::data
