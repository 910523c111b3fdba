// Pictures named on the command line.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/io/image.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/evaluate.h"
#include "vitrail/train/features.h"

namespace CLI {
class App;
}

namespace vitrail::cli {

// One picture as the model takes it: [1, C, H, W], by its evaluation transform.
Tensor model_input(const models::Model& model, const io::Image& image);

// A data set (or the part of it named `split`) with the classes in the order that the model knows.
std::unique_ptr<data::Dataset> open_pictures(const std::string& path, const std::string& split,
                                             const models::Model& model);

// train::evaluate under a bar of progress with this title, where there is a terminal.
train::Evaluation evaluate_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                     train::EvaluateOptions options);

// train::embed likewise.
train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                train::EvaluateOptions options);

// A picture that is decoded when it is wanted: Error names it if it is broken.
struct NamedPicture {
  std::string name;
  std::function<io::Image()> image;
};

// The argument PICTURES of a command, for list_pictures().
void add_pictures_argument(CLI::App& command, std::vector<std::string>& pictures);

// Files as they are, folders and .tar archives as all pictures in them in natural order, "-" as a list of paths on
// standard input, one a line. Error for a path that does not exist and for a folder or an archive without pictures.
std::vector<NamedPicture> list_pictures(const std::vector<std::string>& arguments);

}  // namespace vitrail::cli
