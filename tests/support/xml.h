// Whether a text is well-formed XML, as far as the images and pages of this project go.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::test {

// "" if tags are closed in order, attributes quoted and not repeated, and every & begins an entity; else what is wrong.
inline std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  bool root_seen = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto rest = text.substr(i);
    if (text[i] == '&') {
      const std::size_t end = rest.find(';');
      if (end == std::string_view::npos || end < 2 || end > 10) {
        return "a bare &";
      }
      i += end + 1;
    } else if (text[i] != '<') {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte < 0x20 && std::isspace(byte) == 0) {
        return "a control character";
      }
      if (open.empty() && std::isspace(byte) == 0) {
        return "text outside the root element";
      }
      ++i;
    } else {
      const std::size_t end = rest.find('>');
      if (end == std::string_view::npos) {
        return "a tag without end";
      }
      std::string_view tag = rest.substr(1, end - 1);
      i += end + 1;
      if (tag.starts_with("/")) {
        if (open.empty() || open.back() != tag.substr(1)) {
          return "</" + std::string(tag.substr(1)) + "> closes nothing";
        }
        open.pop_back();
        continue;
      }
      const bool closed = tag.ends_with("/");
      tag.remove_suffix(closed ? 1 : 0);
      const std::string name(tag.substr(0, tag.find_first_of(" \n")));
      if (open.empty() && root_seen) {
        return "a second root element";
      }
      root_seen = true;
      std::vector<std::string> attributes;
      for (std::size_t k = name.size(); k < tag.size();) {
        if (std::isspace(static_cast<unsigned char>(tag[k])) != 0) {
          ++k;
          continue;
        }
        const std::size_t equals = tag.find("=\"", k);
        const std::size_t quote = equals == std::string_view::npos ? equals : tag.find('"', equals + 2);
        if (quote == std::string_view::npos) {
          return "an attribute of <" + name + "> without quotes";
        }
        const std::string attribute(tag.substr(k, equals - k));
        for (const std::string& other : attributes) {
          if (other == attribute) {
            return "an attribute of <" + name + "> twice: " + attribute;
          }
        }
        attributes.push_back(attribute);
        k = quote + 1;
      }
      if (!closed) {
        open.push_back(name);
      }
    }
  }
  return open.empty() ? (root_seen ? "" : "no element") : "<" + open.back() + "> is not closed";
}

}  // namespace vitrail::test
