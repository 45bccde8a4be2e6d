// Cuts from conflicts of pairs of sets: two sets that share a node, or wait for each other, are not both in a
// schedulable cover; nor are more than one of a clique of such. Internal to server/cover.
#pragma once

#include <utility>
#include <vector>

#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"
#include "server/linear/deadline.h"

namespace fusion {

// Returns cuts that the shares (sets that are taken, each with how much of it, ascending) break. Each clique
// grows by the sets of `near`, in that order, that are in conflict with all of it. Each cut holds for every
// schedulable cover. (Clique inequalities: M. W. Padberg, 1973.)
std::vector<Cut> CliqueCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares,
                            const std::vector<int>& near, Deadline deadline);

// Returns cuts that the shares break, against two sets that wait for each other: with edges u1 -> v2 and u2
// -> v1 at most one set of a schedulable cover holds u1 and v1 without u2 and v2, or u2 and v2 without u1 and
// v1.
std::vector<Cut> WaitingPairCuts(const SetProblem& problem,
                                 const std::vector<std::pair<int, double>>& shares);

}  // namespace fusion
