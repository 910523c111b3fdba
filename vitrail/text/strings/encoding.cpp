#include "vitrail/text/strings/encoding.h"

#include <cstdint>
#include <memory>

#include <unicode/ucnv.h>
#include <unicode/unistr.h>

#include "vitrail/tensor/error.h"

namespace vitrail::text {

std::string to_utf8(std::string bytes, const std::string& encoding, const std::string& source) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UConverter, decltype(&ucnv_close)> converter(ucnv_open(encoding.c_str(), &status), &ucnv_close);
  check(U_SUCCESS(status) && !encoding.empty(), "no encoding has the name '{}'", encoding);
  if (ucnv_getType(converter.get()) == UCNV_UTF8) {
    return bytes;
  }
  ucnv_setToUCallBack(converter.get(), UCNV_TO_U_CALLBACK_STOP, nullptr, nullptr, nullptr, &status);
  const icu::UnicodeString decoded(bytes.data(), static_cast<std::int32_t>(bytes.size()), converter.get(), status);
  check(U_SUCCESS(status), "{}: not a text in {}", source, encoding);
  std::string utf8;
  decoded.toUTF8String(utf8);
  return utf8;
}

}  // namespace vitrail::text
