// Runs the program as a person would and keeps what it says.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/wait.h>

#include "tests/support/golden.h"

namespace vitrail::test {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// `arguments` as typed into a shell behind "vitrail", with `environment` (NAME=VALUE …) before it.
inline Outcome vitrail(const std::string& arguments, const std::string& input = "",
                       const std::string& environment = "") {
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  const std::string err = (folder / "err").string();
  std::ofstream(folder / "in") << input;
  const std::string command = environment + " " + std::string(VITRAIL_PROGRAM) + " " + arguments + " <" +
                              (folder / "in").string() + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  const auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(out), text(err)};
}

}  // namespace vitrail::test
