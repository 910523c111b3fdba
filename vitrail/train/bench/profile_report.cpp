#include "vitrail/train/bench/profile_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vitrail::train {
namespace {

// The rate of an amount in 1e9 per second, with its share of `best`: "123.4 (56 %)"; "" if amount or time is zero.
std::string rate(double amount, double seconds, double best) {
  if (amount == 0 || seconds <= 0) {
    return "";
  }
  const double value = 1e-9 * amount / seconds;
  return fmt::format("{:.1f} ({:.0f} %)", value, 100 * value / best);
}

std::string line(const ProfileRow& row, std::string_view phase, double peak_gflops, double bandwidth) {
  return fmt::format("  {:<24} {:<9} {:>7.1f} {:>10.3f} {:>7.1f} % {:>17} {:>17}\n", row.op, phase, row.calls,
                     1e3 * row.seconds, 100 * row.share, rate(row.flops, row.seconds, peak_gflops),
                     rate(row.bytes, row.seconds, bandwidth));
}

}  // namespace

std::vector<ProfileRow> profile_rows(std::span<const Profile::Event> events, std::int64_t steps) {
  std::map<std::pair<std::string_view, Profile::Phase>, ProfileRow> sums;
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(steps, 1));
  double total = 0;
  for (const Profile::Event& event : events) {
    ProfileRow& row = sums[{event.name, event.phase}];
    row.op = event.name;
    row.phase = event.phase;
    row.calls += share;
    row.seconds += share * event.seconds;
    row.flops += share * event.flops;
    row.bytes += share * event.bytes;
    total += share * event.seconds;
  }
  std::vector<ProfileRow> rows;
  for (auto& [key, row] : sums) {
    row.share = total > 0 ? row.seconds / total : 0;
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater<>(), &ProfileRow::seconds);
  return rows;
}

std::string profile_table(const std::vector<ProfileRow>& rows, double peak_gflops, double bandwidth) {
  std::string text = fmt::format("  {:<24} {:<9} {:>7} {:>10} {:>9} {:>17} {:>17}\n", "op", "", "calls", "ms", "share",
                                 "GF/s (of peak)", "GB/s (of memory)");
  ProfileRow sum;
  for (const ProfileRow& row : rows) {
    text += line(row, name_of(row.phase), peak_gflops, bandwidth);
    sum.calls += row.calls;
    sum.seconds += row.seconds;
    sum.share += row.share;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  sum.op = "all";
  text += line(sum, "", peak_gflops, bandwidth);
  return text;
}

std::string chrome_trace(std::span<const Profile::Event> events) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Profile::Event& event : events) {
    list.push_back({{"name", event.name},
                    {"cat", name_of(event.phase)},
                    {"ph", "X"},
                    {"ts", 1e6 * event.begin},
                    {"dur", 1e6 * event.seconds},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"flops", event.flops}, {"bytes", event.bytes}}}});
  }
  return nlohmann::ordered_json{{"displayTimeUnit", "ms"}, {"traceEvents", list}}.dump() + "\n";
}

}  // namespace vitrail::train
