// A folder that tests fill with small images and texts.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/io/image.h"

namespace vitrail::test {

class DrawnFiles : public ::testing::Test {
 protected:
  // An image whose first byte tells it from others.
  void draw(const std::string& name, int shade) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    io::Image image(2, 2);
    image.pixels[0] = static_cast<std::uint8_t>(shade);
    io::write_png(folder_ / name, image);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  TemporaryFolder folder_;
};

}  // namespace vitrail::test
