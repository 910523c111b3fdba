#include "vitrail/train/run/held_out.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "vitrail/data/scenes/source.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The share that the run which goes on has held out; 0: none, or a run begins.
double share_of_run(const ImageTaskOptions& o) {
  if (o.resume.empty()) {
    return 0;
  }
  const std::map<std::string, std::string> facts = read_facts(fs::path(o.resume) / "config.toml");
  const auto share = facts.find(held_out_fact);
  return share == facts.end() ? 0 : std::atof(share->second.c_str());
}

// Whether a source has a folder or a file for something else than training, whatever is in it.
bool has_another_part(const std::string& source) {
  return !data::is_all_for_training(data::part_folders(source)) ||
         !data::is_all_for_training(data::parts_of_images(source));
}

}  // namespace

double open_evaluation(const ImageTaskOptions& o, const EvaluationSources& sources) {
  if (const double before = share_of_run(o); before > 0) {
    check(o.val_dir.empty(),
          "the run has held a share of {} of its images out, which it would learn with --val-dir: leave that out",
          before);
    return before;
  }
  if (!o.val_dir.empty()) {
    sources.open_dir();
    return 0;
  }
  if (o.val_share) {
    return *o.val_share;
  }
  if (o.val_split.empty()) {
    return 0;
  }
  const bool may_hold_out = o.resume.empty() && o.val_split == usual_val_split && !data::is_scene_source(o.data_dir) &&
                            sources.is_all_for_training() && !has_another_part(o.data_dir);
  double share = 0;
  with_other_ways(o, [&] {
    try {
      sources.open_part();
    } catch (const Error&) {
      if (!may_hold_out) {
        throw;
      }
      share = usual_held_share;
    }
  });
  return share;
}

data::HeldOut draw_held_out(const ImageTaskOptions& o, double share, const data::Dataset& images,
                            std::span<const std::int64_t> classes) {
  const std::vector<std::int64_t> of_none(classes.empty() ? static_cast<std::size_t>(images.size()) : 0,
                                          data::unlabeled);
  data::HeldOut drawn = data::hold_out(
      classes.empty() ? std::span<const std::int64_t>(of_none) : classes,
      [&](std::int64_t i) { return images.name(i); }, share);
  check(!drawn.learned.empty() && (!o.val_share || !drawn.held.empty()),
        "{}: a --val-share of {} of {} images leaves none to {}", o.data_dir, share, images.size(),
        drawn.learned.empty() ? "learn from" : "evaluate on");
  return drawn;
}

std::vector<std::pair<std::string, std::string>> held_out_facts(const ImageTaskOptions& o, double share, bool any) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (share > 0) {
    facts.emplace_back(held_out_fact, fmt::format("{}", share));
  }
  if (share > 0 && any) {
    facts.emplace_back(held_out_source_fact, data::absolute_source(o.data_dir));
  }
  return facts;
}

}  // namespace vitrail::train
