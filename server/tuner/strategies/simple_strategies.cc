// Strategies that need no model: all points, random points, and three local searches.
#include <algorithm>
#include <cmath>
#include <limits>

#include "server/tuner/strategies/routine.h"
#include "server/tuner/strategies/strategy.h"

namespace fusion {
namespace {

TuningPoint Start(const TuningKnowledge& knowledge) {
  return knowledge.lowest() < 0 ? knowledge.space().defaults()
                                : knowledge.arms()[static_cast<size_t>(knowledge.lowest())].point;
}

// Every point of a grid in order; of a space that is no grid, or too large, random points.
class Exhaustive : public TuningStrategy {
 public:
  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) override {
    const ParameterSpace& space = knowledge.space();
    if (space.grid_points() == ParameterSpace::kUncountable) return knowledge.RandomPoint();
    while (next_ < space.grid_points()) {
      TuningPoint point = space.Canonical(space.GridPoint(next_++));
      if (space.Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point))
        return point;
    }
    // Points that were forgotten by the programs that had them are looked for once more.
    if (!second_pass_) {
      if (!knowledge.outstanding().empty()) return std::nullopt;
      second_pass_ = true;
      next_ = 0;
      return Propose(knowledge);
    }
    finished_ = true;
    return std::nullopt;
  }
  bool finished() const override { return finished_; }

 private:
  uint64_t next_ = 0;
  bool second_pass_ = false, finished_ = false;
};

class RandomSearch : public TuningStrategy {
 public:
  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) override {
    // One that was not run yet, where there are such.
    for (int i = 0; i < 100; ++i) {
      TuningPoint point = knowledge.RandomPoint();
      if (knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point)) return point;
    }
    finished_ = knowledge.outstanding().empty();
    return std::nullopt;
  }
  bool finished() const override { return finished_; }

 private:
  bool finished_ = false;
};

// From the best known point to the best neighbour, with steps that become half as wide where none is better;
// then from random points, as often as that pays.
class HillClimbing : public RoutineStrategy {
 protected:
  Routine Run(TuningKnowledge& knowledge) override {
    const ParameterSpace& space = knowledge.space();
    double smallest = 1;
    for (size_t axis = 0; axis < space.dimensions(); ++axis)
      smallest = std::min(smallest, SmallestStep(space, axis));
    TuningPoint at = Start(knowledge);
    double lowest = std::numeric_limits<double>::infinity();
    for (int without_gain = 0; without_gain < kRestarts;) {
      double cost = co_await Try(at);
      for (double step = 0.25; step >= smallest / 2; step /= 2) {
        for (bool better = true; better;) {
          better = false;
          for (const TuningPoint& neighbour : Neighbours(space, at, step)) {
            const double found = co_await Try(neighbour);
            if (found >= cost) continue;
            cost = found;
            at = neighbour;
            better = true;
            break;  // first improvement: the next step begins here
          }
        }
      }
      without_gain = cost < lowest ? 0 : without_gain + 1;
      lowest = std::min(lowest, cost);
      at = knowledge.RandomPoint();
    }
  }

 private:
  static constexpr int kRestarts = 5;
};

// Nelder and Mead, "A simplex method for function minimization", 1965, in the unit cube; points outside are
// moved onto its side. Begins anew around the best when the simplex has collapsed onto one point, as often as
// that pays.
class NelderMead : public RoutineStrategy {
 protected:
  Routine Run(TuningKnowledge& knowledge) override {
    const ParameterSpace& space = knowledge.space();
    const size_t n = space.dimensions();
    struct Vertex {
      std::vector<double> units;
      TuningPoint point;
      double cost = 0;
    };
    const auto cheaper = [](const Vertex& a, const Vertex& b) { return a.cost < b.cost; };
    double lowest = std::numeric_limits<double>::infinity();
    double width = 0.25;
    for (int without_gain = 0; without_gain < kRestarts;) {
      std::vector<Vertex> simplex;
      const TuningPoint origin = Start(knowledge);
      for (size_t i = 0; i <= n; ++i) {
        Vertex vertex;
        vertex.units = space.ToUnit(origin);
        if (i > 0) {
          const double by =
              std::max(width, SmallestStep(space, i - 1)) * (knowledge.Uniform() < 0.5 ? 1 : -1);
          double& unit = vertex.units[i - 1];
          unit = unit + by > 1 || unit + by < 0 ? unit - by : unit + by;
        }
        vertex.point = FeasiblePoint(space, vertex.units, origin);
        vertex.cost = co_await Try(vertex.point);
        simplex.push_back(std::move(vertex));
      }
      for (int iteration = 0; iteration < kMostIterations; ++iteration) {
        std::stable_sort(simplex.begin(), simplex.end(), cheaper);
        if (std::all_of(simplex.begin() + 1, simplex.end(),
                        [&](const Vertex& v) { return v.point == simplex[0].point; }))
          break;
        std::vector<double> centre(n, 0);
        for (size_t v = 0; v < n; ++v)
          for (size_t i = 0; i < n; ++i) centre[i] += simplex[v].units[i] / static_cast<double>(n);
        Vertex& worst = simplex[n];
        const auto along = [&](double factor) {
          Vertex vertex;
          vertex.units.resize(n);
          for (size_t i = 0; i < n; ++i)
            vertex.units[i] = std::clamp(centre[i] + factor * (worst.units[i] - centre[i]), 0.0, 1.0);
          vertex.point = FeasiblePoint(space, vertex.units, simplex[0].point);
          return vertex;
        };
        Vertex reflected = along(-1);
        reflected.cost = co_await Try(reflected.point);
        if (reflected.cost < simplex[0].cost) {
          Vertex expanded = along(-2);
          expanded.cost = co_await Try(expanded.point);
          worst = expanded.cost < reflected.cost ? expanded : reflected;
          continue;
        }
        if (reflected.cost < simplex[n - 1].cost) {
          worst = reflected;
          continue;
        }
        Vertex contracted = along(reflected.cost < worst.cost ? -0.5 : 0.5);
        contracted.cost = co_await Try(contracted.point);
        if (contracted.cost < std::min(reflected.cost, worst.cost)) {
          worst = contracted;
          continue;
        }
        for (size_t v = 1; v <= n; ++v) {
          for (size_t i = 0; i < n; ++i)
            simplex[v].units[i] = (simplex[v].units[i] + simplex[0].units[i]) / 2;
          simplex[v].point = FeasiblePoint(space, simplex[v].units, simplex[0].point);
          simplex[v].cost = co_await Try(simplex[v].point);
        }
      }
      const double reached = std::min_element(simplex.begin(), simplex.end(), cheaper)->cost;
      without_gain = reached < lowest ? 0 : without_gain + 1;
      lowest = std::min(lowest, reached);
      width = without_gain % 2 == 0 ? 0.25 : 0.1;
    }
  }

 private:
  static constexpr int kRestarts = 4;
  static constexpr int kMostIterations = 200;
};

// Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", 1983. Costs are logarithms, so that
// temperatures are relative differences: from 30 % down to 0.5 %.
class Annealing : public RoutineStrategy {
 protected:
  Routine Run(TuningKnowledge& knowledge) override {
    const ParameterSpace& space = knowledge.space();
    TuningPoint at = Start(knowledge);
    double cost = co_await Try(at);
    const int steps = 60 * static_cast<int>(space.dimensions());
    for (int round = 0; round < kRounds; ++round) {
      for (int step = 0; step < steps; ++step) {
        const double progress = static_cast<double>(step) / steps;
        const double temperature = 0.3 * std::pow(0.005 / 0.3, progress);
        const TuningPoint next = Move(knowledge, at, 0.3 * std::pow(0.02 / 0.3, progress));
        const double found = co_await Try(next);
        if (found < cost || knowledge.Uniform() < std::exp((cost - found) / temperature)) {
          at = next;
          cost = found;
        }
      }
      at = Start(knowledge);
      cost = co_await Try(at);
    }
  }

 private:
  static constexpr int kRounds = 4;

  static TuningPoint Move(TuningKnowledge& knowledge, const TuningPoint& from, double width) {
    const ParameterSpace& space = knowledge.space();
    for (int i = 0; i < 100; ++i) {
      std::vector<double> units = space.ToUnit(from);
      const auto axis = static_cast<size_t>(knowledge.Uniform() * static_cast<double>(units.size()));
      if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration) {
        units[axis] = knowledge.Uniform();
      } else {
        const double by = knowledge.Normal() * width;
        units[axis] +=
            by < 0 ? std::min(by, -SmallestStep(space, axis)) : std::max(by, SmallestStep(space, axis));
        // Reflected at the bounds, so that they are not favoured.
        if (units[axis] < 0) units[axis] = std::min(1.0, -units[axis]);
        if (units[axis] > 1) units[axis] = std::max(0.0, 2 - units[axis]);
      }
      TuningPoint point = space.FromUnit(units);
      if (point != from && space.Satisfies(point)) return point;
      if (space.sparse()) return FeasiblePoint(space, units, from);
    }
    return from;
  }
};

}  // namespace

std::unique_ptr<TuningStrategy> MakeExhaustive() { return std::make_unique<Exhaustive>(); }
std::unique_ptr<TuningStrategy> MakeRandomSearch() { return std::make_unique<RandomSearch>(); }
std::unique_ptr<TuningStrategy> MakeHillClimbing() { return std::make_unique<HillClimbing>(); }
std::unique_ptr<TuningStrategy> MakeNelderMead() { return std::make_unique<NelderMead>(); }
std::unique_ptr<TuningStrategy> MakeAnnealing() { return std::make_unique<Annealing>(); }

}  // namespace fusion
