/// \file
/// Recurrent networks that read sequences of images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// What a FrameNetwork says about a sequence of images.
struct FrameTarget {
  enum class Kind {
    sequence,  ///< a class of the whole sequence (many to one)
    frames,    ///< a class of each frame (many to many)
    angle      ///< an angle of each frame, as cosine and sine, or as one of `bins` classes
  };
  Kind kind = Kind::sequence;
  std::vector<std::string>
      classes;              ///< what they are called; of angles: the classes of the sequences, if there are any
  std::int64_t bins = 0;    ///< of angles: bin k is around 360° k / bins; 0: cosine and sine
  bool circular = false;    ///< behind the last frame comes the first again, as on a turntable
  std::string frames = {};  ///< the pattern of the names of files that are frames, as it has learnt them; empty: any

  bool each_frame() const { return kind != Kind::sequence; }
  /// The number of outputs, of the sequence or of each frame.
  std::int64_t outputs() const { return kind != Kind::angle ? std::ssize(classes) : bins > 0 ? bins : std::int64_t{2}; }
};
/// The kind of a target by its name "sequence", "frames" or "angle", which error messages call `source`.
FrameTarget::Kind target_named(std::string_view name, const std::string& source);
std::string_view name_of(FrameTarget::Kind kind);

/// An image model f without its classifier, which sees every frame, a recurrent network over what it gives, and a
/// linear map of its outputs:
///
/// ```text
/// h_t = cell(f(x_t), h_{t-1}),   y_t = W h_t + b,   or y = W h_T + b of the whole sequence
/// ```
///
/// In both directions, what has read all of the sequence counts for it from each. Parameters: those of the image model
/// by their own names, and `sequence.rnn.weight_ih_l0` …, `sequence.head.weight`, `sequence.head.bias`.
class FrameNetwork final : public nn::Network {
 public:
  /// `encoder` gives features, not logits; the recurrent network is that of the fields of `network`: what read_cells()
  /// reads, and bidirectional. Throws Error, naming `source`, if they do not fit.
  FrameNetwork(Model encoder, const std::string& network, FrameTarget target, const std::string& source);

  /// The outputs of B sequences, whose normalized frames x [N, C, H, W] lie one after the other, `lengths` [B] i64 of
  /// them each: [B, K], or of each frame [N, K]; f32.
  Tensor outputs(const Tensor& x, const Tensor& lengths, nn::Pass& pass) const;

  const std::string& network_config() const { return network_config_; }
  const nn::RecurrentConfig& network() const { return network_->config; }

  std::int64_t depth() const override { return encoder.net->depth() + network().num_layers; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override {
    return !is_own(parameter) && encoder.net->no_weight_decay(parameter);
  }
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("sequence.head."); }

  Model encoder;  ///< whose parameters are in this network's store
  const FrameTarget target;

 private:
  static bool is_own(const std::string& parameter) { return parameter.starts_with("sequence."); }

  std::string network_config_;
  std::unique_ptr<const nn::Recurrent> network_;
  std::unique_ptr<const nn::Linear> head_;
};

/// Whether `folder` has a config.json that names a FrameNetwork.
bool is_frame_network_folder(const std::filesystem::path& folder);
/// Loads the network of a folder with config.json, which has the image model's arguments, the recurrent network's
/// fields and the target, and model.safetensors. Throws Error if the folder cannot be read, or if its files do not fit
/// each other.
std::unique_ptr<FrameNetwork> load_frame_network(const std::filesystem::path& folder);
/// Writes the folder that load_frame_network() reads, which replaces another one as a whole.
void save_frame_network(const FrameNetwork& model, const std::filesystem::path& folder);

}  // namespace vitrail::models
