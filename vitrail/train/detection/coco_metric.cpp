#include "vitrail/train/detection/coco_metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

using data::Box;
using data::BoxedObject;

constexpr std::size_t thresholds = 10;
constexpr std::size_t levels = 101;
constexpr std::array<std::size_t, 3> most_detections = {1, 10, 100};

// The i-th of `count` numbers from `low` to `high`, with the rounding of numpy.linspace.
double linspace(double low, double high, std::size_t count, std::size_t i) {
  const auto last = static_cast<double>(count - 1);
  return i + 1 == count ? high : static_cast<double>(i) * ((high - low) / last) + low;
}

struct AreaRange {
  double low;
  double high;
  bool holds(double area) const { return area >= low && area <= high; }
};
constexpr std::array<AreaRange, 4> area_ranges = {
    {{0, 1e10}, {0, 32.0 * 32.0}, {32.0 * 32.0, 96.0 * 96.0}, {96.0 * 96.0, 1e10}}};

double overlap(const Box& found, const BoxedObject& object) {
  const double both = data::intersection(found, object.box);
  return both / (object.crowd ? found.area() : found.area() + object.box.area() - both);
}

// The objects of one class in one image, and what was found of it, the likeliest first.
struct Case {
  std::vector<FoundObject> found;
  std::vector<BoxedObject> objects;
  std::vector<double> overlaps;  // [found, objects]
};

// What became of the detections of a case at each threshold, for one range of areas.
struct Verdict {
  std::vector<double> scores;
  std::vector<std::uint8_t> matched;  // [thresholds, found]
  std::vector<std::uint8_t> ignored;
  std::size_t counted = 0;  // objects that are to be found
};

Verdict judge(const Case& one, const AreaRange& range) {
  const std::size_t found = one.found.size();
  const std::size_t objects = one.objects.size();
  std::vector<bool> passed_over(objects);
  for (std::size_t i = 0; i < objects; ++i) {
    passed_over[i] = one.objects[i].crowd || one.objects[i].difficult || !range.holds(one.objects[i].area);
  }
  std::vector<std::size_t> order(objects);  // those that count come first
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return passed_over[i]; });
  Verdict verdict;
  verdict.counted = static_cast<std::size_t>(std::ranges::count(passed_over, false));
  for (const FoundObject& detection : one.found) {
    verdict.scores.push_back(detection.score);
  }
  verdict.matched.assign(thresholds * found, 0);
  verdict.ignored.assign(thresholds * found, 0);
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  for (std::size_t t = 0; t < thresholds; ++t) {
    std::vector<bool> taken(objects, false);
    for (std::size_t d = 0; d < found; ++d) {
      double best = std::min(linspace(0.5, 0.95, thresholds, t), 1 - 1e-10);
      std::size_t match = none;
      for (const std::size_t i : order) {
        if (taken[i] && !one.objects[i].crowd) {
          continue;
        }
        if (match != none && !passed_over[match] && passed_over[i]) {
          break;
        }
        if (const double overlaps = one.overlaps[d * objects + i]; overlaps >= best) {
          best = overlaps;
          match = i;
        }
      }
      const std::size_t place = t * found + d;
      if (match != none) {
        taken[match] = true;
        verdict.matched[place] = 1;
        verdict.ignored[place] = passed_over[match];
      } else {
        verdict.ignored[place] = !range.holds(one.found[d].box.area());
      }
    }
  }
  return verdict;
}

// Precision averaged over levels of recall, and the recall that is reached, for each threshold; -1 without objects.
struct Curve {
  std::array<double, thresholds> precision;
  std::array<double, thresholds> recall;
  bool defined = false;
};

Curve accumulate(const std::vector<Verdict>& verdicts, std::size_t most) {
  Curve curve;
  struct Place {
    double score;
    const Verdict* verdict;
    std::size_t index;
  };
  std::vector<Place> all;
  std::size_t counted = 0;
  for (const Verdict& verdict : verdicts) {
    counted += verdict.counted;
    for (std::size_t d = 0; d < std::min(most, verdict.scores.size()); ++d) {
      all.push_back({verdict.scores[d], &verdict, d});
    }
  }
  if (counted == 0) {
    return curve;
  }
  std::ranges::stable_sort(all, std::greater{}, &Place::score);
  curve.defined = true;
  for (std::size_t t = 0; t < thresholds; ++t) {
    std::vector<double> recalls;
    std::vector<double> precisions;
    double right = 0;
    double wrong = 0;
    for (const Place& place : all) {
      const std::size_t at = t * place.verdict->scores.size() + place.index;
      if (place.verdict->ignored[at] == 0) {
        (place.verdict->matched[at] != 0 ? right : wrong) += 1;
      }
      recalls.push_back(right / static_cast<double>(counted));
      precisions.push_back(right / (right + wrong + std::numeric_limits<double>::epsilon()));
    }
    for (std::size_t i = precisions.size(); i-- > 1;) {
      precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
    }
    double sum = 0;
    for (std::size_t level = 0; level < levels; ++level) {
      const auto reached = std::ranges::lower_bound(recalls, linspace(0, 1, levels, level));
      sum += reached == recalls.end() ? 0 : precisions[static_cast<std::size_t>(reached - recalls.begin())];
    }
    curve.precision[t] = sum / levels;
    curve.recall[t] = recalls.empty() ? 0 : recalls.back();
  }
  return curve;
}

// The mean over the classes that have objects, and over all thresholds or one; -1 if there is none.
template <class Value>
double mean_over(const std::vector<Curve>& curves, Value&& value) {
  double sum = 0;
  double count = 0;
  for (const Curve& curve : curves) {
    if (curve.defined) {
      sum += value(curve);
      count += 1;
    }
  }
  return count == 0 ? -1 : sum / count;
}

double mean_of(const std::array<double, thresholds>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / thresholds;
}

Case case_of(const std::vector<FoundObject>& found, const std::vector<BoxedObject>& objects, std::int64_t label) {
  Case one;
  std::ranges::copy_if(found, std::back_inserter(one.found), [&](const FoundObject& f) { return f.label == label; });
  std::ranges::stable_sort(one.found, std::greater{}, &FoundObject::score);
  one.found.resize(std::min(one.found.size(), most_detections.back()));
  std::ranges::copy_if(objects, std::back_inserter(one.objects),
                       [&](const BoxedObject& o) { return o.label == label; });
  for (const FoundObject& detection : one.found) {
    for (const BoxedObject& object : one.objects) {
      one.overlaps.push_back(overlap(detection.box, object));
    }
  }
  return one;
}

}  // namespace

const std::array<std::string, 12>& coco_figure_names() {
  static const std::array<std::string, 12> names = {"AP",  "AP50", "AP75",  "APs", "APm", "APl",
                                                    "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};
  return names;
}

CocoFigures coco_figures(std::span<const std::vector<FoundObject>> found,
                         std::span<const std::vector<data::BoxedObject>> objects, std::int64_t classes) {
  check(found.size() == objects.size(), "detections of {} images cannot be compared with the objects of {}",
        found.size(), objects.size());
  std::array<std::vector<Curve>, area_ranges.size()> curves;       // with 100 detections, by class
  std::array<std::vector<Curve>, most_detections.size()> by_most;  // of all areas
  for (std::int64_t label = 0; label < classes; ++label) {
    std::vector<Case> cases;
    cases.reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      cases.push_back(case_of(found[i], objects[i], label));
    }
    for (std::size_t r = 0; r < area_ranges.size(); ++r) {
      std::vector<Verdict> verdicts;
      verdicts.reserve(cases.size());
      for (const Case& one : cases) {
        verdicts.push_back(judge(one, area_ranges[r]));
      }
      curves[r].push_back(accumulate(verdicts, most_detections.back()));
      for (std::size_t m = 0; m < most_detections.size() && r == 0; ++m) {
        by_most[m].push_back(accumulate(verdicts, most_detections[m]));
      }
    }
  }
  const auto precision = [](const Curve& curve) { return mean_of(curve.precision); };
  const auto recall = [](const Curve& curve) { return mean_of(curve.recall); };
  const auto precision_at = [](std::size_t t) { return [t](const Curve& curve) { return curve.precision[t]; }; };
  CocoFigures result;
  result.stats = {
      mean_over(curves[0], precision), mean_over(curves[0], precision_at(0)), mean_over(curves[0], precision_at(5)),
      mean_over(curves[1], precision), mean_over(curves[2], precision),       mean_over(curves[3], precision),
      mean_over(by_most[0], recall),   mean_over(by_most[1], recall),         mean_over(by_most[2], recall),
      mean_over(curves[1], recall),    mean_over(curves[2], recall),          mean_over(curves[3], recall)};
  for (const Curve& curve : curves[0]) {
    result.class_ap.push_back(curve.defined ? precision(curve) : -1);
    result.class_ap50.push_back(curve.defined ? curve.precision[0] : -1);
  }
  return result;
}

}  // namespace vitrail::train
