/// \file
/// Features of very many images, in a file that a run which was killed goes on with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// How images are prepared for a model, in words by their names.
std::map<std::string, std::string> preparation_of(const data::ImageConfig& images);
/// The first thing in which preparation_of() images differs from another one, as "crop_pct 0.5, not 0.9"; empty:
/// nothing.
std::string difference_of_preparation(const data::ImageConfig& images, const data::ImageConfig& other);
/// What a file of features says of the model that made them: its weights, and preparation_of() its images.
std::map<std::string, std::string> facts_of(const models::Model& model);

/// How embed_to_file() writes.
struct EmbeddingFileOptions {
  DType dtype = DType::f32;                  ///< of the features on disk: f32 or bf16
  std::int64_t images_of_part = 8192;        ///< rounded up to whole batches
  std::map<std::string, std::string> facts;  ///< metadata; with other ones, or another dtype, it is another embedding
};

/// What embed_to_file() has written.
struct EmbeddingFile {
  Shape shape;                      ///< [N, D]
  std::int64_t found = 0;           ///< images whose features an earlier run had left
  std::int64_t changed = 0;         ///< those that it had left, too, and of which files have changed since
  std::vector<std::string> broken;  ///< images left out, with the reasons
};

/// embed() into a file as save_features() writes it. The features of more images than a part has are kept part by part
/// in a folder beside it, `output`.parts, each written whole or not at all; a later call goes on behind the parts that
/// are there, to the same bits, and removes the folder when the file is complete. A part of whose images a file has
/// changed since, by its size or time, is made anew. Throws Error if the parts are of another embedding: other facts,
/// also those of facts_of(), dtype, batch size or images.
EmbeddingFile embed_to_file(const models::Model& model, const data::Dataset& dataset, const FeatureFunction& function,
                            const EvaluateOptions& options, const std::filesystem::path& output,
                            const EmbeddingFileOptions& file_options);

}  // namespace vitrail::train
