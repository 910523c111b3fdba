#include "vitrail/text/corpus.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {

void check_corpus(std::string_view text, std::string_view source) {
  const std::size_t at = find_invalid_utf8(text);
  if (at == std::string::npos) {
    return;
  }
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  check_line(text.substr(begin), source, static_cast<std::size_t>(lines) + 1);
}

std::string without_broken_lines(const std::string& text, std::int64_t& skipped) {
  if (find_invalid_utf8(text) == std::string::npos) {
    return text;
  }
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (find_invalid_utf8(line) == std::string::npos) {
      kept += line;
    } else {
      ++skipped;
    }
    begin = end;
  }
  return kept;
}

std::string with_line_feeds(std::string text) {
  if (text.find("\r\n") == std::string::npos) {
    return text;
  }
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\r\n") != 0) {
      result += text[i];
    }
  }
  return result;
}

std::string read_corpus(const std::string& file, std::int64_t* skipped) {
  std::string text(io::without_byte_order_mark(io::read_text(file)));
  check(!text.empty(), "{}: the text is empty", file);
  if (skipped != nullptr) {
    text = without_broken_lines(text, *skipped);
    check(!text.empty(), "{}: none of its lines is UTF-8", file);
  }
  check_corpus(text, file);
  return with_line_feeds(std::move(text));
}

std::vector<std::vector<std::string>> documents_of(std::string_view text) {
  std::vector<std::vector<std::string>> documents;
  bool open = false;
  for (std::string& line : io::lines_of(text)) {
    const bool blank = line.find_first_not_of(" \t") == std::string::npos;
    if (!blank && !open) {
      documents.emplace_back();
    }
    open = !blank;
    if (open) {
      documents.back().push_back(std::move(line));
    }
  }
  return documents;
}

}  // namespace vitrail::text
