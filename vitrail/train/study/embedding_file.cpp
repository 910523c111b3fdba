#include "vitrail/train/study/embedding_file.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <system_error>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/dataset_part.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"
#include "vitrail/train/study/image_index.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

using PartFacts = std::map<std::string, std::string>;

// The features of some images, as they were written.
struct Stored {
  Tensor x;  ///< in the dtype of the file
  Features features;
  std::vector<std::string> broken;
  std::string files;  ///< stamp_of_files()
};

// What tells whether the files of images have changed.
std::string stamp_of_files(const data::Dataset& images) {
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i < images.size(); ++i) {
    const fs::path file = images.file(i);
    const io::FileStamp stamp = io::stamp_of(file);
    const bool is_drawn = stamp == io::FileStamp();
    all = mix(all, is_drawn ? hash(file.native())
                            : mix(static_cast<std::uint64_t>(stamp.bytes), static_cast<std::uint64_t>(stamp.modified)));
  }
  return fmt::format("{:016x}", all);
}

Stored read_part(const fs::path& path, const PartFacts& facts) {
  const io::Safetensors file = io::Safetensors::open(path);
  for (const auto& [name, value] : facts) {
    const auto it = file.metadata().find(name);
    check(it != file.metadata().end() && it->second == value,
          "'{}' is of another embedding ({} is '{}' there and '{}' here): remove the folder '{}', or choose another "
          "--output",
          path.string(), name, it == file.metadata().end() ? "" : it->second, value, path.parent_path().string());
  }
  Stored stored{.x = file.get("features"), .features = load_features(path), .broken = {}, .files = {}};
  stored.broken = io::parse_json(file.metadata().at("broken"), path.string()).get<std::vector<std::string>>();
  if (const auto files = file.metadata().find("files"); files != file.metadata().end()) {
    stored.files = files->second;
  }
  return stored;
}

// A part that is about these images, and no others.
void check_images(const Stored& stored, const data::DatasetPart& part, const fs::path& path) {
  std::int64_t place = 0;
  for (const std::string& name : stored.features.names) {
    while (place < part.size() && io::as_utf8(part.name(place)) != name) {
      ++place;
    }
    check(place++ < part.size(), "'{}' has features of '{}', which is none of the images now: remove the folder '{}'",
          path.string(), name, path.parent_path().string());
  }
  check(std::ssize(stored.features.names) + std::ssize(stored.broken) == part.size(),
        "'{}' has features of {} images, of which there are {} now: remove the folder '{}'", path.string(),
        stored.features.names.size(), part.size(), path.parent_path().string());
}

Stored stored_as(Features features, DType dtype) {
  Stored stored{.x = ops::cast(features.x, dtype).contiguous(), .features = {}, .broken = features.broken, .files = {}};
  features.x = stored.x;
  stored.features = std::move(features);
  return stored;
}

// Parts one behind the other.
Features joined_parts(std::vector<Stored> parts, std::vector<std::string>& broken) {
  Features result;
  std::int64_t count = 0;
  for (const Stored& part : parts) {
    count += part.x.size(0);
  }
  result.classes = parts.front().features.classes;
  result.x = Tensor::empty({count, parts.front().x.size(1)}, parts.front().x.dtype());
  result.labels = Tensor::empty({count}, DType::i64);
  std::int64_t begin = 0;
  for (Stored& part : parts) {
    const std::int64_t size = part.x.size(0);
    result.x.narrow(0, begin, size).copy_from(part.x);
    result.labels.narrow(0, begin, size).copy_from(part.features.labels);
    std::ranges::move(part.features.names, std::back_inserter(result.names));
    std::ranges::move(part.broken, std::back_inserter(broken));
    begin += size;
    part = {};
  }
  return result;
}

}  // namespace

PartFacts preparation_of(const data::ImageConfig& images) {
  PartFacts facts = {{"input_size", fmt::format("{} x {} x {}", images.channels, images.height, images.width)},
                     {"interpolation", images.interpolation},
                     {"mean", fmt::format("{}", fmt::join(images.mean, " "))},
                     {"std", fmt::format("{}", fmt::join(images.std, " "))}};
  if (images.processor) {
    facts["image_processor"] = models::processor_json(*images.processor).dump();
  } else {
    facts["crop_pct"] = fmt::format("{}", images.crop_pct);
    facts["crop_mode"] = images.crop_mode;
  }
  return facts;
}

std::string difference_of_preparation(const data::ImageConfig& images, const data::ImageConfig& other) {
  const PartFacts others = preparation_of(other);
  for (const auto& [name, value] : preparation_of(images)) {
    const auto known = others.find(name);
    if (known == others.end() || known->second != value) {
      return known == others.end() ? fmt::format("{} {}", name, value)
                                   : fmt::format("{} {}, not {}", name, value, known->second);
    }
  }
  return "";
}

PartFacts facts_of(const models::Model& model) {
  PartFacts facts = preparation_of(model.pretrained);
  facts.emplace("weights", hash_of_weights(model));
  return facts;
}

EmbeddingFile embed_to_file(const models::Model& model, const data::Dataset& dataset, const FeatureFunction& function,
                            const EvaluateOptions& options, const fs::path& output,
                            const EmbeddingFileOptions& file_options) {
  check(file_options.dtype == DType::f32 || file_options.dtype == DType::bf16,
        "features are written as f32 or bf16, not as {}", name_of(file_options.dtype));
  EmbeddingFile result;
  const std::int64_t batch = options.batch_size;
  const std::int64_t step = (std::max<std::int64_t>(file_options.images_of_part, 1) + batch - 1) / batch * batch;
  const std::int64_t total = dataset.size();
  const fs::path folder = output.string() + ".parts";
  PartFacts facts = file_options.facts;
  facts.merge(facts_of(model));
  std::vector<Stored> parts;
  for (std::int64_t begin = 0; begin < total; begin += step) {
    const std::int64_t end = std::min(begin + step, total);
    std::vector<std::int64_t> images(static_cast<std::size_t>(end - begin));
    std::iota(images.begin(), images.end(), begin);
    const data::DatasetPart part(dataset, std::move(images));
    const fs::path path = folder / fmt::format("{:09}.safetensors", begin);
    PartFacts of_part = facts;
    of_part["dtype"] = name_of(file_options.dtype);
    of_part["computed_in"] = name_of(options.dtype);
    of_part["images_of_part"] = fmt::format("{}", step);
    of_part["batch_size"] = fmt::format("{}", batch);
    const std::string files = stamp_of_files(part);
    std::error_code none;
    std::optional<Stored> left;
    if (fs::exists(path, none)) {
      left = read_part(path, of_part);
      check_images(*left, part, path);
      (left->files == files ? result.found : result.changed) += part.size();
    }
    if (left && left->files == files) {
      parts.push_back(std::move(*left));
    } else {
      EvaluateOptions these = options;
      if (options.progress) {
        these.progress = [&](std::int64_t done, std::int64_t) { options.progress(begin + done, total); };
      }
      parts.push_back(stored_as(embed(model, part, function, these), file_options.dtype));
      if (end < total) {
        io::make_folder(folder);
        of_part["files"] = files;
        of_part["broken"] = nlohmann::json(parts.back().broken).dump();
        save_features(path, parts.back().features, of_part);
        parts.back() = read_part(path, of_part);  // from the file, so that memory holds no more than a part
      }
    }
    if (options.progress) {
      options.progress(end, total);
    }
  }
  const Features all = joined_parts(std::move(parts), result.broken);
  save_features(output, all, facts);
  result.shape = all.x.shape();
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return result;
}

}  // namespace vitrail::train
