#include "vitrail/cli/pictures.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "vitrail/data/transforms.h"
#include "vitrail/tensor/error.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

Tensor model_input(const models::Model& model, const io::Image& image) {
  return data::eval_transform(model.pretrained)(image).unsqueeze(0);
}

std::vector<std::string> list_pictures(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      for (std::string line; std::getline(std::cin, line);) {
        if (!line.empty()) {
          result.push_back(line);
        }
      }
      continue;
    }
    check(fs::exists(argument), "{}: there is no such file or folder", argument);
    if (!fs::is_directory(argument)) {
      result.push_back(argument);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file() && io::is_image_name(entry.path())) {
        found.push_back(entry.path().string());
      }
    }
    check(!found.empty(), "{}: there are no pictures (.jpg, .jpeg, .png, .webp) in this folder", argument);
    std::ranges::sort(found);
    result.insert(result.end(), found.begin(), found.end());
  }
  check(!result.empty(), "no pictures were given");
  return result;
}

}  // namespace vitrail::cli
