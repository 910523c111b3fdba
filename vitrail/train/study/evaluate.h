/// \file
/// Evaluation of a model on labelled images, and its predictions for others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/transforms.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/train/figures.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {

struct ImageTaskOptions;  // image_options.h
struct Work;              // task.h

/// Maps the x of a batch to the logits of each head: ImageModel::forward_heads, or a replacement for it.
using Forward = std::function<std::vector<Tensor>(const Tensor& x, nn::Pass& pass)>;

/// How a model is run over a data set.
struct EvaluateOptions {
  std::int64_t batch_size = 64;
  DType dtype = DType::f32;
  int workers = 1;
  bool skip_broken = false;
  bool may_be_none = false;  ///< features alone: all images may be broken, which gives none instead of an Error
  /// --tta: 0 takes each image alone; 2 averages its logits with those of its mirror image; 6 takes both also moved by
  /// a pixel along the diagonal, either way, each with half the weight (airbench94).
  std::int64_t tta = 0;
  std::function<void(std::int64_t done, std::int64_t total)> progress;  ///< called after each batch
  /// Ranks that evaluate together: each runs the model on its part of the batches, and all get the whole Evaluation,
  /// with the bits of one process. Null: this process does all of it.
  dist::Communicator* ranks = nullptr;
};
/// How the batches of `total` items are shared.
BatchSharing sharing(const EvaluateOptions& options, std::int64_t total);
/// How a task on images evaluates: as its options say, with its progress told to `work`.
EvaluateOptions evaluation_options(const ImageTaskOptions& options, const Work& work);

/// The accuracy of one head, or of the whole model.
struct Accuracy {
  double loss = 0;  ///< mean cross-entropy
  double top1 = 0;  ///< per cent
  double top5 = 0;  ///< per cent; with fewer than five classes, all classes are among the top five
};

/// The kinds of the figures of an Accuracy: "top1", "top5", "loss".
std::vector<FigureKind> accuracy_figures();

/// The result of evaluate().
struct Evaluation : Accuracy {
  std::int64_t count = 0;  ///< images
  /// Of a distilled model, whose logits are the mean of its heads': the class head and the distillation head.
  std::vector<Accuracy> heads;
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  ///< [C, C]: numbers of images by true class (row) and predicted class (column)
  std::vector<std::int64_t> indices;    ///< of the evaluated images in the data set, in its order, without broken ones
  std::vector<std::int64_t> predictions;  ///< the class predicted for each of these images
  std::vector<std::string> broken;        ///< images left out, with the reasons
  double seconds = 0;
  double images_per_second = 0;

  std::int64_t num_classes() const { return static_cast<std::int64_t>(classes.size()); }
  std::int64_t class_count(std::int64_t label) const;  ///< number of images of that class
  double class_accuracy(std::int64_t label) const;     ///< per cent of them that were recognized; NaN if there are none
};

/// Runs the model over the whole data set, prepared by the model's evaluation transform. Throws Error if the data set
/// has more classes than the model, or if tta is none of 0, 2 and 6.
Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options = {});
/// Evaluates the samples of `loader`, which stand for the images of the data set, with `forward` in place of the
/// model's own. Throws Error as evaluate() of a model and a data set does.
Evaluation evaluate(const models::Model& model, const data::Dataset& dataset, data::Loader& loader,
                    const Forward& forward, const EvaluateOptions& options);
/// Options of a loader that goes through a data set for an evaluation: whole and in order; of a classifier, whose
/// labels it can have.
data::LoaderOptions loading(const EvaluateOptions& options);
data::LoaderOptions loading(const models::Model& model, const EvaluateOptions& options);

/// The confusion matrix of `evaluation` as an SVG heat map.
std::string confusion_svg(const Evaluation& evaluation);

/// The probabilities [N, C] f32 of N images, which are prepared by the model's evaluation transform. With tta = 2 or
/// 6 they are those of the mean logits of its views (EvaluateOptions::tta). Throws Error for another tta but 0.
Tensor predict(const models::Model& model, const std::vector<io::Image>& images, DType dtype = DType::f32,
               std::int64_t batch_size = 64, std::int64_t tta = 0);

/// The names of the classes of a model: its label names, or "0", "1", … if it has none.
std::vector<std::string> class_names(const models::Model& model);

/// Throws Error, naming --tta, if it is none of 0, 2 and 6.
void check_tta(std::int64_t tta);

}  // namespace vitrail::train
