// The memory of backpropagation through time: through a whole text, and truncated to 64 steps, with a loop of one's
// own.
//   bptt_memory CHART.svg
#include <cstdio>
#include <iostream>

#include <vitrail/io/charts/chart.h>
#include <vitrail/io/file.h>
#include <vitrail/models/text/text_model.h>
#include <vitrail/ops/math/softmax.h>
#include <vitrail/tensor/allocator.h>
#include <vitrail/vitrail.h>

using namespace vitrail;

namespace {

constexpr std::int64_t texts = 8;
constexpr std::int64_t vocabulary = 65;

// Random tokens, [texts, length + 1].
Tensor random_texts(std::int64_t length) {
  Tensor ids = Tensor::empty({texts, length + 1}, DType::i64);
  const Philox draws(1, 0);
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ids.data<std::int64_t>()[i] = static_cast<std::int64_t>(draws.uniform(static_cast<std::uint64_t>(i)) * vocabulary);
  }
  return ids;
}

// The most bytes of tensors while the gradients of a text are computed, `steps` of it at a time.
std::size_t peak_of(const models::LanguageBody& model, const Tensor& ids, std::int64_t steps) {
  Allocator& allocator = Allocator::instance();
  allocator.reset_peak();
  const std::size_t before = allocator.statistics().in_use;
  const std::unique_ptr<models::TextState> state = model.begin();  // it is carried on, and its history is not
  nn::Pass pass;
  for (std::int64_t at = 0; at + 1 < ids.size(1); at += steps) {
    autograd::Tape tape;
    const Tensor logits = model.forward(ids.narrow(1, at, steps), pass, state.get());
    const Tensor next = ids.narrow(1, at + 1, steps).contiguous();
    tape.backward(ops::cross_entropy(ops::reshape(logits, {-1, vocabulary}), next.reshape({-1})));
  }
  return allocator.statistics().peak - before;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bptt_memory CHART.svg\n";
    return 2;
  }
  const models::TextModel model =
      models::create_text_model("lstm", {.model_kwargs = R"({"vocab_size": 65, "hidden_size": 256, "num_layers": 1})"});
  io::LineChart chart;
  chart.title = "Memory of an LSTM of 256 units, 8 texts at once";
  chart.x_label = "characters of a text";
  chart.y_label = "MB at the peak";
  chart.series.resize(2);
  chart.series[0].name = "through all of the text";
  chart.series[1].name = "truncated to 64 steps";
  std::puts("characters        all  truncated");
  for (std::int64_t length = 256; length <= 4096; length *= 2) {
    const Tensor ids = random_texts(length);
    double megabytes[2];
    for (const int truncated : {0, 1}) {
      const std::size_t peak = peak_of(models::language_of(model), ids, truncated == 1 ? 64 : length);
      megabytes[truncated] = static_cast<double>(peak) / 1e6;
      chart.series[static_cast<std::size_t>(truncated)].x.push_back(static_cast<double>(length));
      chart.series[static_cast<std::size_t>(truncated)].y.push_back(megabytes[truncated]);
    }
    std::printf("%10ld %7.1f MB %7.1f MB\n", static_cast<long>(length), megabytes[0], megabytes[1]);
  }
  io::write_atomically(argv[1], io::line_charts_svg({chart}));
}
