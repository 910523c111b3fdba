#include "vitrail/explain/segment_score.h"

#include <algorithm>

#include "vitrail/tensor/error.h"

namespace vitrail::explain {

std::vector<double> head_jaccards(const Tensor& masks, const io::Image& mask) {
  check(masks.rank() == 3 && masks.dtype() == DType::u8, "masks of heads are [H, rows, columns] u8, not {}",
        masks.shape());
  const Tensor dense = masks.contiguous();
  const std::int64_t rows = masks.size(1);
  const std::int64_t columns = masks.size(2);
  std::vector<double> indices;
  for (std::int64_t head = 0; head < masks.size(0); ++head) {
    const std::uint8_t* own = dense.data<std::uint8_t>() + head * rows * columns;
    std::int64_t both = 0;
    std::int64_t any = 0;
    for (std::int64_t y = 0; y < mask.height; ++y) {
      for (std::int64_t x = 0; x < mask.width; ++x) {
        const bool a = own[y * rows / mask.height * columns + x * columns / mask.width] != 0;
        const std::uint8_t* pixel = mask.at(x, y);
        const bool b = pixel[0] != 0 || pixel[1] != 0 || pixel[2] != 0;
        both += a && b ? 1 : 0;
        any += a || b ? 1 : 0;
      }
    }
    indices.push_back(any == 0 ? 1 : static_cast<double>(both) / static_cast<double>(any));
  }
  return indices;
}

void SegmentScore::add(const Tensor& masks, const io::Image& mask) {
  const std::vector<double> indices = head_jaccards(masks, mask);
  sums_.resize(images_ == 0 ? indices.size() : sums_.size());
  check(indices.size() == sums_.size(), "an image has the masks of {} heads, those before it of {}", indices.size(),
        sums_.size());
  for (std::size_t head = 0; head < indices.size(); ++head) {
    sums_[head] += indices[head];
  }
  best_ += *std::ranges::max_element(indices);
  Tensor all = Tensor::empty({1, 1, 1}, DType::u8);
  *all.data<std::uint8_t>() = 1;
  everything_ += head_jaccards(all, mask)[0];
  ++images_;
}

std::vector<double> SegmentScore::heads() const {
  std::vector<double> means = sums_;
  for (double& mean : means) {
    mean /= static_cast<double>(images_);
  }
  return means;
}

std::int64_t SegmentScore::best_head() const { return std::ranges::max_element(sums_) - sums_.begin(); }

double SegmentScore::best_of_each() const { return best_ / static_cast<double>(images_); }

double SegmentScore::everything() const { return everything_ / static_cast<double>(images_); }

}  // namespace vitrail::explain
