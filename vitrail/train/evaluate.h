// How good a model is on labelled pictures, and what it says about others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/transforms.h"
#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/train/loss.h"

namespace vitrail::train {

struct EvaluateOptions {
  std::int64_t batch_size = 64;
  DType dtype = DType::f32;
  int workers = 1;
  bool skip_broken = false;
  std::int64_t tta = 0;  // --tta: 2 averages the logits of each picture and its mirror image; 0: the picture alone
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // called after each batch
};

struct Accuracy {
  double loss = 0;  // mean cross-entropy
  double top1 = 0;  // per cent
  double top5 = 0;  // per cent; with fewer than five classes, all are the top
};

struct Evaluation : Accuracy {
  std::int64_t count = 0;       // pictures
  std::vector<Accuracy> heads;  // of a distilled model, whose logits are their mean: the class head's, the other's
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;    // [C, C]: pictures of the true class (row) by predicted class (column)
  std::vector<std::int64_t> indices;      // of the pictures in the data set, in its order, without broken ones
  std::vector<std::int64_t> predictions;  // the class predicted for each of them
  std::vector<std::string> broken;        // pictures left out, with the reasons
  double seconds = 0;
  double images_per_second = 0;

  std::int64_t num_classes() const { return static_cast<std::int64_t>(classes.size()); }
  std::int64_t class_count(std::int64_t label) const;  // pictures of that class
  double class_accuracy(std::int64_t label) const;     // per cent of them that were recognized; NaN without any
};

// Runs the model over the whole data set, prepared by the model's evaluation transform. Error if the data set has more
// classes than the model, or if tta is neither 0 nor 2.
Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options = {});
// The same of other samples for the pictures of the data set, with `forward` in place of the model's own.
Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, data::Loader& loader,
                    const Forward& forward, const EvaluateOptions& options);
// How a data set is gone through for it: whole and in order.
data::LoaderOptions loading(const models::Model& model, const EvaluateOptions& options);

// The counts of `evaluation` as an SVG heat map.
std::string confusion_svg(const Evaluation& evaluation);

// Probabilities [N, C] f32 of N pictures, prepared by the model's evaluation transform.
Tensor predict(const models::Model& model, const std::vector<io::Image>& images, DType dtype = DType::f32,
               std::int64_t batch_size = 64);

// The names of a model's classes: its label names, or "0", "1", … where it has none.
std::vector<std::string> class_names(const models::Model& model);

// Error naming --tta if it is neither 0 nor 2.
void check_tta(std::int64_t tta);

// bf16 if asked for and the CPU has it; f32 otherwise, with a sentence in `message` that says so.
DType usable_dtype(DType wanted, std::string* message = nullptr);

}  // namespace vitrail::train
