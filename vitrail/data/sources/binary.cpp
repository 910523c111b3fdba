// The binary files in which CIFAR and MNIST are distributed.
#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> classes;
  for (std::int64_t c = 0; c < count; ++c) {
    classes.push_back(std::to_string(c));
  }
  return classes;
}

// Reads a file with one class name per line.
std::vector<std::string> read_class_names(const fs::path& path) {
  std::vector<std::string> names = io::is_file(path) ? io::read_lines(path) : std::vector<std::string>();
  std::erase(names, "");
  return names;
}

// A CIFAR record is a label byte (CIFAR-100: the coarse label, then the fine one) and three planes of 32 × 32 bytes.
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPlane = kSide * kSide;

// The number of label bytes per record, by the file's name or otherwise by its length.
std::int64_t label_bytes(const fs::path& path, std::size_t size) {
  const std::string name = path.filename().string();
  const bool cifar100 = name == "train.bin" || name == "test.bin";
  for (const std::int64_t labels : cifar100 ? std::array{2, 1} : std::array{1, 2}) {
    if (size > 0 && size % static_cast<std::size_t>(labels + 3 * kPlane) == 0) {
      return labels;
    }
  }
  fail("{}: {} bytes are not a whole number of CIFAR-10 records (3073 bytes) or CIFAR-100 records (3074 bytes)",
       path.string(), size);
}

struct CifarFile {
  std::shared_ptr<const io::MappedFile> file;
  std::int64_t first = 0;  // index of its first image
  std::int64_t labels = 1;

  std::int64_t stride() const { return labels + 3 * kPlane; }
  const std::uint8_t* record(std::int64_t index) const { return file->bytes().data() + (index - first) * stride(); }
};

io::Image cifar_image(const std::uint8_t* planes) {
  io::Image image(kSide, kSide);
  for (std::int64_t i = 0; i < kPlane; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) {
      image.pixels[static_cast<std::size_t>(3 * i + c)] = planes[c * kPlane + i];
    }
  }
  return image;
}

// Numbers in idx files are big-endian.
std::uint32_t big_endian(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

// An idx file of unsigned bytes with `rank` dimensions: two zero bytes, the type 8, the rank, the sizes, the data.
struct IdxFile {
  std::shared_ptr<const io::MappedFile> file;
  std::vector<std::int64_t> sizes;
  const std::uint8_t* data = nullptr;
};

IdxFile open_idx(const fs::path& path, std::size_t rank) {
  IdxFile idx;
  idx.file = io::MappedFile::open(path);
  const std::span<const std::uint8_t> bytes = idx.file->bytes();
  check(bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b, "{}: the file is compressed: run gunzip on it first",
        path.string());
  const std::size_t header = 4 + 4 * rank;
  check(bytes.size() >= header && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 8 && bytes[3] == rank,
        "{}: not an idx file of unsigned bytes with {} dimension{}", path.string(), rank, rank == 1 ? "" : "s");
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::uint64_t size = big_endian(bytes.data() + 4 + 4 * d);
    check(size > 0 && count <= (std::uint64_t{1} << 40) / size, "{}: the size {} of dimension {} makes no sense",
          path.string(), size, d);
    count *= size;
    idx.sizes.push_back(static_cast<std::int64_t>(size));
  }
  check(bytes.size() - header == count, "{}: {} bytes of data were expected, but there are {}", path.string(), count,
        bytes.size() - header);
  idx.data = bytes.data() + header;
  return idx;
}

// Replaces the last occurrence of `from` in the file's name by `to`.
fs::path with_name(const fs::path& path, const std::string& from, const std::string& to) {
  std::string name = path.filename().string();
  const std::size_t at = name.rfind(from);
  return at == std::string::npos ? path : path.parent_path() / name.replace(at, from.size(), to);
}

}  // namespace

bool is_cifar_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "test_batch.bin" || name == "train.bin" || name == "test.bin" ||
         (name.starts_with("data_batch_") && name.ends_with(".bin"));
}

bool is_idx_images_file(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(".gz")) {  // recognized, so that opening it can say what to do
    name.resize(name.size() - 3);
  }
  return name.ends_with("images-idx3-ubyte") || name.ends_with("images.idx3-ubyte");
}

Listing list_cifar(const std::vector<fs::path>& files) {
  Listing listing;
  std::vector<CifarFile> parts;
  std::int64_t most = -1;
  for (const fs::path& path : files) {
    CifarFile part;
    part.file = io::MappedFile::open(path);
    part.labels = label_bytes(path, part.file->bytes().size());
    part.first = static_cast<std::int64_t>(listing.labels.size());
    const std::int64_t count = static_cast<std::int64_t>(part.file->bytes().size()) / part.stride();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = part.record(part.first + i)[part.labels - 1];
      check(label < (part.labels == 1 ? 10 : 100), "{}: record {} has the label {}", path.string(), i, label);
      listing.labels.push_back(label);
      listing.names.push_back(fmt::format("{}[{}]", path.filename().string(), i));
      most = std::max(most, label);
    }
    parts.push_back(std::move(part));
  }
  check(!parts.empty(), "no CIFAR files were given");
  const bool cifar100 = parts[0].labels == 2;
  listing.classes = read_class_names(files[0].parent_path() / (cifar100 ? "fine_label_names.txt" : "batches.meta.txt"));
  if (static_cast<std::int64_t>(listing.classes.size()) <= most) {
    listing.classes = numbered_classes(cifar100 ? 100 : 10);
  }
  const auto number_of = [parts](std::int64_t index) {
    const auto after = std::upper_bound(parts.begin(), parts.end(), index,
                                        [](std::int64_t i, const CifarFile& part) { return i < part.first; });
    return static_cast<std::size_t>(after - parts.begin() - 1);
  };
  listing.file = [files, number_of](std::int64_t index) { return files[number_of(index)]; };
  listing.image = [parts, number_of](std::int64_t index) {
    const CifarFile& part = parts[number_of(index)];
    return cifar_image(part.record(index) + part.labels);
  };
  return listing;
}

Listing list_idx(const fs::path& images_path, bool labeled) {
  const IdxFile images = open_idx(images_path, 3);
  Listing listing;
  if (labeled) {
    const fs::path labels_path = with_name(with_name(images_path, "images", "labels"), "idx3", "idx1");
    check(fs::exists(labels_path), "{}: the labels {} are missing", images_path.string(), labels_path.string());
    const IdxFile labels = open_idx(labels_path, 1);
    check(labels.sizes[0] == images.sizes[0], "{} has {} labels for the {} images of {}", labels_path.string(),
          labels.sizes[0], images.sizes[0], images_path.string());
    listing.labels.assign(labels.data, labels.data + labels.sizes[0]);
    listing.classes = numbered_classes(*std::max_element(listing.labels.begin(), listing.labels.end()) + 1);
  }
  for (std::int64_t i = 0; i < images.sizes[0]; ++i) {
    listing.names.push_back(fmt::format("{}[{}]", images_path.filename().string(), i));
  }
  listing.file = [images_path](std::int64_t) { return images_path; };
  listing.image = [images](std::int64_t index) {
    io::Image image(images.sizes[2], images.sizes[1]);
    const std::uint8_t* gray = images.data + index * images.sizes[1] * images.sizes[2];
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = gray[i / 3];
    }
    return image;
  };
  return listing;
}

}  // namespace vitrail::data
