#include "vitrail/train/run/held_out.h"

#include <filesystem>

#include <fmt/format.h>

#include "vitrail/data/dataset.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* share_fact = "held_out";

}  // namespace

double open_part_or_hold_out(const ImageTaskOptions& o, const std::function<bool()>& all_for_training,
                             const std::function<void()>& open) {
  if (o.val_share) {
    return *o.val_share;
  }
  // A run goes on as it began.
  const bool began_so = o.resume.empty() || read_facts(fs::path(o.resume) / "config.toml").contains(share_fact);
  double share = 0;
  with_other_ways(o, [&] {
    try {
      open();
    } catch (const Error&) {
      if (!began_so || o.val_split != usual_val_split || data::is_scene_source(o.data_dir) || !all_for_training()) {
        throw;
      }
      share = usual_held_share;
    }
  });
  return share;
}

data::HeldOut draw_held_out(const ImageTaskOptions& o, double share, std::span<const std::int64_t> classes) {
  data::HeldOut drawn = data::hold_out(classes, share, 0);
  check(!drawn.learned.empty(), "{}: with a --val-share of {} nothing is left to learn from", o.data_dir, share);
  return drawn;
}

data::HeldOut draw_held_out(const ImageTaskOptions& o, double share, std::int64_t images) {
  return draw_held_out(o, share, std::vector<std::int64_t>(static_cast<std::size_t>(images), data::unlabeled));
}

std::vector<std::pair<std::string, std::string>> held_out_facts(const ImageTaskOptions& o, double share) {
  return share > 0
             ? std::vector<std::pair<std::string, std::string>>{{share_fact, fmt::format("{}", share)},
                                                                {"held_out_of", data::absolute_source(o.data_dir)}}
             : std::vector<std::pair<std::string, std::string>>();
}

}  // namespace vitrail::train
