// The final order of candidates.
#pragma once

#include <vector>

#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// Sorts candidates and fills rank and tie. OK ones come first, by median time. Those whose confidence
// interval reaches into that of the fastest, up to 5 % beyond its median, cannot be told from it: they are
// marked as ties and stand in predicted order, so that noise does not make another winner on each run.
// Candidates with another outcome follow, in predicted order.
void RankCandidates(std::vector<v1::Candidate>* candidates);

// Does the same where nothing is measured: OK ones come first, all are in predicted order.
void RankAsPredicted(std::vector<v1::Candidate>* candidates);

// Positions of the candidates worth a second, interleaved measurement: OK, at most `count`, fastest first.
// One whose time is not steady counts by its fastest samples.
std::vector<int> ChooseFinalists(const std::vector<v1::Candidate>& candidates, int count);

// Returns whether the times tell which candidate is the fastest: its time is steady, and none whose time is
// not steady has samples as short. True also where none is OK.
bool IsReliable(const std::vector<v1::Candidate>& candidates);

}  // namespace fusion
