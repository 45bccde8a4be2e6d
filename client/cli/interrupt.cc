#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "client/cli/invocation.h"

namespace fusion {

struct InterruptHandler::State {
  boost::asio::io_context io;
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  boost::asio::steady_timer patience{io};
  std::atomic<bool> interrupted{false};
  std::thread thread;
};

InterruptHandler::InterruptHandler(Client* client, std::function<void()> on_interrupt)
    : state_(std::make_unique<State>()) {
  State* state = state_.get();
  state->signals.async_wait(
      [state, client, on_interrupt = std::move(on_interrupt)](const boost::system::error_code& error, int) {
        if (error) return;
        state->interrupted = true;
        if (on_interrupt) on_interrupt();
        client->Interrupt();
        auto leave = [](const boost::system::error_code& error, auto...) {
          if (!error) _exit(kInterrupted);
        };
        state->signals.async_wait(leave);
        state->patience.expires_after(std::chrono::seconds(10));
        state->patience.async_wait(leave);
      });
  state->thread = std::thread([state] { state->io.run(); });
}

InterruptHandler::~InterruptHandler() {
  state_->io.stop();
  state_->thread.join();
}

bool InterruptHandler::interrupted() const { return state_->interrupted; }

}  // namespace fusion
