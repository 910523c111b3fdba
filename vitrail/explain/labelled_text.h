/// \file
/// Texts whose words have labels, drawn.
#pragma once

#include <string>
#include <vector>

namespace vitrail::explain {

/// A word, and what a model takes it for.
struct LabelledWord {
  std::string word;
  std::string label;
  double probability = 0;  ///< of the label
};

/// Texts as SVG, their words on grounds in the colours of their labels, which are the fuller, the surer the model is.
/// `labels` gives the order of the colours; a legend names them.
std::string labelled_texts_svg(const std::vector<std::vector<LabelledWord>>& texts,
                               const std::vector<std::string>& labels);

}  // namespace vitrail::explain
