// Labelled pictures from the places where people keep them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/io/image.h"

namespace vitrail::data {

constexpr std::int64_t unlabeled = -1;  // the label of a picture that has none

// A list of pictures with a class index each. As timm's folder reader, the class is the folder that a picture lies in,
// classes are in natural order of their names, pictures in natural order of their paths. Hidden files and files that
// are not pictures by their names are ignored; symbolic links are followed. Safe to call from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual io::Image image(std::int64_t index) const = 0;     // decoded; Error names the file if it is broken
  virtual std::int64_t label(std::int64_t index) const = 0;  // 0 … classes().size() - 1, or unlabeled
  virtual std::string name(std::int64_t index) const = 0;    // the picture's path inside the source
  virtual const std::vector<std::string>& classes() const = 0;
};

// Opens `source`, whatever it is:
//   a folder of class folders; a .tar of the same tree; CIFAR-10/100's binary files (a folder with data_batch_*.bin /
//   train.bin, or one .bin file); MNIST-style idx (a folder with *-images-idx3-ubyte, or one such file beside its
//   labels); a .csv of path,label (paths relative to the CSV; a header line is understood).
// `split` ("train", "validation", "test", …) chooses a subfolder, tar or file set where the source has splits; "" takes
// the source itself. Where there is no part of that name, other names for it are tried ("val", "valid", … for
// "validation", then "test"), and for "train" a source without parts is taken whole. Error says what was looked for. An
// empty class, a source without pictures and a single class are Errors (one class only if `allow_single_class` is
// false).
struct DatasetOptions {
  std::string split;
  // If given: the classes to use, in this order (a model's label names). An unknown class is an Error; classes that the
  // source only numbers ("0", "1", …) take these names by position.
  std::vector<std::string> classes;
  bool allow_single_class = true;
  // False: all pictures of the source, wherever they lie, as one class.
  bool labeled = true;
};
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& source, const DatasetOptions& options = {});

// Pictures whose classes nobody knows: all below a folder, at any depth, or in a .tar; of a source of another kind its
// pictures without their labels. classes() is empty. Error if there are no pictures.
std::unique_ptr<Dataset> open_unlabeled(const std::filesystem::path& source);

// The pictures of `labeled`, with its classes, and behind them those of `more` without labels.
std::unique_ptr<Dataset> with_unlabeled(std::unique_ptr<Dataset> labeled, std::unique_ptr<Dataset> more);

}  // namespace vitrail::data
