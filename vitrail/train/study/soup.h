/// \file
/// Model soups: the average of fine-tuned models' weights (Wortsman et al. 2022, "Model soups: averaging weights of
/// multiple fine-tuned models improves accuracy without increasing inference time").
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/models/model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// A sentence about the first of `folders` whose images are prepared otherwise than those of folders[0]; empty if there
/// is none. Weights are not read.
std::string note_of_preparations(const std::vector<std::filesystem::path>& folders);

/// The mean of the parameters and f32 buffers of the models in `folders`; other buffers and the configuration are those
/// of the first model. Throws Error if there is no model, if one is in int8, or if architectures, names, shapes or
/// classes differ.
models::Model uniform_soup(const std::vector<std::filesystem::path>& folders);
/// The same of models of texts: the checkpoints of a translator, for instance, whose average Vaswani et al. 2017
/// translate with. Throws Error if their config.json differ, too.
models::TextModel uniform_text_soup(const std::vector<std::filesystem::path>& folders);

/// The result of greedy_soup().
struct GreedySoup {
  /// One of the models that were tried.
  struct Ingredient {
    std::filesystem::path folder;
    double top1 = 0;       ///< accuracy of the model by itself
    bool used = false;     ///< whether it became part of the soup
    double with_top1 = 0;  ///< accuracy of the soup with it, when it was tried
  };
  models::Model model;
  double top1 = 0;                      ///< accuracy of the soup
  std::vector<Ingredient> ingredients;  ///< in the order in which they were tried: the best first
};

/// Runs a model, for instance with a progress bar; greedy_soup() uses the top1 that it returns.
using Evaluate = std::function<Evaluation(const models::Model&)>;
/// Algorithm 1 of the paper: begins with the model that is best by `evaluate`, and adds each next one if the accuracy
/// of the average is then no lower. Throws Error as uniform_soup() does.
GreedySoup greedy_soup(const std::vector<std::filesystem::path>& folders, const Evaluate& evaluate);

}  // namespace vitrail::train
