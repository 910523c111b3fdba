#include "vitrail/train/run/run_copy.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "vitrail/dist/packed.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* where = "the copy of the run";
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

// A file of a run, by its path inside the run folder.
struct RunFile {
  std::string path;
  std::uint64_t bytes = 0;
};

// The run folder of `given`; "" if there is none.
fs::path run_or_nothing(const fs::path& given) {
  try {
    return run_folder_of(given);
  } catch (const std::exception&) {
    return {};
  }
}

// The files that a run is resumed from.
std::vector<RunFile> files_to_resume_from(const fs::path& run) {
  std::vector<RunFile> files = {{"config.toml", fs::file_size(run / "config.toml")}};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run / "last")) {
    if (entry.is_regular_file()) {
      files.push_back({entry.path().lexically_relative(run).string(), entry.file_size()});
    }
  }
  return files;
}

std::string packed_files(const std::vector<RunFile>& files) {
  dist::Packer packer;
  packer.put(static_cast<std::uint64_t>(files.size()));
  for (const RunFile& file : files) {
    packer.put_text(file.path);
    packer.put(file.bytes);
  }
  return packer.bytes();
}

std::vector<RunFile> unpacked_files(const std::string& bytes) {
  dist::Unpacker unpacker(bytes);
  std::vector<RunFile> files(unpacker.get<std::uint64_t>());
  for (RunFile& file : files) {
    file.path = unpacker.get_text();
    file.bytes = unpacker.get<std::uint64_t>();
  }
  return files;
}

std::string note_of(const std::vector<RunFile>& files, const std::set<int>& without) {
  std::uint64_t bytes = 0;
  std::ranges::for_each(files, [&bytes](const RunFile& file) { bytes += file.bytes; });
  const bool one = without.size() == 1;
  return fmt::format(
      "{} not have this checkpoint of the run and {} it from rank 0 ({:.1f} MB)",
      one ? fmt::format("rank {} does", *without.begin()) : io::counted(std::ssize(without), "ranks") + " do",
      one ? "gets" : "get", static_cast<double>(bytes) * 1e-6);
}

// A piece of a file, and of the ranks those that want it; the others get one byte, so that they need not wait for long.
std::span<const std::byte> part_for(int rank, std::span<const std::byte> piece, const std::set<int>& without) {
  return without.contains(rank) ? piece : piece.first(1);
}

void go_on_unless_stopped(const dist::Communicator& ranks) {
  check(!ranks.stopping || !ranks.stopping(), "stopped while the run was copied");
}

void send_file(dist::Communicator& ranks, const fs::path& path, std::uint64_t bytes, const std::set<int>& without) {
  if (bytes == 0) {
    return;
  }
  const auto mapped = io::MappedFile::open(path);
  check(mapped->bytes().size() == bytes, "'{}' has changed while it was sent to other ranks", path.string());
  for (std::size_t at = 0; at < bytes; at += piece_bytes) {
    go_on_unless_stopped(ranks);
    const auto piece = std::as_bytes(mapped->bytes().subspan(at, std::min(piece_bytes, bytes - at)));
    std::vector<dist::Awaited> messages;
    for (int rank = 1; rank < ranks.size(); ++rank) {
      messages.push_back({ranks.send(part_for(rank, piece, without), rank, dist::files_tag), rank});
    }
    dist::wait(ranks, messages, where);
  }
}

// Calls take(piece) with all that rank 0 sends of a file.
void receive_file(dist::Communicator& ranks, std::uint64_t bytes, bool lacks,
                  const std::function<void(std::span<const std::byte>)>& take) {
  std::vector<std::byte> piece;
  for (std::size_t at = 0; at < bytes; at += piece_bytes) {
    go_on_unless_stopped(ranks);
    piece.resize(lacks ? std::min(piece_bytes, bytes - at) : 1);
    std::vector<dist::Awaited> messages;
    messages.push_back({ranks.receive(piece, 0, dist::files_tag), 0});
    dist::wait(ranks, messages, where);
    take(piece);
  }
}

void receive_into(dist::Communicator& ranks, const fs::path& path, std::uint64_t bytes) {
  io::make_folder(path.parent_path());
  io::AtomicFile file(path);
  receive_file(ranks, bytes, true, [&](std::span<const std::byte> piece) { file.write(piece.data(), piece.size()); });
  file.commit();
}

constexpr std::string_view copy_prefix = "vitrail-run-";

// Whether a copy was left by a process that was killed: nobody holds the lock of its folder any more. One that was made
// just now may be about to be locked.
bool is_left(const fs::path& copy) {
  std::error_code error;
  const auto made = fs::last_write_time(copy, error);
  if (error || fs::file_time_type::clock::now() - made < std::chrono::minutes(1)) {
    return false;
  }
  const int folder = open(copy.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  const bool left = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0;
  if (folder >= 0) {
    close(folder);
  }
  return left;
}

void remove_left_copies(const fs::path& where_copies_lie) {
  std::error_code error;
  std::vector<fs::path> left;
  for (auto entry = fs::directory_iterator(where_copies_lie, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(copy_prefix) && is_left(entry->path())) {
      left.push_back(entry->path());
    }
  }
  for (const fs::path& copy : left) {
    fs::remove_all(copy, error);
  }
}

}  // namespace

RunCopy::RunCopy(dist::Communicator& ranks, const fs::path& given, const Note& note) : folder_(given) {
  if (ranks.size() == 1) {
    return;
  }
  const fs::path run = run_or_nothing(given);
  const std::vector<std::string> checkpoints =
      dist::all_gather(ranks, run.empty() ? "" : identity_of_checkpoint(run / "last"), where);
  std::set<int> without;
  for (int rank = 1; rank < ranks.size(); ++rank) {
    if (checkpoints[static_cast<std::size_t>(rank)] != checkpoints.front()) {
      without.insert(rank);
    }
  }
  if (checkpoints.front().empty() || without.empty()) {
    return;
  }
  const bool leads = ranks.rank() == 0;
  dist::Packer own;
  own.put_text(leads ? run_name(run) : "");
  own.put_text(leads ? packed_files(files_to_resume_from(run)) : "");
  const std::string of_first = dist::all_gather(ranks, own.bytes(), where).front();
  dist::Unpacker unpacker(of_first);
  const std::string name = unpacker.get_text();
  const std::vector<RunFile> files = unpacked_files(unpacker.get_text());
  if (leads && note) {
    note(note_of(files, without));
  }
  try {
    if (without.contains(ranks.rank())) {
      make_folder();
      folder_ = temporary_ / name;
    }
    for (const RunFile& file : files) {
      if (leads) {
        send_file(ranks, run / file.path, file.bytes, without);
      } else if (!temporary_.empty()) {
        receive_into(ranks, folder_ / file.path, file.bytes);
      } else {
        receive_file(ranks, file.bytes, false, [](std::span<const std::byte>) {});
      }
    }
  } catch (...) {
    remove();
    throw;
  }
}

RunCopy::~RunCopy() { remove(); }

void RunCopy::make_folder() {
  std::error_code error;
  const fs::path where_copies_lie = fs::temp_directory_path(error);
  check(!error, "there is no folder for temporary files, which a copy of the run needs: see TMPDIR");
  remove_left_copies(where_copies_lie);
  std::string path = (where_copies_lie / copy_prefix).string() + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    io::fail_writing(path, errno);
  }
  temporary_ = path;
  descriptor_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  flock(descriptor_, LOCK_EX | LOCK_NB);
}

void RunCopy::remove() {
  std::error_code ignored;
  if (!temporary_.empty()) {
    fs::remove_all(temporary_, ignored);
    close(descriptor_);
    temporary_.clear();
  }
}

}  // namespace vitrail::train
