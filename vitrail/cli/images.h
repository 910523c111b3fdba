/// \file
/// Images named on the command line, and the data sets of commands.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/data/dataset.h"
#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/detection/detections.h"
#include "vitrail/train/study/embedding_file.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/study/features.h"
#include "vitrail/train/vqa/answerer.h"

namespace CLI {
class App;
}

namespace vitrail::cli {

/// The model's input for one image: [1, C, H, W], by the model's evaluation transform.
Tensor model_input(const models::Model& model, const io::Image& image);

/// Throws Error if a page is there that vitrail has not made.
void check_own_page(const std::filesystem::path& page);

/// Makes the folder of a page, index.html, and of its pictures. Throws Error if it has an index.html of another origin.
void make_page_folder(const std::filesystem::path& folder);
/// A line on stderr that says so if the data are those of the model's run, which held a share of them out: the model
/// has learnt the others.
void note_learned_data(const ModelFlags& model, const DataFlags& data);
/// Opens a data set, or a part of it, with the classes in the model's order, or, if `or_own_classes`, with its own
/// where the model does not know all of them. Lines on stderr say what of it is passed over, and what else may not be
/// expected (data::notes_of()).
std::unique_ptr<data::Dataset> open_images(const DataFlags& flags, const models::Model& model,
                                           bool or_own_classes = false);

/// For a model of `folder` that is to be written in timm's layout, which knows no processors of transformers: a masked
/// autoencoder, which learnt from random crops, gets timm's way of cropping; of others, a line on stderr says where
/// timm crops in another place.
void settle_processor(models::PretrainedConfig& images, const std::string& folder);

/// Lines on stderr that say what of a data set is passed over, and what else may not be expected (data::notes_of()).
void say_notes_of(const data::Dataset& dataset);

/// Says on stderr that a folder of classes holds what another task learns, such as boxes.
void note_beside_classes(const std::string& source);

/// Runs train::evaluate(), under a progress bar with this title if stderr is a terminal.
train::Evaluation evaluate_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                     train::EvaluateOptions options);

/// The same of train::evaluate_detector().
train::DetectorEvaluation evaluate_under_bar(std::string_view title, const models::Detector& detector,
                                             const data::BoxedImages& data, train::EvaluateOptions options);

/// The same of Answerer::evaluate().
train::AnswerEvaluation evaluate_under_bar(std::string_view title, const train::Answerer& answerer,
                                           const data::ImageQuestions& questions, train::EvaluateOptions options);

/// Says so on stderr if features or images to judge by, which are called `items`, are those that are learned from.
void note_same_source(std::string_view items, const std::string& learned, const std::string& judged);
/// Says on stderr which images an evaluation left out, once for the same ones.
void note_left_out_images(const std::vector<std::string>& broken);

/// Prints the number of images and the accuracy of each class, and which images were left out.
void print_by_class(const train::Evaluation& evaluation);

/// Runs train::embed(), under a progress bar with this title if stderr is a terminal.
train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                train::EvaluateOptions options);
train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                const train::FeatureFunction& function, train::EvaluateOptions options);

/// Runs train::embed_to_file(), under a progress bar with this title if stderr is a terminal.
train::EmbeddingFile embed_to_file_under_bar(std::string_view title, const models::Model& model,
                                             const data::Dataset& dataset, const train::FeatureFunction& function,
                                             train::EvaluateOptions options, const std::string& output,
                                             const train::EmbeddingFileOptions& file);

/// An image that is decoded when it is needed: `read` throws Error, naming the file, if it is broken.
struct NamedImage {
  std::string name;
  std::function<io::Image()> read;
};

/// Throws Error if a picture that is drawn of an image in `folder` would replace that image, or one beside it.
void check_none_in(const std::string& folder, const std::vector<NamedImage>& images);

/// Names for the pictures that are drawn of images, which may have the same name: "cat.png", "cat-2.png".
class PictureNames {
 public:
  std::string next(const std::string& image);
  /// Says on stderr how many pictures of other names are in the folder that these were written to.
  void note_others_in(const std::string& folder) const;

 private:
  std::map<std::string, int> counts_;  // by stem
  std::set<std::string> taken_;
};

/// If an image stands in the place of MODEL, and nothing behind it, as in `vitrail predict cat.jpg`: makes the shipped
/// model `shipped` the MODEL, says so on stderr, and returns the image.
std::optional<std::string> image_without_model(ModelFlags& model, std::string_view shipped);
/// Wrong usage if an image still stands in the place of MODEL: others are behind it.
void check_one_image_without_model(const ModelFlags& model, std::string_view shipped);

/// Adds the argument IMAGES, which list_images() understands, to a command.
void add_images_argument(CLI::App& command, std::vector<std::string>& images);

/// The arguments, with the lines of standard input in the place of "-".
std::vector<std::string> with_input_lines(const std::vector<std::string>& arguments);

/// The images that `arguments` name, of which the image `output` that the command writes may be none: a file is itself,
/// a folder or a tar archive is all images in it in natural order, and "-" is a list of paths on standard input, one
/// per line. Throws Error for a path that does not exist, for a folder or an archive without images, and if there are
/// no images at all. With `skip_broken`, shards that are missing or damaged are left out and named.
std::vector<NamedImage> list_images(const std::vector<std::string>& arguments, const std::string& output = "",
                                    bool skip_broken = false);

/// COCO's ids of images, by their paths: the numbers at the ends of their file names. Empty if not each of them has one
/// of its own.
std::map<std::string, std::int64_t> ids_in_names(const std::vector<NamedImage>& images);

/// Reads an image; nothing, with a line on stderr that names it, if it is broken and `skip_broken` says so. Throws
/// Error, which names --skip-broken, if it is broken and that does not.
std::optional<io::Image> read_image(const NamedImage& image, bool skip_broken);
/// Reads images for run(), as read_image() does, `batch_size` at a time: their names and themselves, in order. Throws
/// Error if all are broken.
void for_each_batch(
    const std::vector<NamedImage>& images, std::int64_t batch_size, bool skip_broken,
    const std::function<void(const std::vector<std::string>& names, const std::vector<io::Image>&)>& run);

}  // namespace vitrail::cli
