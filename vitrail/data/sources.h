// The kinds of places that open_dataset() reads. Not for use outside vitrail/data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/dataset.h"

namespace vitrail::data {

// What a source was found to hold, before classes have numbers.
struct Listing {
  std::vector<std::string> names;                // of the pictures, as they are shown
  std::vector<std::int64_t> labels;              // indices into `classes`
  std::vector<std::string> classes;              // in natural order
  std::function<io::Image(std::int64_t)> image;  // decodes picture i; called from several threads
};

// "picture9" before "picture10": runs of digits compare as numbers, the rest by its bytes with ASCII letters in lower
// case (timm's natural_key).
bool natural_less(std::string_view a, std::string_view b);

// Hidden files and folders, and what macOS puts beside pictures.
bool is_hidden(const std::filesystem::path& path);

// Fills `classes` and `labels` from the folders that the pictures lie in.
void label_by_folder(Listing& listing, const std::string& source);
// The names that parts of a data set go by.
const std::vector<std::string>& known_splits();
bool is_training_split(const std::string& split);

// Fills `classes` and `labels` from each picture's class name.
void label_by_name(Listing& listing, const std::vector<std::string>& class_of);

// Each opens `path` for good: a missing or malformed part is an Error that names it. Folders and archives may be listed
// without labels; their pictures may then lie anywhere.
Listing list_folder(const std::filesystem::path& path, bool labeled = true);
// `splits`: the part by the first of these names that there is, among folders of the archive or in the table's column
// "split"; none takes all.
Listing list_tar(const std::filesystem::path& path, const std::vector<std::string>& splits, bool labeled = true);
Listing list_csv(const std::filesystem::path& path, const std::vector<std::string>& splits);
// CIFAR's binary files of one split, in order.
Listing list_cifar(const std::vector<std::filesystem::path>& files);
// MNIST-style: `images` is the file *-images-idx3-ubyte, its labels lie beside it.
Listing list_idx(const std::filesystem::path& images);

bool is_cifar_file(const std::filesystem::path& path);       // data_batch_1.bin, test_batch.bin, train.bin, test.bin
bool is_idx_images_file(const std::filesystem::path& path);  // *images-idx3-ubyte, *images.idx3-ubyte

}  // namespace vitrail::data
