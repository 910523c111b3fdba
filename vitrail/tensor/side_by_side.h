/// \file
/// Large pieces of work done on several threads at once.
#pragma once

#include <cstddef>
#include <functional>

namespace vitrail {

/// Calls work(i) for each i of [0, count) on up to `threads` threads, the calling one among them. A thread that is done
/// takes the next piece, so that pieces of unequal work are shared well; inside of one, kernels use one thread. With
/// one thread or piece, kernels use as many as ever. If a piece throws, those that have not begun are left out, and the
/// first exception is thrown again when all threads have ended. What is local to a thread (autograd::NoGrad, a Profile)
/// is work's to set.
void side_by_side(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

/// The same of the batches that a model is given. A batch to a thread needs no waiting of threads for each other in
/// each product; but fewer batches than threads would not keep all of them busy, and are done one after another by all.
void batches_side_by_side(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace vitrail
