/// \file
/// What a run goes on from, for ranks on whose machines it does not lie.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "vitrail/dist/communicator.h"

namespace vitrail::train {

/// The run that several ranks go on with. Its folder need not lie on a disk that all of them see: a rank that does not
/// have the checkpoint of rank 0, or has another one, gets its config.toml and last/ from there, into a folder of its
/// own under TMPDIR.
class RunCopy {
 public:
  using Note = std::function<void(const std::string&)>;
  /// Called by all ranks, with the path that each was given: of the run folder, or of one of its checkpoints. Tells
  /// `note` on rank 0 what is about to be sent. Throws Error if a rank has no room for the copy. A run that rank 0 does
  /// not have is left for resume() to refuse.
  RunCopy(dist::Communicator& ranks, const std::filesystem::path& given, const Note& note = {});
  ~RunCopy();
  RunCopy(const RunCopy&) = delete;
  RunCopy& operator=(const RunCopy&) = delete;

  /// What this rank is to read: the folder of the copy, or the given path where it has the run itself.
  const std::filesystem::path& folder() const { return folder_; }
  /// Removes the copy, which is not needed once the run has been loaded; the run itself stays.
  void remove();

 private:
  void make_folder();

  std::filesystem::path folder_;
  std::filesystem::path temporary_;  // what is removed; "" if there is no copy
  int descriptor_ = -1;              // of that folder, whose lock tells others that it is in use
};

}  // namespace vitrail::train
