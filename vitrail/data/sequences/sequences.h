/// \file
/// Data sets of sequences of images: folders of frames, archives and tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"

namespace vitrail::data {

/// A sequence of images.
struct Sequence {
  std::string name;                  ///< the folder of its frames, or what a table calls it
  std::int64_t label = unlabeled;    ///< its class
  std::vector<std::int64_t> frames;  ///< its images in order, as indices into Sequences::images
};

/// A list of sequences, and the images that they consist of.
struct Sequences {
  std::shared_ptr<const Dataset> images;  ///< of all frames, without classes
  std::vector<Sequence> sequences;
  std::vector<std::string> classes;        ///< of sequences, or of frames if frame_labels were asked for
  std::vector<std::int64_t> frame_labels;  ///< the class of each image; empty unless it was asked for
  std::set<std::string> parts = {};        ///< that a table is split into by its column "split"
  std::vector<double> angles;              ///< of each image, in degrees; empty if the source does not tell them
  std::vector<std::string> notes = {};     ///< as Dataset::notes(), those of the images too
};

/// Which sequences open_sequences() takes, and with which classes.
struct SequenceOptions {
  std::string split;  ///< as DatasetOptions::split
  enum class Labels {
    none,
    sequences,
    if_any,  ///< of sequences, if every one has a class
    frames
  };
  Labels labels = Labels::sequences;  ///< what classes are read of
  std::vector<std::string> classes;   ///< if given: the classes to use, in this order; another one is an Error
  bool skip_broken = false;           ///< a frame that a table names and that does not exist is a broken one
  std::string frames;                 ///< a pattern that the file names of frames match, "090-*.jpg"; empty: any
};
/// Opens sequences. `source` is one of
/// - a folder, or a `.tar`, `.tar.gz` or `.tgz` of one, with a folder for each sequence, whose images are its frames in
///   natural order of their names; the class of a sequence is the folder that its folder lies in: `cow/03/090-045.jpg`
///   is a frame of the sequence `cow/03` of the class `cow`,
/// - a `.csv` with a line for each frame, in order, and a header: `path`, relative to the CSV, `sequence`, and as far
/// as
///   they are needed `label` (of the sequence or of the frame), `angle` (in degrees) and `split`.
///
/// Throws Error, which says what was looked for, if there are no sequences, if a sequence is of several parts, if no
/// part is chosen of a table with several and classes are asked for, if a sequence has no class, or frames of several
/// ones, and if labels of frames are asked of a source that has none.
Sequences open_sequences(const std::filesystem::path& source, const SequenceOptions& options = {});

}  // namespace vitrail::data
