// Prints what a benchmark of routines measured.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/number_format.h"
#include "client/cli/render.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

// Points of the largest tile: with one block on each multiprocessor, and with the most.
struct Ends {
  const v1::RoutineTable::Point* alone = nullptr;
  const v1::RoutineTable::Point* most = nullptr;
};

Ends EndsOf(const v1::RoutineTable& table) {
  int elements = 0;
  for (const v1::RoutineTable::Point& point : table.points()) elements = std::max(elements, point.elements());
  Ends ends;
  for (const v1::RoutineTable::Point& point : table.points()) {
    if (point.elements() != elements) continue;
    if (!ends.alone || point.resident_blocks() < ends.alone->resident_blocks()) ends.alone = &point;
    if (!ends.most || point.resident_blocks() > ends.most->resident_blocks()) ends.most = &point;
  }
  return ends;
}

std::string PointText(const v1::RoutineTable::Point& point) {
  return absl::StrCat(FormatSeconds(point.seconds()), " (", point.resident_blocks(), ")");
}

}  // namespace

bool IsBenchmark(const v1::JobResult& result) { return result.has_routines() && !result.has_search(); }

Json BenchmarkJson(const v1::Job& job) {
  const v1::RoutineTables& routines = job.result().routines();
  Json tables = Json::array(), notes = Json::array();
  for (const v1::RoutineTable& table : routines.tables()) {
    Json points = Json::array();
    for (const v1::RoutineTable::Point& point : table.points())
      points.push_back({{"threads", point.threads()},
                        {"elements", point.elements()},
                        {"resident_blocks", point.resident_blocks()},
                        {"extra_shared_bytes", point.extra_shared_bytes()},
                        {"seconds", point.seconds()}});
    tables.push_back({{"routine", table.routine()}, {"points", std::move(points)}});
  }
  for (const std::string& note : routines.notes()) notes.push_back(note);
  const v1::DeviceDescription& device = job.result().device();
  return {
      {"schema", "fusion.library_bench/1"},
      {"job", job.name()},
      {"device", {{"name", device.name()}, {"target", TargetName(device.target())}, {"arch", device.arch()}}},
      {"known", routines.known()},
      {"measured", routines.measured()},
      {"seconds", routines.seconds()},
      {"notes", std::move(notes)},
      {"tables", std::move(tables)}};
}

std::string BenchmarkText(const v1::JobResult& result, const TextStyle& style) {
  const v1::RoutineTables& routines = result.routines();
  std::string text = absl::StrCat(DeviceText(result.device()), "\n", Counted(routines.measured(), "routine"),
                                  " measured in ", FormatSeconds(routines.seconds()), ", ", routines.known(),
                                  " known before\n");
  if (routines.tables_size() > 0) {
    Table table;
    table.AddColumn("routine", Table::Align::kLeft);
    table.AddColumn("points", Table::Align::kRight);
    table.AddColumn("threads", Table::Align::kRight);
    table.AddColumn("elements", Table::Align::kRight);
    table.AddColumn("alone", Table::Align::kRight);
    table.AddColumn("with others", Table::Align::kRight);
    for (const v1::RoutineTable& routine : routines.tables()) {
      const Ends ends = EndsOf(routine);
      if (!ends.alone) continue;
      table.AddRow({routine.routine(), absl::StrCat(routine.points_size()),
                    absl::StrCat(ends.most->threads()), absl::StrCat(ends.most->elements()),
                    PointText(*ends.alone), PointText(*ends.most)});
    }
    absl::StrAppend(&text, "\n", table.Print(style.width),
                    "\ntimes of a block for its elements once; in brackets: blocks on each multiprocessor\n");
  }
  for (const std::string& note : routines.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace fusion
