// Model soups: the average of fine-tuned models' weights (Wortsman et al. 2022, "Model soups: averaging weights of
// multiple fine-tuned models improves accuracy without increasing inference time").
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/models/model.h"
#include "vitrail/train/evaluate.h"

namespace vitrail::train {

// The mean of the models' parameters and f32 buffers; other buffers and the configuration are the first one's. Error if
// there is none, if one is in int8, or if architecture, names, shapes or classes differ.
models::Model uniform_soup(const std::vector<std::filesystem::path>& folders);

struct GreedySoup {
  struct Ingredient {
    std::filesystem::path folder;
    double top1 = 0;       // of the model by itself
    bool used = false;     // whether it went into the soup
    double with_top1 = 0;  // of the soup with it, when it was tried
  };
  models::Model model;
  double top1 = 0;                      // of the soup
  std::vector<Ingredient> ingredients;  // in the order in which they were tried: the best first
};

// Algorithm 1 of the paper: begins with the model that is best on `dataset`, and adds each next one if the average is
// then no worse. `evaluate` runs a model (with a bar of progress, say); its top1 counts. Errors as above.
using Evaluate = std::function<Evaluation(const models::Model&)>;
GreedySoup greedy_soup(const std::vector<std::filesystem::path>& folders, const Evaluate& evaluate);

}  // namespace vitrail::train
