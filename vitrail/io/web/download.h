/// \file
/// Files on the web, which are kept on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace vitrail::io {

/// Whether a name is that of a file on the web: "https://…" or "http://…".
bool is_url(std::string_view name);

/// A folder on this machine for what can be had again: $VITRAIL_CACHE, or else vitrail in $XDG_CACHE_HOME, or in
/// ~/.cache. Throws Error if none of these is set.
std::filesystem::path cache_folder();

/// Is called now and then with the bytes that are there and those of the whole file, 0 if the server does not say, and
/// says whether the download is to go on.
using DownloadProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

struct DownloadOptions {
  int tries = 6;             ///< without a further byte, of a server that does not answer, breaks off, or is busy
  double first_pause = 0.5;  ///< seconds between the first two; each further pause is twice as long
  DownloadProgress progress = {};
};

/// The file in the cache that has the content of `url`. One that is there is taken as it is; another one is
/// downloaded, whole or not at all: what breaks off goes on behind what is there already (HTTP's ranges) when it is
/// tried again, now or by a later process, unless the file has changed since. Of several processes one downloads, and
/// the others wait. Throws Error, naming the URL, if the server has no such file or cannot be reached.
std::filesystem::path cached(const std::string& url, const DownloadOptions& options = {});

/// Sets what shows the progress of downloads that are given none: a function that is called with the URL of each as it
/// begins. Not while downloads run.
void on_downloading(std::function<DownloadProgress(const std::string& url)> show);

/// `path` as a file on this machine: cached() of a URL, and another path as it is.
std::filesystem::path local_file(const std::filesystem::path& path);

}  // namespace vitrail::io
