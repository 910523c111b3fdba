/// \file
/// What `vitrail predict` and `vitrail eval` do with a model of sequences of images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"

namespace CLI {
class App;
}

namespace vitrail::cli {

/// Adds --frames, a pattern of the file names of the frames of sequences.
void add_frames_flag(CLI::App& command, std::string& frames);

/// What `vitrail predict` is asked for about sequences.
struct PredictFramesFlags {
  std::vector<std::string> sources;  ///< folders, archives or tables of sequences
  std::string frames;                ///< SequenceOptions::frames
  bool topk_given = false;
  std::int64_t topk = 5;
  std::int64_t batch_size = 16;
  bool skip_broken = false;
  std::string format = "text";
};
/// Prints what the model says about sequences: a line for each, or for each frame.
void predict_frames(const ModelFlags& model, const ComputeFlags& compute, const PredictFramesFlags& flags);

/// Prints how good the model is on the sequences of a data set; with `output`, writes a folder with eval.json and a
/// picture.
void evaluate_frames(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                     const std::string& frames, const std::string& output, bool json);

}  // namespace vitrail::cli
