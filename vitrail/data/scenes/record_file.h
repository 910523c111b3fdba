/// \file
/// Files of a data set that is being written. They are not for use outside of vitrail/data/scenes.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"

namespace vitrail::data {

/// A file in a folder that is not in use yet: nothing need be synced or renamed.
class PlainFile {
 public:
  explicit PlainFile(std::filesystem::path path) : path_(std::move(path)), stream_(path_, std::ios::binary) {
    check_stream();
  }
  void write(std::string_view text) { stream_.write(text.data(), std::ssize(text)); }
  void finish() {
    stream_.close();
    check_stream();
  }

 private:
  void check_stream() const {
    if (!stream_) {
      io::fail_writing(path_, errno);
    }
  }
  std::filesystem::path path_;
  std::ofstream stream_;
};

inline void write_bytes(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  PlainFile file(path);
  file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  file.finish();
}

/// A JSON file of an object whose last member is a list, a line a record: `head` is the object without that member.
class RecordFile {
 public:
  RecordFile(const std::filesystem::path& path, const nlohmann::ordered_json& head, std::string_view list)
      : file_(path) {
    const std::string text = head.dump();
    file_.write(fmt::format("{}{}\n\"{}\": [", text.substr(0, text.size() - 1), head.empty() ? "" : ",", list));
  }
  void add(const nlohmann::ordered_json& record) {
    file_.write(first_ ? "\n" : ",\n");
    file_.write(record.dump());
    first_ = false;
  }
  void finish() {
    file_.write("\n]}\n");
    file_.finish();
  }

 private:
  PlainFile file_;
  bool first_ = true;
};

}  // namespace vitrail::data
