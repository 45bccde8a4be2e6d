#include "server/loops/split_loops.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/loops/build_c.h"

namespace fusion {
namespace {

constexpr size_t kMostPoints = 4;

CStatementPtr Copied(const CStatement& statement) {
  auto copy = std::make_shared<CStatement>(statement);
  for (CStatementPtr& inner : copy->body) inner = Copied(*inner);
  return copy;
}

}  // namespace

std::vector<CExpressionPtr> SplitPoints(const CStatement& loop, const Nest& nest,
                                        const std::map<const CStatement*, int>& numbers) {
  const auto number = numbers.find(&loop);
  if (number == numbers.end()) return {};
  const NestLoop& split = nest.loops[number->second];
  if (split.value != Polynomial::Symbol(split.symbol) || !split.bounded) return {};
  std::map<std::string, std::string> outside;  // names of what all iterations have the same
  for (const std::string& parameter : nest.parameters) outside[parameter] = parameter;
  for (int outer = split.parent; outer >= 0; outer = nest.loops[outer].parent)
    if (nest.loops[outer].value == Polynomial::Symbol(nest.loops[outer].symbol))
      outside[nest.loops[outer].symbol] = nest.loops[outer].counter;
  std::vector<CExpressionPtr> points;
  std::set<std::string> seen;
  const auto add = [&](const Polynomial& moving, const Polynomial& fixed) {
    if (!moving.exact() || !fixed.exact()) return;
    const std::vector<Polynomial> coefficients = moving.CoefficientsOf(split.symbol);
    if (coefficients.size() != 2) return;
    const std::optional<int64_t> factor = coefficients[1].Constant();
    if (!factor || (*factor != 1 && *factor != -1)) return;
    const CExpressionPtr point =
        CPolynomial(*factor == 1 ? fixed - coefficients[0] : coefficients[0] - fixed, outside);
    if (point != nullptr && points.size() < kMostPoints && seen.insert(CText(*point)).second)
      points.push_back(point);
  };
  const auto is_inside = [&](const NestAccess& access) {
    return std::find(access.loops.begin(), access.loops.end(), number->second) != access.loops.end();
  };
  for (const NestAccess& one : nest.accesses)
    for (const NestAccess& other : nest.accesses) {
      if (one.array != other.array || (!one.writes && !other.writes) || !is_inside(one) || !is_inside(other))
        continue;
      for (size_t dimension = 0; dimension < one.index.size(); ++dimension)
        add(one.index[dimension], other.index[dimension]);
    }
  return points;
}

SplitLoop SplitAt(const CStatement& loop, const CExpressionPtr& point) {
  const CExpressionPtr one = CInteger(1);
  // The first value beyond the last one, in the direction of the loop.
  const bool inclusive = loop.relation.size() == 2;
  const CExpressionPtr end = inclusive ? CBinary(loop.down ? "-" : "+", loop.bound, one) : loop.bound;
  const CExpressionPtr next = CBinary(loop.down ? "-" : "+", point, one);
  const auto earlier = [&](const CExpressionPtr& a, const CExpressionPtr& b) {
    return loop.down ? CLarger(a, b) : CSmaller(a, b);
  };
  const auto later = [&](const CExpressionPtr& a, const CExpressionPtr& b) {
    return loop.down ? CSmaller(a, b) : CLarger(a, b);
  };
  SplitLoop split;
  std::vector<CStatementPtr> parts;
  const auto add = [&](const CExpressionPtr& start, const CExpressionPtr& bound) {
    auto part = std::make_shared<CStatement>(loop);
    part->directives.clear();
    part->start = start;
    part->bound = bound;
    part->relation = loop.down ? ">" : "<";
    part->body = {Copied(*loop.body[0])};
    split.parts[parts.size()] = part.get();
    parts.push_back(part);
  };
  add(loop.start, earlier(end, point));
  add(later(loop.start, point), earlier(end, next));
  add(later(loop.start, next), end);
  auto all = std::make_shared<CStatement>();
  all->position = loop.position;
  all->directives = loop.directives;
  all->body = std::move(parts);
  split.statement = all;
  return split;
}

}  // namespace fusion
