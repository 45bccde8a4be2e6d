// Loops as C++ has them: over vectors and spans, with a class by value, in an algorithm of the library.
//
//   fusion-c++ -std=c++20 -O3 examples/partition/vectors.cc -o vectors -Rpass=fusion &&
//   FUSION_PARTITION_REPORT=1 ./vectors
//   ./vectors N STEPS
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

// Velocities decay, positions are reflected at the walls.
class Motion {
 public:
  Motion(double step, double friction) : step_(step), decay_(1 - step * friction) {}
  double Slower(double velocity) const { return velocity * decay_; }
  double Moved(double position, double velocity) const {
    const double moved = position + step_ * velocity;
    return moved < 0 ? -moved : moved > 1 ? 2 - moved : moved;
  }

 private:
  double step_, decay_;
};

void Initialise(std::vector<double>& positions, std::vector<double>& velocities) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<double>(i % 1009) / 1009;
    velocities[i] = static_cast<double>(i % 997) / 997 - .5;
  }
}

void Slow(std::span<double> velocities, Motion motion) {
  for (std::size_t i = 0; i < velocities.size(); ++i) velocities[i] = motion.Slower(velocities[i]);
}

void Move(std::vector<double>& positions, const std::vector<double>& velocities, Motion motion) {
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = motion.Moved(positions[i], velocities[i]);
}

void Squares(const std::vector<double>& velocities, std::vector<double>& energies) {
  std::transform(velocities.begin(), velocities.end(), energies.begin(),
                 [](double velocity) { return .5 * velocity * velocity; });
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t n = count > 2 ? std::strtoul(arguments[1], nullptr, 10) : 2'000'000;
  const int steps = count > 2 ? std::atoi(arguments[2]) : 200;
  std::vector<double> positions(n), velocities(n), energies(n);
  Initialise(positions, velocities);
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    Slow(velocities, Motion(1e-2, .1));
    Move(positions, velocities, Motion(1e-2, .1));
    Squares(velocities, energies);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += positions[i] + energies[i];
  std::printf("checksum %a\nseconds %.6f\n", sum, taken.count());
}
