// How many evaluations the search of the online tuner needs: synthetic functions against random search, and
// the curves of Baier 2016 (tables 6.1 to 6.3). All values have 5 % of noise. No server is asked: evaluations
// are counted, not seconds.
//
//   tuning_search_bench [--functions] [--replay] [--seeds N] [--threads N] [--strategy NAME]      prints
//   JSON; neither: both
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/tuner/search.h"

namespace fusion {
namespace {

constexpr double kNoise = 0.05;
constexpr double kGoodEnough = 1.05;

struct Problem {
  std::string name;
  std::shared_ptr<const ParameterSpace> space;
  std::function<double(const TuningPoint&)> value;  // without noise, > 0
  double best = 0;
};

void Integer(v1::SectionDeclaration& d, const char* name, int64_t lower, int64_t upper) {
  v1::TuningParameter* p = d.add_parameters();
  p->set_name(name);
  p->mutable_integer()->set_lower(lower);
  p->mutable_integer()->set_upper(upper);
  p->mutable_integer()->set_step(1);
}
void Real(v1::SectionDeclaration& d, const char* name, double lower, double upper) {
  v1::TuningParameter* p = d.add_parameters();
  p->set_name(name);
  p->mutable_real()->set_lower(lower);
  p->mutable_real()->set_upper(upper);
}
void Enumeration(v1::SectionDeclaration& d, const char* name, std::initializer_list<const char*> values) {
  v1::TuningParameter* p = d.add_parameters();
  p->set_name(name);
  for (const char* value : values) p->mutable_enumeration()->add_values(value);
}
std::shared_ptr<const ParameterSpace> Space(v1::SectionDeclaration d) {
  d.set_program("bench");
  d.set_section("s");
  d.set_device_class("none");
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(d);
  if (!space.ok()) {
    std::cerr << space.status() << "\n";
    std::exit(2);
  }
  return *space;
}

// Minima of 1, so that "within 5 %" has a meaning.
std::vector<Problem> Functions() {
  std::vector<Problem> problems;
  {
    v1::SectionDeclaration d;
    Real(d, "x", -2, 2);
    Real(d, "y", -2, 2);
    problems.push_back({"Rosenbrock 2-D", Space(d),
                        [](const TuningPoint& p) {
                          const double a = 1 - p[0], b = p[1] - p[0] * p[0];
                          return 1 + a * a + 100 * b * b;
                        },
                        1});
  }
  {
    // On a grid of 33 x 33 x 33: of the continuous function random search finds 5 % once in ten million.
    v1::SectionDeclaration d;
    for (const char* name : {"x", "y", "z"})
      Integer(d, name, -19, 13);  // the optimum is not where the default is
    problems.push_back({"Rastrigin 3-D", Space(d),
                        [](const TuningPoint& p) {
                          double sum = 30;
                          for (double k : p) {
                            const double x = 0.32 * k;
                            sum += x * x - 10 * std::cos(2 * M_PI * x);
                          }
                          return 1 + sum;
                        },
                        1});
  }
  {
    v1::SectionDeclaration d;
    Integer(d, "a", 0, 99);
    Integer(d, "b", 0, 99);
    problems.push_back({"steps", Space(d),
                        [](const TuningPoint& p) {
                          return 1 + 0.1 * (std::floor(std::abs(p[0] - 63) / 6) +
                                            std::floor(std::abs(p[1] - 27) / 6));
                        },
                        1});
  }
  {
    v1::SectionDeclaration d;
    Enumeration(d, "algorithm", {"naive", "tiled", "split", "stream"});
    v1::TuningParameter* tile = d.add_parameters();
    tile->set_name("tile");
    tile->mutable_power_of_two()->set_lower(1);
    tile->mutable_power_of_two()->set_upper(256);
    Enumeration(d, "layout", {"rows", "columns", "blocked"});
    Integer(d, "unroll", 1, 8);
    Integer(d, "depth", 1, 6);
    d.mutable_parameters(4)->set_condition("algorithm == tiled || algorithm == split");
    problems.push_back({"categorical mix", Space(d),
                        [](const TuningPoint& p) {
                          const double algorithm[] = {2.2, 1.0, 1.25, 1.6};
                          const double layout[] = {1.15, 1.6, 1.0};
                          const auto kind = static_cast<size_t>(p[0]);
                          const double tile = std::log2(p[1]) - (kind == 1 ? 5 : 3);
                          const double depth = kind == 1 || kind == 2 ? 1 + 0.06 * std::abs(p[4] - 3) : 1;
                          return algorithm[kind] * (1 + 0.04 * tile * tile) *
                                 layout[static_cast<size_t>(p[2])] * (1 + 0.05 * std::abs(p[3] - 4)) * depth;
                        },
                        1});
  }
  return problems;
}

// Baier 2016, tables 6.1 to 6.3: speed-ups over the ratio of iterations on the GPU; the last is measured at
// 0.9999.
const std::vector<std::pair<std::string, std::vector<double>>>& Curves() {
  static const std::vector<std::pair<std::string, std::vector<double>>> curves = {
      {"gemm 2000 x 2300 x 2600",
       {.43670546, .46556106, .44933685, .32420609, .23301539, .20237398, .20541951, .20329812, .20316972,
        .20425854, .20123451}},
      {"gemm 10^6 x 100 x 100",
       {.24464347, .25883840, .28877814, .32656198, .37598232, .36451729, .30645426, .26448068, .23222210,
        .20808944, .18784057}},
      {"gesummv 2000",
       {.39007105, .01377109, .01373680, .01370285, .01356957, .01349990, .01331785, .01333627, .01325449,
        .01318657, .01311388}},
      {"gesummv 10^4",
       {.39052280, .12101976, .11858699, .11566120, .11396686, .11179276, .10945476, .10745027, .10164490,
        .09608380, .09118687}},
      {"syrk 2600 x 2000",
       {.88734477, .85796596, .86920821, .90889122, .97105412, 1.07440160, 1.22742361, 1.03420614, .78939777,
        .78876578, .78707533}},
      {"syrk 10^4 x 100",
       {.88287985, .83641286, .85634764, .88759596, .94637566, 1.04047315, 1.19415669, 1.45157061, 1.57920408,
        1.26916038, 1.03414331}}};
  return curves;
}

// Ratios in thousandths; times, which are what parts of a loop add up to, are interpolated.
std::vector<Problem> Replays() {
  std::vector<Problem> problems;
  for (const auto& [name, speedups] : Curves()) {
    v1::SectionDeclaration d;
    Integer(d, "ratio", 0, 1000);
    const auto value = [speedups = speedups](const TuningPoint& p) {
      const double position = p[0] / 100;
      const auto below = std::min<size_t>(static_cast<size_t>(position), speedups.size() - 2);
      const double part = position - static_cast<double>(below);
      return (1 - part) / speedups[below] + part / speedups[below + 1];
    };
    problems.push_back({name, Space(d), value, 1 / *std::max_element(speedups.begin(), speedups.end())});
  }
  return problems;
}

class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed * 7919 + 17) {}
  double operator()(double value) {
    // Three deviations at most: times are never negative.
    return value * (1 + kNoise * std::clamp(normal_(random_), -3.0, 3.0));
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

struct Run {
  int64_t found_after = -1;  // evaluations until the choice is good; -1: never
  std::vector<bool> good;    // after each evaluation
  double excess = 0;         // sum of what evaluations took beyond the best, in units of it
  int evaluations = 0;       // until the search ended
};

Run Tune(const Problem& problem, const std::string& strategy, uint64_t seed, int most, bool stop_when_found) {
  TuningSearchOptions options;
  options.strategy = strategy;
  options.seed = seed;
  absl::StatusOr<std::unique_ptr<TuningSearch>> search = TuningSearch::Create(problem.space, options);
  if (!search.ok()) {
    std::cerr << search.status() << "\n";
    std::exit(2);
  }
  Noise noise(seed);
  Run run;
  std::optional<TuningCandidate> candidate = (*search)->Propose();
  while (candidate && run.evaluations < most) {
    const double exact = problem.value(candidate->point);
    TuningMeasurement m;
    m.proposal = candidate->id;
    m.point = candidate->point;
    m.count = 1;
    m.mean = m.minimum = noise(exact);
    (*search)->Observe(m);
    run.excess += exact / problem.best - 1;
    ++run.evaluations;
    // As a server does: the next one is looked for as soon as a result is there.
    candidate = (*search)->Propose();
    const bool good = problem.value((*search)->state().best) <= kGoodEnough * problem.best;
    if (good && run.found_after < 0) run.found_after = run.evaluations;
    run.good.push_back(good);
    if (good && stop_when_found) break;
  }
  return run;
}

// Evaluations of points drawn at random until one is good: it need not know that it is.
int64_t RandomEvaluations(const Problem& problem, uint64_t seed, int64_t most) {
  std::mt19937_64 random(seed * 31 + 5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> units(problem.space->dimensions());
  for (int64_t i = 1; i <= most; ++i) {
    for (double& unit : units) unit = uniform(random);
    const TuningPoint point = problem.space->FromUnit(units);
    if (problem.value(point) <= kGoodEnough * problem.best) return i;
  }
  return most;
}

void Parallel(int threads, int count, const std::function<void(int)>& work) {
  std::atomic<int> next{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = next++; i < count; i = next++) work(i);
    });
  for (std::thread& thread : all) thread.join();
}

template <typename T>
double Quantile(std::vector<T> values, double q) {
  std::sort(values.begin(), values.end());
  return static_cast<double>(
      values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))]);
}

nlohmann::json MeasureFunctions(const std::string& strategy, int seeds, int threads) {
  constexpr int kMost = 3000;
  nlohmann::json rows = nlohmann::json::array();
  for (const Problem& problem : Functions()) {
    std::vector<int64_t> ours(seeds), random(seeds), ended(seeds);
    std::atomic<int> never{0};
    Parallel(threads, seeds, [&](int seed) {
      const Run run = Tune(problem, strategy, static_cast<uint64_t>(seed) + 1, kMost, true);
      ours[seed] = run.found_after < 0 ? kMost : run.found_after;
      if (run.found_after < 0) ++never;
      ended[seed] = run.evaluations;
      random[seed] = RandomEvaluations(problem, static_cast<uint64_t>(seed) + 1, 1'000'000);
    });
    rows.push_back({{"function", problem.name},
                    {"seeds", seeds},
                    {"median_evaluations", Quantile(ours, 0.5)},
                    {"p90_evaluations", Quantile(ours, 0.9)},
                    {"never", never.load()},
                    {"median_end", Quantile(ended, 0.5)},
                    {"random_median_evaluations", Quantile(random, 0.5)},
                    {"share_of_random", Quantile(ours, 0.5) / Quantile(random, 0.5)},
                    {"target_share_of_random", 0.5}});
    std::cerr << rows.back().dump() << "\n";
  }
  return rows;
}

nlohmann::json MeasureReplays(const std::string& strategy, int seeds, int threads) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Problem& problem : Replays()) {
    std::vector<Run> runs(seeds);
    Parallel(threads, seeds, [&](int seed) {
      runs[seed] = Tune(problem, strategy, static_cast<uint64_t>(seed) + 1, 40, false);
    });
    const auto share = [&](size_t evaluations) {
      double good = 0;
      for (const Run& run : runs) good += run.good[std::min(evaluations, run.good.size()) - 1];
      return good / seeds;
    };
    std::vector<double> excess;
    std::vector<int> ended;
    for (const Run& run : runs) {
      excess.push_back(run.excess);
      ended.push_back(run.evaluations);
    }
    rows.push_back({{"curve", problem.name},
                    {"seeds", seeds},
                    {"share_good_after_16", share(16)},
                    {"target_after_16", 0.9},
                    {"share_good_after_40", share(40)},
                    {"target_after_40", 0.99},
                    {"median_excess_runs", Quantile(excess, 0.5)},
                    {"p90_excess_runs", Quantile(excess, 0.9)},
                    {"median_evaluations", Quantile(ended, 0.5)}});
    std::cerr << rows.back().dump() << "\n";
  }
  return rows;
}

int Main(int argc, char** argv) {
  CLI::App app("Evaluations that the search of the online tuner needs");
  bool functions = false, replay = false;
  int seeds = 0, threads = static_cast<int>(std::thread::hardware_concurrency());
  std::string strategy;
  app.add_flag("--functions", functions);
  app.add_flag("--replay", replay);
  app.add_option("--seeds", seeds, "of each; 0: 100 of the functions, 1000 of the curves");
  app.add_option("--threads", threads);
  app.add_option("--strategy", strategy);
  CLI11_PARSE(app, argc, argv);
  if (!functions && !replay) functions = replay = true;
  nlohmann::json result{{"strategy", strategy.empty() ? "portfolio" : strategy},
                        {"noise", kNoise},
                        {"within", kGoodEnough - 1}};
  if (functions) result["functions"] = MeasureFunctions(strategy, seeds > 0 ? seeds : 100, threads);
  if (replay) result["replay"] = MeasureReplays(strategy, seeds > 0 ? seeds : 1000, threads);
  std::cout << result.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
