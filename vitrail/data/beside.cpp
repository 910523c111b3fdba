#include "vitrail/data/beside.h"

#include <algorithm>

#include "vitrail/data/dataset.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

namespace fs = std::filesystem;

bool lies_in(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(fs::absolute(path), error);
  const fs::path around = fs::weakly_canonical(fs::absolute(folder), error);
  const auto [of_folder, of_path] = std::ranges::mismatch(around, inside);
  return of_folder == around.end() || (std::next(of_folder) == around.end() && of_folder->empty());  // "photos/"
}

void check_beside_images(const fs::path& output, const fs::path& source) {
  std::error_code error;
  if (!is_one_path(source) || !fs::is_directory(source, error) || !lies_in(output, source)) {
    return;
  }
  const Parts parts = parts_of_images(source);
  const auto around = std::ranges::find_if(
      parts, [&](const Part& part) { return fs::is_directory(part.path, error) && lies_in(output, part.path); });
  check(!parts.empty() && around == parts.end(),
        "the output '{}' lies among the images of '{}', and would be read as some of them: choose another --output",
        output.string(), around == parts.end() ? source.string() : around->path.string());
}

}  // namespace vitrail::data
