/// \file
/// Sequences of images: what is learned of them, and what a network says about them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/data/sequences/sequence_loader.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/models/recurrent/frame_network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/figures.h"

namespace vitrail::train {

/// How open_sequences() is asked for the labels that a target needs; `classes` are those of a model, if there is one.
data::SequenceOptions sequence_options(const models::FrameTarget& target, const std::vector<std::string>& classes);

/// The angle in degrees, in 0 … 360, of the frame at `place` in its sequence: the one that the source tells, or else
/// its share of a turn, as on a turntable that is photographed in equal steps.
double angle_of(const data::Sequences& data, std::int64_t sequence, std::int64_t frame, std::int64_t place);
/// The size of the difference of two angles in degrees, at most 180.
double angle_between(double a, double b);

/// The mean loss of a batch with the network's outputs, a scalar f32: the cross-entropy of the classes (of angles: of
/// their bins), or of angles as cosine and sine the squared distance (y₁ - cos θ)² + (y₂ - sin θ)².
Tensor frame_loss(const Tensor& outputs, const data::SequenceBatch& batch, const data::Sequences& data,
                  const models::FrameTarget& target, float smoothing = 0);
/// The kinds of the figures of a target, the most important first: "accuracy", or of angles "error", the mean size of
/// the error in degrees; "loss".
std::vector<FigureKind> frame_figures(const models::FrameTarget& target);

/// What a network says about a sequence.
struct FramePrediction {
  std::int64_t sequence = 0;
  std::vector<std::int64_t> frames;        ///< the image of each frame
  std::vector<double> angles;              ///< of each frame, in 0 … 360 degrees
  std::vector<double> true_angles;         ///< of each frame, if the source tells it
  std::vector<std::int64_t> classes;       ///< the most likely class, of each frame or of the sequence
  std::vector<std::int64_t> true_classes;  ///< likewise, if there are labels
  Tensor probabilities;                    ///< [1 or frames, C] of classes; undefined of angles
};

/// How a network is run over sequences.
struct FrameRunOptions {
  std::int64_t batch_size = 16;
  DType dtype = DType::f32;
  int workers = 1;
  bool skip_broken = false;
  bool labeled = true;  ///< whether losses and true values are wanted
  bool turned = false;  ///< circular sequences begin at any frame, as they do in training, and not at their first
  std::function<void(std::int64_t done)> progress = {};  ///< called after each batch
  dist::Communicator* ranks = nullptr;                   ///< that share the batches; null: this process has all
};

/// The predictions for sequences, and how good they are.
struct FrameEvaluation {
  std::vector<FramePrediction> predictions;
  Figures figures;  ///< those of frame_figures(); empty unless options.labeled
  std::vector<std::string> broken;
};
/// Runs the network over the sequences of these numbers, whose frames are prepared by the image model's evaluation
/// transform.
FrameEvaluation run_frames(const models::FrameNetwork& model, const data::Sequences& data,
                           const std::vector<std::int64_t>& numbers, const FrameRunOptions& options);

/// A mean error in degrees, of all frames of the sequences of one class.
struct ClassError {
  std::string name;
  std::int64_t frames = 0;
  double error = 0;
};
/// The errors of angles by the class of the sequences; none if they have none.
std::vector<ClassError> errors_by_class(const FrameEvaluation& evaluation, const data::Sequences& data);

/// A picture of an evaluation as SVG: of angles the predicted ones against the true ones, a dot for each frame and a
/// colour for each class of sequences; of classes the confusion matrix.
std::string frames_svg(const FrameEvaluation& evaluation, const data::Sequences& data,
                       const models::FrameTarget& target);

}  // namespace vitrail::train
