// Ranks that are threads of one process, for tests of what is built on messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "vitrail/dist/communicator.h"

namespace vitrail::test {

// The messages from one rank to another with one tag: the n-th that is asked for is the n-th that was sent.
struct Letters {
  std::vector<std::vector<std::byte>> sent;
  std::size_t asked_for = 0;
};

// All messages, by sender, receiver and tag.
struct Mailbox {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, Letters> letters;
};

class ThreadRank final : public dist::Communicator {
 public:
  ThreadRank(Mailbox& mailbox, int rank, int size) : mailbox_(mailbox), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<dist::Message> send(std::span<const std::byte> bytes, int to, int tag) override {
    const std::lock_guard lock(mailbox_.mutex);
    mailbox_.letters[{rank_, to, tag}].sent.emplace_back(bytes.begin(), bytes.end());
    bytes_sent += bytes.size();
    return std::make_unique<Sent>();
  }
  std::unique_ptr<dist::Message> begin_receive(std::span<std::byte> bytes, int from, int tag) override {
    return std::make_unique<Received>(mailbox_, std::tuple{from, rank_, tag}, bytes);
  }
  [[noreturn]] void abort() override { throw Error("aborted"); }

  std::size_t bytes_sent = 0;

 private:
  struct Sent final : dist::Message {
    bool done() override { return true; }
  };
  struct Received final : dist::Message {
    Received(Mailbox& box, std::tuple<int, int, int> which, std::span<std::byte> to)
        : mailbox(box), key(std::move(which)), bytes(to) {
      const std::lock_guard lock(mailbox.mutex);
      number = mailbox.letters[key].asked_for++;
    }
    bool done() override {
      const std::lock_guard lock(mailbox.mutex);
      const std::vector<std::vector<std::byte>>& sent = mailbox.letters[key].sent;
      if (number >= sent.size()) {
        return false;
      }
      check(sent[number].size() == bytes.size(), "a message of {} bytes came where {} were expected",
            sent[number].size(), bytes.size());
      std::ranges::copy(sent[number], bytes.begin());
      return true;
    }
    Mailbox& mailbox;
    std::tuple<int, int, int> key;
    std::span<std::byte> bytes;
    std::size_t number = 0;
  };

  Mailbox& mailbox_;
  int rank_;
  int size_;
};

// Runs work(rank) on so many ranks at once, and throws again what the first of them has thrown.
inline void on_ranks(int size, const std::function<void(ThreadRank&)>& work) {
  Mailbox mailbox;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadRank self(mailbox, rank, size);
        work(self);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) {
      std::rethrow_exception(error);
    }
  }
}

}  // namespace vitrail::test
