#include "vitrail/text/corpus.h"

#include <algorithm>
#include <cstddef>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {

void check_corpus(std::string_view text, std::string_view source) {
  const std::size_t at = find_invalid_utf8(text);
  if (at == std::string::npos) {
    return;
  }
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  fail("{}: line {} is not UTF-8: byte {} of it is {:#04x}", source, line, at - begin + 1,
       static_cast<unsigned char>(text[at]));
}

std::string read_corpus(const std::string& file) {
  std::string text = io::read_text(file);
  check(!text.empty(), "{}: the text is empty", file);
  check_corpus(text, file);
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace vitrail::text
