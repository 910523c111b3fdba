#include "vitrail/io/web/download.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::io {
namespace {

namespace fs = std::filesystem;

constexpr long patience = 60;  // seconds without a byte

std::function<DownloadProgress(const std::string& url)>& shown_by() {
  static std::function<DownloadProgress(const std::string&)> one;
  return one;
}

// A file that is open for writing, and closed with this object.
class HeldOpen {
 public:
  HeldOpen(const fs::path& path, int flags) : value_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (value_ < 0) {
      fail_writing(path, errno);
    }
  }
  ~HeldOpen() { close(value_); }
  HeldOpen(const HeldOpen&) = delete;
  HeldOpen& operator=(const HeldOpen&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

// A download of one file, of which `part` holds what is there so far and `version` the server's name of that content.
struct Transfer {
  const std::string& url;
  fs::path part;
  fs::path version;
  const DownloadProgress& progress;
  std::int64_t had = 0;    // bytes before this try
  std::int64_t total = 0;  // of the whole file; 0: not said
  std::string tag;         // the server's name of the content: its ETag, or else its time
  std::unique_ptr<HeldOpen> file;
  std::int64_t written = 0;  // bytes of the file
  int write_error = 0;
  bool stopped = false;  // by its progress
};

std::int64_t status_of(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

// The value of a header line if it is one of `name`, in lower case.
std::optional<std::string> header_value(std::string_view line, std::string_view name) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || lower_case(line.substr(0, colon)) != name) {
    return std::nullopt;
  }
  return std::string(trimmed(line.substr(colon + 1)));
}

std::size_t take_header(const char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // the headers of a redirection are behind us
    transfer.tag.clear();
    transfer.total = 0;
  }
  if (const auto tag = header_value(line, "etag"); tag && !tag->starts_with("W/")) {
    transfer.tag = *tag;
  } else if (const auto time = header_value(line, "last-modified"); time && transfer.tag.empty()) {
    transfer.tag = *time;
  } else if (const auto range = header_value(line, "content-range"); range && range->find('/') != std::string::npos) {
    const std::string all = range->substr(range->find('/') + 1);
    std::from_chars(all.data(), all.data() + all.size(), transfer.total);
  }
  return size * count;
}

std::size_t take_bytes(const char* data, std::size_t size, std::size_t count, void* user) {
  const auto& [curl, transfer] = *static_cast<std::pair<CURL*, Transfer*>*>(user);
  const std::size_t bytes = size * count;
  const std::int64_t status = status_of(curl);
  if (status != 200 && status != 206) {
    return bytes;  // a page about the failure
  }
  if (transfer->file == nullptr) {
    const bool goes_on = status == 206;
    transfer->file = std::make_unique<HeldOpen>(transfer->part, O_WRONLY | O_CREAT | (goes_on ? O_APPEND : O_TRUNC));
    transfer->written = goes_on ? transfer->had : 0;
    write_atomically(transfer->version, transfer->tag);
    if (!goes_on) {
      curl_off_t length = -1;
      curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
      transfer->total = std::max<std::int64_t>(length, 0);
    }
  }
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t step = write(transfer->file->value(), data + done, bytes - done);
    if (step < 0 && errno != EINTR) {
      transfer->write_error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(step, 0));
  }
  transfer->written += static_cast<std::int64_t>(bytes);
  transfer->stopped = transfer->progress && !transfer->progress(transfer->written, transfer->total);
  return transfer->stopped ? 0 : bytes;
}

// Why a try has failed, and whether another one may do better.
struct Failure {
  std::string why;
  bool passing = false;
};

std::optional<Failure> try_once(Transfer& transfer) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  check(curl != nullptr, "libcurl cannot be used");
  const auto set = [&](CURLoption option, auto value) {
    check(curl_easy_setopt(curl.get(), option, value) == CURLE_OK, "libcurl does not know option {}",
          static_cast<int>(option));
  };
  std::error_code none;
  transfer.had = fs::exists(transfer.part, none) ? static_cast<std::int64_t>(fs::file_size(transfer.part)) : 0;
  transfer.written = 0;
  transfer.file.reset();
  const std::string tag = transfer.had > 0 && is_file(transfer.version) ? read_text(transfer.version) : "";
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(nullptr, &curl_slist_free_all);
  if (!tag.empty()) {  // without a name of the content nobody knows whether the rest would be that of the same file
    headers.reset(curl_slist_append(nullptr, ("If-Range: " + tag).c_str()));
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_RANGE, fmt::format("{}-", transfer.had).c_str());  // which curl copies
  }
  std::pair<CURL*, Transfer*> both{curl.get(), &transfer};
  char words[CURL_ERROR_SIZE] = "";
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(words));
  set(CURLOPT_URL, transfer.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, patience);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, patience);
  set(CURLOPT_USERAGENT, "vitrail");
  set(CURLOPT_HEADERFUNCTION, &take_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, &take_bytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&both));
  const CURLcode code = curl_easy_perform(curl.get());
  if (transfer.write_error != 0) {
    fail_writing(transfer.part, transfer.write_error);
  }
  check(!transfer.stopped, "the download of {} was stopped: it goes on when it is asked for again", transfer.url);
  const std::int64_t status = status_of(curl.get());
  if (code == CURLE_OK && status == 416) {  // there is no such range: what is there is of another file
    fs::remove(transfer.part, none);
    return Failure{"the file has changed", true};
  }
  if (code == CURLE_OK && status != 200 && status != 206) {
    return Failure{fmt::format("the server answers {}{}", status, status == 404 ? ", not found" : ""),
                   status >= 500 || status == 408 || status == 429};
  }
  if (code != CURLE_OK) {
    const bool hopeless = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                          code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_PEER_FAILED_VERIFICATION;
    return Failure{words[0] != '\0' ? std::string(words) : curl_easy_strerror(code), !hopeless};
  }
  if (transfer.file == nullptr) {  // an empty file
    transfer.file = std::make_unique<HeldOpen>(transfer.part, O_WRONLY | O_CREAT | O_TRUNC);
  }
  if (transfer.total > 0 && transfer.written < transfer.total) {
    return Failure{fmt::format("it ends after {} of {} bytes", transfer.written, transfer.total), true};
  }
  check(fsync(transfer.file->value()) == 0, "cannot write '{}'", transfer.part.string());
  return std::nullopt;
}

}  // namespace

bool is_url(std::string_view name) { return name.starts_with("https://") || name.starts_with("http://"); }

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path own = variable("VITRAIL_CACHE"); !own.empty()) {
    return own;
  }
  if (const fs::path all = variable("XDG_CACHE_HOME"); !all.empty()) {
    return all / "vitrail";
  }
  const fs::path home = variable("HOME");
  check(!home.empty(), "there is no folder for downloads: set VITRAIL_CACHE");
  return home / ".cache" / "vitrail";
}

void on_downloading(std::function<DownloadProgress(const std::string& url)> show) { shown_by() = std::move(show); }

fs::path cached(const std::string& url, const DownloadOptions& options) {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  check(ready, "libcurl cannot be used");
  const std::string bare = url.substr(0, url.find_first_of("?#"));
  const std::size_t host = is_url(url) ? url.find("://") + 3 : 0;
  const fs::path name = bare.find('/', host) == std::string::npos ? fs::path() : fs::path(bare).filename();
  check(is_url(url) && !name.empty(), "'{}' is no file on the web: https://HOST/…/FILE was expected", url);
  const fs::path folder = cache_folder() / fmt::format("{:016x}", hash(url));
  const fs::path file = folder / name;
  std::error_code none;
  if (fs::exists(file, none)) {
    return file;
  }
  make_folder(folder);
  const HeldOpen lock(folder / ".lock", O_RDWR | O_CREAT);
  while (flock(lock.value(), LOCK_EX) != 0) {
    check(errno == EINTR, "cannot lock '{}': {}", (folder / ".lock").string(), std::generic_category().message(errno));
  }
  if (fs::exists(file, none)) {  // another process has had it in the meantime
    return file;
  }
  const DownloadProgress progress = options.progress ? options.progress
                                    : shown_by()     ? shown_by()(url)
                                                     : DownloadProgress();
  Transfer transfer{.url = url,
                    .part = folder / (name.string() + ".part"),
                    .version = folder / (name.string() + ".version"),
                    .progress = progress,
                    .tag = {},
                    .file = {}};
  double pause = options.first_pause;
  for (int tried = 1;; ++tried) {
    const std::optional<Failure> failure = try_once(transfer);
    if (!failure) {
      break;
    }
    if (transfer.written > transfer.had) {  // it gets on
      tried = 1;
      pause = options.first_pause;
    }
    check(failure->passing && tried<options.tries, "{} cannot be downloaded{}: {}", url, tried> 1
              ? fmt::format(", even in {} tries", tried)
              : "",
          failure->why);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause *= 2;
  }
  transfer.file.reset();
  fs::rename(transfer.part, file);
  fs::remove(transfer.version, none);
  return file;
}

fs::path local_file(const fs::path& path) { return is_url(path.native()) ? cached(path.string()) : path; }

}  // namespace vitrail::io
