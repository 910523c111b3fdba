#include "vitrail/train/study/image_index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/few_rows.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/side_by_side.h"
#include "vitrail/train/study/embedding_file.h"
#include "vitrail/train/study/zero_shot.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t images_between_saves = 20000;
constexpr std::int64_t rows_at_once = 4096;  // of the index, in products that convert it

// What is known of the file of an image; of an image in an archive, what is known of the archive.
ImageIndex::Entry entry_of(const data::Dataset& images, std::int64_t image) {
  return {.name = io::as_utf8(images.name(image)), .file = io::stamp_of(images.file(image))};
}

// The rows of x [N, D] f32 with length 1.
Tensor unit_rows(const Tensor& x) {
  const std::span<const float> numbers = x.span<float>();
  const auto odd = std::ranges::find_if_not(numbers, [](float number) { return std::isfinite(number); });
  check(odd == numbers.end(), "feature {} has a number that is not finite", (odd - numbers.begin()) / x.size(1));
  return ops::normalize(x);
}

// The rows `kept` of the old features, followed by the new ones.
Tensor joined(const Tensor& old, const std::vector<std::int64_t>& kept, const Tensor& added) {
  const std::int64_t count = std::ssize(kept);
  const std::int64_t more = added.defined() ? added.size(0) : 0;
  if (count + more == 0) {
    return {};
  }
  const std::int64_t width = added.defined() ? added.size(1) : old.size(1);
  Tensor result = Tensor::empty({count + more, width}, DType::bf16);
  for (std::int64_t i = 0; i < count; ++i) {
    result.select(0, i).copy_from(old.select(0, kept[static_cast<std::size_t>(i)]));
  }
  if (more > 0) {
    result.narrow(0, count, more).copy_from(added);
  }
  return result;
}

// The lengths [N] f32 of features.
Tensor lengths_of(const Tensor& features) {
  const std::int64_t total = features.size(0);
  Tensor result = Tensor::empty({total});
  float* const lengths = result.data<float>();
  side_by_side(static_cast<std::size_t>((total + rows_at_once - 1) / rows_at_once), kernels::threads(),
               [&](std::size_t b) {
                 const std::int64_t begin = static_cast<std::int64_t>(b) * rows_at_once;
                 const std::int64_t count = std::min(rows_at_once, total - begin);
                 const Tensor rows = ops::cast(features.narrow(0, begin, count), DType::f32);
                 const std::int64_t width = rows.size(1);
                 const float* number = rows.data<float>();
                 for (std::int64_t i = begin; i < begin + count; ++i) {
                   double square = 0;
                   for (std::int64_t d = 0; d < width; ++d, ++number) {
                     square += static_cast<double>(*number) * static_cast<double>(*number);
                   }
                   lengths[i] = std::max(static_cast<float>(std::sqrt(square)), std::numeric_limits<float>::min());
                 }
               });
  return result;
}
Tensor lengths_of(const ImageIndex& index) {
  return index.lengths.defined() ? index.lengths : lengths_of(index.features);
}

// The products [Q, N] of queries of length 1 [Q, D] f32 with rows begin … end - 1 of the index.
Tensor block_products(const Tensor& features, const Tensor& queries, std::int64_t begin, std::int64_t end) {
  const Tensor rows = features.narrow(0, begin, end - begin);
  return ops::matmul(queries, ops::cast(rows, DType::f32).transpose(0, 1)).contiguous();
}

// All products [Q, N]: of few queries at the pace at which memory gives the index.
Tensor all_products(const Tensor& features, const Tensor& queries) {
  Tensor result = Tensor::empty({queries.size(0), features.size(0)});
  const Tensor weight = features.transpose(0, 1);
  if (kernels::fits_few_rows(queries, weight, {}, result)) {
    kernels::matmul_few_rows(queries, weight, {}, result);
    return result;
  }
  for (std::int64_t begin = 0; begin < features.size(0); begin += rows_at_once) {
    const std::int64_t end = std::min(begin + rows_at_once, features.size(0));
    result.narrow(1, begin, end - begin).copy_from(block_products(features, queries, begin, end));
  }
  return result;
}

std::string hash_of_parameters(std::string_view model, const nn::ParameterStore& parameters) {
  std::vector<std::uint64_t> of_values(parameters.all().size());
  side_by_side(of_values.size(), kernels::threads(), [&](std::size_t i) {
    const Tensor value = parameters.all()[i].value.contiguous();
    of_values[i] = hash({reinterpret_cast<const char*>(value.raw()), value.bytes()});
  });
  std::uint64_t result = hash(model);
  for (std::size_t i = 0; i < of_values.size(); ++i) {
    result = mix(mix(result, hash(parameters.all()[i].name)), of_values[i]);
  }
  return fmt::format("{:016x}", result);
}

// Sets that are joined by pairs (union-find).
class Groups {
 public:
  explicit Groups(std::int64_t count) : parent_(static_cast<std::size_t>(count)) {
    std::iota(parent_.begin(), parent_.end(), std::int64_t{0});
  }
  std::int64_t root(std::int64_t i) {
    while (parent_[static_cast<std::size_t>(i)] != i) {
      std::int64_t& up = parent_[static_cast<std::size_t>(i)];
      up = parent_[static_cast<std::size_t>(up)];
      i = up;
    }
    return i;
  }
  void join(std::int64_t a, std::int64_t b) {
    const std::int64_t x = root(a);
    const std::int64_t y = root(b);
    parent_[static_cast<std::size_t>(std::max(x, y))] = std::min(x, y);
  }

 private:
  std::vector<std::int64_t> parent_;
};

}  // namespace

std::string hash_of_weights(const models::Model& model) {
  return hash_of_parameters(model.architecture, model.net->parameters);
}
std::string hash_of_weights(const models::JointModel& model) {
  return hash_of_parameters("images and texts", model.net->parameters);
}

IndexEncoder index_encoder(const models::Model& model, const std::string& name) {
  return {
      hash_of_weights(model), nlohmann::json(preparation_of(model.pretrained)).dump(), name,
      [&model](const data::Dataset& images, const EvaluateOptions& options) { return embed(model, images, options); }};
}
IndexEncoder index_encoder(const models::JointModel& model, const std::string& name) {
  return {hash_of_weights(model), nlohmann::json(preparation_of(model.pretrained)).dump(), name,
          [&model](const data::Dataset& images, const EvaluateOptions& options) {
            return embed_images(model, images, options);
          }};
}

ImageIndex load_index(const fs::path& file) {
  const io::Safetensors stored = io::Safetensors::open(file);
  const auto& facts = stored.metadata();
  const auto fact = [&](const std::string& name) {
    const auto it = facts.find(name);
    check(it != facts.end(), "{}: this is no index of images: a file made by vitrail index was expected",
          stored.source());
    return it->second;
  };
  ImageIndex index{.source = fact("source"),
                   .model = fact("model"),
                   .pool = fact("pool"),
                   .changes = facts.contains("changes") ? fact("changes") : "",
                   .weights = fact("weights"),
                   .prepared = facts.contains("prepared") ? fact("prepared") : "",
                   .images = {},
                   .features = {}};
  const nlohmann::json images = io::parse_json(fact("images"), stored.source() + ": images");
  try {
    for (const nlohmann::json& image : images) {
      index.images.push_back({.name = image.at(0), .file = {.bytes = image.at(1), .modified = image.at(2)}});
    }
  } catch (const nlohmann::json::exception&) {
    fail("{}: 'images' in the metadata is not a list of [name, bytes, time]", stored.source());
  }
  if (!index.images.empty()) {
    index.features = stored.get("features");
    const Tensor& x = index.features;
    check(x.rank() == 2 && x.dtype() == DType::bf16 && x.size(0) == std::ssize(index.images) && x.size(1) > 0,
          "{}: features are {} {}, expected bf16 [{}, D]", stored.source(), name_of(x.dtype()), x.shape(),
          index.images.size());
    if (!stored.contains("lengths")) {  // it is of an earlier version
      index.lengths = lengths_of(x);
    } else {
      index.lengths = stored.get("lengths");
      check(index.lengths.dtype() == DType::f32 && index.lengths.shape() == Shape{x.size(0)},
            "{}: lengths are {} {}, expected f32 [{}]", stored.source(), name_of(index.lengths.dtype()),
            index.lengths.shape(), x.size(0));
    }
  }
  return index;
}

void save_index(const fs::path& file, const ImageIndex& index) {
  nlohmann::json images = nlohmann::json::array();
  for (const ImageIndex::Entry& image : index.images) {
    images.push_back({image.name, image.file.bytes, image.file.modified});
  }
  io::NamedTensors tensors;
  if (index.features.defined()) {
    tensors.emplace_back("features", index.features);
    tensors.emplace_back("lengths", lengths_of(index));
  }
  io::save_safetensors(file, tensors,
                       {{"format", "pt"},
                        {"source", index.source},
                        {"model", index.model},
                        {"pool", index.pool},
                        {"changes", index.changes},
                        {"weights", index.weights},
                        {"prepared", index.prepared},
                        {"images", images.dump()}});
}

void check_made_by(const ImageIndex& index, const IndexEncoder& encoder, const std::string& file) {
  check(index.images.empty() || index.weights == encoder.weights,
        "{} was made by '{}' with other weights than these: delete it to make it anew", file, index.model);
  check(index.images.empty() || index.prepared.empty() || index.prepared == encoder.prepared,
        "{} was made of images that were prepared otherwise than '{}' prepares them now ({} and {}): delete it to make "
        "it anew",
        file, encoder.model, index.prepared, encoder.prepared);
}

IndexChanges update_index(ImageIndex& index, const IndexEncoder& encoder, const EvaluateOptions& options,
                          const std::function<void(const ImageIndex&)>& save) {
  check_made_by(index, encoder);
  index.weights = encoder.weights;
  index.prepared = encoder.prepared;
  index.model = encoder.model;
  const auto dataset = data::open_unlabeled(index.source, options.skip_broken);
  std::map<std::string, std::int64_t, std::less<>> known;
  for (std::int64_t i = 0; i < std::ssize(index.images); ++i) {
    known.emplace(index.images[static_cast<std::size_t>(i)].name, i);
  }
  IndexChanges changes;
  changes.notes = data::notes_of({dataset.get()});
  std::vector<ImageIndex::Entry> kept;
  std::vector<std::int64_t> kept_rows;
  std::vector<std::int64_t> missing;
  for (std::int64_t i = 0; i < dataset->size(); ++i) {
    const ImageIndex::Entry entry = entry_of(*dataset, i);
    const auto it = known.find(entry.name);
    if (it != known.end() && index.images[static_cast<std::size_t>(it->second)] == entry) {
      kept.push_back(entry);
      kept_rows.push_back(it->second);
    } else {
      missing.push_back(i);
    }
  }
  changes.removed = std::ssize(index.images) - std::ssize(kept);
  if (changes.removed > 0) {
    index.features = joined(index.features, kept_rows, {});
    index.lengths = index.features.defined() ? lengths_of(index.features) : Tensor();
    index.images = std::move(kept);
  }
  const auto total = std::ssize(missing);
  for (std::int64_t begin = 0; begin < total; begin += images_between_saves) {
    const std::int64_t end = std::min<std::int64_t>(begin + images_between_saves, total);
    const data::DatasetPart part(*dataset, {missing.begin() + begin, missing.begin() + end});
    EvaluateOptions these = options;
    these.may_be_none = !index.images.empty();
    if (options.progress) {
      these.progress = [&](std::int64_t done, std::int64_t) { options.progress(begin + done, total); };
    }
    const Features features = encoder.embed(part, these);
    if (!features.names.empty()) {
      std::vector<std::int64_t> old(index.images.size());
      std::iota(old.begin(), old.end(), std::int64_t{0});
      index.features = joined(index.features, old, ops::cast(unit_rows(features.x), DType::bf16).contiguous());
      index.lengths = lengths_of(index.features);
    }
    for (const std::int64_t image : features.indices) {
      index.images.push_back(entry_of(part, image));
    }
    changes.added += std::ssize(features.names);
    changes.broken.insert(changes.broken.end(), features.broken.begin(), features.broken.end());
    save(index);
  }
  if (total == 0 && changes.removed > 0) {
    save(index);
  }
  return changes;
}

bool has_moved(const ImageIndex& index, const std::string& to) {
  std::error_code none;
  if (!data::is_one_path(index.source) || fs::exists(index.source, none) || !fs::is_directory(to, none)) {
    return false;
  }
  const auto found = std::ranges::count_if(index.images, [&](const auto& image) {
    return io::stamp_of(fs::path(to) / image.name).bytes == image.file.bytes;
  });
  return !index.images.empty() && 2 * found >= std::ssize(index.images);
}

std::string path_of(const ImageIndex& index, std::int64_t image) {
  const std::string& name = index.images[static_cast<std::size_t>(image)].name;
  const bool is_folder = data::is_one_path(index.source) && !io::is_file(index.source);
  return is_folder ? (fs::path(index.source) / name).string() : name;
}

bool is_gone(const ImageIndex& index, std::int64_t image) {
  std::error_code none;
  const std::string path = path_of(index, image);
  if (!fs::is_directory(index.source, none) || fs::exists(path, none) || path.find("\ufffd") != std::string::npos) {
    return false;
  }
  fs::path above = fs::path(path).parent_path();
  while (!fs::exists(above, none) && above.has_relative_path()) {
    above = above.parent_path();
  }
  return fs::is_directory(above, none);
}

std::vector<std::vector<Hit>> search(const ImageIndex& index, const Tensor& queries, std::int64_t count) {
  check(index.features.defined(), "the index of '{}' has no images", index.source);
  check(queries.rank() == 2 && queries.size(1) == index.features.size(1),
        "a query {} does not fit the features of the index, which have {} numbers", queries.shape(),
        index.features.size(1));
  const autograd::NoGrad no_grad;
  const Tensor found = all_products(index.features, unit_rows(queries));
  const Tensor lengths = lengths_of(index);
  const std::int64_t total = index.features.size(0);
  std::vector<std::vector<Hit>> result;
  for (std::int64_t q = 0; q < queries.size(0); ++q) {
    const std::span<float> row =
        found.span<float>().subspan(static_cast<std::size_t>(q * total), static_cast<std::size_t>(total));
    std::ranges::transform(row, lengths.span<float>(), row.begin(), std::divides());
    std::vector<Hit>& hits = result.emplace_back();
    for (const std::int64_t image : kernels::largest(row, count)) {
      hits.push_back({image, std::min(1.0, static_cast<double>(row[static_cast<std::size_t>(image)]))});
    }
  }
  return result;
}

std::vector<std::vector<std::int64_t>> duplicates(const ImageIndex& index, double threshold,
                                                  const std::function<void(std::int64_t done)>& advance) {
  if (!index.features.defined()) {
    return {};
  }
  const autograd::NoGrad no_grad;
  const std::int64_t total = index.features.size(0);
  constexpr std::int64_t block = 512;
  constexpr double rounding = 1e-5;  // by which the cosine of a row with itself may be less than 1
  const auto least = static_cast<float>(threshold - rounding);
  const Tensor all_lengths = lengths_of(index);
  const std::span<const float> lengths = all_lengths.span<float>();
  Groups groups(total);
  for (std::int64_t begin = 0; begin < total; begin += block) {
    const std::int64_t end = std::min(begin + block, total);
    const Tensor rows = ops::cast(index.features.narrow(0, begin, end - begin), DType::f32);
    for (std::int64_t other = begin; other < total; other += rows_at_once) {
      const std::int64_t last = std::min(other + rows_at_once, total);
      const Tensor found = block_products(index.features, rows, other, last);
      const float* value = found.data<float>();
      for (std::int64_t i = begin; i < end; ++i) {
        const float wanted = least * lengths[static_cast<std::size_t>(i)];
        for (std::int64_t j = other; j < last; ++j, ++value) {
          if (j > i && *value >= wanted * lengths[static_cast<std::size_t>(j)]) {
            groups.join(i, j);
          }
        }
      }
    }
    if (advance) {
      advance(end);
    }
  }
  std::map<std::int64_t, std::vector<std::int64_t>> members;
  for (std::int64_t i = 0; i < total; ++i) {
    members[groups.root(i)].push_back(i);
  }
  std::vector<std::vector<std::int64_t>> result;
  for (auto& [root, images] : members) {
    if (images.size() > 1) {
      result.push_back(std::move(images));
    }
  }
  std::ranges::stable_sort(result, std::ranges::greater(), [](const auto& images) { return images.size(); });
  return result;
}

}  // namespace vitrail::train
