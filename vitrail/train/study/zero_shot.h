/// \file
/// What a model of images and texts knows without further training: classes by their names, and what belongs to what.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/text_pairs.h"
#include "vitrail/io/image.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// A model of images and texts, and what its texts are cut by.
struct ImageTextModel {
  models::JointModel joint;
  text::Tokenizer tokenizer;
};
/// Loads both from a folder. Throws Error if they do not fit each other.
ImageTextModel open_image_text_model(const std::filesystem::path& folder);
/// The tokenizer of such a folder, with the padding that its tokenizer_config.json names.
text::Tokenizer load_pair_tokenizer(const std::filesystem::path& folder);

/// Texts as the model takes them: from their first to their end token, and for SigLIP with padding up to the model's
/// positions.
struct PairTexts {
  std::vector<std::vector<std::int64_t>> ids;
  std::int64_t cut = 0;  ///< how many were longer than the model's positions, and were cut: the end token is kept
};
/// Throws Error, naming it, for a text that the tokenizer cannot encode.
PairTexts encode_pair_texts(const models::ClipModel& model, const text::Tokenizer& tokenizer,
                            std::span<const std::string> texts);
/// "2 texts of more than 77 tokens are cut"; "" if none is.
std::string cut_note(const PairTexts& texts, std::int64_t max_positions);

/// The vectors [S, P] f32 of length 1 of texts.
Tensor embed_pair_texts(const models::ClipModel& model, const PairTexts& texts, DType dtype = DType::f32,
                        std::int64_t batch_size = 256);
/// Those of images, which are prepared by the model's evaluation transform.
Features embed_images(const models::JointModel& model, const data::Dataset& images, const EvaluateOptions& options);

/// Those of images that are decoded already, [N, P].
Tensor embed_images(const models::JointModel& model, const std::vector<io::Image>& images, DType dtype = DType::f32);

/// The vectors [L, P] of labels: each stands in the place of `{}` in each template, the vectors of these texts are
/// averaged, and the mean is brought to length 1 (Radford et al. 2021, section 3.1.4). `cut`, unless it is null, gets
/// cut_note(). Throws Error if there are no labels or templates, a label is empty, or a template has no `{}`.
Tensor embed_labels(const ImageTextModel& model, const std::vector<std::string>& labels,
                    const std::vector<std::string>& templates, DType dtype = DType::f32, std::string* cut = nullptr);

/// How often images have the label that is nearest, of the labels with these vectors. The classes of the images are
/// those labels.
Evaluation evaluate_zero_shot(const models::ClipModel& model, const Features& images,
                              const std::vector<std::string>& labels, const Tensor& label_vectors);

/// How far down right answers are looked for.
inline constexpr std::array<std::int64_t, 3> recall_depths = {1, 5, 10};

/// Per cent of the questions with a right answer among the first 1, 5 and 10.
struct Retrieval {
  std::array<double, 3> image_to_text = {};  ///< a text of the image's own
  std::array<double, 3> text_to_image = {};
  std::int64_t images = 0;
  std::int64_t texts = 0;
  std::vector<std::string> broken = {};  ///< images left out, with the reasons; their texts are left out too
  Tensor image_vectors = {};             ///< [N, P] f32, of the images of pairs
};
/// Looks with vectors of images [N, P] and of texts [S, P] for each other; text s belongs to the image image_of[s].
/// Images without a text ask nothing.
Retrieval retrieval(const Tensor& images, const Tensor& texts, std::span<const std::int64_t> image_of);
/// The same for the images of pairs and all of their texts; `cut`, unless it is null, gets cut_note().
Retrieval retrieval(const models::JointModel& model, const text::Tokenizer& tokenizer, const data::TextPairs& pairs,
                    const EvaluateOptions& options, std::string* cut = nullptr);

}  // namespace vitrail::train
